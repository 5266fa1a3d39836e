"""Who gets which things, and whom a claim overtakes where claims choose; beside every answer that is possible."""

import random
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, product
from typing import Any

import pytest

from penstock.domain.pools import grants, matching
from penstock.domain.pools.choices import ANY, Choice
from penstock.domain.pools.grants import Stock
from penstock.domain.pools.matching import Matching, Prospect, Sorting, Wish
from penstock.domain.pools.pools import Claim, Pool, SlotState
from tests.domain.helpers import claim, pool, slot

BENCH = "resource/bench"
BENCHES = ("b1", "b2", "b3", "b4")
LABELS = {"b1": {"rack": "1"}, "b2": {"rack": "1"}, "b3": {"rack": "2"}, "b4": {"rack": "2", "big": "y"}}
TEXTS = ("", "rack == 1", "rack == 2", "big", "name == b1", "name == b1 || name == b3")


def benches(**changes: Any) -> Pool:
    return pool(**{"names": BENCHES, "limit": 4, "labels": LABELS, **changes})


def chooser(job: str, *texts: str, exclusive: bool = False) -> Claim:
    """A claim of as many benches as there are expressions."""
    choices = tuple(Choice(text, exclusive) for text in texts)
    takes = tuple({BENCH: 1} for _ in texts)
    return claim(job, count=len(texts), takes=takes, choices=() if not any(texts) else choices)


def most(wished: Sequence[Choice], room: Collection[str]) -> int:
    """How many of some choices can have a thing each, by trying everything."""
    for count in range(len(wished), 0, -1):
        for some in combinations(wished, count):
            if any(len(set(given)) == count for given in product(*(fitting(one, room) for one in some))):
                return count
    return 0


def fitting(choice: Choice, room: Collection[str]) -> list[str]:
    return [name for name in room if choice.fits(name, LABELS[name])]


def cases() -> Iterator[tuple[list[Choice], list[str]]]:
    picked = random.Random(7)
    for _ in range(400):
        yield (
            [Choice(picked.choice(TEXTS)) for _ in range(picked.randint(1, 5))],
            picked.sample(BENCHES, picked.randint(0, 4)),
        )


def test_as_many_get_something_as_possible_and_none_loses_it_to_one_behind() -> None:
    """After each wish, as many are served as any way to give things could serve."""
    for wished, room in cases():
        sorting = Sorting(benches(), wished)
        found = Matching(sorting.count(slot(name) for name in room))
        got = 0
        for at, choice in enumerate(wished, 1):
            got += found.add(sorting.fit(choice, found.left), 1)
            assert got == most(wished[:at], room), (wished, room)
        assert sum(found.left.values()) == len(room) - got


def test_what_a_wish_that_lacks_something_reaches_is_what_would_serve_it() -> None:
    for wished, room in cases():
        sorting = Sorting(benches(), wished)
        for name in set(BENCHES) - set(room):
            found = Matching({sorting.kind(name): 0, **sorting.count(slot(each) for each in room)})
            served = [found.add(sorting.fit(choice, found.left), 1) for choice in wished]
            if not served[-1]:
                would = most(wished, [*room, name]) > most(wished, room)
                reached = any(sorting.kind(name) in found.reached(at) for at, got in enumerate(served) if not got)
                assert reached is would, (wished, room, name)


def test_large_amounts_take_one_step() -> None:
    found = Matching({(): 10**12})
    assert [found.add([()], 10**12 - 1), found.add([()], 5)] == [10**12 - 1, 1]


def test_the_same_claims_are_overtaken_as_where_nobody_chooses() -> None:
    """With one kind of thing, matching is counting."""
    picked = random.Random(3)
    for _ in range(500):
        ahead = [
            claim(f"J{at}", count=count, takes=({BENCH: 1},) * count)
            for at in range(4)
            if (count := picked.randint(1, 3))
        ]
        free = [slot(str(at)) for at in range(picked.randint(1, 9))]
        mine = claim("J9", count=picked.randint(1, len(free)))
        plain = grants.overtaken_by(mine, ahead, Stock(pool(limit=9), ahead, free), ())
        counted = matching.overtaken_by(ahead, free[: mine.count], free, pool(limit=9))
        assert plain == counted


@pytest.mark.parametrize(
    ("ahead", "room", "taken", "overtaken"),
    [
        (["name == b1"], "b1 b2", "b1", [0]),
        (["name == b1"], "b1 b2", "b2", []),
        (["name == b3"], "b1 b2", "b2", []),  # it waits for what is not here
        (["rack == 1"], "b1 b2", "b1", []),
        (["rack == 1", "rack == 1"], "b1 b2", "b1", [1]),
        (["", "name == b1"], "b1 b2", "b2", [1]),  # the first may move, and then has what the second wants
        (["", "name == b1"], "b1 b2 b3", "b2", []),
        (["name == b4", "rack == 1"], "b1 b3", "b3", []),
        (["name == b4", "rack == 1"], "b1 b3", "b1", [1]),
    ],
)
def test_a_claim_is_overtaken_if_what_is_taken_would_serve_it(
    ahead: list[str], room: str, taken: str, overtaken: list[int]
) -> None:
    claims = [chooser(f"J{at}", text or "name != none") for at, text in enumerate(ahead)]
    found = matching.overtaken_by(claims, [slot(taken)], [slot(name) for name in room.split()], benches())
    assert [claims.index(each) for each in found] == overtaken


TWICE = {"names": ("b1/1", "b1/2", "b2/1", "b2/2"), "limit": 4}


@pytest.mark.parametrize(
    ("room", "taken", "overtaken"),
    [
        ("b1/1 b2/1 b2/2", "b2/1", True),  # it waits for b2, all of which is here
        ("b1/1 b2/1 b2/2", "b1/1", False),
        ("b1/1 b2/1", "b1/1", True),  # as much is here of both: it waits for the first
        ("b1/1 b2/1", "b2/1", False),
    ],
)
def test_who_wants_a_thing_for_itself_waits_for_the_one_of_which_most_is_there(
    room: str, taken: str, overtaken: bool
) -> None:
    alone = chooser("J0", "rack == 1", exclusive=True)
    found = matching.overtaken_by([alone], [slot(taken)], [slot(name) for name in room.split()], benches(**TWICE))
    assert (found == [alone]) is overtaken


@pytest.mark.parametrize(
    ("lacking", "taken", "overtaken"),
    [
        ((), "b1/2", True),
        ((), "b2/1", False),
        (("b1",), "b2/1", True),  # as much is here of both, but b1 is not there as a whole once jobs end
        (("b1",), "b1/2", False),
        (("b1", "b2"), "b1/2", True),
    ],
)
def test_who_wants_a_thing_for_itself_waits_for_none_of_which_a_slot_is_aside(
    lacking: Sequence[str], taken: str, overtaken: bool
) -> None:
    """QUEUE-2: leases of the other thing would else follow each other for ever."""
    alone, room = chooser("J0", "rack == 1", exclusive=True), [slot("b1/2"), slot("b2/1")]
    found = matching.overtaken_by([alone], [slot(taken)], room, benches(**TWICE), lacking)
    assert (found == [alone]) is overtaken
    held = [slot(f"{name}/1", state=SlotState.HELD, unit="r-1") for name in lacking]
    busy = [slot("b2/2", state=SlotState.HELD, unit="r-2", job="J")]
    stock = Stock(benches(**TWICE), [alone], room, had=[*held, *busy], aside=held)
    assert (stock.overtaken([alone], [slot(taken)], "ada") == [alone]) is overtaken


def test_nothing_is_reserved_for_who_waits_for_what_jobs_do_not_bring_back() -> None:
    """Whether things are numbered, named, or wanted as a whole. What the site took out anyway does not count."""
    away = slot("b1/1", state=SlotState.AWAY)
    sizes = {"names": ("b1/1", "b1/2", "b1/3", "b2/1", "b2/2"), "limit": 5}
    whole = chooser("J0", "rack == 1", exclusive=True)
    for aside, fits in (([], True), ([away], True), ([away, slot("b2/1", state=SlotState.AWAY)], False)):
        given = Stock(benches(**sizes), [whole], aside=aside)
        assert grants.satisfiable([whole], {BENCH: given}) == [fits]
    two = claim("J1", count=2, takes=({BENCH: 2},))
    for aside, fits in (([], True), ([slot("1")], False), ([slot("3", withdrawn=True)], True)):
        assert grants.satisfiable([two], {BENCH: Stock(pool(limit=2), [two], aside=aside)}) == [fits]
    one = chooser("J2", "name == b1")
    for aside, fits in (([], True), ([slot("b1")], False), ([slot("b2")], True)):
        assert grants.satisfiable([one], {BENCH: Stock(benches(), [one], aside=aside)}) == [fits]


def test_others_may_have_what_who_wants_a_thing_for_itself_does_not_wait_for() -> None:
    """Two each want one for themselves; so of three things that all are free, one is left for others."""
    names = [f"{thing}/{lease}" for thing in ("b1", "b2", "b3") for lease in (1, 2)]
    alone = [chooser(f"J{at}", "name != none", exclusive=True) for at in range(2)]
    room = [slot(name) for name in names]
    for taken, harmed in (("b3/1", []), ("b2/1", alone[1:]), ("b1/1", alone[:1])):
        found = matching.overtaken_by(alone, [slot(taken)], room, pool(names=tuple(names), limit=6))
        assert found == harmed, taken


@pytest.mark.parametrize(
    ("texts", "fit"),
    [
        (["name == b1", "name == b1"], [True, False]),
        (["rack == 1", "rack == 1", "rack == 1", "name == b1", "rack == 2"], [True, True, False, False, True]),
        (["name == b1 || name == b3", "name == b1", "name == b3"], [True, True, False]),
        (["rack == 7"], [False]),
    ],
)
def test_who_could_all_be_granted_if_nobody_held_anything(texts: list[str], fit: list[bool]) -> None:
    claims = [chooser(f"J{at}", text) for at, text in enumerate(texts)]
    assert grants.satisfiable(claims, {BENCH: Stock(benches(), claims)}) == fit


def test_nothing_can_be_granted_of_what_is_paused_or_has_no_things() -> None:
    one = chooser("J1", "rack == 1")
    for paused in (benches(paused=True), pool(limit=3)):
        assert grants.satisfiable([one], {BENCH: Stock(paused, [one])}) == [False]


def test_a_thing_for_oneself_is_there_once_however_many_leases_it_serves() -> None:
    twice = benches(**TWICE)
    claims = [chooser(f"J{at}", "rack == 1", exclusive=True) for at in range(3)]
    prospect = Prospect(twice, [Choice("rack == 1", exclusive=True)], TWICE["names"], ())
    found = []
    for each in claims:
        found.append(prospect.has(each))
        prospect.add(each)
    assert found == [True, True, False]


def test_only_a_lease_of_the_pools_own_type_chooses_there() -> None:
    """A lease of another type that also uses a bench takes any."""
    both = claim("J1", takes=({"resource/db": 1, BENCH: 2}, {BENCH: 1}), choices=(Choice("x"), Choice("rack == 1")))
    assert matching.wishes(both, BENCH) == [Wish(0, ANY, 2, is_beside=True), Wish(1, Choice("rack == 1"))]
    assert matching.wishes(both, "resource/db") == [Wish(0, Choice("x"))]
    assert matching.choosing([both], BENCH) == [Choice("rack == 1")]
    assert matching.choosing([claim("J2", takes=({BENCH: 1},))], BENCH) == []
    assert matching.wishes(claim("J2", takes=({BENCH: 1},)), BENCH) == [Wish(0, ANY)]
