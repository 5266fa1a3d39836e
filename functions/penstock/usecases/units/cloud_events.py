"""What a cloud says of machines by itself: one is being taken back, or is ending, without anybody having asked for it.

An event is a hint like any other: it may be lost, doubled or late, and most are about machines that are none of ours,
or that we end ourselves. What follows is what an operator could ask for: a worker that is taken back is drained, one
whose machine ends is recycled, both by its factory. Without any events, leases and comparisons find the same later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_lambda_powertools import Logger

from penstock import transaction
from penstock.domain.site.site import Site
from penstock.domain.units import maintenance as wishes
from penstock.domain.units.units import Unit, UnitKind, UnitState, add_entry, is_held, unit_key
from penstock.kernel.errors import DriverError
from penstock.kernel.rows import Change, Replace
from penstock.ports import EventDriver, MachineFate, MachineNotice
from penstock.system import System
from penstock.usecases.logs import logs
from penstock.usecases.site import configuration
from penstock.usecases.units import driver_calls, maintenance
from penstock.usecases.units.secrets import bootstrap_key

log = Logger(child=True)


def handle(on: System, event: Mapping[str, Any]) -> None:
    """Act upon an event of a cloud, if a factory of the site knows the worker that it is about."""
    site = configuration.current(on)
    for factory in site.factories:
        told = _parse(on, site, factory, event)
        if told:
            _apply(on, told, factory)
            return


def _parse(on: System, site: Site, factory: str, event: Mapping[str, Any]) -> MachineNotice | None:
    """What a factory makes of an event. One that cannot say now is not asked again: a lease tells it soon enough."""
    try:
        driver = configuration.driver(on, site, UnitKind.WORKER, factory)
        return driver.tidings(event) if isinstance(driver, EventDriver) else None
    except DriverError as error:
        log.warning("an event could not be understood", extra={"factory": factory, "why": str(error)})
        return None


def _apply(on: System, told: MachineNotice, factory: str) -> None:
    unit, is_news = transaction.run(on, lambda: _decide(on, told, factory))
    if unit is None:
        return
    if is_news and (unit.state in wishes.LEASED or unit.hold):
        logs.append(on, unit.job, unit.attempt, f"worker {unit.id}: {_sentence(on, told)}")
    if wishes.is_recycled(unit):
        if is_news and unit.state is UnitState.CREATING:
            driver_calls.log_evidence(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
        maintenance.end_attempt(on, unit)
    elif unit.state is UnitState.DIRTY and not is_held(unit, on.world.now()):
        on.queues.advance(unit.id, is_worker=True)


def _decide(on: System, told: MachineNotice, factory: str) -> tuple[Sequence[Change], tuple[Unit | None, bool]]:
    """What follows for the worker, and whether it is news. What is on its way out already is left alone.

    A held one is not touched, whatever becomes of its machine: only its journal says it. [UNIT-3]
    """
    unit, now = on.store.get(unit_key(told.unit), Unit), on.world.now()
    if unit is None or unit.is_a is not UnitKind.WORKER or unit.state is UnitState.GONE:
        return [], (None, False)
    is_kept = is_held(unit, now)
    if unit.state is UnitState.DIRTY and not is_kept:
        return [], (None, False)
    after = unit
    if told.fate is MachineFate.DRAINING:
        after = wishes.drain(unit, factory, _sentence(on, told), now)
    elif not is_kept:
        after = wishes.recycle(unit, factory, _sentence(on, told), now)
    if after != unit:
        changes, after = maintenance.drain_changes(on, unit, after)
        return changes, (after, True)
    if any(told.why in entry.what for entry in unit.journal.entries):
        return [], (unit, False)
    after = add_entry(unit, now, _sentence(on, told))
    return [Replace(unit, after)], (after, True)


def _sentence(on: System, told: MachineNotice) -> str:
    """Why, and how long the machine works still."""
    if told.until is None:
        return told.why
    return f"{told.why}; {max(0, int((told.until - on.world.now()).total_seconds()))} s are left"
