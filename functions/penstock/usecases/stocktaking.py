"""What pools have and who waits for it, read for a grant: of a large pool, or a long queue, no more than of a small."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.pools import grants, pools
from penstock.domain.pools.grants import WINDOW, Stock
from penstock.domain.pools.pools import Claim, Pool, Slot, pool_key
from penstock.system import System

IDLE = 100
"""How many idle slots of a pool are looked at."""

WARM = 100
"""Among how many warm slots one is looked for whose unit is there already."""


def read(on: System, pool_name: str) -> dict[str, Stock]:
    """What a pool has, and every other pool that those who wait for it want as well. Empty when nobody waits.

    Of each at most WINDOW claims, and as many free slots as these want together. Where something is kept for one of
    them, also what is idle, and the rows of the pools that else decide whether it is that one's turn.
    """
    claims = on.store.find(pools.collection(pool_name), "wait#", Claim, limit=WINDOW)
    found: dict[str, Stock] = {}
    for name in dict.fromkeys(name for claim in claims for name in claim.pools):
        pool = on.store.get(pool_key(name), Pool)
        if pool is not None:
            found[name] = _stock(on, pool, claims if name == pool_name else None)
    kept = [claim for stock in found.values() for claim in grants.kept_for(stock.claims)]
    for name in dict.fromkeys(name for claim in kept for name in claim.pools):
        pool = None if name in found else on.store.get(pool_key(name), Pool)
        if pool is not None:
            found[name] = Stock(pool, ())
    return found


def _stock(on: System, pool: Pool, claims: Sequence[Claim] | None) -> Stock:
    """What one pool has, and who waits for it."""
    pk = pools.collection(pool.name)
    queue = on.store.find(pk, "wait#", Claim, limit=WINDOW) if claims is None else claims
    most = 0 if pool.is_amount or pool.paused else sum(claim.count for claim in queue)
    cold = on.store.find(pk, "free#cold#", Slot, limit=most) if most else []
    warm = _warm(on, pool, most) if most and pool.warm else []
    twice = {slot.name for slot in warm}  # given a unit between the two looks, by who saw nobody wait
    free = [slot for slot in cold if slot.name not in twice]
    idle = on.store.find(pk, "idle#", Slot, limit=IDLE) if grants.kept_for(queue) else []
    return Stock(pool, queue, free, warm, idle)


def _warm(on: System, pool: Pool, most: int) -> list[Slot]:
    """Slots that carry a unit; where some are made ahead of need, those first whose unit is there already."""
    is_ahead = pool.warm is not None and pool.warm.least
    found = on.store.find(pools.collection(pool.name), "free#warm#", Slot, limit=max(most, WARM) if is_ahead else most)
    return sorted(found, key=lambda slot: slot.since is None)[:most]
