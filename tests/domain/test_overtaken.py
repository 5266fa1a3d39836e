"""What was decided on rows that have moved since is not committed: not a part of it, and not over what is there now.

[SLOT-1] [SLOT-2] [SLOT-3]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from penstock.domain.pools import capacity, pools
from penstock.domain.pools.grants import Allocator, Stock
from penstock.domain.pools.pools import Need, Pool, Slot, SlotName, SlotState, Warm
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel.rows import Create, Replace, Row
from penstock.testing.store import MemoryStore
from tests.domain.helpers import NOW, claim, pool, slot, unit

R = TypeVar("R", bound=Row)
BENCH, BLOCKS = "resource/bench", "quota/blocks"
SLOT_ALONE = Need(1, 1, "it", "bench", BENCH, "benches")
AMOUNT_ALONE = Need(1, 1, "it", "blocks", BLOCKS, "benches")


def stored(*rows: Row) -> MemoryStore:
    store = MemoryStore()
    assert store.commit([Create(row) for row in rows])
    return store


def current(store: MemoryStore, row: R) -> R:
    found = store.get(row.key, type(row))
    assert found
    return found


def stock(store: MemoryStore, of: Pool, free: Sequence[Slot] = (), warm: Sequence[Slot] = ()) -> dict[str, Stock]:
    wanted = [claim(pool=of.name, pools=(of.name,))]
    now = [[current(store, one) for one in some] for some in (free, warm)]
    return {of.name: Stock(current(store, of), wanted, *now)}


def ordered(name: str, **changes: object) -> Unit:
    return unit(**{"id": name, "order": 1, "since": NOW, **changes})


def test_a_slot_that_was_held_in_between_is_not_the_free_one_that_was_read() -> None:
    """SLOT-3: it is free again at the same key, and its fence has grown: who read it before would take it a second
    time with the fence of the first."""
    read = pool()
    store = stored(read, slot("1"))
    late = Allocator(stock(store, read, [slot("1")]))
    late.order(claim("J1"), ordered("r-2"), SLOT_ALONE)
    free = current(store, slot("1"))
    taken = pools.take(free, claim("other"), 1, "r-1", NOW)
    assert store.commit(pools.move(free, taken))
    held = current(store, taken)
    assert store.commit(pools.move(held, pools.give_back(held)))
    assert not store.commit(late.changes())
    assert current(store, slot("1")).fence == 1


def test_a_slot_is_not_moved_back_to_what_it_was_read_as() -> None:
    """SLOT-1: it was withdrawn in between; whoever read it before does not bring it back."""
    held = slot("1", SlotState.IDLE, unit="r-1", since=NOW)
    store = stored(held)
    read = current(store, held)
    assert store.commit(pools.move(read, replace(read, withdrawn=True)))
    assert not store.commit(pools.move(read, replace(read, leaving=True)))
    assert current(store, held).withdrawn


def test_only_the_first_of_two_grants_from_one_read_of_an_amount_is_made() -> None:
    """SLOT-1: each alone fits, and both together do not."""
    blocks = pool(name=BLOCKS, is_amount=True, limit=1)
    store = stored(blocks)
    hands = [Allocator(stock(store, blocks)) for _ in range(2)]
    for each, name in zip(hands, ("r-1", "r-2"), strict=True):
        each.order(claim("J1"), ordered(name), AMOUNT_ALONE)
    assert [store.commit(each.changes()) for each in hands] == [True, False]


def test_a_unit_that_is_there_is_not_made_over() -> None:
    """UNIT-2: what is known of it would be lost, and with it that it is to be destroyed."""
    there = ordered("r-1", state=UnitState.DIRTY, order=2)
    store = stored(pool(), slot("1"), there)
    again = Allocator(stock(store, pool(), [slot("1")]))
    again.order(claim("J1"), ordered("r-1"), SLOT_ALONE)
    assert not store.commit(again.changes())
    assert current(store, there).state is UnitState.DIRTY


def test_a_warm_unit_that_moved_since_it_was_read_is_not_handed_over() -> None:
    """SEC-1: what was said of it in between would be forgotten."""
    warm, idle = slot("1", unit="w-1", since=NOW), unit(state=UnitState.IDLE, until=NOW, pool=BENCH)
    store = stored(pool(warm=Warm()), warm, idle)
    read = current(store, idle)
    given = Allocator(stock(store, pool(), (), [warm]))
    own = given.warm(claim("J1"), BENCH)
    assert own
    given.over(claim("J1"), read, own, [], 1, NOW)
    assert store.commit([Replace(read, replace(read, step=replace(read.step, reason="to be destroyed")))])
    assert not store.commit(given.changes())
    assert current(store, idle).step.reason == "to be destroyed"


def test_what_a_pool_is_stays_as_it_is_where_a_grant_changes_nothing_of_it() -> None:
    """QUEUE-1: grants of different slots do not get in each other's way."""
    store = stored(pool(), slot("1"), slot("2"))
    hands = [Allocator(stock(store, pool(), [slot(name)])) for name in ("1", "2")]
    for each, name in zip(hands, ("r-1", "r-2"), strict=True):
        assert not each.order(claim("J1"), ordered(name), SLOT_ALONE).cleaning.is_kept
    assert [store.commit(each.changes()) for each in hands] == [True, True]


def test_a_slot_is_made_once_wherever_it_went_since() -> None:
    """SLOT-1: two resizes saw that it is missing; the first made it, and it was taken before the second came."""
    store = stored(pool(limit=1))
    first, second = (capacity.fit(current(store, pool()), []) for _ in range(2))
    assert store.commit(first[0])
    free = current(store, slot("1"))
    assert store.commit(pools.move(free, pools.take(free, claim(), 1, "r-1", NOW)))
    assert not store.commit(second[0])
    assert store.get(slot("1").key, Slot) is None


def test_a_name_that_has_a_slot_by_now_is_not_made_a_second_slot() -> None:
    """SLOT-1: the slot stands at another key when somebody holds it, so its name alone says that it was made."""
    (step,) = capacity.fit(pool(limit=1), [])
    store = stored(SlotName(pool=BENCH, name="1"), slot("1", SlotState.HELD, unit="r-1"))
    assert not store.commit(step)
    assert store.get(slot("1").key, Slot) is None
