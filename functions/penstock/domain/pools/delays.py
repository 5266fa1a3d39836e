"""Delays: what keeps the slots of a unit when its job has ended, or will keep them when it ends.

A unit's slots are free when the unit is clean. Until then somebody holds it, or it is in quarantine, or its driver
cleans it and perhaps cannot. Of an attempt's units the worker is released first: what keeps it keeps the resources too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from penstock.domain.pools import pools
from penstock.domain.pools.pools import Lease, LeaseState
from penstock.domain.units import quarantine
from penstock.domain.units.units import Unit, UnitKind, UnitState, format_time, is_held
from penstock.kernel.frozen import dataclass


class Cause(StrEnum):
    """Why a unit is not given back."""

    HOLD = "hold"  # ends by itself, or by whoever asked for it, or by an operator
    QUARANTINE = "quarantine"  # only an operator ends it
    FAILING = "failing"  # its driver could not clean it, and tries again
    CLEANING = "cleaning"  # its driver or agent cleans it


@dataclass(frozen=True)
class Delay:
    """What keeps a unit. `says` is that as a sentence, `act` what ends it, and who does that.

    `until` is when it ends by itself, if that is known. `has_ended` says that no job has the unit any more.
    """

    unit: str
    cause: Cause
    since: datetime
    says: str
    act: str
    by: str | None = None
    until: datetime | None = None
    has_ended: bool = True


def delay_of(unit: Unit, now: datetime) -> Delay | None:
    """What keeps a unit now; None if its job has it, or it may be granted."""
    what = f"{unit.is_a} {unit.id}"
    if unit.state is UnitState.QUARANTINED:
        act = f"an operator releases, recycles or removes {what}"
        return Delay(unit.id, Cause.QUARANTINE, unit.since, quarantine.describe(unit), act)
    if unit.hold and is_held(unit, now) and unit.state is not UnitState.GONE:
        by, until = unit.hold.by, unit.hold.until
        act = f"{by} or an operator releases {what}, or its hold ends at {format_time(until)}"
        says = f"{what} is {unit.hold}"
        return Delay(unit.id, Cause.HOLD, unit.hold.since, says, act, by, until, has_ended=not unit.is_leased)
    if unit.state not in (UnitState.CLEANING, UnitState.DIRTY):
        return None
    return _failing(unit, what) if unit.step.tries else _cleaning(unit, what)


def _cleaning(unit: Unit, what: str) -> Delay:
    says = f"{what} is being cleaned since {format_time(unit.since)}"
    return Delay(unit.id, Cause.CLEANING, unit.since, says, f"{what} is clean")


def _failing(unit: Unit, what: str) -> Delay:
    maker = f"{'factory' if unit.is_a is UnitKind.WORKER else 'well'} {unit.maker}"
    tries = f"{unit.step.tries} time{'s' * (unit.step.tries > 1)}"
    again = f"; it is tried again at {format_time(unit.due)}" if unit.due else ""
    says = f"{what} is not clean since {format_time(unit.since)}: {maker} failed {tries}: {unit.step.reason}{again}"
    act = f"{maker} can clean {what} again, which an operator may have to see to"
    return Delay(unit.id, Cause.FAILING, unit.since, says, act)


def first_delay(released: Sequence[tuple[Lease, Unit | None]], now: datetime) -> Delay | None:
    """What keeps the last of an attempt's leases, which are in the order of their release: the first that is kept."""
    return next((found for lease, unit in released if (found := _of_lease(lease, unit, now))), None)


def _of_lease(lease: Lease, unit: Unit | None, now: datetime) -> Delay | None:
    """What keeps a unit from giving up this lease; None if it has given it up."""
    if unit is None or pools.lease_as_of(lease, unit).state is LeaseState.RELEASED:
        return None
    return delay_of(unit, now)
