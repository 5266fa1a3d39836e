"""The wait-for graph of the whole site, as it was while it was read."""

from __future__ import annotations

from penstock.domain.pools import graph
from penstock.domain.pools.graph import Graph
from penstock.domain.pools.pools import Pool
from penstock.system import System
from penstock.usecases import outlook

POOLS = 1000
"""How many pools are read."""


def whole(on: System) -> Graph:
    """Who waits for what, and who has it.

    Rows move while they are read, so what was read at two moments may look like a circle that never was: then one
    looks again.
    """
    found = _read(on)
    return _read(on) if found.cycle else found


def _read(on: System) -> Graph:
    found = (outlook.read(on, pool.name) for pool in on.store.listed("pools", Pool, limit=POOLS))
    return graph.graph([queue for queue in found if queue])
