"""Events that a cloud sends about machines: one is being reclaimed, or is ending, without our request.

The factory function passes them on. An event may be lost, doubled or late, and most concern machines that are not ours,
or that we end ourselves. A worker that is reclaimed is drained; one whose machine ends is recycled. Without events,
leases and comparisons find the same later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_lambda_powertools import Logger

from penstock.domain.site.site import Site
from penstock.domain.units import maintenance as wishes
from penstock.domain.units.units import Unit, UnitKind, UnitState, add_entry, is_held, unit_key
from penstock.kernel.errors import DriverError
from penstock.kernel.rows import Change, Replace
from penstock.ports import MachineFate, MachineNotice
from penstock.system import System, current_site, transact
from penstock.usecases.logs import logs
from penstock.usecases.units import driver_calls, drivers, maintenance
from penstock.usecases.units.drivers import bootstrap_key

log = Logger(child=True)


def handle(on: System, event: Mapping[str, Any]) -> None:
    """Act on an event, if a factory of the site recognizes the worker that it is about."""
    site = current_site(on)
    for factory in site.factories:
        notice = _parse(on, site, factory, event)
        if notice:
            _apply(on, notice, factory)
            return


def _parse(on: System, site: Site, factory: str, event: Mapping[str, Any]) -> MachineNotice | None:
    """What a factory makes of an event. A factory that cannot answer now is not asked again: leases will notice."""
    try:
        driver = drivers.driver_named(on, site, UnitKind.WORKER, factory)
        return drivers.read_event(on, factory, driver, event)
    except DriverError as error:
        log.warning("an event could not be understood", extra={"factory": factory, "why": str(error)})
        return None


def _apply(on: System, notice: MachineNotice, factory: str) -> None:
    unit, is_new = transact(on, lambda: _decide(on, notice, factory))
    if unit is None:
        return
    if is_new and (unit.is_leased or unit.hold):
        logs.append(on, unit.lease.job, unit.lease.attempt, f"worker {unit.id}: {_sentence(on, notice)}")
    if unit.is_recycled:
        if is_new and unit.state is UnitState.CREATING:
            driver_calls.log_evidence(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
        maintenance.end_attempt(on, unit)
    elif unit.state is UnitState.DIRTY and not is_held(unit, on.world.now()):
        on.queues.advance(unit.id, is_worker=True)


def _decide(on: System, notice: MachineNotice, factory: str) -> tuple[Sequence[Change], tuple[Unit | None, bool]]:
    """The changes for the worker, and whether the event is new. A worker that is on its way out is left alone.

    One that is held or in quarantine is not touched, whatever becomes of its machine: only its journal records it, and
    its operator goes on. [UNIT-1] [UNIT-3]
    """
    unit, now = on.store.get(unit_key(notice.unit), Unit), on.world.now()
    if unit is None or unit.is_a is not UnitKind.WORKER or unit.state is UnitState.GONE:
        return [], (None, False)
    is_kept = is_held(unit, now) or unit.state is UnitState.QUARANTINED
    if unit.state is UnitState.DIRTY and not is_kept:
        return [], (None, False)
    after = unit
    if notice.fate is MachineFate.DRAINING:
        after = wishes.drain(unit, factory, _sentence(on, notice), now)
    elif not is_kept:
        after = wishes.recycle(unit, factory, _sentence(on, notice), now)
    if after != unit:
        changes, after = maintenance.drain_changes(on, unit, after)
        return changes, (after, True)
    if any(notice.why in entry.what for entry in unit.journal.entries):
        return [], (unit, False)
    after = add_entry(unit, now, _sentence(on, notice))
    return [Replace(unit, after)], (after, True)


def _sentence(on: System, notice: MachineNotice) -> str:
    """The event's reason, and how long the machine still works."""
    if notice.until is None:
        return notice.why
    return f"{notice.why}; {max(0, int((notice.until - on.world.now()).total_seconds()))} s are left"
