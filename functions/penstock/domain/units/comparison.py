"""Comparing what a maker lists with our rows, in both directions. One list proves nothing, nor does one check. [UNIT-1]

The list is older than the rows that it is compared with: everything in it had its row before it was made.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import ClassVar

from penstock.domain.cooldowns import WHY_CHARS, collection
from penstock.domain.units.units import Unit, UnitKind, UnitState, is_prewarming
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

COMPARE_EVERY = timedelta(minutes=3)
"""The time between two comparisons."""

DOUBLINGS = 3
"""How often that time doubles for a maker whose lists end the sweep, again and again: to 24 minutes at most."""

STRAY_AFTER = timedelta(minutes=5)
"""How long something must be listed without a row before it is destroyed."""

MISSING_LISTS = 3


MISSING_AFTER = timedelta(minutes=5)
"""A unit that was listed before is lost when this many lists in a row, over at least this time, lack it."""

OUTAGE = timedelta(minutes=5)
"""A sweep that comes later than this after the last one follows an outage of ours."""

NOTHING_CAME = "the sweep ended after it had requested the list, and before it could compare it"
"""Why a maker is not compared whose driver ends the process."""

GRACE = timedelta(minutes=10)
"""For how long after an outage the comparison destroys nothing and loses nothing. Source: Arvados and buildomat."""

STRAYS_BYTES, MISSING_BYTES, SEEN_BYTES = 80_000, 120_000, 160_000
"""How much of a maker's row each sort of ids may take, for an item holds 400 KB: with ids of ours some 1,200 strays,
1,300 missing units and 4,700 that were seen. What does not fit waits for its turn: those that were noticed first stay
until they are dealt with, then come the next. Of more than 4,700 units that one maker lists at once, those that were
made last are not watched by this comparison; a silent worker is noticed by its heartbeat all the same.
"""

STRAY_EXTRA, MISSING_EXTRA, SEEN_EXTRA = 40, 60, 4
"""What an id has beside it in the row: times, a count, punctuation. In bytes, as JSON."""


@dataclass(frozen=True, kw_only=True)
class LastSweep(Row):
    """When the last sweep ran, and the first sweep after the last outage."""

    kind: ClassVar[str] = "sweep"
    at: datetime
    resumed: datetime

    @property
    def key(self) -> Key:
        return SWEEP_KEY


SWEEP_KEY = Key("sweep", "sweep")


def begin_sweep(row: LastSweep | None, now: datetime) -> LastSweep:
    """The row of a sweep that starts."""
    if row is None:
        return LastSweep(at=now, resumed=now)
    return replace(row, at=now, resumed=now if now - row.at > OUTAGE else row.resumed)


@dataclass(frozen=True)
class Missing:
    """A unit that was listed before: since when it is missing, and from how many lists."""

    since: datetime
    lists: int


@dataclass(frozen=True, kw_only=True)
class Comparison(Row):
    """The last comparison of a maker, and what the next one needs.

    `tried`: when its list was last requested; `at`: when that last succeeded; `failures`: how often it failed since.
    `is_open`: nothing has come of the last request yet. If the next one finds that so, the function ended meanwhile.
    `more_strays` and `more_missing` are how many there are besides, for which the row has no room.
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
    more_strays: int = 0
    more_missing: int = 0
    is_open: bool = False

    @property
    def key(self) -> Key:
        return comparison_key(self.maker)


def comparison_key(maker: str) -> Key:
    """The key of a maker's comparison."""
    return Key(collection(maker), "compared")


@dataclass(frozen=True)
class Verdict:
    """The result: the row to write, the ids to destroy, and the units that are lost."""

    row: Comparison
    destroy: tuple[str, ...] = ()
    lost: tuple[Unit, ...] = ()


def is_due(row: Comparison | None, now: datetime) -> bool:
    """Whether the next comparison is due."""
    return row is None or now - row.tried >= _pause(row)


def _pause(row: Comparison) -> timedelta:
    """The time until the next comparison. Where twice in a row nothing came of a list, the next may end the sweep too:
    with some such makers, each sweep would be ended by one of them.
    """
    return COMPARE_EVERY * 2 ** min(row.failures, DOUBLINGS) if row.why == NOTHING_CAME else COMPARE_EVERY


def is_doubtful(row: Comparison | None) -> bool:
    """Whether nothing came of a maker's last list: the next may take long too, or end the process."""
    return row is not None and (row.is_open or row.failures > 0)


def listing_began(row: Comparison | None, maker: str, now: datetime) -> Comparison:
    """The row before a list is requested. That nothing came of the last request counts as a failure."""
    was = row or Comparison(maker=maker, tried=now)
    known = listing_failed(was, maker, NOTHING_CAME, now) if was.is_open else was
    return replace(known, tried=now, is_open=True)


def listing_failed(row: Comparison | None, maker: str, why: str, now: datetime) -> Comparison:
    """The row after a failed listing: nothing is known, so nothing follows."""
    was = row or Comparison(maker=maker, tried=now)
    return replace(was, tried=now, failures=was.failures + 1, why=why[:WHY_CHARS], is_open=False)


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
    """Compare a list that was requested at `start` with rows that were read after it.

    `rows`: every unit of the maker, and the units of other ids in the list that exist. While `is_quiet`, after an
    outage, differences are recorded and nothing follows.
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
    kept_strays = _fitting(sorted(strays, key=lambda id: (strays[id], id)), STRAYS_BYTES, STRAY_EXTRA)
    kept_missing = _fitting(sorted(missing, key=lambda id: (missing[id].since, id)), MISSING_BYTES, MISSING_EXTRA)
    waiting = sorted(missing.keys() - set(kept_missing))
    now = replace(
        was, tried=start, at=start, failures=0, why=None, is_open=False,
        strays={id: strays[id] for id in sorted(kept_strays)},
        missing={id: missing[id] for id in sorted(kept_missing)},
        seen=tuple(sorted(_fitting([*waiting, *sorted(there | heard)], SEEN_BYTES, SEEN_EXTRA))),
        more_strays=len(strays) - len(kept_strays), more_missing=len(waiting),
    )  # fmt: skip
    if is_quiet:
        return Verdict(now)
    lost = tuple(unit for unit in silent if _is_lost(missing[unit.id], start))
    return Verdict(now, tuple(sorted(late | old)), lost)


def _fitting(ids: Sequence[str], most: int, extra: int) -> list[str]:
    """The first ids that fit into this many bytes of a row, each with what it has beside it."""
    ends = accumulate(len(json.dumps(id)) + extra for id in ids)
    return [id for id, end in zip(ids, ends, strict=True) if end <= most]


def _is_made(unit: Unit) -> bool:
    return unit.state in (UnitState.READY, UnitState.IDLE, UnitState.CREATING) and unit.creation.made is not None


def was_in_contact(unit: Unit, start: datetime, lease: timedelta) -> bool:
    """Whether a worker's agent was in contact after the list was requested: then the worker exists."""
    is_there = unit.state in (UnitState.READY, UnitState.IDLE) and not is_prewarming(unit)
    speaks = unit.is_a is UnitKind.WORKER and is_there
    return speaks and unit.due is not None and unit.due - lease >= start


def _once_more(before: Missing | None, start: datetime) -> Missing:
    return Missing(before.since, before.lists + 1) if before else Missing(start, 1)


def _is_lost(missing: Missing, start: datetime) -> bool:
    return missing.lists >= MISSING_LISTS and start - missing.since >= MISSING_AFTER
