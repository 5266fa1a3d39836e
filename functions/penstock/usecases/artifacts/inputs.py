"""Inputs: files that a user sends with a job, and what the job's agent downloads: these, and outputs of its
dependencies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial

from penstock.domain.artifacts import inputs
from penstock.domain.artifacts.artifacts import INPUT, JOB, Artifact, id_of, is_id, own, owner
from penstock.domain.artifacts.content import Content, announced
from penstock.domain.artifacts.inputs import Input, input_key
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import InputParts, NewInput
from penstock.domain.jobs.dependencies import Dependency
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.logs.logs import DETAIL
from penstock.domain.replies import InputDownload, InputDownloads, InputUpload, PartUploads
from penstock.domain.site.site import Limits
from penstock.kernel import limits
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Check, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.artifacts import outputs, owners, uploads
from penstock.usecases.jobs import prerequisites
from penstock.usecases.logs import logs
from penstock.usecases.users import users

SIGNED_SECONDS = 3600
"""For how long the agent may use a URL. It requests a page when it has downloaded the one before."""


def list_inputs(on: System, job: Job) -> list[Input]:
    """The files that are sent with a job, by name."""
    return on.store.find(f"job#{job.id}", "input#", Input) if job.request.inputs else []


def begin(on: System, job: Job, ask: NewInput) -> InputUpload:
    """Where to upload one of a job's files; the rows come first. Raises Refused 400, 404, 409 or 413. [ART-2]"""
    site = current_site(on)
    uploads.check("input", ask.name, ask, site.limits.output_bytes)
    upload = timedelta(seconds=site.retention.upload)
    artifact = transact(on, lambda: _begin_changes(on, job, ask, upload, site.limits))
    if artifact is None:
        return InputUpload(**vars(uploads.NO_UPLOAD), there=True)
    return InputUpload(**vars(uploads.sign_upload(on, artifact)), there=False)


def _begin_changes(
    on: System, job: Job, ask: NewInput, upload: timedelta, most: Limits
) -> tuple[Sequence[Change], Artifact | None]:
    """The rows of a file that is about to be sent, and its artifact; None for one that has arrived."""
    row, now = _find(on, job, ask.name), on.world.now()
    content = announced(ask.size, ask.sha256, ask.composite)
    same = row.content == content
    if row.is_committed:
        if not same:
            raise Refused(409, "input-there", f"the input {ask.name} is there already, with other bytes")
        return [], None
    artifact = owners.find(on, row.artifact) if same else None
    waiting = _still_waiting(on, job)
    if artifact:
        return [waiting, Replace(row, inputs.expect(row, row.artifact, row.content, now))], artifact
    id = id_of(job.id, on.world.ulid())
    path = inputs.path_of(ask.name)
    made = Artifact(
        id=id, path=path, size=ask.size, sha256=ask.sha256, composite=ask.composite, by=job.owner, time=now,
        sort=INPUT,
    )  # fmt: skip
    [counted], tally = users.count_bytes(on, job.owner, [made], most)
    return [waiting, Replace(row, inputs.expect(row, id, content, now)), owners.begin(counted, upload), *tally], counted


def _find(on: System, job: Job, name: str) -> Input:
    row = on.store.get(input_key(job.id, name), Input) if name in job.request.inputs else None
    if row is None:
        raise not_found("input", name[:64])
    return row


def _still_waiting(on: System, job: Job) -> Check:
    """The check that the job still waits. Raises Refused 409."""
    fresh = on.store.get(job_key(job.id), Job)
    if fresh is None or fresh.state is not State.WAITING:
        raise Refused(409, "job-goes-on", f"job {job.id} does not wait for its inputs any more")
    return Check(fresh)


def sign_parts(on: System, job: Job, ask: InputParts) -> PartUploads:
    """Where to upload some parts of a job's file, which then has more time. Raises Refused 400, 404 or 409."""
    artifact = owners.find(on, _find(on, job, ask.name).artifact)
    if artifact is None:
        raise Refused(409, "input-incomplete", f"nobody began to send {ask.name}")
    signed = uploads.sign_parts(on, artifact, ask)
    transact(on, lambda: _renew_changes(on, job, ask.name))
    return signed


def _renew_changes(on: System, job: Job, name: str) -> tuple[Sequence[Change], None]:
    """More time for a file whose upload goes on."""
    row = _find(on, job, name)
    if row.is_committed:
        return [], None
    return [Replace(row, inputs.expect(row, row.artifact, row.content, on.world.now()))], None


def commit(on: System, job: Job, name: str) -> None:
    """Record that a file has arrived, after checking: the job owns it, and continues if it was the last. [ART-1]

    Raises Refused 409 if its bytes are incomplete, or not those that were announced.
    """
    row = _find(on, job, name)
    if not row.is_committed:
        refused = uploads.refuse_arrival(on, "input", row.artifact, name, row.content)
        if refused:
            raise refused
        transact(on, lambda: _commit_changes(on, job, row))
        logs.append(on, job.id, job.attempt, f"the input {name} has arrived ({row.size} bytes)", DETAIL)
    prerequisites.judge(on, job.id)


def _commit_changes(on: System, job: Job, seen: Input) -> tuple[Sequence[Change], None]:
    row = _find(on, job, seen.name)
    if row.is_committed:
        return [], None
    there = owners.arrival_change(on, row.artifact, owner(JOB, job.id)) if row.artifact == seen.artifact else None
    if there is None:
        raise Refused(409, "input-incomplete", f"what was sent as {row.name} is not kept any more; send it again")
    return [_still_waiting(on, job), Replace(row, inputs.commit(row)), there], None


def check_room(on: System, of: Job) -> None:
    """Raises Refused 409 if an input of a job has as many owners as there may be: no job that repeats it gets it.

    The row of an artifact has all its owners. Those who repeat a job at the same moment may exceed that a little.
    """
    for row in list_inputs(on, of):
        artifact = owners.find(on, row.artifact) if row.is_committed else None
        if artifact and len(artifact.owners) >= limits.OWNERS:
            why = f"the input {row.name} has {limits.OWNERS} owners, mostly retries of one job, and may have no more"
            raise Refused(409, "too-many-owners", f"{why}: submit the job anew, and send the file with it")


def adopt(on: System, job: Job, of: Job) -> None:
    """Give a job that waits the files of the job that it repeats: nothing is uploaded again. Missing files are waited
    for.
    """
    for row in list_inputs(on, of):
        transact(on, partial(_adopt_changes, on, job, row))
    prerequisites.judge(on, job.id)


def _adopt_changes(on: System, job: Job, of: Input) -> tuple[Sequence[Change], None]:
    row = on.store.get(input_key(job.id, of.name), Input)
    artifact = owners.find(on, of.artifact) if of.is_committed else None
    fresh = on.store.get(job_key(job.id), Job)
    if row is None or row.is_committed or artifact is None or fresh is None or fresh.state is not State.WAITING:
        return [], None
    mine = inputs.expect(row, of.artifact, of.content, on.world.now())
    changes = [Replace(row, inputs.commit(mine)), Replace(artifact, own(artifact, owner(JOB, job.id)))]
    return [Check(fresh), *changes], None


def list_for_agent(on: System, job: Job, after: str) -> InputDownloads:
    """A page of what the job's agent downloads, and the next page. Nothing is copied. [SEC-2]

    `after` is "", or what an earlier page called `next`.
    """
    at, _, last = after.partition(":")
    if after and not (at.isdecimal() and len(at) < 4 and (not last or is_id(last))):
        raise Refused(400, "bad-request", "after must be what `next` of the page before it says")
    sources = [each for each in job.request.dependencies if each.copy_outputs]
    start = int(at or 0)
    if start == 0:
        mine = [_signed(on, inputs.path_of(row.name), row.artifact, row.content) for row in list_inputs(on, job)]
        return InputDownloads(mine, "1:" if sources else None)
    page, following = _outputs(on, sources, start, last)
    files = [_signed(on, inputs.path_of(name, row.path), row.id, row.content) for name, row in page]
    return InputDownloads(files, following)


def _signed(on: System, path: str, artifact: str, content: Content) -> InputDownload:
    signed = on.objects.download(object_name(artifact), SIGNED_SECONDS, path.rpartition("/")[2])
    return InputDownload(path, **uploads.described(content), url=signed.url, artifact=artifact)


def _outputs(
    on: System, sources: Sequence[Dependency], start: int, last: str
) -> tuple[list[tuple[str, Artifact]], str | None]:
    """The first page that is not empty, from a dependency's number and an output on, and where the next begins."""
    for number, source in enumerate(sources[start - 1 :], start):
        found, last_ = outputs.list_outputs(on, source.job, last)
        last = ""
        page = [(source.name, row) for row in _of_last_attempt(on, source, found)]
        if last_:
            return page, f"{number}:{last_}"
        if page:
            return page, f"{number + 1}:" if number < len(sources) else None
    return [], None


def _of_last_attempt(on: System, source: Dependency, found: Sequence[Artifact]) -> Iterator[Artifact]:
    """The outputs of the attempt that the dependency ended with; earlier ones only show why they were lost."""
    prior = on.store.get(job_key(source.job), Job)
    return (row for row in found if prior and row.attempt == prior.attempt)
