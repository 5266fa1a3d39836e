"""Invariants of units made ahead of need: they take nothing that somebody waits for."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.pools.pools import WAITING, Claim, Pool, Slot, collection, pool_key
from penstock.domain.units.units import Unit
from simulation.commits import Broke, Moment


def nobodys(moment: Moment) -> Iterator[Broke]:
    """QUEUE-2: a unit that nobody asked for takes nothing that somebody waited for when its handler looked, nor of a
    pool that is paused. SLOT-1: nor does it make its pool have more units without a lease than the site says.
    """
    for was, now in moment.of(Unit):
        if was is not None or now is None or now.lease.leases:
            continue
        looked = moment.task.looked if moment.task else {}
        for name in dict.fromkeys((now.lease.pool, *(pool for pool, _ in now.lease.also))):
            pool = moment.store.rows.get(pool_key(name))
            if isinstance(pool, Pool) and pool.is_paused:
                yield "QUEUE-2", f"{now.id} is made ahead of need, and takes of {name}, which is paused"
            for claim in moment.store.scan(collection(name), WAITING, Claim):
                if moment.facts.born.get(claim.key, 0) <= looked.get(collection(name), -1):
                    yield "QUEUE-2", f"{now.id} is made ahead of need, and takes of {name} what {claim.job} waits for"
        yield from _too_many(moment, now)


def _too_many(moment: Moment, unit: Unit) -> Iterator[Broke]:
    pool = moment.store.rows.get(pool_key(unit.lease.pool))
    warm = moment.store.scan(collection(unit.lease.pool), "free#warm#", Slot)
    least = pool.warm.least if isinstance(pool, Pool) and pool.warm else 0
    count = sum(not slot.owner for slot in warm)
    if count > least:
        yield "SLOT-1", f"{unit.id} is made ahead of need, and {unit.lease.pool} has {count}, and wants {least}"
