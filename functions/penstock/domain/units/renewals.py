"""What a well says of a leased resource: when it is made, and anew before what it said ends by itself. [SEC-1]"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.units.retries import EARLY
from penstock.domain.units.units import Unit, UnitKind, UnitState, add_entry, is_due

MIN_RENEWAL = timedelta(minutes=1)
"""What ends sooner is asked for anew no more often than this would be."""


def ready(unit: Unit, sealed: str, now: datetime, expires: datetime | None = None) -> Unit:
    """A resource that its well has made. Its job's row has the due time from here, but for the end of a hold, and of
    what its well said of it."""
    unit = add_entry(unit, now, f"ready after {unit.tries} failures" if unit.tries else "ready")
    return _said(replace(unit, state=UnitState.READY, made=now, since=now), sealed, now, expires)


def _said(unit: Unit, sealed: str, now: datetime, expires: datetime | None) -> Unit:
    """A resource of which its well has told its job what it may know. When half its time is over, it is asked anew."""
    renews = now + max(expires - now, MIN_RENEWAL) / 2 if expires else None
    told = replace(unit, sealed=sealed, renews=renews, reason=None, tries=0, next_look=None, busy=None)
    return replace(told, due=lease_due(told))


def lease_due(unit: Unit) -> datetime | None:
    """When a leased resource is due: at the end of its hold, or when its well is asked anew."""
    return min((time for time in (unit.hold and unit.hold.until, unit.renews) if time), default=None)


def is_renewal_due(unit: Unit, now: datetime) -> bool:
    """Whether it is time to ask a well anew what the job of a leased resource may know of it."""
    is_leased = unit.is_a is UnitKind.RESOURCE and unit.state is UnitState.READY
    return is_leased and is_due(unit, now + EARLY) and unit.renews is not None and unit.renews <= now


def renewed(unit: Unit, sealed: str, now: datetime, expires: datetime | None) -> Unit:
    """A leased resource of which its well has said anew what its job may know. Raises ValueError for any other."""
    if unit.state is not UnitState.READY:
        raise ValueError(f"unit {unit.id} is {unit.state}, not ready")
    told = add_entry(unit, now, f"renewed after {unit.tries} failures") if unit.tries else unit
    return _said(told, sealed, now, expires)
