"""One look for a unit in what its driver lists: by those functions only that may ask the provider."""

from __future__ import annotations

from collections.abc import Sequence

from penstock import transaction
from penstock.domain import metrics
from penstock.domain.units import visibility
from penstock.domain.units.units import Unit, UnitKind, unit_key
from penstock.domain.units.visibility import Sight
from penstock.kernel.errors import DriverError
from penstock.kernel.rows import Change, Replace
from penstock.system import System
from penstock.usecases import counting, sites


def look(on: System, unit_id: str) -> None:
    """Look for a unit where it is time to, note what was seen, and ask for the next look if one must follow."""
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit is None or not visibility.is_due(unit, on.world.now()):
        return
    phase, sight = visibility.phase(unit), _ask(on, unit)

    def decide() -> tuple[Sequence[Change], Unit | None]:
        fresh = on.store.get(unit_key(unit_id), Unit)
        if fresh is None or visibility.phase(fresh) != phase:
            return [], None
        told = visibility.saw(fresh, sight, on.world.now())
        return [Replace(fresh, told)], told

    told = transaction.run(on, decide)
    if told and visibility.phase(told):
        on.queues.advance(unit_id, told.is_a is UnitKind.WORKER, visibility.EACH)


def _ask(on: System, unit: Unit) -> Sight:
    try:
        driver = sites.driver_of(on, sites.current(on), unit)
        return Sight(listed=unit.id in counting.called_for(on, unit, metrics.LIST, lambda: set(driver.list())))
    except DriverError as error:
        return Sight(failure=f"{type(error).__name__}: {error}")


def remind(on: System, unit: Unit) -> None:
    """Ask for a look whose message was lost."""
    if visibility.is_lost(unit, on.world.now()):
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
