"""What a pool had over time: one row for each hour, with means and peaks of what the sweep counted each minute.

A row is written when an hour begins for the sweep, and when a count differs from the last one. What was counted stands
until something else is counted: so an hour in which nothing changes is one write.
docs/decisions/0089-a-pools-hours-are-rows.md
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

HOUR = timedelta(hours=1)

KEPT = timedelta(days=32)
"""For how long an hour is kept: a month, and a day more."""

HOURS = "hour#"
"""What the places of a pool's hours begin with."""


@dataclass(frozen=True)
class Counts:
    """How many slots jobs have, how many have a unit and no job, and how many jobs wait. Of an amount, how much."""

    held: float = 0
    idle: float = 0
    waiting: float = 0


@dataclass(frozen=True, kw_only=True)
class Hour(Row):
    """An hour of a pool, counted from `since` on.

    `at` is when the counts became what they are `now`; `sums` are counts times seconds from `since` to `at`.
    """

    kind: ClassVar[str] = "poolhour"
    pool: str
    start: datetime
    since: datetime
    at: datetime
    now: Counts
    most: Counts
    limit: int
    sums: Counts = Counts()

    @property
    def key(self) -> Key:
        return hour_key(self.pool, self.start)

    @property
    def expiry(self) -> datetime:
        return self.start + KEPT


def hour_of(time: datetime) -> datetime:
    """When the hour began that a time is in."""
    return time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def hours_pk(pool: str) -> str:
    """The collection of a pool's hours."""
    return f"series#{pool}"


def hour_key(pool: str, start: datetime) -> Key:
    """The key of an hour of a pool. Keys sort by time."""
    return Key(hours_pk(pool), f"{HOURS}{start:%Y%m%dT%H}")


def note(row: Hour | None, pool: str, limit: int, found: Counts, now: datetime) -> Hour | None:
    """The hour with what was just counted; None if there is nothing to write.

    A sweep that is late, or counts beside another, changes nothing that was counted after it.
    """
    if row is None:
        return Hour(pool=pool, start=hour_of(now), since=now, at=now, now=found, most=found, limit=limit)
    if now <= row.at or (row.now, row.limit) == (found, limit):
        return None
    return replace(row, at=now, now=found, most=_largest(row.most, found), limit=limit, sums=_sums(row, now))


def means(row: Hour, now: datetime) -> tuple[float, Counts]:
    """For how many seconds an hour was counted, up to now; and the means of its counts over them."""
    until = max(row.at, min(now, row.start + HOUR))
    seconds = (until - row.since).total_seconds()
    if not seconds:
        return 0.0, row.now
    sums = _sums(row, until)
    return seconds, Counts(sums.held / seconds, sums.idle / seconds, sums.waiting / seconds)


def _sums(row: Hour, until: datetime) -> Counts:
    """Counts times seconds up to a time."""
    seconds = (until - row.at).total_seconds()
    was, now = row.sums, row.now
    return Counts(was.held + seconds * now.held, was.idle + seconds * now.idle, was.waiting + seconds * now.waiting)


def _largest(one: Counts, other: Counts) -> Counts:
    return Counts(max(one.held, other.held), max(one.idle, other.idle), max(one.waiting, other.waiting))
