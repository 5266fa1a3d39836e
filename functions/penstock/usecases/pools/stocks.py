"""What pools have, and who waits for it, read before a grant is decided.

However large a pool or long a queue, no more than a bounded part of it is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.pools import grants, pools
from penstock.domain.pools.grants import WINDOW, Stock
from penstock.domain.pools.pools import Claim, Pool, Slot, pool_key
from penstock.system import System

IDLE = 100
"""How many idle slots of a pool are read."""

WARM = 100
"""Among how many warm slots one is chosen whose unit is ready already."""

SPREAD = 100
"""Among how many free slots a claim that nobody stands before takes one at random. Claims that are granted at the same
time seldom fight for the same slot then, which all but one would lose.
"""


def read_stocks(on: System, pool_name: str) -> dict[str, Stock]:
    """What a pool has, and what the other pools have that its claims want as well. Empty if nobody waits.

    Of each pool at most WINDOW claims, and as many free slots as these want together. Where slots are reserved for one
    of them, also what is idle, and the rows of the other pools that decide whether it is that claim's turn.
    """
    claims = on.store.find(pools.collection(pool_name), "wait#", Claim, limit=WINDOW)
    found: dict[str, Stock] = {}
    for name in dict.fromkeys(name for claim in claims for name in claim.pools):
        pool = on.store.get(pool_key(name), Pool)
        if pool is not None:
            found[name] = _stock(on, pool, claims if name == pool_name else None)
    kept = [claim for stock in found.values() for claim in grants.reserved_claims(stock.claims)]
    for name in dict.fromkeys(name for claim in kept for name in claim.pools):
        pool = None if name in found else on.store.get(pool_key(name), Pool)
        if pool is not None:
            found[name] = Stock(pool, ())
    return found


def look(on: System, claims: Sequence[Claim]) -> dict[str, Stock]:
    """What the pools of a new claim have, its slots in random order. Empty if somebody waits in one of them. [QUEUE-2]

    A claim comes when it looks: one that is written after that is behind it, though it may be granted later.
    """
    found: dict[str, Stock] = {}
    for claim in claims:
        pool = on.store.get(pool_key(claim.pool), Pool)
        if pool is None or pool.paused or on.store.find(pools.collection(claim.pool), "wait#", Claim, limit=1):
            return {}
        found[claim.pool] = _open_stock(on, pool, claim)
    return found


def _open_stock(on: System, pool: Pool, claim: Claim) -> Stock:
    """What a pool has for a claim that nobody stands before."""
    if pool.is_amount:
        return Stock(pool, ())
    warm = _warm(on, pool, claim.count) if pool.warm else []
    cold = on.store.find(pools.collection(pool.name), "free#cold#", Slot, limit=max(SPREAD, claim.count))
    first = on.world.draw(len(cold)) if cold else 0
    return Stock(pool, (), [*cold[first:], *cold[:first]], warm)


def _stock(on: System, pool: Pool, claims: Sequence[Claim] | None) -> Stock:
    """What one pool has, and who waits for it."""
    pk = pools.collection(pool.name)
    queue = on.store.find(pk, "wait#", Claim, limit=WINDOW) if claims is None else claims
    most = 0 if pool.is_amount or pool.paused else sum(claim.count for claim in queue)
    cold = on.store.find(pk, "free#cold#", Slot, limit=most) if most else []
    warm = _warm(on, pool, most) if most and pool.warm else []
    twice = {slot.name for slot in warm}  # got a unit between the two reads, while nobody waited
    free = [slot for slot in cold if slot.name not in twice]
    idle = on.store.find(pk, "idle#", Slot, limit=IDLE) if grants.reserved_claims(queue) else []
    return Stock(pool, queue, free, warm, idle)


def _warm(on: System, pool: Pool, most: int) -> list[Slot]:
    """Slots that carry a unit; where units are made ahead of need, those first whose unit is ready."""
    limit = max(most, WARM) if pool.min_warm else most
    found = on.store.find(pools.collection(pool.name), "free#warm#", Slot, limit=limit)
    return sorted(found, key=lambda slot: slot.since is None)[:most]
