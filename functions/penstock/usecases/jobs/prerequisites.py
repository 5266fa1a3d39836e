"""Jobs that wait for other jobs and for files: what they may depend on, and when they continue or end.

Called when such a job is submitted, when a dependency settles or a file arrives, and by the sweep. The rules are in
domain/jobs/prerequisites.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from penstock.domain.artifacts import inputs, retention
from penstock.domain.artifacts.retention import Retention
from penstock.domain.jobs import prerequisites
from penstock.domain.jobs.dependencies import Dependency, Dependent
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.jobs.prerequisites import Verdict
from penstock.domain.jobs.reviews import Review, ReviewRequest
from penstock.domain.logs.logs import DETAIL
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Fault, Refused, Unreached, not_found
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.jobs import backlogs, dependents, flow, jobs, settle
from penstock.usecases.logs import logs
from penstock.usecases.users import users


def priors(on: System, user: User, dependencies: Sequence[Dependency]) -> dict[str, Job]:
    """The jobs that a user's job is to depend on, by id. Raises Refused 422 or 409. Another's job counts as
    nonexistent.
    """
    found: dict[str, Job] = {}
    for each in dependencies:
        where = f"dependencies.{each.name}"
        try:
            found[each.job] = jobs.find(on, user, each.job)
            if each.copy_outputs:
                pin(on, each.job, "")  # only checks: its changes are not written
        except Refused as refused:
            faults = [Fault(refused.detail, where=where, hint="`penstock job list` lists those that there are")]
            status, code = (422, "unknown-dependency") if refused.status == 404 else (refused.status, refused.code)
            raise Refused(status, code, f"{where}: {refused.detail}", faults) from None
    for prior in found.values():
        _check_number(on, prior)
    return found


def _check_number(on: System, prior: Job) -> None:
    most = limits.WAITING_DEPENDENTS
    if prior.is_settled or len(on.store.find(f"job#{prior.id}", "dependent#", Dependent, limit=most)) < most:
        return
    why = f"at most {most} jobs may wait for one, and so many wait for job {prior.id}"
    raise Refused(409, "too-many-dependents", why)


def waiting_rows(job: Job, found: dict[str, Job]) -> list[Change]:
    """The rows to write with a waiting job: for each unsettled dependency, each input, and a review."""
    waits = [Create(Dependent(job=prior.id, dependent=job.id)) for prior in found.values() if not prior.is_settled]
    files = [Create(inputs.declare(job.id, name, job.times.submitted)) for name in job.request.inputs]
    return [*waits, *files, *([Create(_request(job.id, job.review))] if job.review else [])]


def _request(job: str, review: Review) -> ReviewRequest:
    return ReviewRequest(job=job, environment=review.environment, until=review.until)


def start_waiting(on: System, job: Job) -> None:
    """Judge a waiting job for the first time. What it needs of others is kept from here on."""
    _pin(on, job)
    judge(on, job.id)


def _pin(on: System, job: Job) -> str | None:
    """Keep what the job needs of others until it settles; or why something of that is gone. [ART-1]

    Done when the job is accepted, and ensured before it queues. Nothing of an unsettled job expires; something of a
    settled one would have to expire in between.
    """
    for each in job.request.dependencies:
        if each.copy_outputs:
            try:
                transact(on, partial(_pinned, on, each, job))
            except Refused as refused:
                return prerequisites.outputs_gone(each, refused.detail)
    return None


def _pinned(on: System, dependency: Dependency, job: Job) -> tuple[Sequence[Change], None]:
    return pin(on, dependency.job, job.id), None


def judge(on: System, job_id: str) -> None:
    """Let a waiting job continue, or end it, if it is time for that. Safe to repeat. [JOB-1]"""
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.state is not State.WAITING:
        return
    broken = _pin(on, job) if verdict_of(on, job).is_ready else None
    found, verdict, backlog = transact(on, lambda: _judge_changes(on, job_id, broken))
    if found is None:
        return
    if found.cancellation.cancelled_by:
        settle.settle(on, job_id, found.attempt, "Cancelled", None)
    elif verdict.broken:
        settle.settle(on, job_id, found.attempt, prerequisites.DEPENDENCY_ERROR, verdict.broken)
    elif found.state is State.QUEUED:
        _go_on(on, found)
        if backlog:
            backlogs.wake(on, found.owner)


def _go_on(on: System, job: Job) -> None:
    """Start a job that waits for nothing any more."""
    logs.append(on, job.id, job.attempt, f"{_met(job)}; ready to run ({_waited_text(job)})", DETAIL)
    with suppress(Unreached):  # its row is due: the sweep starts it
        flow.start(on, job.id)


def _met(job: Job) -> str:
    """What a job has waited for. A job that had only to wait in its owner's backlog depends on nothing."""
    if job.request.dependencies or job.request.inputs or job.review:
        return "job dependencies complete"
    return f"few enough jobs of {job.owner} are under way" if job.usage.begun else f"{job.owner} is within its budget"


def _judge_changes(
    on: System, job_id: str, broken: str | None
) -> tuple[Sequence[Change], tuple[Job | None, Verdict, Sequence[Change]]]:
    """What becomes of a waiting job; the verdict on it, and what that changes of its owner's backlog."""
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.state is not State.WAITING:
        return [], (None, Verdict(), [])
    verdict, now = Verdict(broken) if broken else verdict_of(on, job), on.world.now()
    if job.cancellation.cancelled_by or verdict.broken:
        return [], (job, verdict, [])
    ready = prerequisites.ready(job, now)
    admitted, backlog = users.admit_job(on, ready, current_site(on)) if verdict.is_ready else (job, [])
    if admitted.state is State.QUEUED:
        return [Replace(job, admitted), *backlog], (admitted, verdict, backlog)
    is_due = job.due is None or job.due <= now or bool(backlog)
    return [*([Replace(job, prerequisites.recheck(job, verdict, now))] if is_due else []), *backlog], (job, verdict, [])


def _waited_text(job: Job) -> str:
    seconds = int(((job.times.ready or job.times.submitted) - job.times.submitted).total_seconds())
    return f"waited for {seconds} s"


def verdict_of(on: System, job: Job) -> Verdict:
    """The state of a job's dependencies and input files."""
    return jobs.check_prerequisites(on, job)[0]


def pin(on: System, job: str, dependent: str) -> list[Change]:
    """The changes to write with a job that depends on another: all that that owns is kept until this one settles.
    [ART-1]

    Raises Refused 404 for a job that does not exist, 422 if its outputs are gone, 409 if too many depend on it.
    """
    row, found = settle.find_retention(on, job)
    if found is None:
        raise not_found("job", job)
    if row is None:
        return _first_pin(found, dependent)
    is_full = len(row.dependents) >= limits.DEPENDENTS  # maybe of settled ones, whose removal was lost
    left = dependents.unsettled(on, row.dependents) if is_full else row.dependents
    after = retention.pinned(replace(row, dependents=left), dependent)
    if isinstance(after, Refused):
        raise after
    return settle.retention_changes(row, found, after)


def _first_pin(job: Job, dependent: str) -> list[Change]:
    """The first dependent of a job that has not settled. What ends it meanwhile is written after this, or before.

    The job's row is written again as it is: its end would not meet a mere check, and its own row would then tell of a
    retention beside this one.
    """
    if job.is_settled:
        since = job.end.outputs_gone or job.times.submitted
        raise retention.outputs_gone(job.id, since, job.end.discarded_by)
    return [Create(Retention(job=job.id, dependents=(dependent,))), Replace(job, job)]
