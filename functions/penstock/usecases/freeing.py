"""What a unit took goes back to its pools, when it is gone. [UNIT-2] [SLOT-3]"""

from __future__ import annotations

from dataclasses import replace

from penstock.domain.pools import forecast, leases, pools
from penstock.domain.pools.leases import Lease, LeaseState, lease_key
from penstock.domain.pools.pools import Pool, Slot, pool_key
from penstock.domain.units import quarantine
from penstock.domain.units.units import Unit
from penstock.kernel.rows import Change, Delete, Replace
from penstock.system import System
from penstock.usecases import retiring


def free(on: System, unit: Unit, gone: Unit) -> tuple[list[Change], bool]:
    """A unit is gone, with the proof, and its slots go back; and whether its lease ends with that. [UNIT-2]"""
    if gone.proof is None:
        raise ValueError(f"unit {unit.id} has no proof")
    ends = end_lease(on, unit)
    return [Replace(unit, gone), *_give_back(on, unit), *ends], bool(ends)


def end_lease(on: System, unit: Unit) -> list[Change]:
    """A unit's lease is released, if it still waits for that."""
    lease = on.store.get(lease_key(unit.job, unit.attempt, unit.order), Lease)
    return [Replace(lease, leases.released(lease))] if lease and lease.state is LeaseState.RELEASING else []


def _give_back(on: System, unit: Unit) -> list[Change]:
    """Everything that a unit held goes back to its pools, unless somebody else has it by now. [SLOT-3]"""
    held: dict[str, list[Slot]] = {}
    for slot in retiring.slots_of(on, unit):
        held.setdefault(slot.pool, []).append(slot)
    return [change for pool, slots in held.items() for change in _to_pool(on, unit, pool, slots)]


def _to_pool(on: System, unit: Unit, name: str, slots: list[Slot]) -> list[Change]:
    """Slots come back. The pool's row is part of it: lowering its limit decides which slots may be free. [SLOT-1]"""
    pool = on.store.get(pool_key(name), Pool)
    leased = [slot for slot in slots if slot.job]
    learned = forecast.learn(pool, leased, on.world.now()) if pool else None
    if learned and leased:
        learned = quarantine.count_broken(learned, unit)
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
