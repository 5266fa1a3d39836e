"""The hours of pools: the sweep counts each minute what pools have, and whoever looks reads the hours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from penstock.domain.pools import series
from penstock.domain.pools.pools import Pool, Slot, SlotState, collection
from penstock.domain.pools.series import HOUR, HOURS, KEPT, Counts, Hour, hour_key, hour_of, hours_pk
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create, Replace
from penstock.listings import every_of
from penstock.system import System
from penstock.usecases.isolation import Isolation
from penstock.usecases.pools import forecast
from penstock.usecases.rotation import rotate

TAKEN = ("held#", "idle#", "free#warm#")
"""Where the slots are that have a unit, or may have one."""


def record(on: System, pools: Sequence[Pool], rows: Isolation, until: datetime) -> None:
    """Count what some pools have, each by itself. What is left when the time is over, one of the next sweeps counts.

    Each minute another is the first, so that none is always behind others that take all the time.
    """
    for pool in rotate(pools, on.world.now()):
        if on.world.now() >= until:
            break
        with rows.step("counting a pool", pool=pool.name):
            _record(on, pool)


def _record(on: System, pool: Pool) -> None:
    """Count what a pool has. If another sweep was first, what it counted stands."""
    now, found = on.world.now(), count(on, pool)
    was = on.store.get(hour_key(pool.name, hour_of(now)), Hour)
    row = series.note(was, pool.name, pool.limit, found, now)
    if row:
        on.store.commit([Replace(was, row) if was else Create(row)])


def count(on: System, pool: Pool) -> Counts:
    """What a pool has now. A slot of an amount is what its unit takes of it."""
    slots = [slot for place in TAKEN for slot in every_of(on, collection(pool.name), place, Slot)]
    held = sum(slot.count for slot in slots if slot.state is SlotState.HELD and slot.job)
    idle = sum(slot.count for slot in slots) - held
    return Counts(held, idle, forecast.queue_length(on, pool.name))


def hours(on: System, pool: str, since: datetime, until: datetime) -> Sequence[Hour]:
    """The hours of a pool from one time to another that were counted and are kept. Raises Refused 400 for too many."""
    if not timedelta(0) <= until - since <= KEPT:
        raise Refused(400, "bad-request", f"since must be before until, and at most {KEPT.days} days before it")
    if abs(since - on.world.now()) > 2 * KEPT:
        return []  # nothing is kept of it, nor can all calendars say which hour that is
    first, last = hour_of(since), hour_of(until)
    most = 1 + int((last - first) / HOUR)
    found = on.store.find(hours_pk(pool), HOURS, Hour, limit=most, after=hour_key(pool, first - HOUR).sk)
    return [hour for hour in found if hour.start <= last]
