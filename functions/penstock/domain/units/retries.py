"""When a unit's driver is called again: after a failure, and before what a well lent expires. [UNIT-1] [SEC-1]"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.units.units import (
    CLEAN_WITHIN,
    Unit,
    UnitKind,
    UnitState,
    add_entry,
    is_due,
    with_credentials,
)

BACK_OFF, BACK_OFF_MOST = timedelta(seconds=15), timedelta(minutes=10)


_DOUBLINGS = 10
"""Enough doublings to exceed BACK_OFF_MOST. Without a bound, a long outage of a provider would overflow a timedelta."""

MAX_MESSAGE_SECONDS = 900
"""The longest delay of a message, in seconds. Source: Amazon SQS, DelaySeconds."""

EARLY = timedelta(seconds=2)
"""How much too early a message may come, since its delay is in whole seconds. An earlier one belongs to another
step.
"""


def retry_later(unit: Unit, reason: str | None, now: datetime, after: timedelta | None = None) -> Unit:
    """A unit whose driver is not done: it repeats the step after a growing pause, unless the driver named one."""
    pause = after if after is not None else min(BACK_OFF * 2 ** min(unit.step.tries, _DOUBLINGS), BACK_OFF_MOST)
    tries = unit.step.tries if after is not None else unit.step.tries + 1
    noted = _with_reason(unit, reason, now)
    return replace(noted, step=replace(noted.step, reason=reason, tries=tries), due=now + pause)


def _with_reason(unit: Unit, reason: str | None, now: datetime) -> Unit:
    """The journal records a reason only when it changes."""
    return add_entry(unit, now, reason) if reason and reason != unit.step.reason else unit


def retry_by_message(unit: Unit, reason: str | None, now: datetime, after: timedelta | None = None) -> Unit:
    """The same, with a message sent for that time; unless one that comes no later is already on its way.

    Otherwise a nudge and the message that it overtook would each keep sending the next one, and every further
    coincidence would add another, for as long as the driver is not done.
    """
    next_try = retry_later(unit, reason, now, after)
    if unit.step.next_look and next_try.due and now + EARLY < unit.step.next_look <= next_try.due:
        noted = _with_reason(unit, reason, now)
        return replace(noted, step=replace(noted.step, reason=reason))
    return replace(next_try, step=replace(next_try.step, next_look=next_try.due))


def unanswered(unit: Unit, now: datetime) -> datetime | None:
    """When a call of the driver began that left no answer: it ended its function, or outlived it. None if none did.

    The answer to a call that began before the unit's present state is not missed: it would be discarded.
    """
    if unit.step.busy is None or unit.step.busy > now:
        return None
    begun = unit.step.busy - CLEAN_WITHIN
    return begun if unit.since <= begun else None


def is_renewal_due(unit: Unit, renews: datetime, now: datetime) -> bool:
    """Whether credentials that are renewed at `renews` are to be renewed now: only those of a leased resource."""
    is_leased = unit.is_a is UnitKind.RESOURCE and unit.state is UnitState.READY
    return is_leased and is_due(unit, now + EARLY) and renews <= now


def renewed(unit: Unit, sealed: str, now: datetime, expires: datetime | None) -> Unit:
    """A leased resource with renewed credentials. Raises ValueError for any other unit."""
    if unit.state is not UnitState.READY:
        raise ValueError(f"unit {unit.id} is {unit.state}, not ready")
    noted = add_entry(unit, now, f"renewed after {unit.step.tries} failures") if unit.step.tries else unit
    return with_credentials(noted, sealed, now, expires)
