"""The next step of a unit, whatever it is: what factories and wells do. Messages only say which unit. [UNIT-1]

What a well says of a resource may end by itself, as credentials do: it is asked anew while the lease lasts. [SEC-1]

It is the resource's due time that leads here, and nobody else: whoever answers agents only reads.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.domain.jobs.outcome import NO_HELLO, SILENT
from penstock.domain.pools.leases import Lease, lease_key
from penstock.domain.units import renewals, retries, units
from penstock.domain.units.maintenance import is_recycled
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.kernel.rows import Replace
from penstock.system import System
from penstock.usecases.jobs import settle
from penstock.usecases.pools import scheduler
from penstock.usecases.units import driver_calls, maintenance, prewarm, quarantine, release, reuse
from penstock.usecases.units.create import create, fail_step, order_of, renew
from penstock.usecases.units.secrets import bootstrap_key


def advance(on: System, unit_id: str) -> None:
    """Take a unit's next step. Doing it twice, late or for nothing is the same as doing it once."""
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit:
        _advance(on, unit)
        if unit.seen:
            driver_calls.check_visibility(on, unit_id)


def _advance(on: System, unit: Unit) -> None:
    if unit.state is UnitState.GONE:
        return
    if unit.hold and maintenance.wait_for_hold(on, unit):
        return
    if is_recycled(unit):
        maintenance.end_attempt(on, unit)
    else:
        _step_by_state(on, unit)


def _step_by_state(on: System, unit: Unit) -> None:
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
    """The step of a unit that nobody leases: it is made ahead of need, or has waited long enough."""
    if units.is_prewarming(unit) and not unit.made:
        create(on, unit)
    elif units.is_due(unit, on.world.now()) and units.is_prewarming(unit):
        prewarm.hello_missed(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
    elif units.is_due(unit, on.world.now()):
        prewarm.idle_ended(on, unit)


def _step_leased(on: System, unit: Unit) -> None:
    """The step of a unit that an attempt leases: it is made, there, or lost."""
    now = on.world.now()
    if unit.is_a is UnitKind.WORKER and unit.made and units.is_due(unit, now):
        _worker_silent(on, unit)
    elif renewals.is_renewal_due(unit, now):
        renew(on, unit, order_of(on, unit))
    elif unit.state is UnitState.READY:
        _answer_step(on, unit)
    elif not unit.made:
        create(on, unit)


def _answer_step(on: System, unit: Unit) -> None:
    """Answer the step that waits for a unit that is there; the first answer may have been lost."""
    lease = on.store.get(lease_key(unit.job, unit.attempt, unit.order), Lease)
    if lease:
        scheduler.answer_step(on, scheduler.leases_of_step(on, unit.job, unit.attempt, lease.step))


def _worker_silent(on: System, unit: Unit) -> None:
    """A worker that did not say hello, or was not heard of, in time: its attempt is lost. [JOB-1]"""
    now = on.world.now()
    if unit.state is UnitState.CREATING:
        since = "for its next job" if unit.past_hash else "after it was made"
        if unit.reason != NO_HELLO:
            driver_calls.log_evidence(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
        fail_step(on, unit, "Lost", f"worker {unit.id} did not say hello in time {since}")
        told = replace(unit, is_unheard=unit.leases == 1)
        on.store.commit([Replace(unit, retries.retry_later(told, NO_HELLO, now, units.STEP_WITHIN))])
        return

    def is_silent(fresh: Unit) -> bool:
        return fresh.state is UnitState.READY and units.is_due(fresh, now)

    cause = f"worker {unit.id} was lost: nothing was heard from its agent in time"
    settle.lose(on, unit, cause, is_silent, SILENT)
