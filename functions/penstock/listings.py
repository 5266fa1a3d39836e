"""Listings and collections, read to their end, and rows by many keys: however many there are, none is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from penstock.kernel import limits
from penstock.kernel.rows import Key, Row
from penstock.system import System

PAGE = 500
"""How many rows are read at once."""

R = TypeVar("R", bound=Row)


def every(on: System, name: str, kind: type[R], after: str = "") -> Iterator[R]:
    """All rows of a listing behind a place, in its order.

    A row that was written just now may be missing, as in every index.
    """
    while True:
        page = on.store.listed(name, kind, limit=PAGE, after=after)
        yield from page
        if len(page) < PAGE:
            return
        after = max(row.place.sort for row in page if row.place)


def every_of(on: System, pk: str, prefix: str, kind: type[R], after: str = "") -> Iterator[R]:
    """All rows of a collection whose sort key begins with a prefix, behind another sort key, in order."""
    while True:
        page = on.store.find(pk, prefix, kind, limit=PAGE, after=after)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].key.sk


def rows_at(on: System, keys: Sequence[Key]) -> dict[Key, Row]:
    """Rows by their keys, read consistently, without those that are gone or cannot be read."""
    found: dict[Key, Row] = {}
    for at in range(0, len(keys), limits.BATCH_KEYS):
        found |= on.store.rows_at(keys[at : at + limits.BATCH_KEYS])
    return found
