"""Fresh claims: they are granted no warm unit, what is warm makes room for them, and they wait for nobody longer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.jobs.jobs import Proves
from penstock.domain.pools import grants
from penstock.domain.pools.grants import Allocator, Stock
from penstock.domain.pools.pools import Claim, Need, Slot, SlotState, Warm
from tests.domain.helpers import NOW, SECOND, claim, job, pool, slot, unit

TARGET, QUOTA = "target/linux", "quota/vcpus"
TAKES = {TARGET: 1, QUOTA: 4}
NEED = Need(0, 0, "worker", "linux", TARGET, "here", uses={QUOTA: 4})


def fresh(name: str = "A", **changes: object) -> dict[str, Claim]:
    fields = {"pools": (TARGET, QUOTA), "takes": (TAKES,), "fresh": True, **changes}
    return {pool: claim(name, pool=pool, count=count, **fields) for pool, count in TAKES.items()}


def warm(name: str, unit: str, age: int = 0) -> tuple[Slot, Slot]:
    """A warm unit's own slot, and what it takes of the quota."""
    since = NOW - age * SECOND
    idle = slot(unit, SlotState.IDLE, pool=QUOTA, unit=unit, count=4, since=since)
    return slot(name, pool=TARGET, unit=unit, since=since), idle


def stocks(rows: dict[str, Claim], cold: int = 0, kept: tuple[tuple[Slot, Slot], ...] = ()) -> dict[str, Stock]:
    amount = pool(name=QUOTA, is_amount=True, limit=8, used=4 * len(kept))
    free = [slot(f"c{number}", pool=TARGET) for number in range(cold)]
    return {
        TARGET: Stock(pool(name=TARGET, warm=Warm(most=2)), [rows[TARGET]], free, [own for own, _ in kept]),
        QUOTA: Stock(amount, [rows[QUOTA]], idle=[idle for _, idle in kept]),
    }


def test_only_the_claim_of_a_job_that_proves_a_factory_is_fresh() -> None:
    assert [one.fresh for one in grants.claims(job(), 0, NOW)] == [False]
    assert [one.fresh for one in grants.claims(job(proves=Proves("f")), 0, NOW)] == [True]


def test_it_is_not_granted_what_is_warm_but_what_is_cold() -> None:
    kept = (warm("1", "w-1"),)
    assert grants.pick(TARGET, stocks(fresh(), 0, kept)) is None
    given = stocks(fresh(), 1, kept)
    found = grants.pick(TARGET, given)
    assert found
    assert grants.cold_demand(found, given) == TAKES


def test_a_hand_takes_a_cold_slot_for_it_and_its_unit_is_not_kept() -> None:
    given = stocks(fresh(), 1, (warm("1", "w-1"),))
    hand = Allocator(given)
    assert hand.warm(fresh()[TARGET], TARGET) is None
    made = hand.order(fresh()[TARGET], unit(id="w-2", pool=TARGET, order=0), NEED)
    assert (made.lease.slot, made.cleaning.is_kept) == ("c0", False)


def test_what_is_warm_makes_room_if_that_alone_is_in_the_way() -> None:
    """The one that was idle for longest, and only where no slot, or none of the quota, is left without it."""
    kept = (warm("1", "w-1"), warm("2", "w-2", age=5))
    assert grants.units_to_evict(TARGET, stocks(fresh(), 0, kept))[1] == ["w-2"]
    assert grants.units_to_evict(TARGET, stocks(fresh(), 1, kept))[1] == ["w-2"]
    assert grants.units_to_evict(TARGET, stocks(fresh(), 1, kept[:1]))[1] == []


def test_nothing_more_makes_room_while_enough_is_leaving() -> None:
    own, taken = warm("1", "w-1")
    leaving = replace(own, state=SlotState.IDLE, leaving=True)
    given = stocks(fresh(), 0, (warm("2", "w-2"),))
    given[TARGET] = replace(given[TARGET], idle=[leaving])
    given[QUOTA] = replace(given[QUOTA], idle=[*given[QUOTA].idle, replace(taken, leaving=True)])
    assert grants.units_to_evict(TARGET, given)[1] == []


@given(st.integers(0, 2), st.integers(0, 2), st.integers(0, 6))
def test_it_never_starves(cold: int, kept: int, rounds: int) -> None:
    """QUEUE-1: whatever is warm, it is granted at once or something makes room; and those behind pass it rarely."""
    if not cold + kept:
        return
    units = tuple(warm(str(number), f"w-{number}") for number in range(kept))
    rows = fresh(overtaken=rounds)
    behind = fresh("B", fresh=False)
    given = stocks(rows, cold, units)
    given = {name: replace(stock, claims=[rows[name], behind[name]]) for name, stock in given.items()}
    found = grants.pick(TARGET, given)
    if found is None or found.rows[TARGET].job == "B":
        assert grants.units_to_evict(TARGET, given)[1]
    if found and found.rows[TARGET].job == "A":
        assert cold
        assert not found.overtaken


@pytest.mark.parametrize("paused", [TARGET, QUOTA])
def test_nothing_makes_room_in_a_paused_pool(paused: str) -> None:
    given = stocks(fresh(), 0, (warm("1", "w-1"),))
    given[paused] = replace(given[paused], pool=replace(given[paused].pool, paused=True))
    assert grants.units_to_evict(TARGET, given)[1] == []
