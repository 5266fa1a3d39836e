"""Units whose lease has ended are put back: destroyed, and only then are their slots free again. [UNIT-2]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from math import ceil

from penstock.domain import estimates, leases, pools, units
from penstock.domain.errors import DriverError, RateLimited
from penstock.domain.leases import Lease, LeaseState, lease_key
from penstock.domain.pools import Pool, Slot, pool_key
from penstock.domain.rows import Change, Delete, Replace
from penstock.domain.units import CleanProof, Unit, UnitKind, UnitState, unit_key
from penstock.ports import NotYet
from penstock.system import System
from penstock.usecases import budgeting, cooling, logs, race, retiring, retrying, sites, turns


def put_back(on: System, unit: Unit) -> None:
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
            retrying.again(on, unit, f"no more calls a second are made to {unit.maker} than its `rate` says", wait)
            return
        proof = driver.destroy(unit.id, on.world.now())
    except DriverError as error:
        cooling.not_destroyed(on, unit, error)
        after = error.seconds if isinstance(error, RateLimited) else None
        retrying.again(on, unit, f"cleaning failed: {type(error).__name__}: {error}", after)
        return
    if isinstance(proof, NotYet):
        _not_yet(on, unit, proof, timedelta(seconds=site.limits.lease))
    else:
        release(on, unit, proof)


def _not_yet(on: System, unit: Unit, said: NotYet, lease: timedelta) -> None:
    """Look again later; at once when the next attempt need not wait any more, if the job stops itself. [JOB-2]"""
    left = ceil((unit.since + lease - on.world.now()).total_seconds())
    if said.stops_itself and left > 0:
        retrying.again(on, unit, unit.reason, min(said.after, left))
        return
    if said.stops_itself:
        _let_go(on, unit)
    retrying.again(on, unit, said.reason, said.after)


def _let_go(on: System, unit: Unit) -> None:
    """End the lease of a worker whose job runs no more. Its slot stays its own until it is clean. [JOB-2] [UNIT-2]

    Its agent could not renew the lease since the worker was given up, and has stopped the job by itself before it ran
    out. So neither the next attempt nor the resources of this one wait until somebody repairs a machine.
    """

    def decide() -> tuple[Sequence[Change], bool]:
        lease = on.store.get(lease_key(unit.job, unit.attempt, unit.order), Lease)
        if lease is None or lease.state is not LeaseState.RELEASING:
            return [], False
        return [Replace(lease, leases.released(lease))], True

    if race.run(on, decide):
        logs.say(on, unit.job, unit.attempt, f"nothing runs on {unit.slot} any more, which is still to be cleaned")
        turns.go_on(on, unit)


def release(on: System, unit: Unit, proof: CleanProof) -> None:
    """Free the slots of a unit that is clean, and hand them over."""
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
