"""The next step of a unit, whatever it is: what factories and wells do. Messages only say which unit. [UNIT-1]"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from penstock.domain import cooling as cooling_rules
from penstock.domain import jobs, leases, units
from penstock.domain.custody import is_recycled
from penstock.domain.errors import DriverError, Unsatisfiable
from penstock.domain.jobs import Job, job_key
from penstock.domain.leases import Lease, LeaseState, lease_key
from penstock.domain.rows import Change, Replace
from penstock.domain.units import Unit, UnitKind, UnitState, unit_key
from penstock.ports import NotYet, Order, Ready
from penstock.system import System
from penstock.usecases import (
    acquiring,
    cooling,
    custody,
    evidence,
    keeping,
    losing,
    quarantining,
    race,
    retiring,
    retrying,
    returning,
    sites,
)  # fmt: skip

NO_HELLO = "no hello"


def advance(on: System, unit_id: str) -> None:
    """Take a unit's next step. Doing it twice, late or for nothing is the same as doing it once."""
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit is None or unit.state is UnitState.GONE:
        return
    if unit.hold and custody.waits(on, unit):
        return
    if is_recycled(unit):
        custody.end_attempt(on, unit)
    else:
        _step(on, unit)


def _step(on: System, unit: Unit) -> None:
    overdue = unit.due is not None and unit.due <= on.world.now()
    if unit.state is UnitState.DIRTY:
        returning.put_back(on, unit)
    elif unit.state is UnitState.QUARANTINED:
        quarantining.remind(on, unit)
    elif unit.state is UnitState.CLEANING:
        keeping.clean(on, unit)
    elif unit.state is UnitState.IDLE:
        if overdue:
            retiring.retire(on, unit.id, _worn(on, unit))
    elif unit.is_a is UnitKind.WORKER and unit.made and overdue:
        _lose(on, unit)
    elif unit.state is UnitState.CREATING and not unit.made:
        begun = keeping.alone(on, unit) if unit.is_kept and unit.is_a is UnitKind.RESOURCE else unit
        if begun:
            _make(on, begun)
    elif unit.state is UnitState.READY:
        _answer(on, unit)


def _worn(on: System, unit: Unit) -> str:
    if unit.until and unit.until <= on.world.now():
        return "it was idle for as long as it may be, or is too old"
    return "nothing was heard from its agent while it was idle"


def _make(on: System, unit: Unit) -> None:
    site = sites.current(on)
    leave = cooling.leave(on, site, unit)
    if leave.wait is not None:
        retrying.again(on, unit, leave.why, leave.wait)
        return
    try:
        done = sites.driver(on, site, unit.is_a, unit.maker).create(replace(_order(on, unit), avoid=leave.avoid))
    except DriverError as error:
        reason, after = cooling.refused(on, unit, leave, error)
        if isinstance(error, Unsatisfiable):
            _fail(on, unit, "Unsatisfiable", str(error))
        else:
            retrying.again(on, unit, reason, after)
        return
    if isinstance(done, NotYet):
        retrying.again(on, replace(unit, is_making=True), done.reason, done.after)
    else:
        is_probe = cooling_rules.of_broken(unit.type) in leave.probes
        _made(on, replace(unit, is_probe=is_probe), done, timedelta(seconds=site.limits.boot))
    cooling.answered(on, unit, leave, done)


def _made(on: System, unit: Unit, done: Ready, boot: timedelta) -> None:
    """A worker's machine was ordered; a resource is there."""
    now = on.world.now()
    if unit.is_a is UnitKind.WORKER:
        on.store.commit([Replace(unit, units.made(unit, now, boot))])
        return
    _hand_over(on, unit, units.ready(unit, done.metadata, now))


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
            Replace(lease, leases.ready(lease)),
            Replace(job, jobs.step_on(job, on.world.now())),
        ], lease

    lease = race.run(on, decide)
    if lease:
        acquiring.answer(on, acquiring.step_of(on, unit.job, unit.attempt, lease.step))


def _order(on: System, unit: Unit) -> Order:
    """What the driver needs. A worker's bootstrap key is derived from its id, so that a second call gives the same."""
    job = on.store.get(job_key(unit.job), Job)
    need = next((need for need in job.needs if need.order == unit.order), None) if job else None
    if unit.is_a is UnitKind.RESOURCE:
        kind = sites.current(on).resources.get(unit.type)
        settings = kind.settings if kind else {}
        return Order(unit.id, unit.type, unit.slot, settings, need.options if need else {})
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
        acquiring.answer(on, acquiring.step_of(on, unit.job, unit.attempt, lease.step))


def _lose(on: System, unit: Unit) -> None:
    """A worker that did not say hello, or was not heard of, in time: its attempt is lost. [JOB-1]"""
    now = on.world.now()
    if unit.state is UnitState.CREATING:
        since = "after it was made" if unit.leases == 1 else "for its next job"
        if unit.reason != NO_HELLO:
            evidence.tell(on, unit, hide=bootstrap_key(on.signing_key(), unit.id))
        _fail(on, unit, "Lost", f"worker {unit.id} did not say hello in time {since}")
        told = replace(unit, is_unheard=unit.leases == 1)
        on.store.commit([Replace(unit, units.later(told, NO_HELLO, now, units.STEP_WITHIN))])
        return

    def is_silent(fresh: Unit) -> bool:
        return fresh.state is UnitState.READY and fresh.due is not None and fresh.due <= now

    cause = f"worker {unit.id} was lost: nothing was heard from its agent in time"
    losing.lose(on, unit, cause, is_silent, again=units.STEP_WITHIN)
