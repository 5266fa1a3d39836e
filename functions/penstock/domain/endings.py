"""How an attempt's end becomes its job's end, or its next attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from penstock.domain import failures, idling, jobs, judging
from penstock.domain.failures import Failure, Kind
from penstock.domain.jobs import Job, Outcome, Report, Result

REASONS = {
    "Cancelled": "the job was cancelled",
    "Unsatisfiable": "what the job asks for cannot be had",
    "QueueDeadline": "the job waited longer than the queue deadline",
    "Lost": "the worker was lost",
    idling.ERROR: "it held for too long what it could not use",
}
"""What a flow's error means when its cause says nothing."""


SPARED = 3
"""How many attempts that a broken machine ended before the script began are none of a job's retries. It is bounded, for
what says so is the agent, of which a job that runs as root can make what it likes."""


KINDS: Mapping[str | None, Kind] = {
    "Unsatisfiable": Kind.UNSATISFIABLE,
    "QueueDeadline": Kind.QUEUE_EXPIRED,
    judging.ERROR: Kind.DEPENDENCY_FAILED,
}
"""What a flow's error says of why. Any other is our fault."""


def conclude(job: Job, error: str | None, cause: str | None, now: datetime) -> Job:
    """What becomes of a job whose attempt is over: settled, or queued with its next attempt.

    The agent's report comes first, then that it was refused, then a cancellation, then the error that ended the flow:
    an agent that finished in time has the last word over whoever gave up on it.
    """
    if job.report:
        return _by_report(job, job.report, now)
    if job.refused:
        why = failures.of(Kind.NOT_ALLOWED, {"error": job.refused})
        return jobs.settle(job, Outcome.FAILED, job.refused, now, failure=why)
    if job.cancelled_by:
        return _cancelled(job, f"cancelled by {job.cancelled_by}", now)
    reason = cause or REASONS.get(error or "", "") or f"the flow ended without a result ({error or 'no error'})"
    if error == "Lost":
        return _lost(job, Report(Result.LOST, reason, now), now)
    if error == idling.ERROR:
        return jobs.give_back(job, Report(Result.LOST, reason, now), now)
    outcome = Outcome.FAILED if error in ("Unsatisfiable", judging.ERROR) else Outcome.ERRORED
    bound = {"bound": "queue deadline", "bound_seconds": job.queue_seconds, "error": reason}
    why = failures.of(KINDS.get(error, Kind.SERVICE_FAILED), bound)
    return jobs.settle(job, outcome, reason, now, failure=why)


def _by_report(job: Job, report: Report, now: datetime) -> Job:
    if report.result is Result.LOST:
        return _lost(job, report, now)
    if report.result is Result.CANCELLED or (job.cancelled_by and report.result is Result.FAILED):
        by = job.cancelled_by or "the worker"
        return _cancelled(job, f"cancelled by {by}: {report.reason}", now, report.exit_code)
    if report.result is Result.SUCCEEDED:
        return jobs.settle(job, Outcome.SUCCEEDED, report.reason, now, report.exit_code)
    if report.result is Result.FAILED and job.retry_failed and _may_retry(job):
        return jobs.again(job, report, "failed", now, failure=_told(job, Kind.EXITED).kind)
    why = _told(job, Kind.TIMED_OUT if report.result is Result.TIMED_OUT else Kind.EXITED)
    return jobs.settle(job, Outcome.FAILED, report.reason, now, report.exit_code, why)


def _lost(job: Job, report: Report, now: datetime) -> Job:
    if job.cancelled_by:
        return _cancelled(job, f"cancelled by {job.cancelled_by}", now)
    is_spared = report.is_unbegun and job.spared < SPARED
    why = _told(job, Kind.WORKER_LOST)
    if is_spared or _may_retry(job):
        return jobs.again(job, report, "lost", now, spared=is_spared, failure=why.kind)
    tries = "once" if job.attempt == 1 else f"{job.attempt} times"
    return jobs.settle(job, Outcome.ERRORED, f"tried {tries}: {report.reason}", now, failure=why)


def _told(job: Job, kind: Kind) -> Failure:
    """What was told of why the attempt did not succeed, or what its end says of that."""
    bound = {"bound": "timeout", "bound_seconds": job.timeout}
    return job.failure or failures.of(kind, {**bound, "exit_code": job.report.exit_code if job.report else None})


def _cancelled(job: Job, reason: str, now: datetime, exit_code: int | None = None) -> Job:
    """The end of a job that somebody cancelled; what its script said last is kept."""
    why = failures.of(Kind.CANCELLED, {"cancelled_by": job.cancelled_by or "the worker"})
    if job.failure:
        why = replace(job.failure, kind=why.kind, evidence=why.evidence)
    return jobs.settle(job, Outcome.CANCELLED, reason, now, exit_code, why)


def _may_retry(job: Job) -> bool:
    return job.attempt - job.spared - job.given_back <= job.retries  # who asks has seen that nobody cancelled the job


def spent(job: Job) -> str:
    """How long a settled job took: the end of the last line of its log."""
    times = job.times
    ends = times.settled or times.submitted
    ran = f", {_seconds(times.started, ends)} s of it since its script started" if times.started else ""
    tries = f" in {job.attempt} attempts" if job.attempt > 1 else ""
    return f"took {_seconds(times.submitted, ends)} s{tries}{ran}"


def _seconds(start: datetime, end: datetime) -> int:
    return int((end - start).total_seconds())
