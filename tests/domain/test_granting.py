"""Who is next. [QUEUE-2] [SLOT-2]"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.pools import grants, pools
from penstock.domain.pools.grants import MAX_OVERTAKEN, WINDOW, Stock, heads
from penstock.domain.pools.pools import Need, SlotState
from tests.domain.helpers import NOW, claim, job, pool, slot

BENCH, QUOTA = "resource/bench", "quota/vcpus"


def free(count: int) -> list:
    return [slot(str(number)) for number in range(count)]


def stocks(claims: list, slots: int = 1, **changes: object) -> dict[str, Stock]:
    return {BENCH: Stock(pool(**changes), claims, free(slots))}


def test_the_first_goes_first_and_overtakes_nobody() -> None:
    found = grants.pick(BENCH, stocks([claim("A"), claim("B")]))
    assert found
    assert (found.rows[BENCH].job, found.overtaken) == ("A", [])


def test_a_claim_that_wants_less_goes_before_one_that_must_wait_and_that_is_counted() -> None:
    large, small = claim("A", count=2), claim("B")
    found = grants.pick(BENCH, stocks([large, small]))
    assert found
    assert (found.rows[BENCH].job, found.overtaken) == ("B", [large])


def test_a_claim_that_was_overtaken_often_enough_is_not_passed_again() -> None:
    large = claim("A", count=2, overtaken=MAX_OVERTAKEN)
    assert grants.pick(BENCH, stocks([large, claim("B")])) is None
    found = grants.pick(BENCH, stocks([large, claim("B")], slots=2))
    assert found
    assert found.rows[BENCH].job == "A"


@pytest.mark.parametrize(("slots", "changes"), [(0, {}), (1, {"paused": True})])
def test_held_slots_and_paused_pools_grant_nothing(slots: int, changes: dict[str, object]) -> None:
    assert grants.pick(BENCH, stocks([claim("A")], slots, **changes)) is None


@pytest.mark.parametrize(("used", "granted"), [(56, True), (57, False)])
def test_a_claim_over_two_pools_is_granted_in_both_or_not_at_all(used: int, granted: bool) -> None:
    both = (BENCH, QUOTA)
    here, there = claim("A", pools=both), claim("A", pool=QUOTA, count=8, pools=both)
    amount = pool(name=QUOTA, is_amount=True, limit=64, used=used)
    given_ = {BENCH: Stock(pool(), [here], free(1)), QUOTA: Stock(amount, [there])}
    for name in both:
        found = grants.pick(name, given_)
        assert bool(found) is granted
        assert not found or found.rows == {BENCH: here, QUOTA: there}


@pytest.mark.parametrize(("used", "slots", "changes", "has"), [
    (56, 1, {}, True), (57, 1, {}, False), (56, 0, {}, False), (56, 1, {"over": True}, False),
])  # fmt: skip
def test_a_new_claim_is_granted_at_once_if_all_of_its_pools_have_enough(
    used: int, slots: int, changes: dict[str, object], *, has: bool
) -> None:
    both = (BENCH, QUOTA)
    here, there = claim("A", pools=both), claim("A", pool=QUOTA, count=8, pools=both)
    amount = pool(name=QUOTA, is_amount=True, limit=64, used=used)
    found = {BENCH: Stock(pool(**changes), (), free(slots)), QUOTA: Stock(amount, ())}
    assert (grants.pick_at_once([here, there], found) is not None) is has
    assert [pools.is_quota(name) for name in both] == [False, True]


def test_nothing_is_destroyed_to_make_room_in_a_pool_that_is_over_its_limit() -> None:
    kept = slot("1", SlotState.IDLE, unit="w-1", since=NOW)
    for is_over in (False, True):
        found = {BENCH: Stock(pool(over=is_over), [claim("A")], idle=[kept])}
        assert grants.units_to_evict(BENCH, found)[1] == ([] if is_over else ["w-1"])


def test_a_claim_whose_other_pool_is_not_there_waits() -> None:
    assert grants.pick(BENCH, stocks([claim("A", pools=(BENCH, QUOTA))])) is None


def test_a_claim_that_stands_too_far_back_in_another_queue_waits() -> None:
    both = (BENCH, QUOTA)
    mine = claim("Z", pools=both)
    others = [claim(f"A{number:02d}", pool=QUOTA, pools=(QUOTA,)) for number in range(WINDOW)]
    amount = pool(name=QUOTA, is_amount=True, limit=64)
    assert grants.pick(BENCH, {BENCH: Stock(pool(), [mine], free(1)), QUOTA: Stock(amount, others)}) is None


@pytest.mark.parametrize(("here", "granted"), [(WINDOW // 2, True), (WINDOW // 2 + 1, False)])
def test_a_grant_overtakes_no_more_than_fit_into_one_commit(here: int, granted: bool) -> None:
    both = (BENCH, QUOTA)
    ahead = [claim(f"A{number:02d}", count=2) for number in range(here)]
    there = [claim(f"B{number:02d}", pool=QUOTA, count=65, pools=(QUOTA,)) for number in range(WINDOW // 2)]
    mine, mine_there = claim("Z", pools=both), claim("Z", pool=QUOTA, pools=both)
    amount = pool(name=QUOTA, is_amount=True, limit=1000, used=936)
    given_ = {
        BENCH: Stock(pool(limit=50), [*ahead, mine], free(1)),
        QUOTA: Stock(amount, [*there, mine_there]),
    }
    found = grants.pick(BENCH, given_)
    assert bool(found) is granted
    assert not found or found.overtaken == [*ahead, *there]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.integers(1, 3))
def test_nobody_is_overtaken_more_often_than_that(counts: list[int], slots: int) -> None:
    """As many small claims as one likes come behind: the first is granted as soon as enough falls free at once."""
    large = claim("A", count=4)
    times = 0
    for number, count in enumerate(counts * 10):
        found = grants.pick(BENCH, stocks([large, claim(f"B{number:03d}", count=count)], slots, limit=4))
        if found and found.overtaken:
            times += 1
            large = claim("A", count=4, overtaken=times)
    assert times == min(MAX_OVERTAKEN, 10 * sum(count <= slots for count in counts))


def test_a_step_stands_in_the_queue_of_every_pool_that_it_takes_from() -> None:
    """SLOT-2: as much of each as its units take together."""
    uses = {QUOTA: 4}
    needs = (
        Need(1, 1, "x", "bench", BENCH, "locks", uses=uses),
        Need(2, 1, "y", "bench", BENCH, "locks", uses=uses),
        Need(0, 0, "worker", "u", "target/u", "here"),
    )
    found = grants.claims(job(needs=needs, priority=3), 1, NOW)
    assert [(one.pool, one.count, one.pools, one.step, one.priority) for one in found] == [
        (BENCH, 2, (BENCH, QUOTA), 1, 3),
        (QUOTA, 8, (BENCH, QUOTA), 1, 3),
    ]


def test_of_each_line_the_first_claims_count_in_the_order_of_the_queue() -> None:
    long = [claim(f"J{number:02d}", line="b") for number in range(WINDOW + 2)]
    other = [claim("J00z", line="a"), claim("J99", line="a"), claim("J98", 5, line="a")]
    found = heads([*reversed(long), *other])
    assert [each.job for each in found] == ["J98", "J00", "J00z", *(f"J{n:02d}" for n in range(1, WINDOW)), "J99"]
    assert [each.job for each in heads(long, 2)] == ["J00", "J01"]


@pytest.mark.parametrize(("wanted", "is_short"), [(3, False), (4, True)])
def test_a_pool_is_short_if_its_claims_want_more_than_there_is_without_a_lease(wanted: int, is_short: bool) -> None:
    claims = [claim("J1"), claim("J2", count=wanted - 1)]
    kept = slot("c", SlotState.IDLE, unit="w-2")
    assert Stock(pool(), claims, [slot("a")], [slot("b", unit="w-1")], [kept]).is_short == is_short
