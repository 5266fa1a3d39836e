"""Outputs: files that a job leaves, uploaded straight to the object store. Agents upload them, users download them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from penstock.domain.artifacts import artifacts, retention
from penstock.domain.artifacts.artifacts import JOB, OUTPUT, Artifact, artifact_key, owner
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import AgentFile, AgentParts
from penstock.domain.jobs.jobs import Job
from penstock.domain.replies import Empty, OutputUpload, OutputUploads, PartUploads, SignedOutput
from penstock.domain.site.site import Limits
from penstock.kernel import limits
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Replace
from penstock.system import System, current_site, transact
from penstock.toml.checks import CONTROL
from penstock.usecases.artifacts import owners, uploads
from penstock.usecases.jobs.flow import fence
from penstock.usecases.users import users

SIGNED_SECONDS_MOST = 3600

AT_ONCE = limits.TRANSACTION_ITEMS - 1
"""How many files one write commits: each is a row, and one more item is the check that the attempt is not over."""


def begin(on: System, job: Job, files: Sequence[AgentFile]) -> OutputUploads:
    """Name each file, and say where to upload it. The rows come first, so that no bytes are unknown. [ART-2]

    A file that was named and has not arrived keeps its name, so that a repeated call continues with it. An attempt that
    ends meanwhile may still name files: nobody sees a name before its commit, and one without goes by itself.
    """
    site = current_site(on)
    check(files, site.limits.output_bytes)
    upload = timedelta(seconds=site.retention.upload)
    rows = transact(on, lambda: _begin_changes(on, job, files, upload, site.limits))
    return OutputUploads([_upload(on, row) for row in rows])


def _begin_changes(
    on: System, job: Job, files: Sequence[AgentFile], upload: timedelta, most: Limits
) -> tuple[Sequence[Change], list[Artifact]]:
    """The rows of files that have none yet. A write whose answer was lost is found when this is repeated.

    What earlier attempts kept does not count: the script of this one cannot keep less for that.
    """
    known = [row for row in owners.made_for(on, job.id) if row.sort == OUTPUT and row.attempt == job.attempt]
    begun = {_identity(row): row for row in known if artifacts.is_begun(row)}
    rows = [begun.get(_identity(file)) or _output(on, job, file) for file in files]
    there = {row.id for row in known}
    fresh = [row for row in rows if row.id not in there]
    if len(known) + len(fresh) > limits.OUTPUTS:
        raise Refused(413, "too-many-outputs", f"a job keeps at most {limits.OUTPUTS} outputs of an attempt")
    counted, tally = users.count_bytes(on, job.owner, fresh, most)
    return [*(owners.begin(row, upload) for row in counted), *tally], rows


def _identity(file: Artifact | AgentFile) -> tuple[str, int, str, str]:
    return file.path, file.size, file.sha256, file.composite


def _output(on: System, job: Job, file: AgentFile) -> Artifact:
    return Artifact(
        id=artifacts.id_of(job.id, on.world.ulid()), path=file.path, size=file.size, sha256=file.sha256,
        composite=file.composite, by=job.owner, time=on.world.now(), sort=OUTPUT, attempt=job.attempt,
    )  # fmt: skip


def _upload(on: System, row: Artifact) -> OutputUpload:
    return OutputUpload(**vars(uploads.sign_upload(on, row)), id=row.id, path=row.path)


def _find(on: System, job: Job, id: str) -> Artifact | None:
    """A job's output, arrived or not. [SEC-2]"""
    found = owners.find(on, id) if artifacts.job_of(id) == job.id else None
    return found if found and found.sort == OUTPUT else None


def find(on: System, job: Job, id: str) -> Artifact | None:
    """An output that a job owns: one whose bytes have arrived."""
    found = _find(on, job, id)
    return found if found and artifacts.is_output(found) else None


def sign_parts(on: System, job: Job, ask: AgentParts) -> PartUploads:
    """Where to upload some parts of a file. Raises Refused 400 or 404."""
    row = _find(on, job, ask.id)
    if row is None:
        raise not_found("output", ask.id)
    return uploads.sign_parts(on, row, ask)


def commit(on: System, job: Job, names: Sequence[str]) -> Empty:
    """Record that files have arrived, after checking: from here on the job owns them. [ART-1] [SLOT-3]

    What has arrived is committed in as few writes as there is room for, also if something else has not. Raises Refused
    404 for what this job did not name, or what expired; 409 if bytes are incomplete, or not those that were announced.
    """
    here = _arrivals(on, job, names)
    arrived = [name for name, refused in here.items() if refused is None]
    for start in range(0, len(arrived), AT_ONCE):
        gone = transact(on, partial(_commit_changes, on, job, arrived[start : start + AT_ONCE]))
        here |= {name: not_found("output", name[:64]) for name in gone}
    for refused in filter(None, here.values()):
        raise refused
    return Empty()


def check_arrived(on: System, job: Job, names: Sequence[str]) -> None:
    """Check that files have arrived that a report on their job names. Raises what `commit` raises, and Refused 413."""
    if len(names) > limits.OUTPUTS_WITH_REPORT:
        raise Refused(413, "too-many-outputs", f"name at most {limits.OUTPUTS_WITH_REPORT} files with the report")
    for refused in filter(None, _arrivals(on, job, names).values()):
        raise refused


def reported_changes(on: System, job: Job, names: Sequence[str]) -> Sequence[Change]:
    """The ownership of files that have arrived, to be written with the report on their job. Raises Refused 404."""
    changes, gone = _ownership_changes(on, job, names)
    if gone:
        raise not_found("output", gone[0][:64])
    return changes


def _arrivals(on: System, job: Job, names: Sequence[str]) -> dict[str, Refused | None]:
    return {name: _arrival(on, _find(on, job, name), name) for name in names}


def _arrival(on: System, row: Artifact | None, name: str) -> Refused | None:
    """Why a file cannot be committed; None if its bytes are there, or it was committed before."""
    if row is None:
        return not_found("output", name[:64])
    if artifacts.is_output(row):
        return None
    return uploads.refuse_arrival(on, "output", row.id, row.path, row.content)


def _commit_changes(on: System, job: Job, names: Sequence[str]) -> tuple[Sequence[Change], list[str]]:
    """The ownership of files that have arrived, for an attempt that is not over; and which of them are gone."""
    changes, gone = _ownership_changes(on, job, names)
    return [*changes, fence(on, job)] if changes else [], gone


def _ownership_changes(on: System, job: Job, names: Sequence[str]) -> tuple[list[Change], list[str]]:
    found = {name: _find(on, job, name) for name in names}
    fresh = [row for row in found.values() if row and not artifacts.is_output(row)]
    changes: list[Change] = [Replace(row, artifacts.arrive(row, owner(JOB, job.id))) for row in fresh]
    return changes, [name for name, row in found.items() if row is None]


def list_outputs(on: System, job: str, after: str = "") -> tuple[list[Artifact], str | None]:
    """A job's outputs whose bytes are there, oldest first, and the next page."""
    found = on.store.find(f"job#{job}", "artifact#", Artifact, limit=limits.PAGE, after=artifact_key(after).sk)
    return [row for row in found if artifacts.is_output(row)], found[-1].id if len(found) == limits.PAGE else None


def sign(on: System, job: Job, name: str, seconds: int) -> SignedOutput:
    """A URL to download an output for some seconds (at most SIGNED_SECONDS_MOST)."""
    row = find(on, job, name)
    if row is None:
        if job.end.outputs_gone:
            told = retention.outputs_gone(job.id, job.end.outputs_gone, job.end.discarded_by)
            raise Refused(410, "outputs-gone", told.detail)
        raise not_found("output", name[:64])
    return sign_artifact(on, row.id, row.path, row.content, seconds)


def sign_artifact(on: System, artifact: str, path: str, content: Content, seconds: int) -> SignedOutput:
    """A URL to download an artifact, to be saved under the last part of a path."""
    lasts = max(1, min(seconds, SIGNED_SECONDS_MOST))
    given = on.objects.download(object_name(artifact), lasts, path.rpartition("/")[2])
    return SignedOutput(given.url, content.size, content.sha256 or None, content.composite or None, lasts)


def check(files: Sequence[AgentFile], most: int) -> Sequence[AgentFile]:
    """Files as an agent named them, of at most so many bytes. Raises Refused 413 or 400."""
    if len(files) > limits.OUTPUTS_PER_CALL:
        raise Refused(413, "too-many-outputs", f"name at most {limits.OUTPUTS_PER_CALL} files at once")
    for file in files:
        if not file.path.startswith("/"):
            raise Refused(400, "bad-request", f"{file.path[:200]!r} is no absolute path")
        if unsafe := re.search(CONTROL, file.path):
            why = f"the path {file.path[:200]!r} holds the control character U+{ord(unsafe[0]):04X}"
            raise Refused(400, "bad-request", f"{why}: rename the file")
        uploads.check("output", file.path, file, most)
    return files
