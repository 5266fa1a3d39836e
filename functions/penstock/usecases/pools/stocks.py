"""What pools have, and who waits for it, read before a grant is decided.

However large a pool or long a queue, no more than a bounded part of it is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.pools import grants, pools
from penstock.domain.pools.grants import WINDOW, Stock
from penstock.domain.pools.pools import Claim, Pool, Slot, pool_key
from penstock.kernel.rows import Row
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
        stock = _stock(on, name, claims if name == pool_name else None)
        if stock is not None:
            found[name] = stock
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
        cold = _free(on, claim.pool, "cold", max(SPREAD, claim.count))
        pool, waits = _head(on, claim.pool)
        if pool is None or pool.is_closed or waits:
            return {}
        warm = _warm(on, pool, claim.count) if pool.warm else []
        first = on.world.draw(len(cold)) if cold else 0
        found[claim.pool] = Stock(pool, (), _others([*cold[first:], *cold[:first]], warm), warm)
    return found


def _head(on: System, name: str) -> tuple[Pool | None, bool]:
    """A pool's row, and whether anybody waits there. They stand next to each other, so one request reads both."""
    found = on.store.find(pools.collection(name), "", Row, limit=2, after=pools.BEFORE_ITS_ROW)
    pool = next((row for row in found if isinstance(row, Pool)), None)
    return pool, any(isinstance(row, Claim) for row in found)


def _stock(on: System, name: str, claims: Sequence[Claim] | None) -> Stock | None:
    """What one pool has, and who waits for it. None if there is no such pool.

    Its slots are read before its row. A limit that was lowered before one of them came back is seen then. [SLOT-1]
    """
    pk = pools.collection(name)
    queue = on.store.find(pk, "wait#", Claim, limit=WINDOW) if claims is None else claims
    most = sum(claim.count for claim in queue)
    cold = _free(on, name, "cold", most)
    pool = on.store.get(pool_key(name), Pool)
    if pool is None:
        return None
    warm = _warm(on, pool, most) if most and pool.warm and not pool.paused else []
    idle = on.store.find(pk, "idle#", Slot, limit=IDLE) if grants.reserved_claims(queue) else []
    return Stock(pool, queue, [] if pool.paused else _others(cold, warm), warm, idle)


def _free(on: System, name: str, rank: str, most: int) -> list[Slot]:
    """The first free slots of a pool. A quota has none, and nobody asks for them."""
    if not most or pools.is_quota(name):
        return []
    return on.store.find(pools.collection(name), f"free#{rank}#", Slot, limit=most)


def _others(cold: Sequence[Slot], warm: Sequence[Slot]) -> list[Slot]:
    """Without those that got a unit between the two reads, while nobody waited."""
    twice = {slot.name for slot in warm}
    return [slot for slot in cold if slot.name not in twice]


def _warm(on: System, pool: Pool, most: int) -> list[Slot]:
    """Slots that carry a unit; where units are made ahead of need, those first whose unit is ready."""
    limit = max(most, WARM) if pool.min_warm else most
    found = on.store.find(pools.collection(pool.name), "free#warm#", Slot, limit=limit)
    return sorted(found, key=lambda slot: slot.since is None)[:most]
