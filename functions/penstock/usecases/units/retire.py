"""Retiring idle units that are no longer wanted. [UNIT-2] [SLOT-3]

Called by the scheduler, by resizes, and by whatever finds that a unit is of no use.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain import metrics
from penstock.domain.jobs.outcome import Boot
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units import prewarm, units
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.kernel.rows import Change, Replace
from penstock.system import System, measure, transact
from penstock.usecases.jobs.flow import slots_of


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
        measure(on, metrics.boot_outcome(unit.type, boot if is_setback else Boot.ABORTED))
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
