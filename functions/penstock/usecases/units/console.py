"""A worker's console output, which operators ask for. Only the factory's function may ask for it outside."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.units import maintenance
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.kernel.rows import Change, Replace
from penstock.system import System, transact
from penstock.usecases.units import driver_calls, drivers


def read(on: System, unit_id: str, by: str) -> None:
    """Write a worker's console output into its journal, for an operator; once, if several ask at a time. [SEC-1]

    A worker whose factory has none gets an entry that says so.
    """
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit is None or not _wants_console(on, unit):
        return
    known = driver_calls.evidence(on, unit, hide=drivers.bootstrap_key(on.signing_key(), unit.id))
    text = known or f"{unit.maker} has no console output of {unit.id}"

    def decide() -> tuple[Sequence[Change], None]:
        fresh = on.store.get(unit_key(unit_id), Unit)
        if fresh is None or not _wants_console(on, fresh):
            return [], None
        return [Replace(fresh, maintenance.with_console(fresh, by, text, on.world.now()))], None

    transact(on, decide)


def _wants_console(on: System, unit: Unit) -> bool:
    return unit.state is not UnitState.GONE and not maintenance.is_console_fresh(unit, on.world.now())
