"""The next step of a unit, whatever it is: what factories and wells do. Messages only say which unit. [UNIT-1]

What a well says of a resource may end by itself, as credentials do: it is asked anew while the lease lasts. [SEC-1]

It is the resource's due time that leads here, and nobody else: whoever answers agents only reads.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from penstock import transaction
from penstock.domain import cooldowns as cooling_rules
from penstock.domain import metrics
from penstock.domain.jobs import jobs
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.jobs.outcome import NO_HELLO, SILENT
from penstock.domain.logs.logs import DETAIL
from penstock.domain.pools import leases
from penstock.domain.pools.leases import Lease, LeaseState, lease_key
from penstock.domain.site.site import Limits
from penstock.domain.units import renewals, retries, units
from penstock.domain.units.maintenance import is_recycled
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.kernel.errors import DriverError, Misconfigured, Short, Unsatisfiable
from penstock.kernel.rows import Change, Replace
from penstock.ports import Chooser, NotYet, Order, Ready
from penstock.system import System
from penstock.usecases import cooldowns
from penstock.usecases.jobs import settle
from penstock.usecases.logs import logs
from penstock.usecases.pools import scheduler
from penstock.usecases.site import configuration
from penstock.usecases.telemetry import counters
from penstock.usecases.units import driver_calls, maintenance, prewarm, quarantine, release, retire, reuse


def advance(on: System, unit_id: str) -> None:
    """Take a unit's next step. Doing it twice, late or for nothing is the same as doing it once."""
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit:
        _go_on(on, unit)
        if unit.seen:
            driver_calls.look(on, unit_id)


def _go_on(on: System, unit: Unit) -> None:
    if unit.state is UnitState.GONE:
        return
    if unit.hold and maintenance.waits(on, unit):
        return
    if is_recycled(unit):
        maintenance.end_attempt(on, unit)
    else:
        _step(on, unit)


def _step(on: System, unit: Unit) -> None:
    match unit.state:
        case UnitState.DIRTY:
            release.put_back(on, unit)
        case UnitState.QUARANTINED:
            quarantine.remind(on, unit)
        case UnitState.CLEANING:
            reuse.clean(on, unit)
        case UnitState.IDLE:
            _wait(on, unit)
        case _:
            _lease(on, unit)


def _wait(on: System, unit: Unit) -> None:
    """The step of a unit that nobody leases: it is made ahead of need, or has waited long enough."""
    if units.is_prewarming(unit) and not unit.made:
        _begin(on, unit)
    elif units.is_due(unit, on.world.now()) and units.is_prewarming(unit):
        prewarm.missed(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
    elif units.is_due(unit, on.world.now()):
        prewarm.end(on, unit)


def _lease(on: System, unit: Unit) -> None:
    """The step of a unit that an attempt leases: it is made, there, or lost."""
    now = on.world.now()
    if unit.is_a is UnitKind.WORKER and unit.made and units.is_due(unit, now):
        _lose(on, unit)
    elif renewals.is_renewal_due(unit, now):
        renew(on, unit, _order(on, unit))
    elif unit.state is UnitState.READY:
        _answer(on, unit)
    elif not unit.made:
        _begin(on, unit)


def _begin(on: System, unit: Unit) -> None:
    begun = reuse.alone(on, unit) if unit.is_kept and unit.is_a is UnitKind.RESOURCE else unit
    if begun:
        _make(on, begun)
        if unit.state is UnitState.IDLE and begun.busy:
            prewarm.let_go(on, begun)


def _make(on: System, unit: Unit) -> None:
    site = configuration.current(on)
    leave = cooldowns.leave(on, site, unit)
    if leave.wait is not None:
        driver_calls.again(on, unit, leave.why, leave.wait)
        return
    is_blind = False
    try:
        driver, order = configuration.driver_of(on, site, unit), replace(_order(on, unit), avoid=leave.avoid)
        is_blind = isinstance(driver, Chooser) and not driver.has_way(order)
        if unit.bare and is_blind:  # it would look once more for what nobody has asked for since
            driver_calls.again(on, unit, *cooldowns.spared(on, unit, leave))
            return
        asked = _asked(on, unit)
        if asked is None:
            return
        unit = asked
        done = counters.called_for(on, unit, metrics.CREATE, lambda: driver_calls.create(driver, order))
        sealed = driver_calls.answer(on, site, unit, done)
    except DriverError as error:
        reason, after = cooldowns.refused(on, unit, leave, error)
        if isinstance(error, Unsatisfiable) and unit.state is UnitState.IDLE:
            retire.retire(on, unit.id, f"it can never be made: {error}", is_setback=True)
        elif isinstance(error, Unsatisfiable) or (unit.seen and isinstance(error, Misconfigured)):
            _fail(on, unit, "Unsatisfiable", str(error))
        else:
            is_bare = is_blind and isinstance(error, Short)
            driver_calls.again(on, replace(unit, bare=on.world.now()) if is_bare else unit, reason, after)
        return
    if isinstance(done, NotYet):
        driver_calls.again(on, units.with_notes(replace(unit, is_making=True), done.notes), done.reason, done.after)
    else:
        is_probe = cooling_rules.broken_scope(unit.type) in leave.probes
        _made(on, unit, done, sealed, site.limits, is_probe=is_probe)
    cooldowns.answered(on, unit, leave, done)


def _asked(on: System, unit: Unit) -> Unit | None:
    """A unit whose driver is about to be asked for it: from here on there may be something of it. [UNIT-1]

    Only of one that is known to have nothing this has to be written; None when somebody else moved it.
    """
    if unit.bare is None:
        return unit
    asked = replace(unit, bare=None)
    if on.store.commit([Replace(unit, asked)]):
        return replace(asked, version=unit.version + 1)
    on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, 1)
    return None


def _made(on: System, unit: Unit, done: Ready, sealed: str, bounds: Limits, *, is_probe: bool) -> None:
    """A worker's machine was ordered; a resource is there. A probe is to show that what was broken works again."""
    now = on.world.now()
    if unit.is_a is UnitKind.WORKER:
        boot = timedelta(seconds=bounds.boot)
        on.store.commit([Replace(unit, replace(units.mark_made(unit, now, boot, done.metadata), is_probe=is_probe))])
    elif unit.state is UnitState.IDLE:
        prewarm.ready(on, unit, timedelta(seconds=bounds.lease))
    else:
        _hand_over(on, unit, units.with_notes(renewals.ready(unit, sealed, now, done.expires), done.notes))


def _hand_over(on: System, unit: Unit, made: Unit) -> None:
    """A resource is there: its lease is ready, and its job's flow is to go on when all of the step are."""

    def decide() -> tuple[Sequence[Change], Lease | None]:
        fresh = on.store.get(unit.key, Unit)
        lease = on.store.get(lease_key(unit.job, unit.attempt, unit.order), Lease)
        job = on.store.get(job_key(unit.job), Job)
        if fresh != unit or lease is None or lease.state is not LeaseState.GRANTED or job is None:
            return [], None
        return [
            Replace(unit, made),
            Replace(lease, leases.ready(lease, on.world.now())),
            Replace(job, jobs.step_on(job, on.world.now())),
        ], lease

    lease = transaction.run(on, decide)
    if lease:
        took = int((on.world.now() - unit.since).total_seconds())
        logs.say(
            on, unit.job, unit.attempt, f"{unit.pool}: {unit.type} (unit {unit.id}) is there after {took} s", DETAIL
        )
        scheduler.answer(on, scheduler.step_of(on, unit.job, unit.attempt, lease.step))


def _order(on: System, unit: Unit) -> Order:
    """What the driver needs. A worker's bootstrap key is derived from its id, so that a second call gives the same."""
    job = on.store.get(job_key(unit.job), Job)
    need = next((need for need in job.needs if need.order == unit.order), None) if job else None
    if unit.is_a is UnitKind.RESOURCE:
        kind = configuration.current(on).resources.get(unit.type)
        settings = kind.settings if kind else {}
        options = need.options if need else {}
        secret = driver_calls.lease_secret(on.signing_key(), unit)
        now = on.world.now()
        lasts = int((jobs.latest_end(job, now) - now).total_seconds()) if job else None
        return Order(unit.id, unit.type, unit.slot, settings, options, key=secret, job=unit.job, lasts=lasts)
    return Order(unit.id, unit.type, unit.slot, url=on.url, key=bootstrap_key(on.signing_key(), unit.id))


def bootstrap_key(signing_key: str, unit: str) -> str:
    """The key with which a worker's agent says hello, once."""
    return hmac.new(signing_key.encode(), unit.encode(), hashlib.sha256).hexdigest()


def _fail(on: System, unit: Unit, error: str, cause: str) -> None:
    lease = on.store.get(lease_key(unit.job, unit.attempt, unit.order), Lease)
    if lease and lease.state in (LeaseState.GRANTED, LeaseState.READY):
        on.flows.fail(lease.token, error, cause)


def _answer(on: System, unit: Unit) -> None:
    """Answer the step that waits for a unit that is there; the first answer may have been lost."""
    lease = on.store.get(lease_key(unit.job, unit.attempt, unit.order), Lease)
    if lease:
        scheduler.answer(on, scheduler.step_of(on, unit.job, unit.attempt, lease.step))


def _lose(on: System, unit: Unit) -> None:
    """A worker that did not say hello, or was not heard of, in time: its attempt is lost. [JOB-1]"""
    now = on.world.now()
    if unit.state is UnitState.CREATING:
        since = "for its next job" if unit.past_hash else "after it was made"
        if unit.reason != NO_HELLO:
            driver_calls.tell(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
        _fail(on, unit, "Lost", f"worker {unit.id} did not say hello in time {since}")
        told = replace(unit, is_unheard=unit.leases == 1)
        on.store.commit([Replace(unit, retries.retry_later(told, NO_HELLO, now, units.STEP_WITHIN))])
        return

    def is_silent(fresh: Unit) -> bool:
        return fresh.state is UnitState.READY and units.is_due(fresh, now)

    cause = f"worker {unit.id} was lost: nothing was heard from its agent in time"
    settle.lose(on, unit, cause, is_silent, SILENT)


def renew(on: System, unit: Unit, order: Order) -> None:
    """Ask a leased resource's well anew, and seal what it says for the same lease.

    It is written only over the row that was read: what comes after the lease's end is sealed for nobody. [SLOT-3]
    """
    begun = reuse.alone(on, unit) if unit.is_kept else unit
    if begun:
        _renew(on, begun, order)


def _renew(on: System, unit: Unit, order: Order) -> None:
    site = configuration.current(on)
    leave = cooldowns.leave(on, site, unit)
    if leave.wait is not None:
        driver_calls.again(on, unit, leave.why, leave.wait)
        return
    try:
        asked = replace(order, avoid=leave.avoid)
        driver = configuration.driver_of(on, site, unit)
        done = counters.called_for(on, unit, metrics.CREATE, lambda: driver_calls.create(driver, asked))
        sealed = driver_calls.answer(on, site, unit, done)
    except DriverError as error:
        reason, after = cooldowns.refused(on, unit, leave, error)
        driver_calls.again(on, unit, reason, after)
        return
    if isinstance(done, NotYet):
        driver_calls.again(on, units.with_notes(unit, done.notes), done.reason, done.after)
    else:
        told = renewals.renewed(unit, sealed, on.world.now(), done.expires)
        on.store.commit([Replace(unit, units.with_notes(told, done.notes))])
    cooldowns.answered(on, unit, leave, done)
