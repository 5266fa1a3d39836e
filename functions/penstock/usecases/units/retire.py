"""Retiring idle units that are no longer wanted, and giving back the slots of units that are gone. [UNIT-2] [SLOT-3]

Called by the scheduler, by resizes, and by whatever frees slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from penstock.domain.jobs.outcome import Boot
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, Slot, SlotState, pool_key
from penstock.domain.units import prewarm, retries, units
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.kernel.rows import Change, Delete, Replace
from penstock.system import System, transact
from penstock.usecases.jobs import flow
from penstock.usecases.telemetry import counters


def retire(
    on: System,
    unit_id: str,
    reason: str,
    *,
    is_setback: bool = False,
    boot: Boot = Boot.FAILED,
    if_coming: bool = False,
    known: str = "",
) -> bool:
    """Have an idle unit destroyed, unless it was leased first. False when it is not idle any more.

    A unit that nobody ever leased, and that came to nothing, is a setback: its pool waits before it makes another ahead
    of need. `boot` is the outcome to count for a worker that never said hello. With `if_coming`, a unit that came up
    meanwhile stays. `known` is written to its journal besides the reason.
    """
    unit = transact(
        on, lambda: _retire_changes(on, unit_id, reason, is_setback=is_setback, if_coming=if_coming, known=known)
    )
    if unit is None:
        return False
    if prewarm.never_booted(unit):
        counters.boot_outcome(on, unit.type, boot if is_setback else Boot.ABORTED)
    on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
    return True


def _retire_changes(
    on: System, unit_id: str, reason: str, *, is_setback: bool, if_coming: bool, known: str
) -> tuple[Sequence[Change], Unit | None]:
    unit = on.store.get(unit_key(unit_id), Unit)
    now = on.world.now()
    if unit is None or unit.state is not UnitState.IDLE or units.is_held(unit, now):  # [UNIT-3]
        return [], None
    if if_coming and not units.is_prewarming(unit):
        return [], None
    dirty = units.give_up(unit, reason, now)
    dirty = units.add_entry(dirty, now, known) if known else dirty
    pool = on.store.get(pool_key(unit.lease.pool), Pool) if is_setback and not unit.lease.leases else None
    setback = [Replace(pool, prewarm.failed(pool, reason, now))] if pool else []
    return [Replace(unit, dirty), *withdraw_slots(on, unit), *setback], dirty


def withdraw_slots(on: System, unit: Unit) -> list[Change]:
    """Keep the slots of an idle unit from being granted until it is destroyed."""
    return [change for slot in slots_of(on, unit) for change in pools.move(slot, pools.mark_leaving(slot))]


def slots_of(on: System, unit: Unit) -> list[Slot]:
    """Every slot that a unit has, its own first, except slots that another unit has by now. [SLOT-3]"""
    is_free = unit.state is UnitState.IDLE and unit.hold is None
    found = []
    for pool, name in ((unit.lease.pool, unit.lease.slot), *unit.lease.also):
        is_own = pool == unit.lease.pool and name == unit.lease.slot
        first = SlotState.FREE if is_free and is_own else SlotState.IDLE if is_free else SlotState.HELD
        slot = _at(on, pool, name, unit.id, first) or _at(on, pool, name, unit.id, SlotState.IDLE)
        if slot and (slot.fence == unit.lease.fence or not is_own):
            found.append(slot)
    return found


def _at(on: System, pool: str, name: str, unit: str, state: SlotState) -> Slot | None:
    slot = on.store.get(Slot(pool=pool, name=name, state=state, unit=unit).key, Slot)
    return slot if slot and slot.unit == unit else None


def free_slots(on: System, unit: Unit, gone: Unit) -> tuple[list[Change], bool]:
    """The changes by which a unit is gone, with the proof, and its slots are free; and whether they end its lease.
    [UNIT-2]
    """
    if gone.cleaning.proof is None:
        raise ValueError(f"unit {unit.id} has no proof")
    return [Replace(unit, gone), *_give_back(on, unit)], units.ends_lease(unit)


def _give_back(on: System, unit: Unit) -> list[Change]:
    """Give everything that the unit held back to its pools, except what another unit has by now. [SLOT-3]"""
    held: dict[str, list[Slot]] = {}
    for slot in slots_of(on, unit):
        held.setdefault(slot.pool, []).append(slot)
    return [change for pool, slots in held.items() for change in _to_pool(on, unit, pool, slots)]


def _to_pool(on: System, unit: Unit, name: str, slots: list[Slot]) -> list[Change]:
    """Give slots back. A limit that was lowered meanwhile is kept by whoever grants them. [SLOT-1]"""
    pool = on.store.get(pool_key(name), Pool)
    back = [change for slot in slots for change in pools.move(slot, pools.give_back(slot))]
    if pool is None:
        return back
    learned = _count_broken(pool, unit, slots)
    if pool.is_amount:
        left = replace(learned, used=pool.used - sum(slot.count for slot in slots))
        return [Replace(pool, left), *map(Delete, slots)]
    return [Replace(pool, learned), *back] if learned != pool else back


def _count_broken(pool: Pool, unit: Unit, slots: Sequence[Slot]) -> Pool:
    """A lease that ends says whether its worker was broken; a unit that nobody leased says nothing."""
    return pools.count_broken(pool, unit) if any(slot.job for slot in slots) else pool


def turn_pause(on: System, unit: Unit) -> timedelta | None:
    """How long until a unit checks again whether it may be released; None when it may now.

    An attempt's worker is released first, then its resources in reverse order. A unit that an operator holds keeps all
    after it as they are.
    """
    turn = flow.next_release(on, unit.lease.job, unit.lease.attempt, unit)
    if turn is None or turn.order == unit.lease.order:
        return None
    ahead = flow.unit_of(on, turn)
    if ahead and ahead.state is UnitState.QUARANTINED:  # ending the quarantine wakes this unit
        return retries.BACK_OFF_MOST
    if ahead and ahead.hold:
        return max(units.STEP_WITHIN, ahead.hold.until - on.world.now())
    return units.STEP_WITHIN
