"""Slots, claims, and a model that resizes, grants, gives back and crashes in any order."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.domain.pools import capacity, pools
from penstock.domain.pools.pools import Claim, Pool, Sharing, Slot, SlotName, SlotState, Warm
from penstock.kernel.limits import PRIORITY
from penstock.kernel.rows import Check, Create, Delete, Replace
from penstock.testing.store import MemoryStore
from tests.domain.helpers import MINUTE, NOW, claim, pool, slot

FREE, HELD, AWAY, OFF, IDLE = SlotState.FREE, SlotState.HELD, SlotState.AWAY, SlotState.OFF, SlotState.IDLE
priorities = st.integers(-PRIORITY, PRIORITY)


def test_a_taken_slot_knows_its_holder_and_has_the_next_fence() -> None:
    taken = pools.take(slot(fence=4), claim("J1", attempt=2), 3, "r-1", NOW)
    assert taken == slot(state=HELD, fence=5, job="J1", attempt=2, order=3, unit="r-1", since=NOW)


@pytest.mark.parametrize("state", [HELD, OFF])
def test_only_a_free_slot_can_be_taken(state: SlotState) -> None:
    with pytest.raises(ValueError, match=f"resource/bench/1 is {state}"):
        pools.take(slot(state=state), claim(), 1, "r-1", NOW)


def test_a_slot_with_a_kept_unit_is_taken_for_that_unit_only() -> None:
    """SLOT-1: the unit would lose its slot."""
    kept = slot(unit="r-1")
    assert pools.take(kept, claim("J1"), 1, "r-1", NOW).unit == "r-1"
    with pytest.raises(ValueError, match="is free, with r-1"):
        pools.take(kept, claim("J1"), 1, "r-2", NOW)


@pytest.mark.parametrize(("withdrawn", "after"), [(False, FREE), (True, OFF)])
def test_a_slot_that_is_given_back_keeps_its_fence_and_nothing_of_its_holder(withdrawn: bool, after: SlotState) -> None:
    held = replace(pools.take(slot(fence=4), claim(), 1, "r-1", NOW), withdrawn=withdrawn)
    assert pools.give_back(held) == slot(state=after, fence=5)
    away = OFF if withdrawn else SlotState.AWAY
    assert pools.give_back(held, SlotState.AWAY) == slot(state=away, fence=5)


def test_moving_a_slot_is_a_delete_and_a_create_unless_its_key_stays() -> None:
    was = slot(version=3)
    taken = replace(pools.take(was, claim(), 1, "r-1", NOW), version=1)
    assert pools.move(was, taken) == (Delete(was), Create(replace(taken, version=3)))
    noted = replace(was, fence=9)
    assert pools.move(was, noted) == (Replace(was, noted),)


@pytest.mark.parametrize(
    ("changes", "closed"),
    [
        ({}, False),
        ({"paused": True}, True),
        ({"over": True}, True),
        ({"over": True, "names": ("a", "b")}, False),
        ({"over": True, "is_amount": True}, False),
        ({"paused": True, "is_amount": True}, True),
    ],
)
def test_nothing_is_granted_while_more_than_the_limit_may_be_held(changes: dict[str, Any], *, closed: bool) -> None:
    """SLOT-1: of a named pool it is known which slots may be held, and an amount counts what is used."""
    assert pool(**{"limit": 2, **changes}).is_closed is closed


@pytest.mark.parametrize(
    ("slots", "here", "after"),
    [
        ([], "", "a:away b:away"),
        ([], "a", "a:free b:away"),
        ([slot("a", AWAY), slot("b", AWAY)], "a", "a:free b:away"),
        ([slot("a"), slot("b")], "b", "a:away b:free"),
        ([slot("a"), slot("b", AWAY)], "a", "a:free b:away"),
        ([slot("a", OFF), slot("b", OFF)], "b", "a:away b:free"),
        ([slot("a", HELD), slot("b", HELD, withdrawn=True)], "", "a:held b:held"),
        ([slot("a", AWAY), slot("b"), slot("c", AWAY), slot("d")], "a b c d", "a:free b:free c:off d:off"),
    ],
)
def test_only_the_slots_of_hosts_that_are_there_are_free(slots: list[Slot], here: str, after: str) -> None:
    """SLOT-1: who is not there is not leased."""
    there = {one.name: one for one in slots}
    for step in capacity.fit(pool(names=("a", "b"), limit=2, hosts=True), slots, here.split()):
        there.update({row.name: row for row in map(written, step) if isinstance(row, Slot)})
    assert " ".join(f"{one.name}:{one.state}" for one in sorted(there.values(), key=lambda one: one.name)) == after
    assert not any(one.withdrawn for one in there.values())
    again = capacity.fit(pool(names=("a", "b"), limit=2, hosts=True), list(there.values()), here.split())
    assert again == []


HALVES = {"names": ("a/1", "a/2", "b/1", "b/2"), "limit": 4, "share": Sharing(2)}
WHOLE = {"names": ("a", "b"), "limit": 2}


@pytest.mark.parametrize(
    ("shape", "slots", "after"),
    [
        (HALVES, [slot("a"), slot("b", HELD)], "a:off b:held a/1:free a/2:free"),
        (HALVES, [slot("a", IDLE), slot("b", unit="w-1")], "a:idle b:free"),
        (HALVES, [slot("b", HELD), slot("b/1"), slot("b/2", HELD)], "a/1:free a/2:free b:held b/1:off b/2:held"),
        (HALVES, [slot("b", HELD), slot("b/1", AWAY)], "a/1:free a/2:free b:held b/1:off"),
        (WHOLE, [slot("a/1"), slot("a/2", HELD), slot("b/2", AWAY)], "a/1:off a/2:held b:free b/2:off"),
        (WHOLE, [slot("a", OFF), slot("a/2", HELD, withdrawn=True), slot("b")], "a:off a/2:held b:free"),
        (WHOLE | {"hosts": False}, [slot("a"), slot("b/1", HELD)], "a:free b:free b/1:held"),
    ],
)
def test_a_host_has_no_new_slots_while_somebody_has_one_from_before(
    shape: dict[str, Any], slots: list[Slot], after: str
) -> None:
    """JOB-2: it is whole, or in parts."""
    there = {one.name: one for one in slots}
    row = pool(**{"hosts": True} | shape)
    for step in capacity.fit(row, slots, "ab"):
        there.update({row.name: row for row in map(written, step) if isinstance(row, Slot)})
    assert {f"{one.name}:{one.state}" for one in there.values()} == set(after.split())
    assert capacity.fit(row, list(there.values()), "ab") == []


def test_what_a_host_has_once_all_slots_from_before_are_gone() -> None:
    halves, whole = pool(hosts=True, **HALVES), pool(hosts=True, **WHOLE)
    assert capacity.after_transition(halves, slot("a", HELD), [slot("b", HELD)]) == [slot("a/1"), slot("a/2")]
    assert capacity.after_transition(whole, slot("a/1", HELD), [slot("a/2", HELD)]) == []
    assert capacity.after_transition(whole, slot("a/2", HELD), [slot("a", HELD)]) == [slot("a")]
    assert capacity.after_transition(whole, slot("c/1", HELD), []) == []
    assert capacity.after_transition(halves, slot("a/3", HELD), []) == []
    assert capacity.after_transition(pool(hosts=True, limit=2), slot("a/1", HELD), []) == []


def test_a_warm_slot_is_left_alone_until_its_unit_is_destroyed() -> None:
    assert capacity.fit(pool(names=("a",), limit=1, hosts=True), [slot("a", unit="w-1")]) == []


def test_a_pool_that_is_none_of_hosts_has_nothing_away() -> None:
    (step,) = capacity.fit(pool(limit=1), [slot("a", AWAY)])
    assert written(step[-1]) == slot("a")


@given(st.lists(st.tuples(priorities, st.integers(0, 10**6)), unique_by=lambda pair: pair[1]))
def test_claims_sort_by_priority_then_age(asked: list[tuple[int, int]]) -> None:
    claims = [claim(f"{age:026d}", priority, since=NOW + age * MINUTE / 1000) for priority, age in asked]
    for first, second in pairwise(sorted(claims, key=lambda one: one.key)):
        assert (-first.priority, first.since) < (-second.priority, second.since)


@pytest.mark.parametrize(
    ("limit", "names", "slots", "on"),
    [
        (2, None, [], "1 2"),
        (3, None, [slot("2", HELD)], "1 2 3"),
        (1, None, [slot("1"), slot("2", HELD)], "2"),
        (1, None, [slot("1", HELD, withdrawn=True), slot("2", HELD)], "2"),
        (1, None, [slot("2", OFF), slot("1", OFF)], "1"),
        (2, None, [slot("10"), slot("9"), slot("8")], "8 9"),
        (0, None, [slot("1"), slot("2", HELD)], ""),
        (2, None, [slot("bench-a")], "1 bench-a"),
        (2, ("b", "a"), [slot("1")], "a b"),
        (1, ("b", "a"), [slot("a", HELD)], "b"),
        (1, ("a",), [slot("a", HELD, withdrawn=True)], "a"),
    ],
)
def test_a_resize_leaves_these_slots_in_use(
    limit: int, names: tuple[str, ...] | None, slots: list[Slot], on: str
) -> None:
    after = {one.name: one for one in slots}
    for step in capacity.fit(pool(limit=limit, names=names), slots):
        after.update({row.name: row for row in map(written, step) if isinstance(row, Slot)})
    assert sorted(one.name for one in after.values() if one.state is not OFF and not one.withdrawn) == on.split()


def written(change: object) -> object:
    return change.row if isinstance(change, Create | Replace) else None


class Resizing(RuleBasedStateMachine):
    """A pool over a real store. Every rule is what one process does; a resize may stop between two commits."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.fences: dict[str, int] = {}
        self.jobs = 0

    @initialize()
    def begin(self) -> None:
        assert self.store.commit([Create(pool(limit=0))])

    def pool(self) -> Pool:
        found = self.store.get(pools.pool_key("resource/bench"), Pool)
        assert found
        return found

    def slots(self, *states: SlotState) -> list[Slot]:
        pk = pools.collection("resource/bench")
        return [one for state in states or SlotState for one in self.store.find(pk, f"{state}#", Slot)]

    @rule(limit=st.integers(0, 5))
    def number(self, limit: int) -> None:
        self.store.commit([Replace(self.pool(), replace(self.pool(), limit=limit, names=None))])

    @rule(names=st.lists(st.sampled_from(["a", "b", "1", "2"]), unique=True))
    def name(self, names: list[str]) -> None:
        self.store.commit([Replace(self.pool(), replace(self.pool(), limit=len(names), names=tuple(names)))])

    @precondition(lambda self: self.slots(FREE))
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        self.jobs += 1
        was = data.draw(st.sampled_from(self.slots(FREE)))
        taken = pools.take(was, claim(f"J{self.jobs}"), 1, f"r-{self.jobs}", NOW)
        assert taken.fence > self.fences[was.name]
        assert self.store.commit(pools.move(was, taken))

    @precondition(lambda self: self.slots(HELD))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        was = data.draw(st.sampled_from(self.slots(HELD)))
        assert self.store.commit(pools.move(was, pools.give_back(was)))

    @rule(crash_after=st.integers(0, 4))
    def resize_and_crash(self, crash_after: int) -> None:
        self.fit(crash_after)

    @rule()
    def resize(self) -> None:
        self.fit(None)
        assert capacity.fit(self.pool(), self.slots()) == []
        on = {one.name for one in self.slots() if one.state is not OFF and not one.withdrawn}
        names = self.pool().names
        assert on == set(names) if names is not None else len(on) == self.pool().limit

    def fit(self, most: int | None) -> None:
        before = {(one.name, one.job, one.unit, one.fence) for one in self.slots(HELD)}
        for step in capacity.fit(self.pool(), self.slots())[:most]:
            assert self.store.commit([Check(self.pool()), *step])
        assert {(one.name, one.job, one.unit, one.fence) for one in self.slots(HELD)} == before

    @invariant()
    def every_name_is_one_slot_and_its_fence_only_grows(self) -> None:
        found = [one.name for one in self.slots()]
        marks = self.store.find(pools.collection("resource/bench"), "name#", SlotName)
        assert sorted(found) == sorted(mark.name for mark in marks)
        assert set(self.fences) <= set(found)
        for one in self.slots():
            assert one.fence >= self.fences.get(one.name, 0)
            self.fences[one.name] = one.fence

    @invariant()
    def a_held_slot_has_a_holder_and_no_other_has_one(self) -> None:
        for one in self.slots():
            assert (one.job is not None) is (one.state is HELD)
            assert not one.withdrawn or one.state is HELD


Resizing.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestResizing = Resizing.TestCase


@given(st.integers(0, 30), st.lists(st.sampled_from(SlotState), max_size=20))
def test_a_resize_never_has_more_slots_in_use_than_before_or_than_the_limit(
    limit: int, states: list[SlotState]
) -> None:
    slots = [slot(str(number), state) for number, state in enumerate(states)]
    on = {one.name for one in slots if one.state is not OFF}
    most = max(limit, len(on))
    for step in capacity.fit(pool(limit=limit), slots):
        for change in step:
            row = written(change)
            if isinstance(row, Slot):
                on = on - {row.name} if row.state is OFF or row.withdrawn else on | {row.name}
        assert len(on) <= most


def test_two_resizes_that_read_the_same_cannot_mix() -> None:
    store = MemoryStore()
    assert store.commit([Create(pool(limit=2))])
    read = store.get(pools.pool_key("resource/bench"), Pool)
    assert read
    step, *_ = capacity.fit(read, [])
    assert store.commit([Check(read), *step])
    assert not store.commit([Check(read), *step])
    assert store.commit([Replace(read, replace(read, limit=3))])
    assert not store.commit([Check(read), *capacity.fit(read, [])[1]])


def test_claims_of_one_job_stand_in_the_order_of_its_attempts_and_steps() -> None:
    claims: list[Claim] = [claim(attempt=attempt, step=step) for attempt in (1, 2, 10) for step in (1, 2, 10)]
    assert sorted(claims, key=lambda one: one.key) == claims
    assert sorted(claims, key=lambda one: one.order) == claims


def test_claims_stand_in_the_order_of_their_priority_then_of_their_jobs_in_whatever_line() -> None:
    claims = [claim(job, priority, line=line) for priority in (99, 0, -99) for job in ("J1", "J2") for line in "ba"]
    for line in "ab":
        mine = [one for one in claims if one.line == line]
        assert sorted(reversed(mine), key=lambda one: one.key) == mine
    assert sorted(reversed(claims), key=lambda one: one.order)[::2] == claims[1::2]


def test_what_takes_the_same_stands_in_one_line_which_ends_before_the_next() -> None:
    takes = [{"target/b": 1, "quota/q": 2}]
    line = pools.line_of(takes, fresh=False)
    assert line == pools.line_of([{"quota/q": 2, "target/b": 1}], fresh=False)
    others = [
        pools.line_of(other, fresh=fresh)
        for other, fresh in ((takes, True), (takes * 2, False), ([{"target/b": 1, "quota/q": 1}], False), ([], False))
    ]
    assert len({line, *others}) == 5
    first, last, later = claim(line="0a", priority=999), claim("z", priority=-499, line="0a"), claim(line="0b")
    assert first.key.sk < last.key.sk < pools.behind("0a") < later.key.sk


def test_an_amount_is_taken_and_who_took_it_is_known() -> None:
    vcpus = pool(name="quota/vcpus", is_amount=True, limit=64, used=50)
    after, held = pools.take_amount(vcpus, claim("J1", attempt=2), 0, 14, "w-1", NOW)
    assert (after.used, after.sort) == (64, "amount")
    assert (held.name, held.state, held.count, held.unit) == ("w-1", HELD, 14, "w-1")
    with pytest.raises(ValueError, match="has 0 left, not 1"):
        pools.take_amount(after, claim("J2"), 0, 1, "w-2", NOW)


LATER = NOW + MINUTE
LEASED = slot("1", SlotState.HELD, job="J1", attempt=1, order=2, fence=3, unit="r-1", since=NOW)


def whose(of: Slot) -> tuple[str | None, int | None, int | None]:
    return of.job, of.attempt, of.order


def test_an_idle_slot_goes_to_its_units_next_lease() -> None:
    given = pools.hand_over(slot("1", SlotState.IDLE, unit="r-1", since=NOW), claim("J2", attempt=4), 5, LATER)
    assert (given.state, whose(given), given.since, given.unit) == (SlotState.HELD, ("J2", 4, 5), LATER, "r-1")


@pytest.mark.parametrize(("is_own", "state"), [(True, SlotState.FREE), (False, SlotState.IDLE)])
def test_a_slot_whose_unit_is_kept_is_nobodys(is_own: bool, state: SlotState) -> None:
    kept = pools.keep_warm(LEASED, Warm(), is_own=is_own, now=LATER)
    assert (kept.state, whose(kept), kept.since, kept.unit) == (state, (None, None, None), LATER, "r-1")


def test_a_slot_that_is_set_aside_is_held_by_no_job() -> None:
    aside = pools.set_aside(LEASED, LATER)
    assert [pools.is_aside(each) for each in (aside, LEASED, slot("1"))] == [True, False, False]
    assert (aside.state, whose(aside), aside.since, aside.unit) == (SlotState.HELD, (None, None, None), LATER, "r-1")
