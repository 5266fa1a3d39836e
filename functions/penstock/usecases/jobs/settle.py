"""The end of an attempt: always, and exactly once. [JOB-1]

Why a job did not succeed whose agent did not say so: what the rows and its log have to show for it. [JOB-1]

Attempts whose worker or resource is no more: they end as lost, once, and the next follows. [JOB-1]

Those that wait for a job that has settled are told to look.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime

from penstock import transaction
from penstock.domain.jobs import failures, jobs, outcome, prerequisites, unused
from penstock.domain.jobs.dependencies import Dependent, dependent_key
from penstock.domain.jobs.failures import Failure, Kind
from penstock.domain.jobs.jobs import Job, Outcome, Report, Result, State, job_key
from penstock.domain.jobs.outcome import Ending, LostBy
from penstock.domain.pools import leases
from penstock.domain.pools.leases import WORKER, Lease, LeaseState
from penstock.domain.pools.pools import Claim, claim_key
from penstock.domain.units import retries, units
from penstock.domain.units.units import STEP_WITHIN, Unit, UnitKind, unit_key
from penstock.kernel.rows import Change, Delete, Replace
from penstock.system import System
from penstock.usecases import published
from penstock.usecases.artifacts import retain
from penstock.usecases.github import hints
from penstock.usecases.jobs import store
from penstock.usecases.jobs.jobs import stop_waiting
from penstock.usecases.logs import archives, logs
from penstock.usecases.telemetry import counters


def settle(
    on: System,
    job_id: str,
    attempt: int,
    error: str | None,
    cause: str | None,
    overdue: datetime | None = None,
) -> None:
    """Record how an attempt ended and begin to put back what it had. A second call only passes the turn again.

    Those that depend on the job are woken after that is written: see `waking`. With `overdue` it is the sweep that ends
    it: only if the job is due by then, still, when its end is written; and its flow, which nothing moves on, is then to
    be stopped.
    """
    ended = transaction.run(on, lambda: _settle_changes(on, job_id, attempt, error, cause, overdue))
    if ended is not None:
        attempt_ended(on, *ended)
    start_release(on, job_id, attempt)
    job = on.store.get(job_key(job_id), Job)
    if job and job.is_settled:
        job_settled(on, job)


def attempt_ended(on: System, ending: Ending, queues: Sequence[str]) -> None:
    """What follows once an attempt's end is committed, in order. `queues` are the pools whose queues it left."""
    counters.attempt_ended(on, ending)
    retain.keep_latest_failure(on, ending.after)
    hints.job_changed(on, ending.after)
    _serve_queues(on, queues)
    _log_end(on, ending)


def job_settled(on: System, job: Job) -> None:
    """What follows once a job has settled, in order. All of it may be repeated."""
    notify_dependents(on, job.id)
    _unpin_dependencies(on, job)
    store.delete_secrets(on, job)
    hints.job_settled(on, job)


def _serve_queues(on: System, pools: Sequence[str]) -> None:
    """Serve queues that a claim left: slots that were reserved for it may be granted to others."""
    for pool in pools:
        on.queues.schedule({"do": "serve", "pool": pool})


def _log_end(on: System, ending: Ending) -> None:
    after = ending.after
    text = f"settled: {after.outcome}: {after.reason}; {outcome.describe_duration(after)}"
    if not after.is_settled:
        past = after.attempts[-1]
        text = f"attempt {past.attempt} {past.outcome}: {past.reason}; attempt {after.attempt} follows"
    logs.append(on, after.id, ending.before.attempt, text, is_end=after.is_settled)


def _unpin_dependencies(on: System, job: Job) -> None:
    """What the job needed of others need not be kept for it any more. Done twice, it is done once. [ART-1]"""
    for each in job.dependencies:
        retain.unpin(on, each.job, job.id)


def _settle_changes(
    on: System,
    job_id: str,
    attempt: int,
    error: str | None,
    cause: str | None,
    overdue: datetime | None,
) -> tuple[Sequence[Change], tuple[Ending, list[str]] | None]:
    """The job's end, and with it the end of every lease of the attempt, in one commit; and whose queues it leaves."""
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.attempt != attempt or not _may_end(job, error, overdue):
        return [], None
    held = on.store.find(f"job#{job_id}", leases.prefix(attempt), Lease)
    if error == unused.IDLE_HOLD_ERROR and not unused.is_give_back_due(job, held, on.world.now()):
        return [], None  # the attempt has made progress since the sweep saw it
    after = _concluded(on, job, error, cause, is_overdue=overdue is not None)
    had, released = _end_leases(on, job, held)
    queues, left = _leave_queues(on, job, held)
    ending = Ending(job, after, had, error, is_overdue=overdue is not None)
    after = with_failure_details(on, ending, held)
    ended = [Replace(job, after), *released, *left, *retain.on_settled(on, after), *archives.on_settled(on, after)]
    return ended, (replace(ending, after=after), queues)


def _may_end(job: Job, error: str | None, overdue: datetime | None) -> bool:
    """Whether an attempt may still be ended for this reason."""
    if job.is_settled or (overdue and (job.due is None or job.due > overdue)):
        return False
    return (
        error != prerequisites.DEPENDENCY_ERROR or job.state is State.WAITING
    )  # else it was judged before, and otherwise


def _concluded(on: System, job: Job, error: str | None, cause: str | None, *, is_overdue: bool) -> Job:
    """The job after its attempt's end. Files are published before the end is committed, so that whoever sees it finds
    them.
    """
    stopping = replace(job, stop_from=job.stop_from or job.attempt) if is_overdue else job
    after = outcome.conclude(stopping, error, cause, on.world.now())
    if after.publishes and after.outcome is Outcome.SUCCEEDED:
        after = replace(after, reason=f"{after.reason}{published.publish_declared(on, job)}")
    return after


def _end_leases(on: System, job: Job, held: Sequence[Lease]) -> tuple[list[Unit], list[Change]]:
    """The units of an attempt's leases, and the changes that end these leases."""
    had: list[Unit] = []
    changes: list[Change] = []
    for lease in held:
        unit = on.store.get(unit_key(lease.unit), Unit) if lease.unit else None
        had += [unit] if unit else []
        changes += _end_lease(on, lease, job, unit)
    return had, changes


def _leave_queues(on: System, job: Job, held: Sequence[Lease]) -> tuple[list[str], list[Change]]:
    """The pools in whose queues the attempt waits, and the changes that delete its claims there."""
    claims = claims_of(job, {lease.step for lease in held if lease.state is LeaseState.WAITING})
    rows = [on.store.get(claim_key(pool, job.priority, job.id, job.attempt, step), Claim) for step, pool in claims]
    return list(dict.fromkeys(pool for _, pool in claims)), [Delete(row) for row in rows if row]


def claims_of(job: Job, steps: set[int]) -> list[tuple[int, str]]:
    """The steps of a job and the pools in whose queues it waits with them."""
    return [
        (step, pool)
        for step in sorted(steps)
        for pool in leases.demand(need for need in job.needs if need.step == step)
    ]


def _end_lease(on: System, lease: Lease, job: Job, unit: Unit | None) -> list[Change]:
    ended = leases.end(lease, on.world.now())
    changes: list[Change] = [] if ended == lease else [Replace(lease, ended)]
    if unit:
        told = job.report is not None and job.report.result is not Result.LOST
        well = told or unit.is_a is UnitKind.RESOURCE  # a worker that told that it is broken is known by that
        dirty = units.end_lease(unit, "its lease ended", on.world.now(), ended_well=well)
        changes += [] if dirty == unit else [Replace(unit, dirty)]
    return changes


def start_release(on: System, job_id: str, attempt: int) -> None:
    """Give the turn to the first of an attempt's leases to be put back; with none left, to its next attempt."""
    turn = leases.next_release(on.store.find(f"job#{job_id}", leases.prefix(attempt), Lease))
    if turn and turn.unit:
        on.queues.advance(turn.unit, turn.order == WORKER)
    job = on.store.get(job_key(job_id), Job)
    if job and job.state is State.QUEUED and (turn is None or turn.order != WORKER):
        on.queues.schedule({"do": "start", "job": job_id})


CONSOLE_STREAMS = ("worker",)


SCRIPT_STREAMS = ("stdout", "stderr")


def with_failure_details(on: System, ending: Ending, leases: Collection[Lease]) -> Job:
    """The job after an attempt's end, with what there is to show for why it did not succeed."""
    job = ending.after
    kind = job.failure.kind if job.failure else None
    if kind is Kind.QUEUE_EXPIRED:
        return replace(job, failure=outcome.expired_failure(ending, leases))
    if kind is Kind.WORKER_LOST:
        return replace(job, failure=_with_lines(on, ending, outcome.lost_failure(ending)))
    return job


def _with_lines(on: System, ending: Ending, failure: Failure) -> Failure:
    """With what the job said last; of a machine that never said hello, with what its console said last."""
    is_console = ending.lost_by is LostBy.NO_HELLO
    job = ending.before
    found = logs.last_lines(
        on, job.id, job.attempt, CONSOLE_STREAMS if is_console else SCRIPT_STREAMS, failures.MAX_LINES
    )
    said = failures.with_lines(failure, [line.payload for line in found], is_console=is_console)
    return replace(said, task=found[-1].task if found else None)


def lose(on: System, unit: Unit, cause: str, is_lost: Callable[[Unit], bool], reason: str | None) -> bool | None:
    """End the attempt that leases a unit, and say whether that was news; None when it is not the unit's any more.

    `is_lost` is asked of the unit as it is when the end is written; `reason` is what its row then says
    of it. The unit is due again soon, for its attempt has to end, and the answer to its flow may be lost.
    """

    def decide() -> tuple[Sequence[Change], tuple[Job, bool] | None]:
        fresh = on.store.get(unit_key(unit.id), Unit)
        job = on.store.get(job_key(unit.job), Job)
        if fresh is None or (fresh.job, fresh.attempt) != (unit.job, unit.attempt) or not is_lost(fresh):
            return [], None
        if job is None or job.is_settled or job.attempt != unit.attempt:
            return [], None
        now = on.world.now()
        later = Replace(fresh, retries.retry_later(fresh, reason, now, STEP_WITHIN))
        if job.state is not State.RUNNING or job.report:
            return [later], (job, False)
        told = jobs.report(job, Report(Result.LOST, cause, now))
        return [later, Replace(job, told)], (told, True)

    found = transaction.run(on, decide)
    if found is None:
        return None
    job, is_new = found
    attempt_lost(on, job, cause, is_new=is_new)
    return is_new


def attempt_lost(on: System, job: Job, cause: str, *, is_new: bool) -> None:
    """What follows once an attempt is recorded as lost, in order: its flow's step ends, and so the flow ends."""
    if is_new:
        logs.append(on, job.id, job.attempt, cause)
    if job.run_token:
        on.flows.succeed(job.run_token)
    else:
        stop_waiting(on, job, "Lost", cause)


AT_ONCE = 100
"""How many are told by one call; the rest by the next, so that nobody's settling takes longer for them."""


def notify_dependents(on: System, job_id: str, after: str = "") -> None:
    """Tell those that wait for a job, which has settled, that they are to be judged; behind the one of an id.

    Who settles a job writes first and reads after, and so does whoever submits one that depends on it: of two that
    race, one sees the other. A message that is lost is made good when the sweep looks at who waits. [JOB-1]
    """
    behind = dependent_key(job_id, after).sk
    found = on.store.find(f"job#{job_id}", "dependent#", Dependent, limit=AT_ONCE, after=behind)
    for row in found:
        on.queues.schedule({"do": "judge", "job": row.dependent})
    if len(found) == AT_ONCE:
        on.queues.schedule({"do": "wake", "job": job_id, "after": found[-1].dependent})
