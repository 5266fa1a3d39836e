"""Several claims are granted by what was read once. [QUEUE-2] [SLOT-2]"""

from __future__ import annotations

import pytest

from penstock.domain.pools import grants, pools
from penstock.domain.pools.grants import MAX_OVERTAKEN, WINDOW, Allocator, Stock
from penstock.domain.pools.pools import Claim, Need, SlotState
from penstock.domain.units.units import Unit
from penstock.kernel.rows import Replace
from tests.domain.helpers import NOW, claim, pool, slot
from tests.domain.helpers import unit as unit_of

BENCH, RIG, QUOTA = "resource/bench", "resource/rig", "quota/vcpus"


def free(count: int, name: str = BENCH) -> list:
    return [slot(str(number), pool=name) for number in range(count)]


def picked(stocks: dict[str, Stock], name: str = BENCH) -> list[str]:
    return [next(iter(pick.rows.values())).job for pick in grants.picks(name, stocks, 100)]


def over(job: str, own: str, vcpus: int, line: str = "") -> tuple[Claim, Claim]:
    both, takes = (own, QUOTA), ({own: 1, QUOTA: vcpus},)
    here = claim(job, pool=own, pools=both, takes=takes, line=line)
    return here, claim(job, pool=QUOTA, count=vcpus, pools=both, takes=takes, line=line)


def test_the_first_are_picked_as_far_as_there_are_slots() -> None:
    claims = [claim("A"), claim("B"), claim("C")]
    assert picked({BENCH: Stock(pool(), claims, free(2))}) == ["A", "B"]
    assert picked({BENCH: Stock(pool(), claims, free(9))}) == ["A", "B", "C"]
    assert picked({BENCH: Stock(pool(), claims)}) == []


@pytest.mark.parametrize(("limit", "found"), [(7, ["A"]), (8, ["A", "B"]), (12, ["A", "B", "C"])])
def test_what_was_picked_before_has_its_part_of_an_amount(limit: int, found: list[str]) -> None:
    here, there = zip(*(over(job, BENCH, 4) for job in "ABC"), strict=True)
    amount = pool(name=QUOTA, is_amount=True, limit=limit)
    stocks = {BENCH: Stock(pool(), list(here), free(3)), QUOTA: Stock(amount, list(there))}
    assert picked(stocks) == picked(stocks, QUOTA) == found


def test_a_warm_unit_is_for_the_first_and_the_others_take_what_is_cold() -> None:
    here, there = zip(*(over(job, BENCH, 4) for job in "ABC"), strict=True)
    warm = slot("w", unit="w-1", since=NOW)
    amount = pool(name=QUOTA, is_amount=True, limit=8, used=4)  # of which the warm unit has 4
    stocks = {BENCH: Stock(pool(), list(here), free(3), [warm]), QUOTA: Stock(amount, list(there))}
    assert picked(stocks) == ["A", "B"]


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_are_picked_than_are_wanted(most: int) -> None:
    claims = [claim("A"), claim("B"), claim("C")]
    assert len(grants.picks(BENCH, {BENCH: Stock(pool(), claims, free(9))}, most)) == most


def test_who_overtakes_is_picked_alone() -> None:
    """The claims that it takes from are read anew before anybody else is granted."""
    small, large = [claim("A"), claim("C"), claim("D")], claim("B", count=3)
    assert picked({BENCH: Stock(pool(limit=9), [large, *small[1:]], free(2))}) == ["C"]
    assert picked({BENCH: Stock(pool(limit=9), [small[0], large, *small[1:]], free(3))}) == ["A"]


def test_while_something_is_reserved_one_is_picked() -> None:
    kept = slot("k", SlotState.IDLE, unit="w-1", since=NOW)
    claims = [claim("A"), claim("B"), claim("C", count=3, overtaken=MAX_OVERTAKEN)]
    assert picked({BENCH: Stock(pool(), claims, free(3), idle=[kept])}) == ["A"]


@pytest.mark.parametrize("count", [WINDOW - 1, WINDOW])
def test_nobody_is_picked_who_stands_behind_claims_that_were_not_read(count: int) -> None:
    """Of a line with as many claims as are read there may be more, before whoever comes after its last."""
    rigs, theirs = zip(*(over(f"B{number:03d}", RIG, 1, "rigs") for number in range(count)), strict=True)
    (first, his), (last, hers) = over("A", BENCH, 1, "benches"), over("C", BENCH, 1, "benches")
    stocks = {
        BENCH: Stock(pool(), [first, last], free(2)),
        RIG: Stock(pool(name=RIG), list(rigs), free(count, RIG)),
        QUOTA: Stock(pool(name=QUOTA, is_amount=True, limit=99), [his, *theirs, hers]),
    }
    every = ["A", *(each.job for each in rigs)]
    assert picked(stocks, QUOTA) == (every if count == WINDOW else [*every, "C"])
    assert picked(stocks) == (["A"] if count == WINDOW else ["A", "C"])


def test_the_last_that_was_read_of_a_line_is_picked() -> None:
    claims = [claim(f"A{number:03d}", line="one") for number in range(WINDOW)]
    assert len(picked({BENCH: Stock(pool(), claims, free(WINDOW))})) == WINDOW


def test_what_is_taken_after_a_commit_is_for_another() -> None:
    """The row of an amount is what the first commit made of it."""
    amount = pool(name=QUOTA, is_amount=True, limit=8)
    hand = Allocator({QUOTA: Stock(amount, [])})
    need = Need(order=1, step=1, name="db", type="db", pool=QUOTA, maker="well/spring")

    def order(name: str) -> Unit:
        return hand.order(claim(name), unit_of(id=name, order=1), need)

    order("r-1")
    (first,) = [change for change in hand.changes() if isinstance(change, Replace)]
    assert isinstance(first.row, pools.Pool)
    hand.committed()
    assert hand.changes() == []
    assert [hand.committed(), hand.changes()] == [None, []], "nothing was taken"
    order("r-2")
    (second,) = [change for change in hand.changes() if isinstance(change, Replace)]
    assert isinstance(second.row, pools.Pool)
    assert isinstance(second.was, pools.Pool)
    assert (first.row.used, second.was.used, second.row.used) == (1, 1, 2)
    assert second.was.version == first.was.version + 1
    assert len(hand.changes()) == 3, "the unit, its share, and the pool"


def test_a_group_is_that_of_the_quota_that_others_share() -> None:
    assert pools.group_of(["target/big", "quota/a", "quota/b"]) == "quota/a"
    assert pools.group_of(["target/big", "target/small"]) == "target/big"
    assert pools.serving_order(["target/big", "quota/a", "target/small"]) == ["quota/a", "target/big", "target/small"]


def test_a_line_is_found_by_what_its_keys_begin_with() -> None:
    first, other = claim("A", line="one"), claim("A", line="other")
    assert first.key.sk.startswith(pools.line_prefix("one"))
    assert not other.key.sk.startswith(pools.line_prefix("one"))


def test_a_pool_is_used_up_when_nothing_of_it_is_free() -> None:
    warm = slot("w", unit="w-1", since=NOW)
    assert Stock(pool(), []).is_used_up
    assert not Stock(pool(), [], free(1)).is_used_up
    assert not Stock(pool(), [], (), [warm]).is_used_up
    for limit, is_used_up in ((3, True), (4, True), (5, False)):
        assert Stock(pool(name=QUOTA, is_amount=True, limit=limit, used=4), []).is_used_up is is_used_up


def test_what_is_left_after_grants() -> None:
    """A warm unit is for the first: it brings its part of the quota. The next takes a cold slot, and of the quota."""
    here, there = zip(*(over(job, BENCH, 4) for job in "ABC"), strict=True)
    warm = [slot("w", unit="w-1", since=NOW), slot("x", unit="w-2", since=NOW)]
    amount = pool(name=QUOTA, is_amount=True, limit=99, used=8)
    stocks = {BENCH: Stock(pool(), list(here), free(2), warm), QUOTA: Stock(amount, list(there))}
    found = grants.picks(BENCH, stocks, 100)
    for number, (cold, kept, used) in enumerate([(2, 2, 8), (2, 1, 8), (2, 0, 8), (1, 0, 12)]):
        left = grants.after(found[:number], stocks)
        assert (len(left[BENCH].free), len(left[BENCH].warm), left[QUOTA].pool.used) == (cold, kept, used)
        assert [claim.job for claim in left[QUOTA].claims] == list("ABC")[number:]


def test_a_unit_of_another_pool_is_not_among_what_a_quota_has_left() -> None:
    (here, there), kept = over("A", BENCH, 4), slot("w", pool=QUOTA, unit="w-9", since=NOW)
    stocks = {
        BENCH: Stock(pool(), [here], free(1)),
        QUOTA: Stock(pool(name=QUOTA, is_amount=True, limit=9), [there], (), [kept]),
    }
    assert grants.after(grants.picks(BENCH, stocks, 100), stocks)[QUOTA].warm == [kept]


def test_the_first_is_picked_though_others_before_it_are_not_known() -> None:
    """As the only one: what stands before it can be granted nothing, or it would be read first."""
    lines = [claim(f"A{number:03d}", count=9, line="one") for number in range(WINDOW)]
    stocks = {BENCH: Stock(pool(limit=1), [*lines, claim("B", line="two"), claim("C", line="two")], free(2))}
    assert picked(stocks) == ["B"]


def test_after_a_first_one_behind_claims_that_were_not_read_those_of_other_queues_are_picked() -> None:
    """Whoever is first in its own queue is granted if its pools have room; who has no part in the others is known."""
    rigs, theirs = zip(*(over(f"B{number:03d}", RIG, 1, "rigs") for number in range(WINDOW)), strict=True)
    (first, his), alone = over("C", BENCH, 1, "benches"), claim("D")
    stocks = {
        BENCH: Stock(pool(), [first, alone], free(2)),
        RIG: Stock(pool(name=RIG), list(rigs), free(WINDOW, RIG)),
        QUOTA: Stock(pool(name=QUOTA, is_amount=True, limit=99), [*theirs, his]),
    }
    assert picked(stocks) == ["C", "D"]
