"""Listings and collections, read to their end: however many rows a site has, none is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from penstock.kernel.rows import Row
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
