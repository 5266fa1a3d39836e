"""The end of an attempt: always, and exactly once. [JOB-1]

An agent's report is written together with the end of its attempt; every other end is written by `settle`: when a flow
failed, by the sweep, and by whatever ends a job that has no flow. `attempt_ended`, `job_settled` and `attempt_lost`
list what follows each event, one effect per line. A crash between two effects is made up for by the sweep.

With a job's end is written until when what it owns is kept: a job of which no row says that has nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from penstock.domain import metrics, prices
from penstock.domain.artifacts import retention
from penstock.domain.artifacts.retention import LatestFailure, Retention, retention_key
from penstock.domain.jobs import failures, jobs, outcome, prerequisites, unused
from penstock.domain.jobs.dependencies import Dependent, dependent_key
from penstock.domain.jobs.failures import Failure, Kind
from penstock.domain.jobs.jobs import Job, Outcome, Report, Result, State, job_key
from penstock.domain.jobs.outcome import Ending, LostBy
from penstock.domain.jobs.reviews import ReviewRequest, review_key
from penstock.domain.pools import grants, pools
from penstock.domain.pools.pools import WORKER, Claim, Lease, LeaseState
from penstock.domain.units import retries, units
from penstock.domain.units.units import STEP_WITHIN, Unit, UnitKind, unit_key
from penstock.kernel.rows import Change, Create, Delete, Replace
from penstock.system import System, current_site, measure, transact
from penstock.usecases import published
from penstock.usecases.github import hints
from penstock.usecases.jobs import backlogs, dependents, flow, store
from penstock.usecases.logs import logs
from penstock.usecases.pools import shares
from penstock.usecases.users import users

CONSOLE_STREAMS = ("worker",)

SCRIPT_STREAMS = ("stdout", "stderr")

AT_ONCE = 100
"""How many dependents one call notifies. The next call continues, so that no settling takes longer for them."""

Ended = tuple[Ending, list[str]]
"""An attempt's end, and the pools whose queues it leaves."""

Marked = Mapping[str | None, tuple[Unit, Unit]]
"""Units that a report changes, by id: as they were read, and as they are to be when their leases end."""


def settle(
    on: System,
    job_id: str,
    attempt: int,
    error: str | None,
    cause: str | None,
    overdue: datetime | None = None,
    *,
    unbegun: bool = False,
) -> None:
    """Record how an attempt ended, and begin to release what it had. A second call only continues the release.

    With `overdue` the sweep ends the attempt: only if the job is still due by then when the end is written. Nothing
    moves its flow on, so the flow is to be stopped. `unbegun`: only if its script has not begun when that is written:
    so with every end because of a flow.
    """
    ended = transact(on, lambda: _settle_changes(on, job_id, attempt, error, cause, overdue, unbegun=unbegun))
    if ended is not None:
        attempt_ended(on, *ended)
    go_on(on, job_id, attempt)


def go_on(on: System, job_id: str, attempt: int) -> None:
    """Begin to release what an attempt had, and do what follows if its job has settled. Safe to repeat."""
    start_release(on, job_id, attempt)
    job = on.store.get(job_key(job_id), Job)
    if job and job.is_settled:
        job_settled(on, job)


def _settle_changes(
    on: System,
    job_id: str,
    attempt: int,
    error: str | None,
    cause: str | None,
    overdue: datetime | None,
    *,
    unbegun: bool,
) -> tuple[Sequence[Change], Ended | None]:
    """The end of an attempt, if it may be ended for this reason."""
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.attempt != attempt or not _may_end(job, error, overdue):
        return [], None
    if unbegun and job.state is State.RUNNING:
        return [], None  # its agent's hello came first
    rows, had = _held(on, job, {})
    now = pools.with_units(rows, [unit for _, unit in had])
    if _got_further(on, job, now, error):
        return [], None
    after = _concluded(on, job, error, cause, is_overdue=overdue is not None)
    return _end_changes(on, Ending(job, after, (), error, is_overdue=overdue is not None), job, rows, had)


def _got_further(on: System, job: Job, leases: Sequence[Lease], error: str | None) -> bool:
    """Whether an attempt that was to give back what it holds has made progress since the sweep saw it."""
    if error == unused.IDLE_HOLD_ERROR:
        return not unused.is_give_back_due(job, leases, on.world.now())
    return error == unused.REORDERED_ERROR and not unused.is_out_of_order(job, leases, current_site(on))


def report_changes(on: System, was: Job, reported: Job, marked: Marked) -> tuple[Sequence[Change], Ended]:
    """The report of an attempt and its end, in one commit."""
    after = _concluded(on, reported, None, None, is_overdue=False)
    return _end_changes(on, Ending(reported, after, (), None, is_overdue=False), was, *_held(on, was, marked))


def _held(on: System, job: Job, marked: Marked) -> tuple[list[Lease], list[tuple[Unit, Unit]]]:
    """The rows of an attempt's leases, and their units: as they were read, and with what the report changes."""
    rows = flow.lease_rows(on, job.id, job.attempt)
    read: Marked = {unit.id: (unit, unit) for lease in rows if (unit := flow.unit_of(on, lease))}
    every = {**read, **marked}
    return rows, [every[lease.unit] for lease in rows if lease.unit in every]


def _end_changes(
    on: System, ending: Ending, was: Job, rows: Sequence[Lease], had: Sequence[tuple[Unit, Unit]]
) -> tuple[Sequence[Change], Ended]:
    """The job's end and the end of every lease of the attempt, in one commit."""
    units = [unit for _, unit in had]
    released = _end_leases(on, ending.before, rows, had)
    queues, left = _leave_queues(on, was, rows)
    ending = replace(ending, units=units)
    after, kept = keep_from_now(on, with_failure_details(on, ending, pools.with_units(rows, units)))
    ended = [Replace(was, after), *released, *left, *kept, *logs.on_settled(on, after)]
    ended += [*users.discount_job(on, after), *_forget_request(on, after)]
    ended += [*backlogs.forget(on, was), *dependents.forget(on, was)] if was.state is State.WAITING else []
    return ended, (replace(ending, after=after), queues)


def _forget_request(on: System, job: Job) -> list[Change]:
    """The change that deletes the request for a review which nobody decides any more, if it is there."""
    asked = on.store.get(review_key(job.id), ReviewRequest) if job.review and job.review.is_open else None
    return [Delete(asked)] if asked else []


def _may_end(job: Job, error: str | None, overdue: datetime | None) -> bool:
    """Whether an attempt may still be ended for this reason."""
    if job.is_settled or (overdue and (job.due is None or job.due > overdue)):
        return False
    return (
        error != prerequisites.DEPENDENCY_ERROR or job.state is State.WAITING
    )  # else it was judged before, and otherwise


def _concluded(on: System, job: Job, error: str | None, cause: str | None, *, is_overdue: bool) -> Job:
    """The job after its attempt's end. Its files are published before: who sees the end finds them."""
    stopping = replace(job, flow=replace(job.flow, stop_from=job.flow.stop_from or job.attempt)) if is_overdue else job
    after = outcome.conclude(stopping, error, cause, on.world.now())
    if error == unused.REORDERED_ERROR and after.attempt > job.attempt:
        return unused.in_order(after, current_site(on))
    if after.request.publishes and after.end.outcome is Outcome.SUCCEEDED:
        after = replace(
            after, end=replace(after.end, reason=f"{after.end.reason}{published.publish_declared(on, job)}")
        )
    return after


def _end_leases(on: System, job: Job, rows: Sequence[Lease], had: Sequence[tuple[Unit, Unit]]) -> list[Change]:
    """The changes that end an attempt's leases: rows of those that wait, units of those that were granted."""
    waiting = [lease for lease in rows if lease.state is LeaseState.WAITING]
    return [
        *(Replace(lease, pools.withdraw_lease(lease)) for lease in waiting),
        *(change for was, unit in had for change in _end_unit(on, was, unit, job)),
    ]


def _end_unit(on: System, was: Unit, unit: Unit, job: Job) -> list[Change]:
    """The change that ends a unit's lease. It `was` read, and may be changed already by what ends the lease."""
    has_reported = job.run.report is not None and job.run.report.result is not Result.LOST
    well = has_reported or unit.is_a is UnitKind.RESOURCE  # a broken worker has reported that it is
    dirty = units.end_lease(unit, "its lease ended", on.world.now(), ended_well=well)
    return [] if dirty == was else [Replace(was, dirty)]


def _leave_queues(on: System, job: Job, rows: Sequence[Lease]) -> tuple[list[str], list[Change]]:
    """The pools in whose queues the attempt waits, and the changes that delete its claims there."""
    steps = {lease.step for lease in rows if lease.state is LeaseState.WAITING}
    claims = [claim for step in sorted(steps) for claim in grants.claims(job, step, on.world.now())]
    waiting = [on.store.get(claim.key, Claim) for claim in claims]
    return list(dict.fromkeys(claim.pool for claim in claims)), [Delete(claim) for claim in waiting if claim]


def attempt_ended(on: System, ending: Ending, queues: Sequence[str]) -> None:
    """What follows once an attempt's end is committed, in order. `queues` are the pools whose queues it left."""
    measure(on, metrics.attempt_ended(ending))
    keep_latest_failure(on, ending.after)
    if ending.after.provenance.check:
        hints.job_changed(on, ending.after)
    _serve_queues(on, queues)
    _log_end(on, ending)
    if ending.after.usage.expected:
        shares.correct_use(on, ending.after)


def _serve_queues(on: System, names: Sequence[str]) -> None:
    """Serve queues that a claim left: slots that were reserved for it may be granted to others."""
    if names:
        on.queues.serve(names, pools.group_of(names))


def _log_end(on: System, ending: Ending) -> None:
    after = ending.after
    text = f"settled: {after.end.outcome}: {after.end.reason}; {outcome.describe_duration(after)}"
    if not after.is_settled:
        past = after.history.attempts[-1]
        text = f"attempt {past.attempt} {past.outcome}: {past.reason}; attempt {after.attempt} follows"
    logs.append(on, after.id, ending.before.attempt, text, is_end=after.is_settled)


def job_settled(on: System, job: Job) -> None:
    """What follows once a job has settled, in order. All of it may be repeated."""
    notify_dependents(on, job.id)
    _unpin_dependencies(on, job)
    if _makes_way(on, job):
        backlogs.wake(on, job.owner)
    forget_secrets(on, job)


def _makes_way(on: System, job: Job) -> bool:
    """Whether others in its owner's backlog may go on for a job's end: it was under way, or it waited, and what woke it
    for the room that there is found it over. [QUEUE-1]
    """
    return job.usage.begun or (job.times.ready is None and bool(current_site(on).limits.at_once))


def forget_secrets(on: System, job: Job) -> None:
    """Delete a settled job's secrets, if it has any, and have the tokens among them revoked. Safe to repeat.

    The job records at last that none is left; until then it stays due, and the sweep repeats this. [SEC-1]
    """
    if not job.usage.has_secrets:
        return
    is_done = store.delete_secrets(on, job)
    if job.provenance.check:
        hints.job_settled(on, job)
    if is_done:
        on.store.commit([Replace(job, jobs.secrets_deleted(job))])


def _unpin_dependencies(on: System, job: Job) -> None:
    """Stop keeping what the job needed of others. Safe to repeat. [ART-1]"""
    for each in job.request.dependencies:
        unpin(on, each.job, job.id)


def start_release(on: System, job_id: str, attempt: int) -> None:
    """Wake the unit of the attempt's first lease to release; if none is left, start the next attempt."""
    turn = flow.next_release(on, job_id, attempt)
    if turn and turn.unit:
        on.queues.advance(turn.unit, turn.order == WORKER)
    job = on.store.get(job_key(job_id), Job)
    if job and job.state is State.QUEUED and (turn is None or turn.order != WORKER):
        on.queues.schedule({"do": "start", "job": job_id})


def lose(on: System, unit: Unit, cause: str, is_lost: Callable[[Unit], bool], reason: str | None) -> bool | None:
    """End the attempt that leases a unit. True if that is new; None if the attempt no longer leases the unit. [JOB-1]

    `is_lost` decides on the unit as it is when the end is written; `reason` goes into its row. The unit is due again
    soon, because its attempt has to end, and the answer to its flow may be lost.
    """

    def decide() -> tuple[Sequence[Change], tuple[Job, bool] | None]:
        fresh = on.store.get(unit_key(unit.id), Unit)
        job = on.store.get(job_key(unit.lease.job), Job)
        if (
            fresh is None
            or (fresh.lease.job, fresh.lease.attempt) != (unit.lease.job, unit.lease.attempt)
            or not is_lost(fresh)
        ):
            return [], None
        if job is None or job.is_settled or job.attempt != unit.lease.attempt:
            return [], None
        now = on.world.now()
        later = Replace(fresh, retries.retry_later(fresh, reason, now, STEP_WITHIN))
        if job.state is not State.RUNNING or job.run.report:
            return [later], (job, False)
        reported = jobs.report(job, Report(Result.LOST, cause, now))
        return [later, Replace(job, reported)], (reported, True)

    found = transact(on, decide)
    if found is None:
        return None
    job, is_new = found
    attempt_lost(on, job, cause, is_new=is_new)
    return is_new


def stop_waiting(on: System, job: Job, error: str, cause: str) -> None:
    """Fail the step that a job's flow waits in, unless its script runs."""
    for lease in flow.leases_of(on, job):
        if lease.state in (LeaseState.WAITING, LeaseState.GRANTED):
            fail_step(on, lease, error, cause)


def fail_step(on: System, lease: Lease, error: str, cause: str) -> None:
    """Fail the step of the flow that waits for a lease. An attempt that has no flow ends at once. [JOB-1]"""
    if lease.token:
        on.flows.fail(lease.token, error, cause)
    else:
        settle(on, lease.job, lease.attempt, error, cause, unbegun=True)


def attempt_lost(on: System, job: Job, cause: str, *, is_new: bool) -> None:
    """What follows once an attempt is recorded as lost, in order: it ends, or the step that its flow waits in does."""
    if is_new:
        logs.append(on, job.id, job.attempt, cause)
    if job.run.report:
        settle(on, job.id, job.attempt, None, None)
    else:
        stop_waiting(on, job, "Lost", cause)


def notify_dependents(on: System, job_id: str, after: str = "") -> None:
    """Have the jobs that depend on a settled job judged, after the one with an id. [JOB-1]

    Settling writes first and reads dependents after; submitting a dependent does the same. So of two that race, one
    sees the other. The sweep makes up for lost messages.
    """
    behind = dependent_key(job_id, after).sk if after else ""
    found = on.store.find(f"job#{job_id}", "dependent#", Dependent, limit=AT_ONCE, after=behind)
    for row in found:
        on.queues.schedule({"do": "judge", "job": row.dependent})
    if len(found) == AT_ONCE:
        on.queues.schedule({"do": "wake", "job": job_id, "after": found[-1].dependent})


def with_failure_details(on: System, ending: Ending, leases: Collection[Lease]) -> Job:
    """The job after an attempt's end, with what rows and log show of why it did not succeed. [JOB-1]"""
    job = ending.after
    kind = job.run.failure.kind if job.run.failure else None
    if kind is Kind.QUEUE_EXPIRED:
        return replace(job, run=replace(job.run, failure=outcome.expired_failure(ending, leases)))
    if kind is Kind.WORKER_LOST:
        return replace(job, run=replace(job.run, failure=_with_lines(on, ending, outcome.lost_failure(ending))))
    return job


def _with_lines(on: System, ending: Ending, failure: Failure) -> Failure:
    """With the last lines of the job's output; for a machine that never said hello, of its console."""
    is_console = ending.lost_by is LostBy.NO_HELLO
    job = ending.before
    found = logs.last_lines(
        on, job.id, job.attempt, CONSOLE_STREAMS if is_console else SCRIPT_STREAMS, failures.MAX_LINES
    )
    detailed = failures.with_lines(failure, [line.payload for line in found], is_console=is_console)
    return replace(detailed, task=found[-1].task if found else None)


def keep_from_now(on: System, job: Job) -> tuple[Job, list[Change]]:
    """A job whose attempt ends, and what to write with it, if it settles: until when what it owns is kept, and when its
    bill is closed.
    """
    row, site = on.store.get(retention_key(job.id), Retention), current_site(on)
    billed = prices.open_bill(job, on.world.now()) if site.prices and job.is_settled else job
    after = retention.settled(row or Retention(job=job.id), job, site.retention)
    if row is None:
        return retention.tell(billed, after), []
    return billed, [Replace(row, after)] if after != row else []


def find_retention(on: System, job_id: str) -> tuple[Retention | None, Job | None]:
    """A job's retention, as its own row or the job's tells of it; and the job, which was read before."""
    job = on.store.get(job_key(job_id), Job)
    told = retention.told_by(job) if job else None
    return told or on.store.get(retention_key(job_id), Retention), job


def retention_changes(was: Retention, job: Job | None, after: Retention) -> list[Change]:
    """The changes that write a retention: in its own row, or in that of the job, if that tells of it and has room."""
    if after == was:
        return []
    told = retention.teller(was, job)
    if isinstance(told, Retention):
        return [Replace(told, after)]
    if retention.is_short(after):
        return [Replace(told, retention.tell(told, after))]
    return [Create(after), Replace(told, retention.hand_over(told))]


def unpin(on: System, job: str, dependent: str) -> None:
    """Stop keeping what a job owns for a dependent. Safe to repeat."""

    def decide() -> tuple[Sequence[Change], None]:
        row = on.store.get(retention_key(job), Retention)
        if row is None:
            return [], None
        after = retention.unpinned(row, dependent)
        return ([Replace(row, after)] if after != row else []), None

    transact(on, decide)


def keep_latest_failure(on: System, job: Job) -> None:
    """Keep the job's outputs longer if its failure is the latest of its name; the one before no longer so.

    A crash before this loses nothing but the longer time, and the sweep repeats this before it ends any retention.
    """
    failure = retention.failure(job)
    if failure:
        transact(on, lambda: _latest_failure_changes(on, failure))


def _latest_failure_changes(on: System, failure: LatestFailure) -> tuple[Sequence[Change], None]:
    known = on.store.get(failure.key, LatestFailure)
    row, job = find_retention(on, failure.job)
    is_known = known is not None and known.job == failure.job
    is_later = known is None or (failure.settled, failure.job) >= (known.settled, known.job)
    if row is None or row.ended or not is_later or (is_known and row.longer):
        return [], None
    longer = retention.longer(row, failure, current_site(on).retention)
    changes: list[Change] = [Replace(known, failure) if known else Create(failure)]
    changes += retention_changes(row, job, longer)
    last = on.store.get(retention_key(known.job), Retention) if known and not is_known else None
    return [*changes, *([Replace(last, replace(last, longer=None))] if last and not last.ended else [])], None
