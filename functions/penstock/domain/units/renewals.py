"""What a well tells the job about a leased resource: when it is made, and again before that expires. [SEC-1]"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.units.retries import EARLY
from penstock.domain.units.units import Unit, UnitKind, UnitState, add_entry, is_due

MIN_RENEWAL = timedelta(minutes=1)
"""The shortest validity: what expires sooner is renewed as if it were valid for this long."""


def ready(unit: Unit, sealed: str, now: datetime, expires: datetime | None = None) -> Unit:
    """A resource that its well has made. From now on it is due only when its hold ends or its credentials have to
    be renewed; the job's row has the deadline.
    """
    unit = add_entry(unit, now, f"ready after {unit.step.tries} failures" if unit.step.tries else "ready")
    return _said(
        replace(unit, state=UnitState.READY, creation=replace(unit.creation, made=now), since=now), sealed, now, expires
    )


def _said(unit: Unit, sealed: str, now: datetime, expires: datetime | None) -> Unit:
    """A resource with the credentials of its well. They are renewed when half of their validity is over."""
    renews = now + max(expires - now, MIN_RENEWAL) / 2 if expires else None
    told = replace(
        unit,
        access=replace(unit.access, sealed=sealed, renews=renews),
        step=replace(unit.step, reason=None, tries=0, next_look=None, busy=None),
    )
    return replace(told, due=lease_due(told))


def lease_due(unit: Unit) -> datetime | None:
    """When a leased resource is due: when its hold ends, or when its credentials have to be renewed."""
    return min((time for time in (unit.hold and unit.hold.until, unit.access.renews) if time), default=None)


def is_renewal_due(unit: Unit, now: datetime) -> bool:
    """Whether the credentials of a leased resource have to be renewed now."""
    is_leased = unit.is_a is UnitKind.RESOURCE and unit.state is UnitState.READY
    return is_leased and is_due(unit, now + EARLY) and unit.access.renews is not None and unit.access.renews <= now


def renewed(unit: Unit, sealed: str, now: datetime, expires: datetime | None) -> Unit:
    """A leased resource with renewed credentials. Raises ValueError for any other unit."""
    if unit.state is not UnitState.READY:
        raise ValueError(f"unit {unit.id} is {unit.state}, not ready")
    told = add_entry(unit, now, f"renewed after {unit.step.tries} failures") if unit.step.tries else unit
    return _said(told, sealed, now, expires)
