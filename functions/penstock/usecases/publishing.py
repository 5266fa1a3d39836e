"""Outputs get names for good: one by one by hand, and those that a job's file says when the job has succeeded. [ART-1]

A name is one row, and the text in its artifact's owners: both are written in one commit, so whoever takes the job's
things apart meanwhile either finds an owner more, or has been quicker, and nothing is published.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock import transaction
from penstock.domain import published
from penstock.domain.artifacts import artifacts
from penstock.domain.artifacts.artifacts import Artifact, artifact_key
from penstock.domain.artifacts.outputs import Output, output_key
from penstock.domain.artifacts.volumes import Volume, VolumeState, volume_key
from penstock.domain.jobs.jobs import Job, Publication, Spec, spec_key
from penstock.domain.published import Published
from penstock.domain.users.users import User
from penstock.kernel import ids, limits
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System
from penstock.usecases import auditing, logs

TOLD = 3
"""How many that could not be published a job's reason names; all of them are in its log."""


def publish(
    on: System, user: User, job: Job, output: str, series: str, version: str, name: str
) -> tuple[Published, bool]:
    """Give an output of a job a name of the job's owner's, and whether it is news: the same bytes may have it already.

    Raises Refused 400 or 404; 409 for a job that is not over, for a name that stands for other bytes, or bytes that
    are not there; 410 for outputs that are gone.
    """
    for part in (series, version, name):
        if not published.is_part(part):
            raise Refused(400, "bad-request", "a series, a version and a name have 1 to 100 of A-Z a-z 0-9 . _ -")
    if not job.is_settled:
        raise Refused(409, "job-not-settled", f"job {job.id} is not over; what it keeps is published after that")
    row = on.store.get(output_key(job.id, output), Output) if ids.is_ulid(output) else None
    if row is None or not row.is_committed:
        raise not_found("output", output[:64])
    return _give(on, job, row, Publication(row.path, series, version, name), user.name, again=True)


def of_job(on: System, job: Job) -> str:
    """Publish what a job's file says, for it has succeeded; what could not be, as the rest of a sentence.

    Whoever settles the job does this first, again if that was interrupted. What is wrong with one stops no other.
    """
    spec = on.store.get(spec_key(job.id), Spec)
    rows = on.store.find(f"job#{job.id}", "output#", Output, limit=limits.OUTPUTS)
    kept = {row.path: row for row in rows if row.is_committed and row.attempt == job.attempt}
    wrong: list[str] = []
    for each in spec.publish if spec else ():
        try:
            if each.path not in kept:
                raise Refused(404, "no-such-output", f"the job kept no {each.path}; no output rule matched such a file")
            row, is_news = _give(on, job, kept[each.path], each, job.owner, again=False)
            if is_news:
                logs.say(on, job.id, job.attempt, f"published {each.path} as {row.full}")
        except Refused as refused:
            wrong.append(refused.detail)
            logs.say(on, job.id, job.attempt, f"NOT published: {each.path}: {refused.detail}")
    return _told(wrong)


def _told(wrong: Sequence[str]) -> str:
    if not wrong:
        return ""
    more = f"; and {len(wrong) - TOLD} more" if len(wrong) > TOLD else ""
    return f"; BUT NOT PUBLISHED: {'; '.join(wrong[:TOLD])}{more}"


def _give(on: System, job: Job, output: Output, wanted: Publication, by: str, *, again: bool) -> tuple[Published, bool]:
    """Give a name, in one commit with the ownership. What stands for the same bytes stays as it is. [ART-1]

    What was withdrawn is given `again` by a person alone: a job that runs once more does not undo what they did.
    """

    def decide() -> tuple[Sequence[Change], tuple[Published, bool]]:
        made = Published(
            of=job.owner, series=wanted.series, version_name=wanted.version, name=wanted.name, by=by,
            artifact=output.artifact, size=output.size, sha256=output.sha256, path=output.path, job=job.id,
            time=on.world.now(),
        )  # fmt: skip
        known = on.store.get(made.key, Published)
        if known and not published.has(known, made.size, made.sha256):
            raise published.taken(known)
        if known and not known.withdrawn:
            return [], (known, False)
        if known and not again:
            raise published.gone(known)
        changes: list[Change] = [Replace(known, made) if known else Create(made), _own(on, made)]
        return auditing.note(on, changes, by, "publish", made.full, f"{made.path} of job {job.id}"), (made, True)

    return transaction.run(on, decide)


def _own(on: System, made: Published) -> Change:
    """That an artifact is published. Raises Refused 409 for bytes that are not there, 410 for what is gone."""
    artifact = on.store.get(artifact_key(made.artifact), Artifact)
    volume = on.store.get(volume_key(made.artifact), Volume)
    if artifact is None or volume is None:
        raise Refused(410, "outputs-gone", f"the outputs of job {made.job} are gone")
    if volume.state is not VolumeState.CREATED or volume.lost:
        raise Refused(409, "no-bytes", f"the bytes of {made.path} of job {made.job} are not there")
    after = artifacts.own(artifact, made.owner)
    if len(after.owners) > limits.OWNERS:
        raise Refused(409, "too-many-owners", f"an artifact has at most {limits.OWNERS} owners")
    return Replace(artifact, after)
