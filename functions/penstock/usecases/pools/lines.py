"""The queues of pools: who waits, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.domain.pools.grants import WINDOW, heads
from penstock.domain.pools.pools import WAITING, Claim, behind, collection
from penstock.system import System


def first(on: System, pool: str, most: int = 0) -> list[Claim]:
    """The first claims of each line of a pool's queue, in the order in which they are granted. [QUEUE-1] [QUEUE-2]

    Of each line at most WINDOW are read, or `most`; then its others are passed over. So this is one read for each line
    that is as long, and as many as the others fill.
    """
    most = most or WINDOW
    found: list[Claim] = []
    after = ""
    while True:
        page = on.store.find(collection(pool), WAITING, Claim, limit=most, after=after)
        found += page
        if len(page) < most:
            return heads(found, most)
        line = page[-1].line
        is_read = sum(claim.line == line for claim in found) >= most
        after = behind(line) if is_read else page[-1].key.sk


def lengths(on: System, pool: str) -> Iterator[tuple[Claim, int]]:
    """The first claim of each line of a pool's queue, and how many claims the line has. All of them are counted."""
    after = ""
    while found := on.store.find(collection(pool), WAITING, Claim, limit=1, after=after):
        first = found[0]
        yield first, on.store.count(collection(pool), f"{WAITING}{first.line}#")
        after = behind(first.line)


def length(on: System, pool: str) -> int:
    """How many claims wait in a pool's queue."""
    return on.store.count(collection(pool), WAITING)


def position(on: System, claim: Claim) -> int:
    """A claim's place in its queue, or that which it would have, counted from 1. All before it are counted."""
    before = [replace(claim, line=first.line) for first, _ in lengths(on, claim.pool)]
    return 1 + sum(on.store.count(each.key.pk, f"{WAITING}{each.line}#", upto=each.before_it) for each in before)
