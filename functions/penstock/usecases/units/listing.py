"""All units that exist, by kind: each is in one of two indexes, the due index or a listing.

A unit that is due is found by that, so that no unit writes another index on its way through a job. One that is not due,
such as a resource in use, has a place in the listing of its kind. As in every index, a unit that was written just now
may be missing; and a unit that moves from one to the other meanwhile may be found twice, or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from penstock import listings
from penstock.domain.units import units
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.kernel.rows import Key, shards_of
from penstock.system import System

SHARDS = shards_of(Unit, later=False)

WHENEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""Later than every deadline."""

KEYS_AT_ONCE = 5000
"""How many entries of the due index are read at once: they have keys only."""


FIRST = "0:"
"""The first page: the parts are the listing and each shard, and a page says behind which unit of a part it begins."""


def every(on: System, is_a: UnitKind) -> Iterator[Unit]:
    """Each unit of a kind that is not gone, once."""
    seen = set[str]()
    for unit, _ in every_from(on, is_a, FIRST):
        if unit.id not in seen:
            seen.add(unit.id)
            yield unit


def every_from(on: System, is_a: UnitKind, page: str) -> Iterator[tuple[Unit, str]]:
    """Each unit of a kind from a page on, with the page that begins behind it. One that moves may come twice."""
    number, _, after = page.partition(":")
    for part in range(int(number), 1 + len(SHARDS)):
        for unit in _every_of_part(on, is_a, part, after):
            yield unit, f"{part}:{unit.id}"
        after = ""


def _every_of_part(on: System, is_a: UnitKind, part: int, after: str) -> Iterator[Unit]:
    if part == 0:
        return listings.every(on, units.listing(is_a), Unit, after)
    return _read(on, _due_keys_behind(on, is_a, part, after))


def quarantined(on: System, is_a: UnitKind, maker: str) -> list[Unit]:
    """The quarantined units of a factory or well, oldest first."""
    found = [unit for unit in every(on, is_a) if unit.maker == maker and unit.state is UnitState.QUARANTINED]
    return sorted(found, key=lambda unit: unit.id)


def read_page(on: System, is_a: UnitKind, page: str, limit: int) -> tuple[list[Unit], str | None]:
    """Some units of a kind, by id, and the next page.

    First come those of the listing, then those of each shard. An empty page is the first.
    """
    number, _, after = (page or FIRST).partition(":")
    found: list[Unit] = []
    for part in range(int(number), 1 + len(SHARDS)):
        left = limit - len(found)
        rows, last = _read_part(on, is_a, part, after, left)
        found += rows
        if last:
            return sorted(found, key=lambda unit: unit.id), f"{part}:{last}"
        after = ""
    return sorted(found, key=lambda unit: unit.id), None


def _read_part(on: System, is_a: UnitKind, part: int, after: str, limit: int) -> tuple[Sequence[Unit], str]:
    """At most so many units of a part, and the id of the last if there may be more."""
    if part == 0:
        listed = on.store.listed(units.listing(is_a), Unit, limit=limit, after=after)
        return listed, listed[-1].id if len(listed) == limit else ""
    keys = _due_keys_behind(on, is_a, part, after)[:limit]
    return list(_read(on, keys)), units.unit_in(keys[-1]) if len(keys) == limit else ""


def _due_keys_behind(on: System, is_a: UnitKind, part: int, after: str) -> list[Key]:
    """The keys of the units of a kind that the shard of a part has behind a unit, by id."""
    found = (due.key for due in on.store.overdue(SHARDS[part - 1], WHENEVER, page=KEYS_AT_ONCE))
    behind = units.unit_key(after).pk if after else ""
    return sorted(key for key in found if units.unit_in(key).startswith(units.PREFIXES[is_a]) and key.pk > behind)


def _read(on: System, keys: Sequence[Key]) -> Iterator[Unit]:
    for _, row in listings.each_at(on, keys):
        if isinstance(row, Unit) and row.state is not UnitState.GONE:
            yield row
