"""How the end of an attempt becomes the end of its job, or the next attempt; and why an attempt was lost.

`conclude` decides. `Ending` classifies a finished attempt for metrics. `lost_failure` and `expired_failure` collect the
evidence from our rows when no agent can report it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from penstock.domain.jobs import failures, jobs, prerequisites, unused
from penstock.domain.jobs.failures import Failure, Kind
from penstock.domain.jobs.jobs import Job, Outcome, Report, Result, State
from penstock.domain.pools.pools import Lease
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.kernel.frozen import dataclass

STALLED = "Stalled"
"""The flow error of an attempt whose next step never came: its message was lost. Its script had not begun."""

FLOW_FAULTS = ("SQS.", "States.")
"""How the names of AWS's own errors begin: Step Functions could not send the message of a step, or not go on. Most of
that goes by, and nothing that the job asks for is at fault.
"""

REASONS = {
    "Cancelled": "it was cancelled",
    "Unsatisfiable": "what it asks for cannot be had",
    "QueueDeadline": "it waited longer than the queue deadline",
    "Lost": "the worker was lost",
    unused.IDLE_HOLD_ERROR: "it held for too long what it could not use",
    unused.REORDERED_ERROR: "the site changed the order in which jobs acquire",
}
"""The reason for each flow error that comes without a cause."""


MAX_SPARED = 3
"""How many attempts use up no retry, because they failed on a broken machine before the script began, or lost a message
of their flow. It is bounded because the agent reports the former, and a job that runs as root controls the agent.
"""


KINDS: Mapping[str | None, Kind] = {
    "Unsatisfiable": Kind.UNSATISFIABLE,
    "QueueDeadline": Kind.QUEUE_EXPIRED,
    prerequisites.DEPENDENCY_ERROR: Kind.DEPENDENCY_FAILED,
}
"""The failure kind of each flow error. Any other error is our fault."""


def conclude(job: Job, error: str | None, cause: str | None, now: datetime) -> Job:
    """The job after its attempt ended: settled, or queued with its next attempt.

    The agent's report counts first, then a refusal, then a cancellation, then the error that ended the flow: an agent
    that finished in time overrules whoever gave up on it.
    """
    if job.run.report:
        return _by_report(job, job.run.report, now)
    if job.cancellation.refused:
        why = failures.failure(Kind.NOT_ALLOWED, {"error": job.cancellation.refused})
        return jobs.settle(job, Outcome.FAILED, job.cancellation.refused, now, failure=why)
    if job.cancellation.cancelled_by:
        return _cancelled(job, f"cancelled by {job.cancellation.cancelled_by}", now)
    reason = cause or REASONS.get(error or "", "") or f"the flow ended without a result ({error or 'no error'})"
    if error == "Lost" or is_stalled(error):
        is_unbegun = is_stalled(error) or job.state is State.QUEUED
        return _lost(job, Report(Result.LOST, reason, now, is_unbegun=is_unbegun), now)
    if error in (unused.IDLE_HOLD_ERROR, unused.REORDERED_ERROR):
        return jobs.give_back(job, Report(Result.LOST, reason, now), now)
    outcome = Outcome.FAILED if error in ("Unsatisfiable", prerequisites.DEPENDENCY_ERROR) else Outcome.ERRORED
    bound = {"bound": "queue deadline", "bound_seconds": job.limits.queue_seconds, "error": reason}
    why = failures.failure(KINDS.get(error, Kind.SERVICE_FAILED), bound)
    return jobs.settle(job, outcome, reason, now, failure=why)


def is_stalled(error: str | None) -> bool:
    """Whether an attempt's flow did not go on, before its script began: that uses up no retry, a few times."""
    return error == STALLED or (error or "").startswith(FLOW_FAULTS)


def _by_report(job: Job, report: Report, now: datetime) -> Job:
    if report.result is Result.LOST:
        return _lost(job, report, now)
    if report.result is Result.CANCELLED or (job.cancellation.cancelled_by and report.result is Result.FAILED):
        by = job.cancellation.cancelled_by or "the worker"
        return _cancelled(job, f"cancelled by {by}: {report.reason}", now, report.exit_code)
    if report.result is Result.SUCCEEDED:
        return jobs.settle(job, Outcome.SUCCEEDED, _in_spite(job, report.reason), now, report.exit_code)
    if report.result is Result.FAILED and job.limits.retry_failed and _may_retry(job):
        return jobs.retry(job, report, "failed", now, failure=_told(job, Kind.EXITED).kind)
    why = _told(job, Kind.TIMED_OUT if report.result is Result.TIMED_OUT else Kind.EXITED)
    return jobs.settle(job, Outcome.FAILED, report.reason, now, report.exit_code, why)


def _in_spite(job: Job, reason: str) -> str:
    """Why a job succeeded although somebody cancelled it: its outputs, for instance, were being uploaded by then."""
    by = job.cancellation.cancelled_by
    return f"{reason}; {by} cancelled it too late to stop its script" if by else reason


def _lost(job: Job, report: Report, now: datetime) -> Job:
    if job.cancellation.cancelled_by:
        return _cancelled(job, f"cancelled by {job.cancellation.cancelled_by}", now)
    is_spared = report.is_unbegun and job.history.spared < MAX_SPARED
    why = _told(job, Kind.WORKER_LOST)
    if is_spared or _may_retry(job):
        return jobs.retry(job, report, "lost", now, spared=is_spared, failure=why.kind)
    tries = "once" if job.attempt == 1 else f"{job.attempt} times"
    return jobs.settle(job, Outcome.ERRORED, f"tried {tries}: {report.reason}", now, failure=why)


def _told(job: Job, kind: Kind) -> Failure:
    """The failure that was reported for the attempt, or one derived from how it ended."""
    bound = {"bound": "timeout", "bound_seconds": job.limits.timeout}
    return job.run.failure or failures.failure(
        kind, {**bound, "exit_code": job.run.report.exit_code if job.run.report else None}
    )


def _cancelled(job: Job, reason: str, now: datetime, exit_code: int | None = None) -> Job:
    """The end of a cancelled job, with the last lines of its script."""
    why = failures.failure(Kind.CANCELLED, {"cancelled_by": job.cancellation.cancelled_by or "the worker"})
    if job.run.failure:
        why = replace(job.run.failure, kind=why.kind, evidence=why.evidence)
    return jobs.settle(job, Outcome.CANCELLED, reason, now, exit_code, why)


def _may_retry(job: Job) -> bool:
    """Whether another attempt may follow. None follows a lease that its owner had: they learn that it is over."""
    if job.is_lease and job.started:
        return False
    return (
        job.attempt - job.history.spared - job.history.given_back <= job.limits.retries
    )  # who asks has seen that nobody cancelled the job


def describe_duration(job: Job) -> str:
    """How long a settled job took, for the last line of its log."""
    times = job.times
    ends = times.settled or times.submitted
    began = "it was held" if job.is_lease else "its script started"
    ran = f", {_seconds(times.started, ends)} s of it since {began}" if times.started else ""
    tries = f" in {job.attempt} attempts" if job.attempt > 1 else ""
    return f"took {_seconds(times.submitted, ends)} s{tries}{ran}"


def _seconds(start: datetime, end: datetime) -> int:
    return int((end - start).total_seconds())


NO_HELLO = "no hello"


SILENT = "lost"
"""The reasons in a worker's row when its agent never contacted us, or stopped doing so."""


class LostBy(StrEnum):
    """Why an attempt was lost."""

    NO_HELLO = "no_hello"  # its worker was made, and its agent never spoke
    SILENT = "silent"  # its worker's agent fell silent
    VANISHED = "vanished"  # a unit of it is not listed any more
    RECYCLED = "recycled"  # an operator recycled a unit of it
    OVERDUE = "overdue"  # its script neither ended nor was stopped in its time
    FLOW = "flow"  # its flow did not go on


class Boot(StrEnum):
    """What became of an ordered worker. A kept worker that goes to its next job is not ordered."""

    SUCCESS = "success"  # its agent said hello
    FAILED = "failed"  # its agent did not in time, or it can never be made
    DISAPPEARED = "disappeared"  # it was listed, and then was not, before it spoke
    ABORTED = "aborted"  # its attempt ended before


@dataclass(frozen=True)
class Ending:
    """An attempt at its end: the job before and after it, its units, and the error that ended its flow.

    `is_overdue`: the sweep ended it.
    """

    before: Job
    after: Job
    units: Sequence[Unit]
    error: str | None
    is_overdue: bool

    @property
    def is_lost(self) -> bool:
        """Whether the attempt was lost. An agent's report overrules; a cancelled attempt is not lost."""
        if self.before.cancellation.cancelled_by:
            return False
        report = self.before.run.report
        return report.result is Result.LOST if report else self.error == "Lost" or is_stalled(self.error)

    @property
    def lost_by(self) -> LostBy | None:
        """Why the attempt was lost; None if it was not."""
        if not self.is_lost:
            return None
        if any(unit.is_recycled for unit in self.units):
            return LostBy.RECYCLED
        if self.before.run.report is None and (self.is_overdue or is_stalled(self.error)):
            return LostBy.OVERDUE if self.before.state is State.RUNNING else LostBy.FLOW
        by_reason = {NO_HELLO: LostBy.NO_HELLO, SILENT: LostBy.SILENT}
        return by_reason.get(self._worker_reason, LostBy.VANISHED)

    @property
    def boot(self) -> Boot | None:
        """What became of the worker, if it was ordered and never said hello."""
        worker = self._worker
        if worker is None or worker.state is not UnitState.CREATING or worker.lease.leases > 1:
            return None
        if self._worker_reason == NO_HELLO or self.error == "Unsatisfiable":
            return Boot.FAILED
        return Boot.DISAPPEARED if self.lost_by is LostBy.VANISHED else Boot.ABORTED

    @property
    def _worker(self) -> Unit | None:
        return next((unit for unit in self.units if unit.is_a is UnitKind.WORKER), None)

    @property
    def _worker_reason(self) -> str:
        return (self._worker and self._worker.step.reason) or ""


def lost_failure(ending: Ending) -> Failure:
    """Why an attempt was lost: which unit, its agent's last contact, who recycled it, and its maker's error."""
    resource = next((unit for unit in ending.units if _is_to_blame(unit, ending.after.end.reason or "")), None)
    unit = resource or next((unit for unit in ending.units if unit.is_a is UnitKind.WORKER), None)
    evidence = {
        "worker": ending.before.run.worker,
        "lost_by": ending.lost_by,
        **(_of(unit) if unit else {}),
    }
    return failures.failure(Kind.RESOURCE_LOST if resource else Kind.WORKER_LOST, evidence)


def _is_to_blame(unit: Unit, reason: str) -> bool:
    """Whether this unit is a resource whose loss ended the attempt."""
    is_named = unit.step.reason is not None and unit.step.reason in reason
    return unit.is_a is UnitKind.RESOURCE and (unit.is_recycled or is_named)


def _of(unit: Unit) -> dict[str, str | None]:
    said = None if unit.step.reason in (NO_HELLO, SILENT) else unit.step.reason
    return {
        unit.is_a.value: unit.id,
        "type": unit.type,
        "last_heard": unit.session.heard.isoformat(timespec="seconds") if unit.session.heard else None,
        "notice": str(unit.drain) if unit.drain else None,
        "error": said,
    }


def expired_failure(ending: Ending, leases: Collection[Lease]) -> Failure:
    """The pools that an attempt waited for at its queue deadline, and the last message about the unit being made."""
    pools = dict.fromkeys(lease.pool for lease in leases if lease.state in unused.PENDING_STATES)
    making = (unit.step.reason for unit in ending.units if unit.state is UnitState.CREATING)
    known = {
        "bound": "queue deadline",
        "bound_seconds": ending.before.limits.queue_seconds,
        "waited_for": ", ".join(pools) or None,
        "error": next(making, None) or ending.after.end.reason,
    }
    return failures.failure(Kind.QUEUE_EXPIRED, known)
