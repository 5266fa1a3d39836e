"""The next step of a unit, by its state. [UNIT-1]

The factory and well functions call `advance` for each message. A message only names the unit: what to do follows from
its row. Some metadata expires, as credentials do: the resource's own due time then has its well called again while the
lease lasts. The agents' API only reads it. [SEC-1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from penstock.domain import cooldowns as cooling_rules
from penstock.domain.jobs import jobs
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.jobs.outcome import NO_HELLO, SILENT
from penstock.domain.logs.logs import DETAIL
from penstock.domain.pools.pools import LeaseState
from penstock.domain.site.site import Limits
from penstock.domain.units import retries, units
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.kernel.errors import DriverError, Misconfigured, Short, Unsatisfiable
from penstock.kernel.rows import Change, Replace
from penstock.ports import NotYet, Order, Ready
from penstock.system import System, current_site, transact
from penstock.usecases import cooldowns
from penstock.usecases.cooldowns import Permission
from penstock.usecases.jobs import flow, settle
from penstock.usecases.logs import logs
from penstock.usecases.units import (
    bells,
    driver_calls,
    drivers,
    maintenance,
    prewarm,
    quarantine,
    release,
    retire,
    reuse,
)
from penstock.usecases.units.drivers import bootstrap_key
from penstock.usecases.workers import power


def advance(on: System, unit_id: str) -> None:
    """Take a unit's next step. Safe to call twice, late, or without need."""
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit:
        _advance(on, unit)
        if unit.seen:
            driver_calls.check_visibility(on, unit_id)


def _advance(on: System, unit: Unit) -> None:
    """A hold stops most steps; a recycled unit first ends the attempt that leases it."""
    if unit.state is UnitState.GONE:
        return
    if unit.hold and maintenance.wait_for_hold(on, unit):
        return
    if unit.is_recycled:
        maintenance.end_attempt(on, unit)
    else:
        _step_by_state(on, unit)


def _step_by_state(on: System, unit: Unit) -> None:
    """The step that belongs to the unit's state."""
    match unit.state:
        case UnitState.DIRTY:
            if release.destroy(on, unit):
                power.switch_on_to_clean(on, unit)
        case UnitState.QUARANTINED:
            quarantine.remind(on, unit)
        case UnitState.CLEANING:
            reuse.clean(on, unit)
        case UnitState.IDLE:
            _step_idle(on, unit)
        case _:
            _step_leased(on, unit)


def _step_idle(on: System, unit: Unit) -> None:
    """A unit that nobody leases: it is made ahead of need, did not come up in time, or has been idle long enough."""
    if units.is_prewarming(unit) and not unit.creation.made:
        create(on, unit)
    elif units.is_due(unit, on.world.now()) and units.is_prewarming(unit):
        prewarm.hello_missed(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
    elif units.is_due(unit, on.world.now()):
        prewarm.idle_ended(on, unit)


def _step_leased(on: System, unit: Unit) -> None:
    """A unit that an attempt leases: it is made, renewed, reported ready, or given up as lost."""
    now = on.world.now()
    if unit.is_a is UnitKind.WORKER and unit.creation.made and units.is_due(unit, now):
        _worker_silent(on, unit)
    elif unit.access.renews and retries.is_renewal_due(unit, unit.access.renews, now):
        renew(on, unit, order_of(on, unit))
    elif unit.state is UnitState.READY:
        _answer_step(on, unit)
    elif not unit.creation.made:
        create(on, unit)
    elif unit.session.past_hash:
        bells.ring_worker(on, unit)


def _worker_silent(on: System, unit: Unit) -> None:
    """A worker that did not say hello, or whose agent fell silent: its attempt is lost. [JOB-1]"""
    now = on.world.now()
    if unit.state is UnitState.CREATING:
        since = "for its next job" if unit.session.past_hash else "after it was made"
        if unit.step.reason != NO_HELLO:
            driver_calls.log_evidence(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
        marked = replace(unit, health=replace(unit.health, is_unheard=unit.lease.leases == 1))
        if on.store.commit([Replace(unit, retries.retry_later(marked, NO_HELLO, now, units.STEP_WITHIN))]):
            fail_step(on, unit, "Lost", f"worker {unit.id} did not say hello in time {since}")
        return

    def is_silent(fresh: Unit) -> bool:
        return fresh.state is UnitState.READY and units.is_due(fresh, now)

    cause = f"worker {unit.id} was lost: nothing was heard from its agent in time"
    settle.lose(on, unit, cause, is_silent, SILENT)


def _answer_step(on: System, unit: Unit) -> None:
    """Tell the flow again that the leases of its step are ready: the first answer may have been lost."""
    flow.answer_step(on, flow.leases_beside(on, unit))


def create(on: System, unit: Unit) -> None:
    """Ask a unit's driver for it. Only one process at a time asks for a resource that is reused, or late."""
    locked = _lock_if_shared(on, unit)
    if locked:
        _call_create(on, locked)
        drivers.unlock(on, locked)


def _lock_if_shared(on: System, unit: Unit) -> Unit | None:
    """The unit, locked if a late call for it could reach another lease; None if another process may call."""
    is_reused = unit.cleaning.is_kept and unit.is_a is UnitKind.RESOURCE
    return driver_calls.lock(on, unit) if is_reused or units.is_late(unit, on.world.now()) else unit


def _call_create(on: System, unit: Unit) -> None:
    """Ask the driver, if cool-downs permit it, and record its answer."""
    site = current_site(on)
    permission = cooldowns.request_create(on, site, unit)
    if permission.wait is not None:
        driver_calls.retry_later(on, unit, permission.why, permission.wait)
        return
    is_blind = False
    try:
        driver, order = drivers.driver_of(on, site, unit), replace(order_of(on, unit), avoid=permission.avoid)
        is_blind = drivers.is_blind(on, unit, driver, order)
        if unit.creation.bare and is_blind:  # nothing was asked for since the driver found nothing of it
            driver_calls.retry_later(on, unit, *cooldowns.create_skipped(on, unit, permission))
            return
        recorded = _record_create(on, unit)
        if recorded is None:
            return
        unit = recorded
        done = drivers.create(on, unit, driver, order)
        sealed = drivers.seal_answer(on, site, unit, done)
    except DriverError as error:
        _create_failed(on, unit, permission, error, is_blind=is_blind)
        return
    if isinstance(done, NotYet):
        making = replace(unit, creation=replace(unit.creation, is_making=True))
        driver_calls.retry_later(on, units.with_notes(making, done.notes), done.reason, done.after)
    else:
        is_probe = cooling_rules.broken_scope(unit.type) in permission.probes
        _created(on, unit, done, sealed, site.limits, is_probe=is_probe)
        if unit.is_a is UnitKind.WORKER and on.drivers.hosts(site.factories[unit.maker].driver):
            bells.ring_host(on, unit)
    cooldowns.create_answered(on, unit, permission, done)


def _record_create(on: System, unit: Unit) -> Unit | None:
    """Record that the driver is about to be asked, so that something of the unit may exist from now on. [UNIT-1]

    Only a unit that is known to have nothing outside needs this write. None if another process changed the unit first.
    """
    if unit.creation.bare is None:
        return unit
    asked = replace(unit, creation=replace(unit.creation, bare=None))
    if on.store.commit([Replace(unit, asked)]):
        return replace(asked, version=unit.version + 1)
    on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, 1)
    return None


def _create_failed(on: System, unit: Unit, given: Permission, error: DriverError, *, is_blind: bool) -> None:
    """Give up a unit that can never be made, or retry later. `is_blind`: the driver had no way left to make it."""
    reason, after = cooldowns.create_failed(on, unit, given, error)
    unit = units.with_notes(unit, error.notes)
    if isinstance(error, Unsatisfiable) and unit.state is UnitState.IDLE:
        retire.retire(on, unit.id, f"it can never be made: {error}", is_setback=True)
    elif isinstance(error, Unsatisfiable) or (unit.seen and isinstance(error, Misconfigured)):
        fail_step(on, unit, "Unsatisfiable", str(error))
    else:
        is_bare = is_blind and isinstance(error, Short)
        bare = replace(unit.creation, bare=on.world.now()) if is_bare else unit.creation
        driver_calls.retry_later(on, replace(unit, creation=bare), reason, after)


def _created(on: System, unit: Unit, done: Ready, sealed: str, bounds: Limits, *, is_probe: bool) -> None:
    """The driver is done: a worker's machine is ordered, or a resource is ready. A probe shows whether its type boots
    again.
    """
    now = on.world.now()
    if unit.is_a is UnitKind.WORKER:
        boot = timedelta(seconds=bounds.boot)
        made = units.with_notes(units.mark_made(unit, now, boot, done.metadata), done.notes)
        on.store.commit([Replace(unit, replace(made, creation=replace(made.creation, is_probe=is_probe)))])
    elif unit.state is UnitState.IDLE:
        prewarm.resource_ready(on, unit, timedelta(seconds=bounds.lease))
    else:
        _resource_ready(on, unit, units.with_notes(units.ready(unit, sealed, now, done.expires), done.notes))


def _resource_ready(on: System, unit: Unit, made: Unit) -> None:
    """A leased resource is ready: so is its lease, and the flow's step is answered once all leases of it are."""

    def decide() -> tuple[Sequence[Change], bool]:
        fresh = on.store.get(unit.key, Unit)
        job = on.store.get(job_key(unit.lease.job), Job)
        if fresh != unit or job is None:
            return [], False
        return [Replace(unit, made), Replace(job, jobs.step_on(job, on.world.now()))], True

    if transact(on, decide):
        _log_ready(on, unit)
        _answer_step(on, made)


def _log_ready(on: System, unit: Unit) -> None:
    took = int((on.world.now() - unit.since).total_seconds())
    text = f"{unit.lease.pool}: slot {unit.lease.slot} (unit {unit.id}) is there after {took} s"
    logs.append(on, unit.lease.job, unit.lease.attempt, text, DETAIL)


def order_of(on: System, unit: Unit) -> Order:
    """What the driver needs. A worker's bootstrap key is derived from its id, so a repeated call gets the same key."""
    if unit.is_a is UnitKind.RESOURCE:
        return drivers.resource_order(on, current_site(on), unit, on.store.get(job_key(unit.lease.job), Job))
    key = bootstrap_key(on.signing_key(), unit.id)
    return Order(unit.id, unit.type, unit.lease.slot, options=drivers.options_of(on, unit), url=on.url, key=key)


def fail_step(on: System, unit: Unit, error: str, cause: str) -> None:
    """Fail the flow's step that waits for this unit's lease, or end its attempt."""
    lease = flow.lease_of_unit(on, unit)
    if lease and flow.see(on, lease).state in (LeaseState.GRANTED, LeaseState.READY):
        settle.fail_step(on, lease, error, cause)


def renew(on: System, unit: Unit, order: Order) -> None:
    """Ask a leased resource's well again, and seal its answer for the same lease.

    It is written only over the row that was read: an answer that comes after the lease's end is discarded. [SLOT-3]
    """
    locked = _lock_if_shared(on, unit)
    if locked:
        _call_renew(on, locked, order)
        drivers.unlock(on, locked)


def _call_renew(on: System, unit: Unit, order: Order) -> None:
    """Ask the well, unless it wants to be left alone, and record its answer."""
    site = current_site(on)
    permission = cooldowns.request_renewal(on, site, unit)
    if permission.wait is not None:
        driver_calls.retry_later(on, unit, permission.why, permission.wait)
        return
    try:
        done = drivers.create(on, unit, drivers.driver_of(on, site, unit), order)
        sealed = drivers.seal_answer(on, site, unit, done)
    except DriverError as error:
        reason, after = cooldowns.renewal_failed(on, unit, permission, error)
        driver_calls.retry_later(on, unit, reason, after)
        return
    if isinstance(done, NotYet):
        driver_calls.retry_later(on, units.with_notes(unit, done.notes), done.reason, done.after)
    else:
        renewed = retries.renewed(unit, sealed, on.world.now(), done.expires)
        on.store.commit([Replace(unit, units.with_notes(renewed, done.notes))])
    cooldowns.renewal_answered(on, unit, permission)
