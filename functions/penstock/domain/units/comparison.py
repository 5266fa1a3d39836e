"""What a maker lists, against our rows, both ways. One list proves nothing, nor does one look for a row. [UNIT-1]

The list is older than the rows that it is compared with: whatever it shows had its row before it was made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.cooldowns import WHY_CHARS, collection
from penstock.domain.units.units import Unit, UnitKind, UnitState, is_prewarming
from penstock.kernel.rows import Key, Row

COMPARE_EVERY = timedelta(minutes=3)
"""How long after one comparison the next is made."""

STRAY_AFTER = timedelta(minutes=5)
"""How long something must be listed without a row until it is destroyed."""

MISSING_LISTS = 3


MISSING_AFTER = timedelta(minutes=5)
"""A unit is lost that was listed once and then is not, in so many lists one after the other, over so long a time."""

OUTAGE = timedelta(minutes=5)
"""A sweep whose last is longer ago than this comes after an outage of ours."""

GRACE = timedelta(minutes=10)
"""How long after an outage nothing is destroyed or lost by comparison. Source: Arvados and buildomat."""

MAX_REMEMBERED = 5000
"""How many ids of each sort are remembered of one maker, for a row takes no more than 400 kB."""


@dataclass(frozen=True, kw_only=True)
class LastSweep(Row):
    """When the last sweep was, and the first after the last outage."""

    kind: ClassVar[str] = "sweep"
    at: datetime
    resumed: datetime

    @property
    def key(self) -> Key:
        return SWEEP_KEY


SWEEP_KEY = Key("sweep", "sweep")


def begin_sweep(row: LastSweep | None, now: datetime) -> LastSweep:
    """The row of a sweep that begins."""
    if row is None:
        return LastSweep(at=now, resumed=now)
    return replace(row, at=now, resumed=now if now - row.at > OUTAGE else row.resumed)


@dataclass(frozen=True)
class Missing:
    """A unit that was listed once: since when it is not, and in how many lists."""

    since: datetime
    lists: int


@dataclass(frozen=True, kw_only=True)
class Comparison(Row):
    """The last comparison of a maker, and what is to be remembered for the next.

    `tried` is when it was last listed, or could not be; `at` when that was good. `failures` are those since then.
    """

    kind: ClassVar[str] = "comparison"
    maker: str
    tried: datetime
    at: datetime | None = None
    failures: int = 0
    why: str | None = None
    strays: Mapping[str, datetime] = field(default_factory=dict)
    seen: tuple[str, ...] = ()
    missing: Mapping[str, Missing] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return comparison_key(self.maker)


def comparison_key(maker: str) -> Key:
    """Where a maker's comparison is."""
    return Key(collection(maker), "compared")


@dataclass(frozen=True)
class Verdict:
    """What follows: the row to be written, and what is then to be destroyed, or is lost."""

    row: Comparison
    destroy: tuple[str, ...] = ()
    lost: tuple[Unit, ...] = ()


def is_due(row: Comparison | None, now: datetime) -> bool:
    """Whether it is time to compare again."""
    return row is None or now - row.tried >= COMPARE_EVERY


def listing_failed(row: Comparison | None, maker: str, why: str, now: datetime) -> Comparison:
    """The row after a list that could not be had: nothing is known, nothing follows."""
    was = row or Comparison(maker=maker, tried=now)
    return replace(was, tried=now, failures=was.failures + 1, why=why[:WHY_CHARS])


def compare(
    row: Comparison | None,
    maker: str,
    listed: Collection[str],
    rows: Mapping[str, Unit],
    start: datetime,
    lease: timedelta,
    *,
    is_quiet: bool,
) -> Verdict:
    """Compare a list that was begun at `start` with the rows that were read after it.

    `rows` has every unit of the maker, and those of other ids in the list, as far as there are any. In the quiet after
    an outage things are noted, and nothing follows.
    """
    was = row or Comparison(maker=maker, tried=start)
    strays = {id: was.strays.get(id, start) for id in sorted(set(listed) - rows.keys())}
    late = {id for id in listed if id in rows and rows[id].state is UnitState.GONE}
    old = {id for id, since in strays.items() if start - since >= STRAY_AFTER}
    there = {id for id, unit in rows.items() if id in listed and unit.state is not UnitState.GONE}
    once = set(was.seen) | was.missing.keys()
    absent = [unit for id, unit in rows.items() if id in once and id not in listed and _is_made(unit)]
    silent = [unit for unit in absent if not was_in_contact(unit, start, lease)]
    missing = {unit.id: _once_more(was.missing.get(unit.id), start) for unit in silent}
    heard = {unit.id for unit in absent if unit.id not in missing}
    now = replace(
        was, tried=start, at=start, failures=0, why=None,
        strays=dict(sorted(strays.items())[:MAX_REMEMBERED]),
        missing=dict(sorted(missing.items())[:MAX_REMEMBERED]),
        seen=tuple(sorted(there | heard)[:MAX_REMEMBERED]),
    )  # fmt: skip
    if is_quiet:
        return Verdict(now)
    lost = tuple(unit for unit in silent if _is_lost(missing[unit.id], start))
    return Verdict(now, tuple(sorted(late | old)), lost)


def _is_made(unit: Unit) -> bool:
    return unit.state in (UnitState.READY, UnitState.IDLE, UnitState.CREATING) and unit.made is not None


def was_in_contact(unit: Unit, start: datetime, lease: timedelta) -> bool:
    """Whether a worker's agent spoke after the list was begun: whoever speaks exists."""
    is_there = unit.state in (UnitState.READY, UnitState.IDLE) and not is_prewarming(unit)
    speaks = unit.is_a is UnitKind.WORKER and is_there
    return speaks and unit.due is not None and unit.due - lease >= start


def _once_more(before: Missing | None, start: datetime) -> Missing:
    return Missing(before.since, before.lists + 1) if before else Missing(start, 1)


def _is_lost(missing: Missing, start: datetime) -> bool:
    return missing.lists >= MISSING_LISTS and start - missing.since >= MISSING_AFTER
