"""The next step of a unit, whatever it is: what factories and wells do. Messages only say which unit. [UNIT-1]"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from penstock.domain import estimates, jobs, leases, pools, units
from penstock.domain.custody import is_recycled
from penstock.domain.errors import DriverError, RateLimited, Unsatisfiable
from penstock.domain.jobs import Job, Report, Result, State, job_key
from penstock.domain.leases import Lease, LeaseState, lease_key
from penstock.domain.pools import Pool, Slot, pool_key
from penstock.domain.rows import Change, Delete, Replace
from penstock.domain.units import CleanProof, Unit, UnitKind, UnitState, unit_key
from penstock.ports import NotYet, Order, Ready
from penstock.system import System
from penstock.usecases import (
    acquiring,
    budgeting,
    cooling,
    custody,
    evidence,
    keeping,
    logs,
    race,
    retiring,
    sites,
    turns,
)  # fmt: skip

NO_HELLO = "no hello"


def advance(on: System, unit_id: str) -> None:
    """Take a unit's next step. Doing it twice, late or for nothing is the same as doing it once."""
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit is None or unit.state is UnitState.GONE:
        return
    if unit.hold and custody.waits(on, unit):
        return
    if is_recycled(unit):
        custody.end_attempt(on, unit)
    else:
        _step(on, unit)


def _step(on: System, unit: Unit) -> None:
    overdue = unit.due is not None and unit.due <= on.world.now()
    if unit.state is UnitState.DIRTY:
        _put_back(on, unit)
    elif unit.state is UnitState.CLEANING:
        keeping.clean(on, unit)
    elif unit.state is UnitState.IDLE:
        if overdue:
            retiring.retire(on, unit.id, _worn(on, unit))
    elif unit.is_a is UnitKind.WORKER and unit.made and overdue:
        _lose(on, unit)
    elif unit.state is UnitState.CREATING and not unit.made:
        begun = keeping.alone(on, unit) if unit.is_kept and unit.is_a is UnitKind.RESOURCE else unit
        if begun:
            _make(on, begun)
    elif unit.state is UnitState.READY:
        _answer(on, unit)


def _worn(on: System, unit: Unit) -> str:
    if unit.until and unit.until <= on.world.now():
        return "it was idle for as long as it may be, or is too old"
    return "nothing was heard from its agent while it was idle"


def _make(on: System, unit: Unit) -> None:
    site = sites.current(on)
    leave = cooling.leave(on, site, unit)
    if leave.wait is not None:
        _again(on, unit, leave.why, leave.wait)
        return
    try:
        done = sites.driver(on, site, unit.is_a, unit.maker).create(replace(_order(on, unit), avoid=leave.avoid))
    except DriverError as error:
        reason, after = cooling.refused(on, unit, leave, error)
        if isinstance(error, Unsatisfiable):
            _fail(on, unit, "Unsatisfiable", str(error))
        else:
            _again(on, unit, reason, after)
        return
    if isinstance(done, NotYet):
        _again(on, replace(unit, is_making=True), done.reason, done.after)
    else:
        _made(on, unit, done, timedelta(seconds=site.limits.boot))
    cooling.answered(on, unit, leave, done)


def _made(on: System, unit: Unit, done: Ready, boot: timedelta) -> None:
    """A worker's machine was ordered; a resource is there."""
    now = on.world.now()
    if unit.is_a is UnitKind.WORKER:
        on.store.commit([Replace(unit, units.made(unit, now, boot, done.metadata))])
        return
    _hand_over(on, unit, units.ready(unit, done.metadata, now))


def _hand_over(on: System, unit: Unit, made: Unit) -> None:
    """A resource is there: its lease is ready, and its job's flow is to go on when all of the step are."""

    def decide() -> tuple[Sequence[Change], Lease | None]:
        fresh = on.store.get(unit.key, Unit)
        lease = on.store.get(lease_key(unit.job, unit.attempt, unit.order), Lease)
        job = on.store.get(job_key(unit.job), Job)
        if fresh != unit or lease is None or lease.state is not LeaseState.GRANTED or job is None:
            return [], None
        return [
            Replace(unit, made),
            Replace(lease, leases.ready(lease)),
            Replace(job, jobs.step_on(job, on.world.now())),
        ], lease

    lease = race.run(on, decide)
    if lease:
        acquiring.answer(on, acquiring.step_of(on, unit.job, unit.attempt, lease.step))


def _order(on: System, unit: Unit) -> Order:
    """What the driver needs. A worker's bootstrap key is derived from its id, so that a second call gives the same."""
    job = on.store.get(job_key(unit.job), Job)
    need = next((need for need in job.needs if need.order == unit.order), None) if job else None
    if unit.is_a is UnitKind.RESOURCE:
        kind = sites.current(on).resources.get(unit.type)
        settings = kind.settings if kind else {}
        return Order(unit.id, unit.type, unit.slot, settings, need.options if need else {})
    return Order(unit.id, unit.type, unit.slot, url=on.url, key=bootstrap_key(on.signing_key(), unit.id))


def bootstrap_key(signing_key: str, unit: str) -> str:
    """The key with which a worker's agent says hello, once."""
    return hmac.new(signing_key.encode(), unit.encode(), hashlib.sha256).hexdigest()


def _again(on: System, unit: Unit, reason: str | None, after: int | None = None) -> None:
    """The same step again, later. What stays wrong past the boot deadline is told to the job's log by its reason."""
    pause = timedelta(seconds=min(after, units.MESSAGE_MOST)) if after is not None else None
    next_try = replace(units.look_again(unit, reason, on.world.now(), pause), busy=None)
    if next_try == unit or not on.store.commit([Replace(unit, next_try)]):
        return
    if reason and reason != unit.reason:
        doing = "put back" if unit.state is UnitState.DIRTY else "give"
        logs.say(on, unit.job, unit.attempt, f"{unit.maker} cannot {doing} {unit.type} yet: {reason}", "worker")
    if next_try.due and next_try.next_look != unit.next_look:
        seconds = int((next_try.due - on.world.now()).total_seconds())
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, max(1, seconds))


def _fail(on: System, unit: Unit, error: str, cause: str) -> None:
    lease = on.store.get(lease_key(unit.job, unit.attempt, unit.order), Lease)
    if lease and lease.state in (LeaseState.GRANTED, LeaseState.READY):
        on.flows.fail(lease.token, error, cause)


def _answer(on: System, unit: Unit) -> None:
    """Answer the step that waits for a unit that is there; the first answer may have been lost."""
    lease = on.store.get(lease_key(unit.job, unit.attempt, unit.order), Lease)
    if lease:
        acquiring.answer(on, acquiring.step_of(on, unit.job, unit.attempt, lease.step))


def _lose(on: System, unit: Unit) -> None:
    """A worker that did not say hello, or was not heard of, in time: its attempt is lost. [JOB-1]"""
    now = on.world.now()
    if unit.state is UnitState.CREATING:
        since = "after it was made" if unit.leases == 1 else "for its next job"
        if unit.reason != NO_HELLO:
            evidence.tell(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
        _fail(on, unit, "Lost", f"worker {unit.id} did not say hello in time {since}")
        on.store.commit([Replace(unit, units.later(unit, NO_HELLO, now, units.STEP_WITHIN))])
        return

    def decide() -> tuple[Sequence[Change], tuple[Job, bool] | None]:
        fresh = on.store.get(unit_key(unit.id), Unit)
        job = on.store.get(job_key(unit.job), Job)
        if fresh is None or fresh.state is not UnitState.READY or not fresh.due or fresh.due > now:
            return [], None
        if job is None or job.state is not State.RUNNING or job.attempt != unit.attempt:
            return [], None
        silent = f"worker {unit.id} was lost: nothing was heard from its agent in time"
        told = jobs.report(job, Report(Result.LOST, silent, now))
        later = units.later(fresh, "lost", now, units.STEP_WITHIN)
        if told == job:
            return [Replace(fresh, later)], (job, False)
        return [Replace(fresh, later), Replace(job, told)], (told, True)

    found = race.run(on, decide)
    if found is None:
        return
    job, is_news = found
    if is_news and job.report:
        logs.say(on, job.id, job.attempt, job.report.reason)
    if job.run_token:
        on.flows.succeed(job.run_token)


def _put_back(on: System, unit: Unit) -> None:
    """Clean a unit whose lease has ended, in the order of its attempt's releases; then hand its slot over. [UNIT-2]"""
    pause = turns.pause(on, unit)
    if pause:  # who goes before it tells it, and the sweep makes up for that
        on.store.commit([Replace(unit, units.later(unit, unit.reason, on.world.now(), pause))])
        return
    begun = _begin(on, unit)
    if begun is None:
        return
    unit = begun
    try:
        site = sites.current(on)
        driver = sites.driver(on, site, unit.is_a, unit.maker)
        wait = budgeting.token(on, site, unit)
        if wait is not None:
            _again(on, unit, f"no more calls a second are made to {unit.maker} than its `rate` says", wait)
            return
        proof = driver.destroy(unit.id, on.world.now())
    except DriverError as error:
        cooling.not_destroyed(on, unit, error)
        after = error.seconds if isinstance(error, RateLimited) else None
        _again(on, unit, f"cleaning failed: {type(error).__name__}: {error}", after)
        return
    if isinstance(proof, NotYet):
        _again(on, unit, proof.reason, proof.after)
        return
    if race.run(on, lambda: _release(on, unit.id, proof)):
        took = int((proof.time - unit.since).total_seconds())
        logs.say(
            on,
            unit.job,
            unit.attempt,
            f"{unit.pool}: slot {unit.slot} is clean after {took} s and given back",
        )
    cooling.destroyed(on, unit)
    turns.go_on(on, unit)


def _begin(on: System, unit: Unit) -> Unit | None:
    """A unit that it is too late to hold, before its driver destroys it; None when somebody else moved. [UNIT-3]

    A worker's is written when its lease ends; so only a resource, or what was held, costs a write here."""
    if unit.begun:
        return unit
    begun = units.begin(unit, on.world.now())
    if on.store.commit([Replace(unit, begun)]):
        return replace(begun, version=unit.version + 1)
    on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, 1)  # a race that was lost: look anew, and not only at due
    return None


def _release(on: System, unit_id: str, proof: CleanProof) -> tuple[Sequence[Change], bool]:
    """The one write that frees a slot: with the proof, and only for the holder with this fence. [SLOT-3] [UNIT-2]"""
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit is None or unit.state is not UnitState.DIRTY:
        return [], False
    lease = on.store.get(lease_key(unit.job, unit.attempt, unit.order), Lease)
    changes: list[Change] = [Replace(unit, units.gone(unit, proof, proof.time)), *_give_back(on, unit)]
    ends = lease is not None and lease.state is LeaseState.RELEASING
    if lease and ends:
        changes.append(Replace(lease, leases.released(lease)))
    return changes, ends


def _give_back(on: System, unit: Unit) -> list[Change]:
    """Everything that a unit held goes back to its pools, unless somebody else has it by now. [SLOT-3]"""
    held: dict[str, list[Slot]] = {}
    for slot in retiring.slots_of(on, unit):
        held.setdefault(slot.pool, []).append(slot)
    return [change for pool, slots in held.items() for change in _to_pool(on, pool, slots)]


def _to_pool(on: System, name: str, slots: list[Slot]) -> list[Change]:
    """Slots come back. The pool's row is part of it: lowering its limit decides which slots may be free. [SLOT-1]"""
    pool = on.store.get(pool_key(name), Pool)
    leased = [slot for slot in slots if slot.job]
    learned = estimates.learn(pool, leased, on.world.now()) if pool else None
    if pool and learned and pool.is_amount:
        left = replace(learned, used=pool.used - sum(slot.count for slot in slots))
        return [Replace(pool, left), *map(Delete, slots)]
    changes: list[Change] = [Replace(pool, learned)] if pool and learned else []
    spare = _withdrawn(on, name, slots) if pool and pool.over and pool.names is None else []
    for slot in slots:
        if spare and not slot.withdrawn:
            changes += pools.swap(slot, spare.pop())
        else:
            changes += pools.move(slot, pools.give_back(slot))
    return changes


def _withdrawn(on: System, name: str, back: list[Slot]) -> list[Slot]:
    """Slots of a pool that others hold although they were withdrawn."""
    held = on.store.find(pools.collection(name), "held#", Slot, limit=10_000)
    own = {slot.name for slot in back}
    return [slot for slot in held if slot.withdrawn and slot.name not in own]
