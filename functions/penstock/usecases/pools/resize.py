"""Resizing: bringing a pool's slots to what its row says.

The schedule function calls this after an operator or a host changed the pool's row; the sweep, while the row is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from penstock.domain.pools import capacity, pools
from penstock.domain.pools.pools import Pool, Slot, SlotName, SlotState, pool_key
from penstock.kernel.rows import Change, Create, Replace
from penstock.listings import every_of
from penstock.system import TRIES, System
from penstock.usecases.pools import scheduler, serving
from penstock.usecases.units import retire
from penstock.usecases.workers import presence

NEW_SLOTS = 40
"""How many slots one commit makes; each is two rows, and a commit has room for 100."""


def resize(on: System, pool_name: str) -> None:
    """Bring a pool's slots to what its row says, then serve it, and the other queues of those who wait for it.

    After as many refusals without a commit in between as anybody is granted, the rest is left to the sweep.
    """
    tries = 0
    while tries < TRIES:
        pool = on.store.get(pool_key(pool_name), Pool)
        if pool is None:
            return
        here = presence.present_hosts(on, pool)
        slots = [] if pool.is_amount else _slots(on, pool_name)
        moved = 0
        if slots is not None:
            todo = [] if pool.is_amount else capacity.fit(pool, slots, here)
            worn = [] if pool.is_amount else capacity.surplus(pool, slots)
            if not todo and not worn:
                settled = replace(pool, due=None, over=any(slot.withdrawn for slot in slots))
                if settled == pool or on.store.commit([Replace(pool, settled)]):
                    break
            moved = _apply_plan(on, pool, todo)
            _retire(on, worn)
        on.world.pause(tries)
        tries = 0 if moved else tries + 1
    scheduler.freed(on, serving.with_others(on, pool_name))


def _retire(on: System, slots: Sequence[Slot]) -> None:
    """Have the units of slots destroyed."""
    for slot in slots:
        why = f"the site took out {slot.pool} {slot.name}" if slot.withdrawn else "the site keeps fewer warm"
        retire.retire(on, slot.unit or "", why)


def _slots(on: System, pool_name: str) -> list[Slot] | None:
    """All slots of a pool; None if one moved while they were read, and so was missed.

    They may be more than a pool may have at a time: one whose name the site took out stays, for when it comes back.
    """
    pk = pools.collection(pool_name)
    known = {row.name for row in every_of(on, pk, "name#", SlotName)}
    found = {slot.name: slot for state in SlotState for slot in every_of(on, pk, f"{state}#", Slot)}
    return list(found.values()) if known == set(found) else None


def _apply_plan(on: System, pool: Pool, steps: Sequence[Sequence[Change]]) -> int:
    """Take the steps of a plan, and return how many commits were made. It ends with the first that is refused: the
    pool's row, or a slot, is not the one any more that the plan was made for.

    Each commit rewrites the row instead of only checking it. So another resize that read the slots before has an older
    row, and cannot call the pool done. The pool is due until it is done, should this function die. [SLOT-1]
    """
    taken = 0
    for changes in _commits(steps):
        due = replace(pool, due=pool.due or on.world.now())
        if not on.store.commit([Replace(pool, due), *changes]):
            break
        taken += 1
        pool = replace(due, version=pool.version + 1)
    return taken


def _commits(steps: Sequence[Sequence[Change]]) -> Iterator[Sequence[Change]]:
    """The commits of a plan: one for each slot that moves, then one for many that are new.

    No step is searched for among the others: of ten thousand that takes longer than the function may.
    """
    new = [step for step in steps if isinstance(step[0], Create)]
    yield from (step for step in steps if not isinstance(step[0], Create))
    for at in range(0, len(new), NEW_SLOTS):
        yield [change for step in new[at : at + NEW_SLOTS] for change in step]
