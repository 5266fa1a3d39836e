"""Repeating a step of a unit later: after how long, and by which message."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.units.units import Unit, add_entry

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
    told = _told(unit, reason, now)
    return replace(told, step=replace(told.step, reason=reason, tries=tries), due=now + pause)


def _told(unit: Unit, reason: str | None, now: datetime) -> Unit:
    """The journal records a reason only when it changes."""
    return add_entry(unit, now, reason) if reason and reason != unit.step.reason else unit


def retry_by_message(unit: Unit, reason: str | None, now: datetime, after: timedelta | None = None) -> Unit:
    """The same, with a message sent for that time; unless one that comes no later is already on its way.

    Otherwise a nudge and the message that it overtook would each keep sending the next one, and every further
    coincidence would add another, for as long as the driver is not done.
    """
    next_try = retry_later(unit, reason, now, after)
    if unit.step.next_look and next_try.due and now + EARLY < unit.step.next_look <= next_try.due:
        told = _told(unit, reason, now)
        return replace(told, step=replace(told.step, reason=reason))
    return replace(next_try, step=replace(next_try.step, next_look=next_try.due))
