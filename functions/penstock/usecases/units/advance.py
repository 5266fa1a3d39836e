"""The next step of a unit, by its state. [UNIT-1]

The factory and well functions call `advance` for each message. A message only names the unit: what to do follows from
its row.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.domain.jobs.outcome import NO_HELLO, SILENT
from penstock.domain.pools.leases import Lease, lease_key
from penstock.domain.units import renewals, retries, units
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.kernel.rows import Replace
from penstock.system import System
from penstock.usecases.jobs import settle
from penstock.usecases.pools import scheduler
from penstock.usecases.units import driver_calls, maintenance, prewarm, quarantine, release, reuse
from penstock.usecases.units.create import create, fail_step, order_of, renew
from penstock.usecases.units.secrets import bootstrap_key


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
            release.destroy(on, unit)
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
    elif renewals.is_renewal_due(unit, now):
        renew(on, unit, order_of(on, unit))
    elif unit.state is UnitState.READY:
        _answer_step(on, unit)
    elif not unit.creation.made:
        create(on, unit)


def _worker_silent(on: System, unit: Unit) -> None:
    """A worker that did not say hello, or whose agent fell silent: its attempt is lost. [JOB-1]"""
    now = on.world.now()
    if unit.state is UnitState.CREATING:
        since = "for its next job" if unit.session.past_hash else "after it was made"
        if unit.step.reason != NO_HELLO:
            driver_calls.log_evidence(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
        fail_step(on, unit, "Lost", f"worker {unit.id} did not say hello in time {since}")
        marked = replace(unit, health=replace(unit.health, is_unheard=unit.lease.leases == 1))
        on.store.commit([Replace(unit, retries.retry_later(marked, NO_HELLO, now, units.STEP_WITHIN))])
        return

    def is_silent(fresh: Unit) -> bool:
        return fresh.state is UnitState.READY and units.is_due(fresh, now)

    cause = f"worker {unit.id} was lost: nothing was heard from its agent in time"
    settle.lose(on, unit, cause, is_silent, SILENT)


def _answer_step(on: System, unit: Unit) -> None:
    """Tell the flow again that the leases of its step are ready: the first answer may have been lost."""
    lease = on.store.get(lease_key(unit.lease.job, unit.lease.attempt, unit.lease.order), Lease)
    if lease:
        scheduler.answer_step(on, scheduler.leases_of_step(on, unit.lease.job, unit.lease.attempt, lease.step))
