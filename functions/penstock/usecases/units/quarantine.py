"""Quarantine: units that cannot be cleaned or destroyed wait there for an operator. [UNIT-1]

`release` puts units in, `advance` has reminders sent; operators let them out, or confirm that they removed them.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_lambda_powertools import Logger

from penstock.domain.units import maintenance, quarantine
from penstock.domain.units.units import Unit, UnitKind
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.units import release
from penstock.usecases.units.maintenance import find
from penstock.usecases.units.release import free_slots
from penstock.usecases.users import audit

log = Logger(child=True)


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
        changes = free_slots(on, unit, gone)[0]
        return audit.record(on, changes, user.name, "remove", f"{is_a} {unit_id}", checked), gone

    unit = transact(on, decide)
    release.unit_removed(on, unit, user, checked, current_site(on))
    return unit
