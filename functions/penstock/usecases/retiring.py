"""Kept units that are no longer wanted: their slots are nobody's until they are destroyed. [UNIT-2]"""

from __future__ import annotations

from collections.abc import Sequence

from penstock import transaction
from penstock.domain.jobs.outcome import Boot
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, Slot, SlotState, pool_key
from penstock.domain.units import prewarm, units
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.kernel.rows import Change, Replace
from penstock.system import System
from penstock.usecases import counting


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
    """Have an idle unit destroyed, unless somebody was granted it first. False when it was not idle any more.

    One that nobody ever had, and that came to nothing, is a setback: its pool makes the next one ahead of need later.
    `boot` is what then became of a worker that was never heard of. With `if_coming` one that came meanwhile stays. What
    is `known` besides the reason is for its journal.
    """
    unit = transaction.run(
        on, lambda: _decide(on, unit_id, reason, is_setback=is_setback, if_coming=if_coming, known=known)
    )
    if unit is None:
        return False
    if prewarm.never_came(unit):
        counting.boot(on, unit.type, boot if is_setback else Boot.ABORTED)
    on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
    return True


def _decide(
    on: System, unit_id: str, reason: str, *, is_setback: bool, if_coming: bool, known: str
) -> tuple[Sequence[Change], Unit | None]:
    unit = on.store.get(unit_key(unit_id), Unit)
    now = on.world.now()
    if unit is None or unit.state is not UnitState.IDLE or units.is_held(unit, now):  # [UNIT-3]
        return [], None
    if if_coming and not units.is_coming(unit):
        return [], None
    dirty = units.give_up(unit, reason, now)
    dirty = units.noted(dirty, now, known) if known else dirty
    pool = on.store.get(pool_key(unit.pool), Pool) if is_setback and not unit.leases else None
    setback = [Replace(pool, prewarm.failed(pool, reason, now))] if pool else []
    return [Replace(unit, dirty), *leave(on, unit), *setback], dirty


def leave(on: System, unit: Unit) -> list[Change]:
    """The slots of an idle unit that is to be destroyed are nobody's until then."""
    return [change for slot in slots_of(on, unit) for change in pools.move(slot, pools.leave(slot))]


def slots_of(on: System, unit: Unit) -> list[Slot]:
    """Every slot that a unit has, its own first, unless somebody else has it by now. [SLOT-3]"""
    is_free = unit.state is UnitState.IDLE and unit.hold is None
    found = []
    for pool, name in ((unit.pool, unit.slot), *unit.also):
        is_own = pool == unit.pool and name == unit.slot
        first = SlotState.FREE if is_free and is_own else SlotState.IDLE if is_free else SlotState.HELD
        slot = _at(on, pool, name, unit.id, first) or _at(on, pool, name, unit.id, SlotState.IDLE)
        if slot and (slot.fence == unit.fence or not is_own):
            found.append(slot)
    return found


def _at(on: System, pool: str, name: str, unit: str, state: SlotState) -> Slot | None:
    slot = on.store.get(Slot(pool=pool, name=name, state=state, unit=unit).key, Slot)
    return slot if slot and slot.unit == unit else None
