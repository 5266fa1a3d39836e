"""What a claim, a release and a grant take, by the length of the queue and the size of the pool: always the same."""

from __future__ import annotations

from dataclasses import replace

from penstock.domain.pools.pools import Pool, SlotState, pool_key
from penstock.kernel.rows import Replace
from penstock.usecases.pools import scheduler, serving
from tests.figures.counting import CountingTwin, Counts

LICENCE = "resource/licence"


def by_queue(waiting: int) -> Counts:
    """A release, and the grant that follows, with so many waiting claims in the pool."""
    twin = CountingTwin()
    unit = twin.holder("licence")
    twin.wait("licence", waiting)
    return twin.release(unit)


def claim_by_queue(waiting: int) -> Counts:
    """One more claim behind so many waiting ones; it tells its job what it waits for, for which it looks ahead."""
    twin = CountingTwin()
    twin.holder("licence")
    twin.wait("licence", waiting)
    job = twin.job("licence")
    return twin.count(lambda: scheduler.acquire(twin.on, job.id, 1, 1, "token"))


def wakes(kind: str, waiting: int, for_: str = "") -> Counts:
    """One release of a resource with so many waiting for a resource of that, or another, kind."""
    twin = CountingTwin()
    unit = twin.holder(kind)
    twin.wait(for_ or kind, waiting)
    return twin.release(unit)


def by_size(slots: int, state: SlotState = SlotState.FREE) -> Counts:
    """Serving one waiting claim in a pool of so many free slots; or a release into one whose other slots are held."""
    twin = CountingTwin()
    if state is SlotState.HELD:
        unit = twin.holder("licence")
        twin.slots(LICENCE, slots - 1, state)
        twin.wait("licence", 1)
        return twin.release(unit)
    twin.slots(LICENCE, slots - 1, state)
    twin.wait("licence", 1)
    return twin.count(lambda: serving.serve(twin.on, [LICENCE]))


def lowered(slots: int) -> Counts:
    """A release into a pool of so many held slots whose limit was lowered."""
    twin = CountingTwin()
    unit = twin.holder("licence")
    twin.slots(LICENCE, slots - 1, SlotState.HELD)
    pool = twin.store.get(pool_key(LICENCE), Pool)
    assert pool
    twin.store.commit([Replace(pool, replace(pool, over=True))])
    return twin.release(unit)
