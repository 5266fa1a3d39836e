"""Which slots a claim takes where it chooses, and whose turn it is there."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import pytest

from penstock.domain.pools import choices, choosing, grants, matching
from penstock.domain.pools.choices import ANY, Choice, Placement
from penstock.domain.pools.choosing import Harm, Offer, Slots, choose
from penstock.domain.pools.grants import Allocator, Stock
from penstock.domain.pools.matching import Wish
from penstock.domain.pools.pools import Claim, Need, Pool, Slot, SlotState, line_of
from penstock.domain.units.units import UnitLease
from penstock.kernel.rows import Check
from tests.domain.helpers import NOW, claim, job, pool, slot, unit

BENCH = "resource/bench"
NAMES = tuple(f"{thing}/{lease}" for thing in ("b1", "b2", "b3") for lease in (1, 2))
LABELS = {"b1": {"rack": "1"}, "b2": {"rack": "1"}, "b3": {"rack": "2"}}
RACK_1, RACK_2 = Choice("rack == 1"), Choice("rack == 2")


def benches(**changes: Any) -> Pool:
    return pool(**{"names": NAMES, "limit": len(NAMES), "labels": LABELS, **changes})


def offer(*free: str, had: Sequence[Slot] | None = (), **changes: Any) -> Offer:
    return Offer(benches(), [slot(name) for name in free], had=had, **changes)


def names(found: dict[int, Slots] | None) -> dict[int, list[str]] | None:
    return found if found is None else {lease: [one.name for one in slots] for lease, slots in sorted(found.items())}


def valid(wished: Sequence[Wish], free: Sequence[str]) -> bool:
    """Whether there is any way to give everybody what they want, by trying all."""
    whole = [thing for thing in LABELS if {f"{thing}/1", f"{thing}/2"} <= set(free)]
    options = [
        [(f"{thing}/1", f"{thing}/2") for thing in whole if wish.choice.fits(thing, LABELS[thing])]
        if wish.choice.exclusive
        else [(name,) for name in free if wish.choice.fits(name[:2], LABELS[name[:2]])]
        for wish in wished
    ]
    return any(len({one for some in given for one in some}) == sum(map(len, given)) for given in product(*options))


def test_everybody_gets_what_fits_wherever_that_is_possible() -> None:
    picked = random.Random(5)
    texts = ("", "rack == 1", "rack == 2", "name == b1", "name == b2 || name == b3")
    for _ in range(600):
        wished = [
            Wish(at, Choice(picked.choice(texts), exclusive=picked.random() < 0.4))
            for at in range(picked.randint(1, 4))
        ]
        free = picked.sample(NAMES, picked.randint(0, 6))
        found = choose(offer(*free), wished)
        assert (found is not None) is valid(wished, free), (wished, free)
        if found:
            given = [one for slots in found.values() for one in slots]
            assert len({one.name for one in given}) == len(given)
            for wish in wished:
                assert {wish.choice.fits(one.thing, LABELS[one.thing]) for one in found[wish.lease]} == {True}
                assert len(found[wish.lease]) == (2 if wish.choice.exclusive else 1)
                assert len({one.thing for one in found[wish.lease]}) == 1


def test_a_thing_of_which_somebody_has_a_part_is_given_to_nobody_as_a_whole() -> None:
    alone = [Wish(0, Choice("name == b1", exclusive=True))]
    assert names(choose(offer("b1/1", "b1/2"), alone)) == {0: ["b1/1", "b1/2"]}
    assert choose(offer("b1/1", "b1/2", had=None), alone) is None
    # A slot that the site took out is held until it is gone.
    leaving = slot("b1/3", SlotState.HELD, withdrawn=True)
    assert choose(offer("b1/1", "b1/2", had=[leaving]), alone) is None
    assert choose(offer("b1/1"), alone) is None


def test_a_slot_that_is_no_longer_named_is_no_part_of_a_thing() -> None:
    assert names(choose(offer("b1/1", "b1/2", "b1/3"), [Wish(0, Choice("name == b1", exclusive=True))])) == {
        0: ["b1/1", "b1/2"]
    }
    assert choose(Offer(pool(limit=2), [slot("1"), slot("2")], had=()), [Wish(0, Choice(exclusive=True))]) is None


@pytest.mark.parametrize(
    ("placement", "first"), [(Placement.ANY, "b1/1"), (Placement.PACKED, "b2/1"), (Placement.LEAST_LOADED, "b1/1")]
)
def test_leases_come_close_together_or_apart(placement: Placement, first: str) -> None:
    found = choose(offer("b1/1", "b1/2", "b2/1"), [Wish(0, Choice("rack == 1", placement=placement))])
    assert names(found) == {0: [first]}
    spread = choose(offer("b2/1", "b1/1", "b1/2"), [Wish(0, Choice("rack == 1", placement=placement))])
    assert names(spread) == {0: ["b1/1" if placement is Placement.LEAST_LOADED else "b2/1"]}


def test_a_warm_unit_that_fits_comes_first() -> None:
    warm = [slot("b3/1", unit="r-3"), slot("b2/1", unit="r-2")]
    assert names(choose(offer("b1/1", warm=warm), [Wish(0, RACK_1)])) == {0: ["b2/1"]}
    assert names(choose(offer("b1/1", warm=warm), [Wish(0, Choice("name == b1"))])) == {0: ["b1/1"]}


def test_what_a_unit_takes_beside_its_own_slot_has_no_kept_unit() -> None:
    """SLOT-1: a unit that is kept there would lose its slot. Who makes room destroys it first. Seed 1349."""
    warm, beside = [slot("b1/1", unit="r-1")], Wish(1, ANY, is_beside=True)
    assert names(choose(offer("b3/1", warm=warm), [beside])) == {1: ["b3/1"]}
    assert choose(offer(warm=warm), [beside]) is None
    assert names(choose(offer("b1/2", warm=warm), [Wish(0, RACK_1), beside])) == {0: ["b1/1"], 1: ["b1/2"]}
    assert choose(offer("b1/2", warm=[slot("b3/1", unit="r-3")]), [Wish(0, RACK_1), beside]) is None


def test_somebody_who_takes_any_takes_what_those_ahead_do_not_choose() -> None:
    """It is granted before a claim that waits for its bench, and does not take that."""
    ahead = chooser("A", "name == b1", pools=(BENCH, "target/u"))
    mine = claim("B", takes=({BENCH: 1},))
    stocks = {
        BENCH: Stock(benches(), [ahead, mine], [slot("b1/1"), slot("b2/1")]),
        "target/u": Stock(pool(name="target/u"), [claim("A", pool="target/u")]),
    }
    found = grants.pick(BENCH, stocks)
    assert found
    assert (found.overtaken, names(dict(found.chosen[BENCH]))) == ([], {0: ["b2/1"]})


def chooser(job: str, *texts: str, exclusive: bool = False, **changes: Any) -> Claim:
    choices = tuple(Choice(text, exclusive) for text in texts)
    takes = tuple({BENCH: 2 if exclusive else 1} for _ in texts)
    count = sum(each[BENCH] for each in takes)
    line = line_of(takes, fresh=False, choices=choices)
    return claim(job, **{"count": count, "takes": takes, "choices": choices, "line": line, **changes})


def served(
    queue: Sequence[Claim], *free: str, had: Sequence[Slot] | None = (), **changes: Any
) -> list[tuple[str, list[str]]]:
    """Who is granted what, one after the other."""
    found = grants.picks(BENCH, {BENCH: Stock(benches(**changes), queue, [slot(name) for name in free], had=had)}, 100)
    return [(pick.rows[BENCH].job, [one.name for one in pick.taken(BENCH)]) for pick in found]


def test_a_claim_that_only_one_thing_can_serve_blocks_nobody_else() -> None:
    queue = [chooser("A", "name == b3"), chooser("B", "rack == 1"), claim("C", takes=({BENCH: 1},), line="any")]
    assert served(queue, "b1/1", "b2/1") == [("B", ["b1/1"]), ("C", ["b2/1"])]


def test_claims_that_could_block_each_other_by_what_they_take_do_not() -> None:
    """The first could take what the second needs, and has another choice."""
    queue = [chooser("A", "rack == 1"), chooser("B", "name == b1")]
    for free in permutations(("b1/1", "b2/1")):
        assert served(queue, *free) == [("A", ["b2/1"]), ("B", ["b1/1"])]


def test_what_is_reserved_for_one_nobody_takes_and_the_rest_goes_on() -> None:
    """A claim that was overtaken as often as it may be wants b1 as a whole; half of it is there."""
    waits = chooser("A", "name == b1", exclusive=True, overtaken=grants.MAX_OVERTAKEN)
    others = [chooser(job, "rack == 1") for job in "BCD"]
    assert served([waits, *others], "b1/1", "b2/1") == [("B", ["b2/1"])]
    assert served([replaced(waits, 0), *others], "b1/1", "b2/1")[0] == ("B", ["b2/1"])
    assert served([waits, others[0]], "b1/1") == []
    assert served([replaced(waits, 0), others[0]], "b1/1") == [("B", ["b1/1"])]
    assert served([waits, *others], "b1/1", "b1/2", "b2/1") == [("A", ["b1/1", "b1/2"]), ("B", ["b2/1"])]


@pytest.mark.parametrize(("reserved", "expected"), [("A", "b2/1"), ("B", "b1/1"), ("AB", None)])
def test_of_what_as_many_ahead_miss_it_takes_what_is_not_reserved(reserved: str, expected: str | None) -> None:
    """Each of the two free benches is wanted by one claim ahead, which waits for a machine as well. [QUEUE-1]"""
    most = {job: grants.MAX_OVERTAKEN if job in reserved else 0 for job in "AB"}
    both: dict[str, dict[str, Any]] = {job: {"pools": (BENCH, "target/u"), "overtaken": most[job]} for job in "AB"}
    ahead = [chooser(job, f"name == b{at}", **both[job]) for at, job in enumerate("AB", 1)]
    mine = claim("C", takes=({BENCH: 1},), line="any")
    stocks = {
        BENCH: Stock(benches(), [*ahead, mine], [slot("b1/1"), slot("b2/1")]),
        "target/u": Stock(pool(name="target/u", limit=2), [claim(job, pool="target/u") for job in "AB"]),
    }
    found = grants.pick(BENCH, stocks)
    assert (found and names(dict(found.chosen[BENCH]))) == (expected and {0: [expected]})


def replaced(waits: Claim, overtaken: int) -> Claim:
    return chooser(waits.job, "name == b1", exclusive=True, overtaken=overtaken)


def test_nothing_is_granted_where_that_is_paused() -> None:
    assert served([chooser("A", "rack == 1")], "b1/1", paused=True) == []


def test_a_new_claim_gets_what_it_chooses_where_nobody_waits() -> None:
    mine = chooser("A", "rack == 2", "rack == 1")
    found = grants.pick_at_once([mine], {BENCH: Stock(benches(), (), [slot(name) for name in ("b1/1", "b3/2")])})
    assert found
    assert names(dict(found.chosen[BENCH])) == {0: ["b3/2"], 1: ["b1/1"]}
    assert [found.slots_of(lease)[BENCH][0].name for lease in (0, 1)] == ["b3/2", "b1/1"]
    assert grants.pick_at_once([mine], {BENCH: Stock(benches(), (), [slot("b3/2")])}) is None


def test_a_job_s_claim_says_what_each_of_its_leases_chooses() -> None:
    needs = (
        Need(1, 1, "one", "bench", BENCH, "benches", choice=RACK_1),
        Need(2, 1, "two", "bench", BENCH, "benches"),
        Need(3, 1, "all", "bench", BENCH, "benches", choice=Choice(exclusive=True), slots=2),
    )
    [found] = grants.claims(job(needs=needs), 1, NOW)
    assert (found.count, found.choices) == (4, (RACK_1, ANY, Choice(exclusive=True)))
    assert [need.is_exclusive for need in needs] == [False, False, True]
    assert [need.said for need in needs] == ["bench (rack == 1)", "bench", "bench (for itself)"]
    [plain] = grants.claims(job(needs=(needs[1],)), 1, NOW)
    assert plain.choices == ()
    assert found.line != plain.line


def test_a_thing_as_a_whole_is_checked_beside_the_rows_that_it_moves() -> None:
    whole = Need(1, 1, "it", "bench", BENCH, "benches", choice=Choice(exclusive=True), slots=2)
    part = Need(1, 1, "it", "bench", BENCH, "benches")
    assert grants.rows_of_grant([whole], ()) - grants.rows_of_grant([part], ()) == 2 + 1


def test_every_order_of_free_slots_gives_the_same_claims_a_turn() -> None:
    queue = [chooser("A", "rack == 1", "rack == 2"), chooser("B", "name == b2"), chooser("C", "rack == 1")]
    turns = {tuple(job for job, _ in served(queue, *free)) for free in permutations(("b1/1", "b2/1", "b3/1"))}
    assert all(each[0] == "A" for each in turns)


def weighing(harmless: str, reserved: Sequence[str] = ()) -> tuple[Harm, list[int]]:
    """A harm that only one slot does not do, and how often it was asked for; and some slots are reserved."""
    asked: list[int] = []

    def harm(slots: Sequence[Slot]) -> tuple[int, int] | None:
        asked.append(len(slots))
        is_reserved = any(one.name in reserved for one in slots)
        return None if is_reserved else (int(all(one.name != harmless for one in slots)), 0)

    return harm, asked


MANY = tuple(f"b{at:02d}" for at in range(40))
BY_NAME = [Choice(f"name == {name}") for name in MANY]


@pytest.mark.parametrize(
    ("harmless", "taken", "asked"),
    [
        (MANY[-1], MANY[0], choosing.WEIGHED),  # beyond those that are weighed
        (MANY[5], MANY[5], 6),
        (MANY[0], MANY[0], 1),
    ],
)
def test_of_many_kinds_some_are_weighed_until_one_harms_nobody(harmless: str, taken: str, asked: int) -> None:
    harm, weighed = weighing(harmless)
    found = choose(Offer(pool(names=MANY, limit=40), [slot(name) for name in MANY]), [Wish(0, ANY)], harm, BY_NAME)
    assert (names(found), len(weighed)) == ({0: [taken]}, asked)


def test_what_is_reserved_is_not_taken_however_many_kinds_there_are() -> None:
    """All but the last is reserved, which is not among those that are weighed first; or all is."""
    free = Offer(pool(names=MANY, limit=40), [slot(name) for name in MANY])
    for reserved, taken in ((MANY[:-1], {0: [MANY[-1]]}), (MANY, None)):
        harm, weighed = weighing("none", reserved)
        assert names(choose(free, [Wish(0, ANY)], harm, BY_NAME)) == taken
        assert len(weighed) == len(MANY)


@pytest.mark.parametrize("exclusive", [False, True])
def test_what_is_not_enough_for_all_is_known_without_trying_every_order(exclusive: bool) -> None:
    """Of nine who all want one of eight things, the last cannot get one, whichever the others take."""
    things = MANY[:8]
    slots = [slot(f"{name}/{lease}") for name in things for lease in ((1, 2) if exclusive else (1,))]
    harm, weighed = weighing("none")
    wished = [Wish(at, Choice("name != none", exclusive=exclusive)) for at in range(9)]
    row = pool(names=tuple(one.name for one in slots), limit=len(slots))
    assert choose(Offer(row, slots, had=()), wished, harm, BY_NAME) is None
    assert len(weighed) == 8
    assert choose(Offer(row, slots, had=()), wished[1:], harm, BY_NAME) is not None
    assert len(weighed) <= 8 + 8 * 9 // 2


def test_what_has_too_many_ways_counts_as_not_there_after_some_of_them() -> None:
    """Nine want a rig of two slots for themselves and one a part of one, of nine rigs: each order would be tried."""
    rigs = MANY[:9]
    slots = [slot(f"{name}/{lease}") for name in rigs for lease in (1, 2)]
    row = pool(names=tuple(one.name for one in slots), limit=18)
    harm, weighed = weighing("none")
    wished = [*(Wish(at, Choice("name != none", exclusive=True)) for at in range(9)), Wish(9, Choice("name != none"))]
    assert choose(Offer(row, slots, had=()), wished, harm, BY_NAME) is None
    assert len(weighed) <= choosing.TRIES * len(rigs)


def test_as_many_ways_are_tried_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two leases, each of which gets the first that is tried."""
    for tries, found in ((2, {0: ["b1/1"], 1: ["b3/1"]}), (1, None)):
        monkeypatch.setattr(choosing, "TRIES", tries)
        assert names(choose(offer("b1/1", "b3/1"), [Wish(0, RACK_1), Wish(1, RACK_2)])) == found


def test_a_lease_may_take_several_slots_of_what_it_uses() -> None:
    assert names(choose(offer("b1/1", "b2/1", "b3/1"), [Wish(0, ANY, 2), Wish(1, RACK_2)])) == {
        0: ["b1/1", "b2/1"],
        1: ["b3/1"],
    }


def test_a_warm_unit_that_fits_comes_before_what_is_placed_better() -> None:
    """The cold slot is of a thing with fewer leases left."""
    warm = [slot("b2/1", unit="r-2")]
    packed = Choice("rack == 1", placement=Placement.PACKED)
    assert names(choose(offer("b1/1", "b2/2", warm=warm), [Wish(0, packed)])) == {0: ["b2/1"]}


def test_a_claim_that_tests_a_factory_gets_no_warm_unit_that_it_chose() -> None:
    warm = [slot("b1/1", unit="r-1")]
    for fresh, free, taken in ((False, [], ["b1/1"]), (True, [], None), (True, ["b2/1"], ["b2/1"])):
        mine = chooser("A", "rack == 1", fresh=fresh)
        found = grants.pick(BENCH, {BENCH: Stock(benches(), [mine], [slot(name) for name in free], warm, had=())})
        assert ([one.name for one in found.taken(BENCH)] if found else None) == taken


def test_a_stock_that_somebody_chooses_from_may_be_short_although_there_is_much() -> None:
    free = [slot(name) for name in NAMES]
    assert Stock(benches(), [chooser("A", "rack == 1")], free).is_short
    assert not Stock(benches(), [claim("A", takes=({BENCH: 1},))], free).is_short


def test_where_nobody_chooses_a_stock_is_as_it_is() -> None:
    stock = Stock(benches(), [claim("A", takes=({BENCH: 1},))], warm=[slot("b1/1", unit="r-1")])
    assert stock.emptied() is stock


def test_a_thing_that_got_another_slot_is_given_with_that() -> None:
    """The claim was made while each bench served two."""
    names_now = tuple(f"b1/{lease}" for lease in (1, 2, 3))
    mine = chooser("A", "name == b1", exclusive=True)
    stocks = {BENCH: Stock(benches(names=names_now, limit=3), [mine], [slot(name) for name in names_now], had=())}
    found = grants.pick(BENCH, stocks)
    assert found
    assert grants.cold_demand(found, stocks) == {BENCH: 3}


def test_a_thing_that_lost_a_slot_is_given_with_those_that_are_left() -> None:
    """QUEUE-1: its claim wants two slots, and the pool has one."""
    mine = chooser("A", "name == b1", exclusive=True)
    stocks = {BENCH: Stock(benches(names=("b1/1",), limit=1), [mine], [slot("b1/1")], had=())}
    found = grants.pick(BENCH, stocks)
    assert found
    assert grants.cold_demand(found, stocks) == {BENCH: 1}


def test_a_slot_that_the_site_took_out_is_no_room() -> None:
    """Of two kept slots of b1 one is not lent again: who takes the other harms who waits for b1."""
    waits, mine = chooser("A", "name == b1"), chooser("B", "rack == 1")
    idle = [slot("b1/2", SlotState.IDLE, unit="r-1", withdrawn=gone) for gone in (True, False)]
    free = [slot("b1/1")]
    for kept, harmed in ((idle[:1], [waits]), (idle[1:], [])):
        stock = Stock(benches(), [waits, mine], free, idle=kept)
        assert grants.overtaken_by(mine, [waits], stock, free) == harmed
        assert len(stock.emptied().free) == 2 - len(harmed)


def test_a_pool_grants_a_claim_what_it_chooses_unless_it_keeps_that() -> None:
    kept = chooser("A", "name == b1", exclusive=True, overtaken=grants.MAX_OVERTAKEN)
    mine = chooser("B", "name == b1")
    free = [slot("b1/1")]
    assert not grants.can_grant(mine, {BENCH: Stock(benches(), [kept, mine], free, had=())})
    assert grants.can_grant(mine, {BENCH: Stock(benches(), [mine], free, had=())})
    assert not grants.can_grant(mine, {BENCH: Stock(benches(), [mine], [slot("b2/1")], had=())})
    assert not grants.can_grant(mine, {BENCH: Stock(benches(paused=True), [mine], free, had=())})


def test_what_could_be_granted_together_is_counted_in_the_other_pools_as_well() -> None:
    both = (BENCH, "target/u")
    queue = [chooser(job, "rack == 1", pools=both, takes=({BENCH: 1, "target/u": 1},)) for job in "AB"]
    for limit, fit in ((1, [True, False]), (2, [True, True])):
        stocks = {BENCH: Stock(benches(), queue), "target/u": Stock(pool(name="target/u", limit=limit), ())}
        assert grants.satisfiable(queue, stocks) == fit


def test_kept_units_make_room_where_that_lets_a_claim_have_what_it_chooses() -> None:
    """Of two kept units only the one on what it wants has to go; as many as take a thing that it wants as a whole."""
    kept = [slot("b1/1", unit="r-1", since=NOW), slot("b2/1", unit="r-2", since=NOW)]
    other = slot("b2/2", SlotState.IDLE, unit="r-3")
    for wanted, free, idle, evicted in (
        (chooser("A", "name == b2", exclusive=True), ["b2/2"], [], ["r-2"]),
        (chooser("A", "name == b2", exclusive=True), [], [other], ["r-3", "r-2"]),
        (chooser("A", "name == b3", exclusive=True), ["b3/1"], [], []),
        (chooser("A", "name == b2", exclusive=True), ["b2/2"], [replace(other, leaving=True)], ["r-2"]),
    ):
        stock = Stock(benches(), [wanted], [slot(name) for name in free], kept, idle, had=())
        assert grants.units_to_evict(BENCH, {BENCH: stock})[1] == evicted, wanted
        closed = replace(stock, pool=benches(paused=True))
        assert grants.units_to_evict(BENCH, {BENCH: closed})[1] == []


@pytest.fixture
def tests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The things that were tested for whether they are what an expression means, each time."""
    found, test_of = list[str](), choices.test_of

    def counting(text: str) -> choices.Test:
        test = test_of(text)
        return lambda labels: [found.append(labels[choices.NAME]), test(labels)][1]

    for module in (choices, matching):
        monkeypatch.setattr(module, "test_of", counting)
    return found


def by_name(count: int, each: int, **changes: Any) -> tuple[Pool, list[Claim]]:
    """A pool of many things, and claims of which so many choose each of these by its name."""
    things = [f"t{number:03}" for number in range(count)]
    row = pool(names=tuple(things), limit=count)
    return row, [chooser(f"{turn}-{name}", f"name == {name}", **changes) for turn in range(each) for name in things]


def test_claims_that_nothing_free_fits_cost_one_look_at_what_is_free(tests: list[str]) -> None:
    """QUEUE-1: 100 things, each chosen by name by two claims. All are busy but the last."""
    row, queue = by_name(100, 2)
    found = grants.picks(BENCH, {BENCH: Stock(row, queue, [slot("t099")])}, 100)
    assert [pick.rows[BENCH].job for pick in found] == ["0-t099"]
    by_claim = 2 * len(queue)  # each once before the grant, and once after it
    by_kind = 100 * 100 + 3 * 100  # who could have which thing; and for the one, whom it harms
    assert len(tests) <= by_claim + by_kind


def test_where_a_quota_is_used_up_nobody_looks_which_things_fit(tests: list[str]) -> None:
    row, queue = by_name(20, 1, pools=(BENCH, "quota/q"))
    other = [replace(each, pool="quota/q") for each in queue]
    free = [slot(str(name)) for name in row.names or ()]
    for left, found in ((0, 0), (1, 1)):
        amount = pool(name="quota/q", is_amount=True, limit=1, used=1 - left)
        stocks = {BENCH: Stock(row, queue, free), amount.name: Stock(amount, other)}
        assert len(grants.picks(BENCH, stocks, 100)) == found
        assert bool(tests) is bool(found)


def test_fewer_are_picked_by_one_reading_where_many_choose_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """QUEUE-1: what was found by then is granted, and the rest is read anew."""
    row, queue = by_name(10, 1)
    stocks = {BENCH: Stock(row, queue, [slot(str(name)) for name in row.names or ()])}
    for weighed, most in ((1, 1), (100, 1), (499, 4), (500, 5), (5000, 7)):
        monkeypatch.setattr(grants, "WEIGHED", weighed)
        assert len(grants.picks(BENCH, stocks, 7)) == most


def test_a_large_pool_in_which_nobody_chooses_does_not_lower_how_many_are_picked() -> None:
    assert grants.most_picks({BENCH: Stock(pool(limit=grants.WEIGHED), [claim("A"), claim("B")])}, 7) == 7


def test_who_chooses_waits_for_what_is_leaving_and_has_nothing_else_destroyed() -> None:
    """However often it is looked who could make room; but what does not fit helps nobody."""
    warm = [slot("b1/1", unit="r-1", owner="eve", since=NOW)]
    leaving = [slot("b1/2", SlotState.IDLE, unit="r-2", leaving=True), slot("b3/1", SlotState.IDLE, unit="r-3")]
    for text, found in (("rack == 1", []), ("name == b1", []), ("name == b3", ["r-3"])):
        stock = Stock(benches(), [chooser("A", text)], [], warm, leaving, had=())
        assert grants.units_to_evict(BENCH, {BENCH: stock}) == (BENCH, found)


@pytest.mark.parametrize(
    ("placement", "leaving", "kept"),
    [(Placement.PACKED, ["b1/1", "b1/2"], ["b2/1"]), (Placement.LEAST_LOADED, ["b1/1"], ["b2/1", "b2/2"])],
)
def test_whoever_would_rather_have_another_thing_waits_for_what_is_leaving(
    placement: Placement, leaving: list[str], kept: list[str]
) -> None:
    """It is granted once that is gone: a unit that is destroyed for it besides would be destroyed for nobody."""
    wanted = replace(chooser("A", "rack == 1"), choices=(Choice("rack == 1", placement=placement),))
    warm = [slot(name, unit=f"r-{name}", since=NOW) for name in kept]
    going = [slot(name, SlotState.IDLE, unit=f"r-{name}", leaving=True) for name in leaving]
    stock = Stock(benches(), [wanted], [], warm, going, had=())
    assert grants.units_to_evict(BENCH, {BENCH: stock}) == (BENCH, [])
    rather = Stock(benches(), [wanted], [], [*warm, *(replace(each, leaving=False) for each in going)], had=())
    ((unit,),) = [grants.units_to_evict(BENCH, {BENCH: rather})[1]]
    assert unit.startswith("r-b2")
    idle = [replace(each, state=SlotState.IDLE) for each in warm]
    assert grants.units_to_evict(BENCH, {BENCH: replace(stock, warm=[], idle=[*idle, *going])}) == (BENCH, [])
    gone = replace(stock, idle=[replace(each, withdrawn=True) for each in going])
    assert grants.units_to_evict(BENCH, {BENCH: gone})[1] == [f"r-{kept[0]}"]


def test_a_whole_thing_that_is_leaving_is_waited_for() -> None:
    """What is leaving counts as gone: nobody has a part of that thing any more, and no other is emptied for it."""
    warm = [slot(name, unit=f"r-{name}", since=NOW) for name in ("b1/1", "b1/2")]
    going = [slot(name, SlotState.IDLE, unit=f"r-{name}", leaving=True) for name in ("b2/1", "b2/2")]
    wanted = chooser("A", "rack == 1", exclusive=True)
    stock = Stock(benches(), [wanted], [], warm, going, had=())
    assert grants.units_to_evict(BENCH, {BENCH: stock}) == (BENCH, [])


def test_a_lease_takes_what_was_chosen_for_it_and_nobody_gets_it_twice() -> None:
    """The allocator gives the warm unit that fits, and a whole thing with its pool's row checked once."""
    warm = slot("b1/1", unit="r-1", since=NOW)
    whole = chooser("A", "name == b2", "name == b3", exclusive=True)
    part = chooser("B", "rack == 1")
    stock = Stock(benches(), [whole, part], [slot(name) for name in NAMES[1:]], [warm], had=())
    picks = grants.picks(BENCH, {BENCH: stock}, 100)
    assert [names(dict(pick.chosen[BENCH])) for pick in picks] == [
        {0: ["b2/1", "b2/2"], 1: ["b3/1", "b3/2"]},
        {0: ["b1/1"]},
    ]
    hand = Allocator({BENCH: stock})
    need = Need(1, 1, "it", "bench", BENCH, "benches", choice=Choice(exclusive=True), slots=2)
    for lease in (0, 1):
        chosen = picks[0].slots_of(lease)
        assert hand.warm(whole, BENCH, chosen) is None
        given = hand.order(whole, unit(id=f"r-{lease}", lease=UnitLease("A", 1, 1, BENCH, "", 0)), need, chosen)
        assert (given.lease.slot, given.lease.also) == (f"b{lease + 2}/1", ((BENCH, f"b{lease + 2}/2"),))
        assert not given.cleaning.is_kept
    assert hand.warm(part, BENCH, picks[1].slots_of(0)) == warm
    assert [change for change in hand.changes() if isinstance(change, Check)] == [Check(stock.pool)]
    assert not hand.is_stale
    hand.committed()
    assert hand.changes() == []


def test_what_a_warm_unit_has_besides_is_not_chosen_again() -> None:
    """A type that uses a bench gets its warm unit, which has one; the benches are chosen by somebody else."""
    rig, takes = "resource/rig", ({"resource/rig": 1, BENCH: 1},)
    rows = [
        claim("A", pool=name, pools=(BENCH, rig), takes=takes, choices=(Choice("name != none"),))
        for name in (rig, BENCH)
    ]
    waits = chooser("B", "name == b1")
    rigs = pool(name=rig, names=("rig-1", "rig-2"))
    for kept, taken in (([slot("rig-1", pool=rig, unit="r-1")], []), ([], ["b1/1"])):
        stocks = {
            rig: Stock(rigs, [rows[0]], [slot("rig-2", pool=rig)], kept),
            BENCH: Stock(benches(), [rows[1], waits], [slot("b1/1")]),
        }
        found = grants.pick(rig, stocks)
        assert found
        assert [one.name for one in found.taken(BENCH)] == taken
        assert found.slots_of(0).keys() == {rig, *([BENCH] if taken else [])}
        assert grants.cold_demand(found, stocks)[BENCH] == len(taken)


def test_a_warm_unit_serves_who_lacks_what_a_new_one_would_use() -> None:
    """QUEUE-2: else those behind it would pass it, though it could be granted. The slot that fewest miss is cold."""
    quota, takes = "quota/seats", ({BENCH: 1, "quota/seats": 1},)
    mine = claim("A", takes=takes, choices=(RACK_1,), pools=(BENCH, quota))
    rows = [replace(mine, pool=name) for name in (BENCH, quota)]
    behind = chooser("B", "name == b1")
    warm = slot("b1/1", unit="r-1", since=NOW)
    for left, given in ((0, "b1/1"), (1, "b2/1")):
        amount = pool(name=quota, is_amount=True, limit=1, used=1 - left)
        stocks = {
            BENCH: Stock(benches(), [rows[0], behind], [slot("b2/1")], [warm]),
            quota: Stock(amount, [rows[1]]),
        }
        found = grants.pick(BENCH, stocks)
        assert found
        assert (found.rows[BENCH].job, [each.name for each in found.taken(BENCH)]) == ("A", [given])
    full = pool(name=quota, is_amount=True, limit=1, used=1)
    cold = {BENCH: Stock(benches(), [rows[0]], [slot("b2/1")]), quota: Stock(full, [rows[1]])}
    assert grants.pick(BENCH, cold) is None


def test_who_is_harmed_where_nobody_shares_is_found_by_matching() -> None:
    """The first could take what is taken, so that the other has what fits it."""
    first, second = chooser("A", "rack == 1"), chooser("B", "name == b1")
    stock = Stock(benches(), [first, second], [slot("b1/1"), slot("b2/1")])
    assert stock.overtaken([first, second], [slot("b2/1")], "") == [second]
