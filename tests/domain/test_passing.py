"""Who may be passed: by whom nothing is taken from, always; by others, OVERTAKEN times. Every small case. [QUEUE-2]"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.pools import grants
from penstock.domain.pools.grants import MAX_OVERTAKEN, Stock
from penstock.domain.pools.pools import Claim, SlotState
from tests.domain.helpers import claim, pool, slot

FULL, WIDE, VCPUS = "target/full", "target/wide", "quota/vcpus"
P, Q = "resource/p", "quota/q"
Asked = Mapping[str, int]

ASKS: Sequence[Asked] = ({P: 1}, {Q: 1}, {Q: 2}, {P: 1, Q: 1}, {P: 1, Q: 2}, {P: 2, Q: 1})
"""What a claim may ask for, of two pools that have two each."""


def rows(job: str, asked: Asked, overtaken: int = 0) -> dict[str, Claim]:
    return {
        name: claim(job, pool=name, count=count, pools=tuple(asked), takes=(asked,), overtaken=overtaken)
        for name, count in asked.items()
    }


def stock(name: str, free: int, claims: Sequence[Claim], limit: int = 2, *, paused: bool = False) -> Stock:
    is_amount = name.startswith("quota/")
    row = pool(name=name, is_amount=is_amount, limit=limit, used=limit - free if is_amount else 0, paused=paused)
    return Stock(row, claims, () if is_amount else [slot(str(number), pool=name) for number in range(free)])


def site(asked: Sequence[Asked], kept: Sequence[bool], free: Asked, paused: str = "") -> dict[str, Stock]:
    each = [
        rows(f"J{n}", ask, MAX_OVERTAKEN * is_kept) for n, (ask, is_kept) in enumerate(zip(asked, kept, strict=True))
    ]
    queues = {name: [own[name] for own in each if name in own] for name in (P, Q)}
    return {name: stock(name, free[name], queues[name], paused=name == paused) for name in (P, Q)}


def cases() -> Iterator[tuple[Sequence[Asked], Sequence[bool], Asked, str]]:
    for size in (2, 3, 4):
        for asked in product(ASKS if size < 4 else ASKS[:4], repeat=size):
            for kept in product((False, True), repeat=size - 1):
                for free in product(range(3), repeat=2):
                    yield asked, (*kept, False), dict(zip((P, Q), free, strict=True)), ""
                    if size < 4:
                        yield asked, (*kept, False), {P: 2, Q: free[1]}, P


def harmed(place: int, name: str, asked: Sequence[Asked], free: Asked, paused: str) -> list[int]:
    """By the rule's words: whom of those ahead the claim at a place takes from, in one queue."""
    found, total, left = [], {P: 0, Q: 0}, free[name] - asked[place][name]
    for other in range(place):
        ask = asked[other]
        is_turn = all(total[each] + ask[each] <= 2 and each != paused for each in ask)
        if name in ask and is_turn:
            for each in ask:
                total[each] += ask[each]
            found += [other] if total[name] > left else []
    return found


@pytest.mark.no_cover
def test_every_claim_that_takes_from_nobody_is_granted_and_who_was_overtaken_enough_is_never_taken_from() -> None:
    """QUEUE-1 QUEUE-2: as the rule says, in all queues of up to four claims over two pools, and no less and no more."""
    granted = refused = 0
    for asked, kept, free, paused in cases():
        stocks = site(asked, kept, free, paused)
        may = {}
        for place, ask in enumerate(asked):
            taken = [other for name in ask for other in harmed(place, name, asked, free, paused)]
            has = all(count <= free[name] and name != paused for name, count in ask.items())
            may[place] = sorted(taken) if has and not any(kept[other] for other in taken) else None
        for name in (P, Q):
            found = grants.pick(name, stocks)
            first = next((n for n, ask in enumerate(asked) if name in ask and may[n] is not None), None)
            assert (found is None) == (first is None), (asked, kept, free, paused, name)
            if found and first is not None:
                assert next(iter(found.rows.values())).job == f"J{first}"
                assert sorted(int(other.job[1:]) for other in found.overtaken) == may[first]
                assert not any(map(grants.has_reservation, found.overtaken))
                granted += 1
            refused += found is None
    assert granted > 10_000
    assert refused > 10_000


LEASES = st.lists(
    st.fixed_dictionaries({P: st.integers(1, 2)}, optional={Q: st.integers(1, 2)}), min_size=1, max_size=2
)
MOST = st.fixed_dictionaries({P: st.integers(0, 5)}, optional={Q: st.integers(0, 5)})


@given(st.lists(LEASES, max_size=5), MOST)
def test_whose_turn_it_is_in_a_queue(queue: Sequence[Sequence[Asked]], most: Asked) -> None:
    """QUEUE-2: all of those before it whose turn it is, and it, fit into every pool that is known; a lease at a time.

    One that has a pool which is not known takes nobody's room.
    """
    given_ = {name: Stock(pool(name=name, limit=limit), ()) for name, limit in most.items()}
    claims = []
    for number, takes in enumerate(queue):
        pools = tuple(dict.fromkeys(name for lease in takes for name in lease))
        count = sum(lease[P] for lease in takes)
        claims.append(claim(f"J{number}", pool=P, count=count, pools=pools, takes=tuple(takes)))
    found: list[Claim] = []
    for one in claims:
        leases = [lease for other in found if set(other.pools) <= set(most) for lease in other.takes]
        asked = {name: sum(lease.get(name, 0) for lease in (*leases, *one.takes)) for name in one.pools}
        if all(asked[name] <= most[name] for name in one.pools if name in most):
            found.append(one)
    assert list(compress(claims, grants.satisfiable(claims, given_))) == found


def full_site(used: int, waiting: Sequence[Claim], *, full: int = 0, **changes: Any) -> dict[str, Stock]:
    """A target with one slot and one with many draw on a quota; somebody waits for the first, one for the other."""
    mine = rows("Z", {WIDE: 1, VCPUS: 1})
    return {
        WIDE: stock(WIDE, 50, [mine[WIDE]], 50),
        VCPUS: stock(VCPUS, 64 - used, [*waiting, mine[VCPUS]], 64),
        FULL: replace(stock(FULL, full, (), 1), pool=pool(**{"name": FULL, "limit": 1, **changes})),
    }


def waiting(count: int = 1, want: int = 1, overtaken: int = MAX_OVERTAKEN) -> list[Claim]:
    return [rows(f"A{number}", {FULL: 1, VCPUS: want}, overtaken)[VCPUS] for number in range(count)]


@pytest.mark.parametrize(("used", "granted"), [(1, True), (62, True), (63, False)])
def test_who_waits_for_a_full_target_keeps_what_it_wants_of_a_quota_and_no_more(used: int, granted: bool) -> None:
    found = grants.pick(WIDE, full_site(used, waiting()))
    assert bool(found) is granted
    assert not found or not found.overtaken


@pytest.mark.parametrize("count", [1, 2, 15])
def test_a_slot_is_reserved_for_the_first_of_many_claims(count: int) -> None:
    assert grants.pick(WIDE, full_site(55, waiting(count, 8)))
    assert not grants.pick(WIDE, full_site(56, waiting(count, 8)))


@pytest.mark.parametrize(
    ("changes", "granted"), [({}, False), ({"paused": True}, True), ({"limit": 0}, True), ({"limit": 1}, False)]
)
def test_nothing_is_kept_for_who_waits_for_an_operator(changes: dict[str, Any], granted: bool) -> None:
    found = grants.pick(WIDE, full_site(63, waiting(), **changes))
    assert bool(found) is granted
    assert not found or not found.overtaken


def test_who_waits_for_a_pool_that_was_not_read_takes_nobodys_turn() -> None:
    """It may be paused: the one behind, for whom there is no room beside it, is counted as overtaken as well."""
    stuck, second = waiting(1, 60, 0)[0], rows("B", {VCPUS: 5})[VCPUS]
    given = full_site(62, [stuck, second])
    for known, overtaken in ((given, ["A0"]), ({WIDE: given[WIDE], VCPUS: given[VCPUS]}, ["A0", "B"])):
        found = grants.pick(WIDE, known)
        assert found
        assert [each.job for each in found.overtaken] == overtaken


def test_alternation_starves_nobody() -> None:
    """The target is free while the quota is full, and the other way round: each pass is counted where it takes."""
    (first,) = waiting(1, 2, MAX_OVERTAKEN - 1)
    found = grants.pick(WIDE, full_site(63, [first], full=1))
    assert found
    assert found.overtaken == [first]
    found = grants.pick(WIDE, full_site(62, [first], full=0))
    assert found
    assert found.overtaken == [first]


def test_what_is_idle_is_room_but_not_what_is_withdrawn() -> None:
    """QUEUE-1: all of a quota is with kept units: one of them goes on, and another would make room for who waits."""
    given = full_site(64, waiting())
    warm = slot("1", pool=WIDE, unit="w-1")
    idle = [slot(unit, SlotState.IDLE, pool=VCPUS, unit=unit) for unit in ("w-1", "w-2")]
    given[WIDE] = replace(given[WIDE], free=(), warm=[warm])
    for kept, granted in ((idle, True), (idle[:1], False), ([idle[0], replace(idle[1], withdrawn=True)], False)):
        given[VCPUS] = replace(given[VCPUS], idle=kept)
        assert bool(grants.pick(WIDE, given)) is granted


def test_a_warm_slot_is_room_as_a_cold_one_is() -> None:
    """Whoever takes one of two leaves the other, whichever it is."""
    first = rows("A", {Q: 2, P: 1}, MAX_OVERTAKEN)
    mine = rows("B", {P: 1})
    free, warm = slot("1", pool=P), slot("2", pool=P, unit="r-1")
    given = {Q: stock(Q, 0, [first[Q]]), P: Stock(pool(name=P), [first[P], mine[P]], [free], [warm])}
    assert grants.pick(P, given)
    assert not grants.pick(P, {**given, P: replace(given[P], free=())})


@pytest.mark.parametrize(("overtaken", "last"), [((), 0), ((0, 7), 0), ((8, 0), 1), ((0, 9, 0), 2)])
def test_for_whom_something_is_kept(overtaken: Sequence[int], last: int) -> None:
    queue = [claim(f"J{number}", overtaken=count) for number, count in enumerate(overtaken)]
    assert grants.reserved_claims(queue) == queue[:last]
