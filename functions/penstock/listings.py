"""Listings and collections, read to their end, and rows by many keys: however many there are, none is left out.

A listing has no row that cannot be read, because it is damaged or in the form of a newer release: whoever goes through
all pools serves the others. Who may overlook none asks for a whole page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from penstock.kernel import limits
from penstock.kernel.rows import Key, Row
from penstock.system import System

PAGE = 500
"""How many rows are read at once."""

R = TypeVar("R", bound=Row)


def every(on: System, name: str, kind: type[R], after: str = "") -> Iterator[R]:
    """All rows of a listing behind a place that can be read, in its order.

    A row that was written just now may be missing, as in every index.
    """
    while True:
        page = on.store.listed(name, kind, limit=PAGE, after=after)
        yield from page
        if len(page) < PAGE:
            return
        after = max(row.place.sort for row in page if row.place)


def whole_page(on: System, name: str, kind: type[R], *, limit: int, after: str = "", newest: bool = False) -> list[R]:
    """Some rows of a listing. Raises if one among them cannot be read: for who would take it for gone otherwise."""
    found = on.store.listed(name, kind, limit=limit, after=after, newest=newest)
    read = {row.key for row in found}
    for entry in islice(on.store.entries(name, after=after, newest=newest, page=limit), limit):
        if entry.key not in read:
            on.store.get(entry.key, kind)
    return found


def unreadable(on: System, name: str, found: Iterable[Row]) -> list[Key]:
    """The keys of the rows of a listing, beside those found in it, that cannot be read."""
    known = {row.key for row in found}
    return [each.key for each in on.store.entries(name) if each.key not in known and not on.store.rows_at([each.key])]


def every_of(on: System, pk: str, prefix: str, kind: type[R], after: str = "") -> Iterator[R]:
    """All rows of a collection whose sort key begins with a prefix, behind another sort key, in order."""
    while True:
        page = on.store.find(pk, prefix, kind, limit=PAGE, after=after)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].key.sk


def rows_at(on: System, keys: Iterable[Key]) -> dict[Key, Row]:
    """Rows by their keys, read consistently, without those that are gone or cannot be read."""
    return dict(each_at(on, keys))


def each_at(on: System, keys: Iterable[Key]) -> Iterator[tuple[Key, Row]]:
    """The same one after the other, in the order of the keys: a hundred are read when the first of them is wanted."""
    left = iter(dict.fromkeys(keys))
    while some := list(islice(left, limits.BATCH_KEYS)):
        found = on.store.rows_at(some)
        yield from ((key, found[key]) for key in some if key in found)
