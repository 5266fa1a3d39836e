"""Jobs that depend on others: what they may depend on, and what becomes of them. The rules are in `domain/judging`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from penstock.domain import judging, limits
from penstock.domain.dependencies import Dependency, Dependent
from penstock.domain.errors import Fault, Refused, Unreached
from penstock.domain.jobs import Job, State, job_key
from penstock.domain.judging import Verdict
from penstock.domain.rows import Change, Create, Replace
from penstock.domain.users import User
from penstock.system import System
from penstock.usecases import acquiring, jobs, logs, race, settling


def priors(on: System, user: User, dependencies: Sequence[Dependency]) -> dict[str, Job]:
    """The jobs that a user's job is to depend on, by id. Raises Refused 422 or 409; another's is as good as none."""
    found: dict[str, Job] = {}
    for each in dependencies:
        try:
            found[each.job] = jobs.find(on, user, each.job)
        except Refused as refused:
            where = f"dependencies.{each.name}"
            faults = [Fault(refused.detail, where=where, hint="`penstock job list` lists those that there are")]
            raise Refused(422, "unknown-dependency", f"{where}: {refused.detail}", faults) from None
    for prior in found.values():
        _check_number(on, prior)
    return found


def _check_number(on: System, prior: Job) -> None:
    most = limits.WAITING_DEPENDENTS
    if prior.is_settled or len(on.store.find(f"job#{prior.id}", "dependent#", Dependent, limit=most)) < most:
        return
    why = f"at most {most} jobs may wait for one, and so many wait for job {prior.id}"
    raise Refused(409, "too-many-dependents", why)


def rows(job: Job, found: dict[str, Job]) -> list[Change]:
    """What is written with a job that depends on others: it stands with each of them that is not settled."""
    return [Create(Dependent(job=prior.id, dependent=job.id)) for prior in found.values() if not prior.is_settled]


def judge(on: System, job_id: str) -> None:
    """Let a waiting job go on, or end it, if it is time for that. Done twice, it is done once. [JOB-1]"""
    job, verdict = race.run(on, lambda: _judge(on, job_id))
    if job is None:
        return
    if job.cancelled_by:
        settling.settle(on, job.id, job.attempt, "Cancelled", None)
    elif verdict.broken:
        settling.settle(on, job.id, job.attempt, judging.ERROR, verdict.broken)
    elif verdict.is_ready:
        logs.say(on, job.id, job.attempt, f"job dependencies complete; ready to run ({_waited(job)})")
        with suppress(Unreached):  # its row is due: the sweep will start it
            acquiring.start(on, job.id)


def _judge(on: System, job_id: str) -> tuple[Sequence[Change], tuple[Job | None, Verdict]]:
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.state is not State.WAITING:
        return [], (None, Verdict())
    verdict, now = look(on, job), on.world.now()
    if job.cancelled_by or verdict.broken:
        return [], (job, verdict)
    if verdict.is_ready:
        queued = judging.ready(job, now)
        return [Replace(job, queued)], (queued, verdict)
    is_due = job.due is None or job.due <= now
    return [Replace(job, judging.look_again(job, now))] if is_due else [], (job, verdict)


def look(on: System, job: Job) -> Verdict:
    """How those stand that a job depends on."""
    found = (on.store.get(job_key(each.job), Job) for each in job.dependencies)
    return judging.judge(job.dependencies, {prior.id: prior for prior in found if prior})


def _waited(job: Job) -> str:
    seconds = int(((job.times.ready or job.times.submitted) - job.times.submitted).total_seconds())
    return f"waited for {seconds} s"
