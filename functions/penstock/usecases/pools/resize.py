"""Resizing: bringing a pool's slots to what its row says.

The schedule function calls this after an operator or a host changed the pool's row; the sweep, while the row is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock import transaction
from penstock.domain.pools import capacity, pools
from penstock.domain.pools.pools import Pool, Slot, SlotName, SlotState, pool_key
from penstock.kernel.rows import Change, Replace
from penstock.system import System
from penstock.usecases.pools import scheduler
from penstock.usecases.units import retire
from penstock.usecases.workers import presence


def resize(on: System, pool_name: str) -> None:
    """Bring a pool's slots to what its row says, then serve it, and the other queues of those who wait for it."""
    for tries in range(transaction.TRIES):
        pool = on.store.get(pool_key(pool_name), Pool)
        if pool is None:
            return
        here = presence.present_hosts(on, pool)
        slots = [] if pool.is_amount else _slots(on, pool_name)
        if slots is not None:
            todo = [] if pool.is_amount else capacity.fit(pool, slots, here)
            worn = [] if pool.is_amount else capacity.surplus(pool, slots)
            if not todo and not worn:
                settled = replace(pool, due=None, over=any(slot.withdrawn for slot in slots))
                if settled == pool or on.store.commit([Replace(pool, settled)]):
                    break
            _apply_plan(on, pool, todo)
            for slot in worn:
                retire.retire(on, slot.unit or "", "the site keeps fewer warm")
        on.world.pause(tries)
    scheduler.serve(on, pool_name)
    scheduler.serve_other_queues(on, pool_name)


def _slots(on: System, pool_name: str) -> list[Slot] | None:
    """All slots of a pool; None if one moved while they were read, and so was missed."""
    pk = pools.collection(pool_name)
    known = {row.name for row in on.store.find(pk, "name#", SlotName, limit=10_000)}
    found = {slot.name: slot for state in SlotState for slot in on.store.find(pk, f"{state}#", Slot, limit=10_000)}
    return list(found.values()) if known == set(found) else None


def _apply_plan(on: System, pool: Pool, steps: Sequence[Sequence[Change]]) -> None:
    """Take the steps of a plan, as long as the pool's row is the one that it was made for.

    Each step rewrites the row unchanged instead of only checking it. So another resize that read the slots before this
    step has an older row, and cannot call the pool done. [SLOT-1]
    """
    for step in steps:
        if on.store.commit([Replace(pool, pool), *step]):
            pool = replace(pool, version=pool.version + 1)
