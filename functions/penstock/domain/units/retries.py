"""The same step of a unit, later: how long after, and by which message."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.units.units import Unit, add_entry

BACK_OFF, BACK_OFF_MOST = timedelta(seconds=15), timedelta(minutes=10)


_DOUBLINGS = 10
"""More than BACK_OFF_MOST takes; without a bound, a provider that is down for hours would overflow a timedelta."""

MAX_MESSAGE_SECONDS = 900
"""Seconds by which a message can be put off at most. Source: Amazon SQS, DelaySeconds."""

EARLY = timedelta(seconds=2)
"""A message may come that much before its time, for its delay is in whole seconds; what comes earlier is another."""


def retry_later(unit: Unit, reason: str | None, now: datetime, after: timedelta | None = None) -> Unit:
    """A unit whose driver is not done: the same step again, with a growing pause unless the driver named one."""
    pause = after if after is not None else min(BACK_OFF * 2 ** min(unit.tries, _DOUBLINGS), BACK_OFF_MOST)
    tries = unit.tries if after is not None else unit.tries + 1
    return replace(_told(unit, reason, now), reason=reason, tries=tries, due=now + pause)


def _told(unit: Unit, reason: str | None, now: datetime) -> Unit:
    """A reason is noted when it is another than before."""
    return add_entry(unit, now, reason) if reason and reason != unit.reason else unit


def retry_by_message(unit: Unit, reason: str | None, now: datetime, after: timedelta | None = None) -> Unit:
    """The same, by a message that is sent for then; unless one that comes no later is on its way.

    Without that, a nudge and the message that it did not wait for would each go on sending the next, and every further
    coincidence would add another, for as long as the driver is not done.
    """
    next_try = retry_later(unit, reason, now, after)
    if unit.next_look and next_try.due and now + EARLY < unit.next_look <= next_try.due:
        return replace(_told(unit, reason, now), reason=reason)
    return replace(next_try, next_look=next_try.due)
