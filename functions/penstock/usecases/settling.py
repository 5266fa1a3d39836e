"""The end of an attempt: always, and exactly once. [JOB-1]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from penstock.domain import endings, idling, judging, leases, units
from penstock.domain.causes import Ending
from penstock.domain.jobs import Job, Outcome, Result, State, job_key
from penstock.domain.leases import WORKER, Lease, LeaseState
from penstock.domain.pools import Claim, claim_key
from penstock.domain.rows import Change, Delete, Replace
from penstock.domain.units import Unit, UnitKind, unit_key
from penstock.system import System
from penstock.usecases import archiving, counting, failing, logs, publishing, race, retaining, values, waking
from penstock.usecases.github import hints


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
    ended = race.run(on, lambda: _end(on, job_id, attempt, error, cause, overdue))
    if ended is not None:
        ending, waited_for = ended
        after = ending.after
        counting.ended(on, ending)
        retaining.remember(on, after)
        hints.moved(on, after)
        for pool in waited_for:  # what was kept for a claim that is gone may be granted to another
            on.queues.schedule({"do": "serve", "pool": pool})
        told = f"settled: {after.outcome}: {after.reason}; {endings.spent(after)}"
        if not after.is_settled:
            past = after.attempts[-1]
            told = f"attempt {past.attempt} {past.outcome}: {past.reason}; attempt {after.attempt} follows"
        logs.say(on, job_id, attempt, told, is_end=after.is_settled)
    put_back(on, job_id, attempt)
    job = on.store.get(job_key(job_id), Job)
    if job and job.is_settled:
        waking.wake(on, job_id)
        _let_go(on, job)
        values.forget(on, job)
        hints.ended(on, job)


def _let_go(on: System, job: Job) -> None:
    """What the job needed of others need not be kept for it any more. Done twice, it is done once. [ART-1]"""
    for each in job.dependencies:
        retaining.unpin(on, each.job, job.id)


def _end(
    on: System,
    job_id: str,
    attempt: int,
    error: str | None,
    cause: str | None,
    overdue: datetime | None,
) -> tuple[Sequence[Change], tuple[Ending, list[str]] | None]:
    """The job's end, and with it the end of every lease of the attempt, in one commit; and whose queues it leaves."""
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.attempt != attempt or job.is_settled:
        return [], None
    if overdue and (job.due is None or job.due > overdue):
        return [], None
    if error == judging.ERROR and job.state is not State.WAITING:
        return [], None  # it was judged before, and otherwise
    stopping = replace(job, stop_from=job.stop_from or attempt) if overdue else job
    held = on.store.find(f"job#{job_id}", leases.prefix(attempt), Lease)
    if error == idling.ERROR and not idling.is_over(job, held, on.world.now()):
        return [], None  # it has got further since
    after = endings.conclude(stopping, error, cause, on.world.now())
    if after.publishes and after.outcome is Outcome.SUCCEEDED:  # written before its end: who sees that, finds the files
        after = replace(after, reason=f"{after.reason}{publishing.of_job(on, job)}")
    changes: list[Change] = []
    had: list[Unit] = []
    for lease in held:
        unit = on.store.get(unit_key(lease.unit), Unit) if lease.unit else None
        had += [unit] if unit else []
        changes += _end_lease(on, lease, job, unit)
    waiting = {lease.step for lease in held if lease.state is LeaseState.WAITING}
    claims = claims_of(job, waiting)
    for step, pool in claims:
        claim = on.store.get(claim_key(pool, job.priority, job_id, attempt, step), Claim)
        changes += [Delete(claim)] if claim else []
    ending = Ending(job, after, had, error, is_overdue=overdue is not None)
    after = failing.told(on, ending, held)
    changes = [Replace(job, after), *changes, *retaining.settled(on, after), *archiving.settled(on, after)]
    ending = replace(ending, after=after)
    return changes, (ending, list(dict.fromkeys(pool for _, pool in claims)))


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
        dirty = units.soil(unit, "its lease ended", on.world.now(), ended_well=well)
        changes += [] if dirty == unit else [Replace(unit, dirty)]
    return changes


def put_back(on: System, job_id: str, attempt: int) -> None:
    """Give the turn to the first of an attempt's leases to be put back; with none left, to its next attempt."""
    turn = leases.next_release(on.store.find(f"job#{job_id}", leases.prefix(attempt), Lease))
    if turn and turn.unit:
        on.queues.advance(turn.unit, turn.order == WORKER)
    job = on.store.get(job_key(job_id), Job)
    if job and job.state is State.QUEUED and (turn is None or turn.order != WORKER):
        on.queues.schedule({"do": "start", "job": job_id})
