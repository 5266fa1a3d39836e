"""Quarantine: units that cannot be cleaned or destroyed wait there for an operator. [UNIT-1]

`release` and `advance` put units in and send reminders; operators let them out, or confirm that they removed them.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_lambda_powertools import Logger

from penstock import listings
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units import maintenance, quarantine
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.units import events, retire
from penstock.usecases.units.maintenance import find
from penstock.usecases.users import audit

log = Logger(child=True)


def enter(on: System, unit: Unit, reason: str) -> None:
    """Put a unit that cannot be put back into quarantine, with all its slots. Does nothing if the unit has changed."""
    if not on.store.commit(_enter_changes(on, unit, reason)):
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, 1)
        return
    events.unit_quarantined(on, unit, reason)


def _enter_changes(on: System, unit: Unit, reason: str) -> list[Change]:
    """No job holds its slots any more: it counts towards nobody's usage, and is not evicted. [UNIT-1]"""
    now = on.world.now()
    slots = retire.slots_of(on, unit)
    changes: list[Change] = [Replace(unit, quarantine.enter(unit, reason, now))]
    changes += [change for slot in slots for change in pools.move(slot, pools.set_aside(slot, now))]
    return [*changes, *(_count_broken(on, unit) if any(slot.job for slot in slots) else ())]


def _count_broken(on: System, unit: Unit) -> list[Change]:
    """A broken worker is counted when its lease ends, which is now."""
    pool = on.store.get(pool_key(unit.lease.pool), Pool)
    if pool is None:
        return []
    counted = pools.count_broken(pool, unit)
    return [Replace(pool, counted)] if counted != pool else []


def remind(on: System, unit: Unit) -> None:
    """Log that a unit is still in quarantine. Only its operator moves it on."""
    now = on.world.now()
    if unit.due and unit.due > now:
        return
    reminded = quarantine.remind(unit, now)
    if on.store.commit([Replace(unit, reminded)]):
        extra = {"unit": unit.id, "maker": unit.maker, "pool": unit.lease.pool, "reminders": reminded.health.reminders}
        log.warning(quarantine.describe(reminded), extra=extra)


def confirm_removed(on: System, user: User, is_a: UnitKind, unit_id: str, checked: str) -> Unit:
    """Free the slots of a unit that an operator removed by hand. Raises Refused 400, 404 or 409. [UNIT-2]

    The operator's statement is the proof, as the driver's would be.
    """
    maintenance.check(checked, required=True)

    def decide() -> tuple[Sequence[Change], Unit]:
        unit = find(on, is_a, unit_id)
        gone = quarantine.removed(unit, user.name, checked, on.world.now())
        changes = retire.free_slots(on, unit, gone)[0]
        return audit.record(on, changes, user.name, "remove", f"{is_a} {unit_id}", checked), gone

    unit = transact(on, decide)
    events.unit_removed(on, unit, user, checked, current_site(on))
    return unit


def list_of_maker(on: System, is_a: UnitKind, maker: str) -> list[Unit]:
    """The quarantined units of a factory or well, oldest first."""
    units = listings.every(on, f"{is_a}s", Unit)
    return [unit for unit in units if unit.maker == maker and unit.state is UnitState.QUARANTINED]
