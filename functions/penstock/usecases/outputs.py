"""Outputs: named by rows, sent straight to where bytes are kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.domain import ids, limits, outputs
from penstock.domain.errors import Refused, not_found
from penstock.domain.jobs import Job
from penstock.domain.outputs import UPLOAD_WITHIN, Output, output_key
from penstock.domain.rows import Change, Create, Delete, Replace
from penstock.system import System
from penstock.usecases import race, sites
from penstock.usecases.fencing import fence
from penstock.wire.agent import AgentFile

LONGEST = 3600
_DIGEST = re.compile(r"[0-9a-f]{64}")


def check(files: Sequence[AgentFile]) -> Sequence[AgentFile]:
    """Files as an agent named them. Raises Refused 413 or 400."""
    if len(files) > limits.OUTPUTS_PER_CALL:
        raise Refused(413, "too-many-outputs", f"name at most {limits.OUTPUTS_PER_CALL} files at once")
    for file in files:
        if not file.path.startswith("/") or file.size < 0 or not _DIGEST.fullmatch(file.sha256):
            raise Refused(400, "bad-request", f"{file.path[:200]!r} needs an absolute path, a size, and 64 hex digits")
    return files


def begin(on: System, job: Job, files: Sequence[AgentFile]) -> dict[str, Any]:
    """Name each file and give leave to send it. The row comes first, so that no bytes are unknown. [ART-2] [SLOT-3]"""
    most = sites.current(on).limits.output_bytes
    for file in check(files):
        if file.size > most:
            raise Refused(413, "output-too-big", f"{file.path} has {file.size} bytes; the site takes {most}")
    known = on.store.find(f"job#{job.id}", "output#", Output, limit=limits.OUTPUTS)
    if len(known) + len(files) > limits.OUTPUTS:
        raise Refused(413, "too-many-outputs", f"a job keeps at most {limits.OUTPUTS} outputs")
    now = on.world.now()
    rows = [
        Output(
            id=on.world.ulid(), job=job.id, attempt=job.attempt, path=file.path, size=file.size,
            sha256=file.sha256, time=now, due=now + UPLOAD_WITHIN,
        )
        for file in files
    ]  # fmt: skip
    for row in rows:
        race.run(on, partial(_named, on, job, row))
    return {"uploads": [_upload(on, row) for row in rows]}


def _upload(on: System, row: Output) -> dict[str, Any]:
    leave = on.objects.upload(row.object_name, row.size, row.sha256)
    return {
        "id": row.id, "path": row.path, "method": leave.method, "url": leave.url, "headers": dict(leave.headers),
    }  # fmt: skip


def commit(on: System, job: Job, names: Sequence[str]) -> dict[str, Any]:
    """Note that bytes have arrived, after looking. Raises Refused 409 for bytes that are not there whole."""
    for name in names:
        row = on.store.get(output_key(job.id, name), Output) if ids.is_ulid(name) else None
        if row is None or row.expired:
            raise not_found("output", name[:64])
        if row.is_committed:
            continue
        size = on.objects.size(row.object_name)
        if size != row.size:
            raise Refused(409, "output-incomplete", f"of {row.path} {size or 0} of {row.size} bytes have arrived")
        race.run(on, partial(_arrived, on, job, name))
    return {}


def _named(on: System, job: Job, row: Output) -> tuple[Sequence[Change], None]:
    return [Create(row), fence(on, job)], None


def _arrived(on: System, job: Job, name: str) -> tuple[Sequence[Change], None]:
    row = on.store.get(output_key(job.id, name), Output)
    if row is None or row.expired:
        raise not_found("output", name)
    if row.is_committed:
        return [], None
    return [Replace(row, outputs.commit(row)), fence(on, job)], None


def listed(on: System, job: Job, after: str = "") -> tuple[list[Output], str | None]:
    """A job's outputs whose bytes are there, oldest first, and the page that follows."""
    place = output_key(job.id, after).sk if after else ""
    found = on.store.find(f"job#{job.id}", "output#", Output, limit=limits.PAGE, after=place)
    return [row for row in found if row.is_committed], found[-1].id if len(found) == limits.PAGE else None


def sign(on: System, job: Job, name: str, seconds: int) -> dict[str, Any]:
    """Leave to fetch an output for some seconds (at most LONGEST)."""
    row = on.store.get(output_key(job.id, name), Output) if ids.is_ulid(name) else None
    if row is None or not row.is_committed:
        raise not_found("output", name[:64])
    lasts = max(1, min(seconds, LONGEST))
    leave = on.objects.download(row.object_name, lasts, row.path.rpartition("/")[2])
    return {"url": leave.url, "size": row.size, "sha256": row.sha256, "expires_in": lasts}


def expire(on: System, job: str, name: str) -> None:
    """Delete an upload that never arrived: its bytes first, then the row that says they may exist. [ART-1]

    Before its bytes go the row says so: or an agent could commit it in between, and nothing would be behind it.
    """
    row = on.store.get(output_key(job, name), Output)
    if row is None or row.due is None or row.due > on.world.now():
        return
    if on.store.commit([Replace(row, outputs.expire(row))]):
        on.objects.delete(row.object_name)
        left = on.store.get(row.key, Output)
        if left:
            on.store.commit([Delete(left)])
