"""Destroying units whose lease has ended. Their slots are free only after that. [UNIT-2]

`advance` calls `destroy` for each dirty unit; hosts' agents report their own machines clean with `unit_destroyed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from math import ceil

from penstock.domain.cooldowns import maker_of
from penstock.domain.site.site import Site
from penstock.domain.units import quarantine as units_quarantine
from penstock.domain.units import retries, units, visibility
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState, unit_key
from penstock.kernel.errors import DriverError, RateLimited
from penstock.kernel.rows import Change, Replace
from penstock.ports import NotYet
from penstock.system import System, current_site, transact
from penstock.usecases import cooldowns
from penstock.usecases.units import driver_calls, drivers, events, quarantine, retire, reuse


def destroy(on: System, unit: Unit) -> None:
    """Destroy a unit when it is its turn among the attempt's releases; then free its slots. [UNIT-2]"""
    pause = retire.turn_pause(on, unit)
    if pause:  # whoever is released before it wakes it; the sweep makes up for a lost message
        on.store.commit([Replace(unit, retries.retry_later(unit, unit.step.reason, on.world.now(), pause))])
        return
    if unit.health.broken and drivers.quarantines(on, current_site(on), unit):
        quarantine.enter(on, unit, f"it is broken: {unit.health.broken}")
        return
    site = _site(on)
    is_locked = units.is_late(unit, on.world.now()) or _is_named_outside(on, site, unit)
    begun = reuse.lock(on, unit, is_to_clean=True) if is_locked else _record_destroy(on, unit)
    if begun:
        _call_destroy(on, begun, site)
        drivers.unlock(on, begun)


def _call_destroy(on: System, unit: Unit, site: Site | None) -> None:
    """Ask the driver, if its maker may be called, and record its answer."""
    try:
        site = site or current_site(on)
        wait = cooldowns.take_call(on, site, unit)
        if wait is not None:
            driver_calls.retry_later(
                on, unit, f"no more calls a second are made to {unit.maker} than its `rate` says", wait
            )
            return
        driver = drivers.driver_of(on, site, unit)
        proof = drivers.destroy(on, maker_of(unit.is_a, unit.maker), driver, unit.id)
    except DriverError as error:
        cooldowns.destroy_failed(on, unit, error)
        _destroy_failed(on, unit, error)
        return
    if isinstance(proof, NotYet):
        _not_yet(on, unit, proof, timedelta(seconds=site.limits.lease))
        return
    wait = visibility.wait_for_absence(unit, proof) if proof.lag else 0
    if wait:
        driver_calls.retry_later(on, unit, visibility.NOT_LISTED_YET, wait)
    else:
        unit_destroyed(on, unit, proof, site)


def _site(on: System) -> Site | None:
    """The site; None if it no longer parses, which is reported where the driver would be called."""
    try:
        return current_site(on)
    except DriverError:
        return None


def _is_named_outside(on: System, site: Site | None, unit: Unit) -> bool:
    """Whether a well's things have names that outlive the unit: a late call would reach the next lease's."""
    return site is not None and unit.is_a is UnitKind.RESOURCE and drivers.quarantines(on, site, unit)


def _record_destroy(on: System, unit: Unit) -> Unit | None:
    """Record that the driver is about to destroy the unit: from now on it is too late to hold it. [UNIT-3]

    None if another process changed the unit. A worker's row says so since its lease ended, so only resources, and units
    that were held, cost a write here.
    """
    if unit.cleaning.begun:
        return unit
    begun = units.begin_end(unit, on.world.now())
    if on.store.commit([Replace(unit, begun)]):
        return replace(begun, version=unit.version + 1)
    on.queues.advance(
        unit.id, unit.is_a is UnitKind.WORKER, 1
    )  # a lost race: read the unit again now, not only when it is due
    return None


def _destroy_failed(on: System, unit: Unit, error: DriverError) -> None:
    """The driver could not destroy a unit: retry later, or quarantine it when that no longer helps. [UNIT-1]"""
    unit = units.with_notes(unit, error.notes)
    counted = units_quarantine.count_failure(unit, error)
    if units_quarantine.is_stuck(counted, error):
        why = f"tried {counted.health.stuck} times to destroy it: {type(error).__name__}: {error}"
        quarantine.enter(on, unit, why)
        return
    after = error.seconds if isinstance(error, RateLimited) else None
    driver_calls.retry_later(on, counted, f"cleaning failed: {type(error).__name__}: {error}", after)


def _not_yet(on: System, unit: Unit, answer: NotYet, lease: timedelta) -> None:
    """Retry later. If the job stops itself, its lease may end before the machine is clean. [JOB-2]"""
    left = ceil((unit.since + lease - on.world.now()).total_seconds())
    if answer.stops_itself and left > 0:
        driver_calls.retry_later(on, unit, unit.step.reason, min(answer.after, left))
        return
    if answer.stops_itself:
        unit = _end_lease_early(on, unit)
    driver_calls.retry_later(on, units.with_notes(unit, answer.notes), answer.reason, answer.after)


def _end_lease_early(on: System, unit: Unit) -> Unit:
    """End the lease of a worker whose job certainly runs no more. Its slot stays taken until it is clean. [JOB-2]
    [UNIT-2]

    Its agent could not renew the lease after the worker was given up, and stopped the job by itself before the lease
    ran out. So neither the next attempt nor this one's resources wait until somebody repairs a machine.
    """
    ended = units.release_lease(unit)
    if not units.ends_lease(unit) or not on.store.commit([Replace(unit, ended)]):
        return unit
    events.lease_ended_early(on, unit)
    return replace(ended, version=unit.version + 1)


def unit_destroyed(on: System, unit: Unit, proof: CleanProof, site: Site | None = None) -> None:
    """Commit that a unit is gone and its slots are free, then do what follows from it. Called by hosts' agents too."""
    released = transact(on, lambda: _gone_changes(on, unit.id, proof))
    events.unit_gone(on, unit, proof, released, site)


def _gone_changes(on: System, unit_id: str, proof: CleanProof) -> tuple[Sequence[Change], bool | None]:
    """The one write that frees a slot: with the proof, and only for the holder with this fence. [SLOT-3] [UNIT-2]"""
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit is None or unit.state is not UnitState.DIRTY:
        return [], None
    return retire.free_slots(on, unit, units.mark_gone(unit, proof, proof.time))
