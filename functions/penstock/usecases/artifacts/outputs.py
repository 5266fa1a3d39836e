"""Outputs: files that a job leaves, uploaded straight to the object store. Agents upload them, users download them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from penstock import transaction
from penstock.domain.artifacts import outputs, retention
from penstock.domain.artifacts.artifacts import JOB, Artifact, artifact_key, owner
from penstock.domain.artifacts.outputs import Output, output_key
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import AgentFile, AgentParts
from penstock.domain.jobs.jobs import Job
from penstock.domain.replies import Empty, OutputUpload, OutputUploads, PartUploads, SignedOutput
from penstock.kernel import limits, rows
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System
from penstock.usecases.artifacts import owners, uploads
from penstock.usecases.jobs.jobs import fence
from penstock.usecases.site import configuration

SIGNED_SECONDS_MOST = 3600

AT_ONCE = 30
"""How many files one write names: each has three rows, and a write has room for a hundred."""


def begin(on: System, job: Job, files: Sequence[AgentFile]) -> OutputUploads:
    """Name each file, and say where to upload it. The rows come first, so that no bytes are unknown. [ART-2] [SLOT-3]

    A file that was named and has not arrived keeps its name, so that a repeated call continues with it.
    """
    site = configuration.current(on)
    check(files, site.limits.output_bytes)
    known = on.store.find(f"job#{job.id}", "output#", Output, limit=limits.OUTPUTS)
    begun = {_identity(row): row for row in known if not row.is_committed and row.attempt == job.attempt}
    rows = [begun.get(_identity(file)) or _output(on, job, file) for file in files]
    there = {row.id for row in known}
    fresh = [(row, file) for row, file in zip(rows, files, strict=True) if row.id not in there]
    if len(known) + len(fresh) > limits.OUTPUTS:
        raise Refused(413, "too-many-outputs", f"a job keeps at most {limits.OUTPUTS} outputs")
    upload = timedelta(seconds=site.retention.upload)
    for start in range(0, len(fresh), AT_ONCE):
        transaction.run(on, partial(_begin_changes, on, job, fresh[start : start + AT_ONCE], upload))
    return OutputUploads([_upload(on, row, file) for row, file in zip(rows, files, strict=True)])


def _identity(file: Output | AgentFile) -> tuple[str, int, str]:
    return file.path, file.size, file.sha256


def _output(on: System, job: Job, file: AgentFile) -> Output:
    id = on.world.ulid()
    return Output(
        id=id, artifact=id, job=job.id, attempt=job.attempt, path=file.path, size=file.size, sha256=file.sha256,
        time=on.world.now(),
    )  # fmt: skip


def _begin_changes(
    on: System, job: Job, files: Sequence[tuple[Output, AgentFile]], upload: timedelta
) -> tuple[Sequence[Change], None]:
    changes: list[Change] = [fence(on, job)]
    for row, file in files:
        made = Artifact(
            id=row.artifact, path=row.path, size=row.size, sha256=row.sha256, composite=file.composite, by=job.owner,
            time=row.time, job=job.id,
        )  # fmt: skip
        changes += [Create(row), *owners.begin(made, upload)]
    return changes, None


def _upload(on: System, row: Output, file: AgentFile) -> OutputUpload:
    return OutputUpload(**vars(uploads.sign_upload(on, row.artifact, file)), id=row.id, path=row.path)


def sign_parts(on: System, job: Job, ask: AgentParts) -> PartUploads:
    """Where to upload some parts of a file. Raises Refused 400 or 404."""
    row = on.store.get(output_key(job.id, ask.id), Output)
    artifact = on.store.get(artifact_key(row.artifact), Artifact) if row else None
    if artifact is None:
        raise not_found("output", ask.id)
    return uploads.sign_parts(on, artifact, ask)


def commit(on: System, job: Job, names: Sequence[str]) -> Empty:
    """Record that files have arrived, after checking: from here on the job owns them. [ART-1]

    Raises Refused 409 if their bytes are incomplete.
    """
    for name in names:
        row = on.store.get(output_key(job.id, name), Output) if rows.is_ulid(name) else None
        if row is None:
            raise not_found("output", name[:64])
        if row.is_committed:
            continue
        size = uploads.arrived_bytes(on, row.artifact, row.size)
        if size != row.size:
            raise Refused(409, "output-incomplete", f"of {row.path} {size or 0} of {row.size} bytes have arrived")
        transaction.run(on, partial(_commit_changes, on, job, name))
    return Empty()


def _commit_changes(on: System, job: Job, name: str) -> tuple[Sequence[Change], None]:
    row = on.store.get(output_key(job.id, name), Output)
    if row is None:
        raise not_found("output", name)
    if row.is_committed:
        return [], None
    there = owners.arrival_changes(on, row.artifact, owner(JOB, job.id))
    if there is None:
        raise not_found("output", name)
    return [Replace(row, outputs.commit(row)), *there, fence(on, job)], None


def list_outputs(on: System, job: Job, after: str = "") -> tuple[list[Output], str | None]:
    """A job's outputs whose bytes are there, oldest first, and the next page."""
    place = output_key(job.id, after).sk if after else ""
    found = on.store.find(f"job#{job.id}", "output#", Output, limit=limits.PAGE, after=place)
    return [row for row in found if row.is_committed], found[-1].id if len(found) == limits.PAGE else None


def sign(on: System, job: Job, name: str, seconds: int) -> SignedOutput:
    """A URL to download an output for some seconds (at most SIGNED_SECONDS_MOST)."""
    row = on.store.get(output_key(job.id, name), Output) if rows.is_ulid(name) else None
    if row is None or not row.is_committed:
        if job.end.outputs_gone:
            raise Refused(410, "outputs-gone", retention.outputs_gone(job.id, job.end.outputs_gone).detail)
        raise not_found("output", name[:64])
    return sign_artifact(on, row.artifact, row.path, row.size, row.sha256, seconds)


def sign_artifact(on: System, artifact: str, path: str, size: int, sha256: str, seconds: int) -> SignedOutput:
    """A URL to download an artifact, to be saved under the last part of a path."""
    lasts = max(1, min(seconds, SIGNED_SECONDS_MOST))
    given = on.objects.download(object_name(artifact), lasts, path.rpartition("/")[2])
    return SignedOutput(given.url, size, sha256, lasts)


def check(files: Sequence[AgentFile], most: int) -> Sequence[AgentFile]:
    """Files as an agent named them, of at most so many bytes. Raises Refused 413 or 400."""
    if len(files) > limits.OUTPUTS_PER_CALL:
        raise Refused(413, "too-many-outputs", f"name at most {limits.OUTPUTS_PER_CALL} files at once")
    for file in files:
        if not file.path.startswith("/"):
            raise Refused(400, "bad-request", f"{file.path[:200]!r} is no absolute path")
        uploads.check("output", file.path, file, most)
    return files
