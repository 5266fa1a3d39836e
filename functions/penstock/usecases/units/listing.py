"""All units that exist, by kind: each is in one of two indexes, the due index or a listing.

A unit that is due is found by that, so that no unit writes another index on its way through a job. One that is not due,
such as a resource in use, has a place in the listing of its kind. As in every index, a unit that was written just now
may be missing; and a unit that moves from one to the other meanwhile may be found twice, or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain

from penstock import listings
from penstock.domain.units import units
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.kernel import limits
from penstock.kernel.rows import Key, shards_of
from penstock.system import System

SHARDS = shards_of(Unit, later=False)

WHENEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""Later than every deadline."""

KEYS_AT_ONCE = 5000
"""How many entries of the due index are read at once: they have keys only."""


def every(on: System, is_a: UnitKind) -> Iterator[Unit]:
    """Each unit of a kind that is not gone, once."""
    seen = set[str]()
    due = (unit for shard in SHARDS for unit in _read(on, _due_keys(on, shard, is_a)))
    for unit in chain(listings.every(on, units.listing(is_a), Unit), due):
        if unit.id not in seen:
            seen.add(unit.id)
            yield unit


def quarantined(on: System, is_a: UnitKind, maker: str) -> list[Unit]:
    """The quarantined units of a factory or well, oldest first."""
    found = [unit for unit in every(on, is_a) if unit.maker == maker and unit.state is UnitState.QUARANTINED]
    return sorted(found, key=lambda unit: unit.id)


def read_page(on: System, is_a: UnitKind, page: str, limit: int) -> tuple[list[Unit], str | None]:
    """Some units of a kind, by id, and the next page.

    First come those of the listing, then those of each shard. A page says in which of these parts it begins, and after
    which unit.
    """
    number, _, after = page.partition(":")
    found: list[Unit] = []
    for part in range(int(number or 0), 1 + len(SHARDS)):
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
    behind = units.unit_key(after).pk if after else ""
    keys = [key for key in _due_keys(on, SHARDS[part - 1], is_a) if key.pk > behind][:limit]
    return list(_read(on, keys)), units.unit_in(keys[-1]) if len(keys) == limit else ""


def _due_keys(on: System, shard: str, is_a: UnitKind) -> list[Key]:
    """The keys of the units of a kind that a shard has, by id."""
    found = (due.key for due in on.store.overdue(shard, WHENEVER, page=KEYS_AT_ONCE))
    return sorted(key for key in found if units.unit_in(key).startswith(units.PREFIXES[is_a]))


def _read(on: System, keys: Sequence[Key]) -> Iterator[Unit]:
    for start in range(0, len(keys), limits.BATCH_KEYS):
        some = keys[start : start + limits.BATCH_KEYS]
        rows = on.store.rows_at(some)
        for row in map(rows.get, some):
            if isinstance(row, Unit) and row.state is not UnitState.GONE:
                yield row
