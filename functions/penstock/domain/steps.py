"""In which steps an attempt acquires what it needs, so that no two attempts can wait for each other. [QUEUE-3]

A step is claimed whole. Every pool belongs to one step only, the steps of all attempts are taken in one order, and the
worker's is the last: whoever waits in a step holds things of earlier steps only, and whoever holds what it waits for
waits in a later step, if at all. So the waiting has an end.

Types that take from one pool, because one uses the other or both use a quota, would break that if they were acquired
one after the other; they share a step. Its place is that of the first of its types.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.domain.site import Site


def leaders(site: Site) -> dict[str, str]:
    """For each resource type the first, by name, of the types that it shares pools with, perhaps over others."""
    leader = {name: name for name in site.resources}
    owners: dict[str, list[str]] = {}
    for name, kind in site.resources.items():
        for pool in (kind.pool, *site.takes(kind.uses)):
            owners.setdefault(pool, []).append(name)
    for sharers in owners.values():
        _merge(leader, sharers)
    return leader


def _merge(leader: dict[str, str], names: list[str]) -> None:
    old = {leader[name] for name in names}
    new = min(old)
    for name in leader:
        if leader[name] in old:
            leader[name] = new


def numbers(site: Site, types: Iterable[str]) -> dict[str, int]:
    """The number of the step, counted from 1, in which each of some types is acquired."""
    leader = leaders(site)
    wanted = set(types)
    order = sorted({leader[name] for name in wanted})
    return {name: order.index(leader[name]) + 1 for name in wanted}
