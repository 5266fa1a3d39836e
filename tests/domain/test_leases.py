"""A lease from its claim to its release, and whose turn it is to be put back."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.pools import pools
from penstock.domain.pools.pools import WORKER, Lease, LeaseState
from penstock.domain.units.units import Unit, UnitState
from tests.domain.helpers import MINUTE, NOW, lease, unit

GRANTED = pools.grant_lease(lease(), "bench-1", 4, "r-1", NOW + MINUTE)


def test_a_granted_lease_knows_its_slot_fence_and_unit() -> None:
    granted = pools.grant_lease(lease(), "bench-1", 4, "r-1", NOW + MINUTE)
    assert (granted.state, granted.slot, granted.fence, granted.unit) == (LeaseState.GRANTED, "bench-1", 4, "r-1")
    assert (granted.since, granted.granted) == (NOW, NOW + MINUTE)


def test_a_lease_that_nothing_was_granted_for_is_over_at_once() -> None:
    assert pools.withdraw_lease(lease()).state is LeaseState.RELEASED


def had(state: UnitState = UnitState.READY, **changes: Any) -> Unit:
    """The unit of the granted lease."""
    return unit(id="r-1", state=state, **{"order": 1, "fence": 4, **changes})


@pytest.mark.parametrize("state", UnitState)
def test_its_unit_says_what_became_of_a_granted_lease(state: UnitState) -> None:
    ends = {UnitState.CLEANING, UnitState.DIRTY, UnitState.QUARANTINED}
    wanted = LeaseState.RELEASING if state in ends else LeaseState.RELEASED
    wanted = {UnitState.CREATING: LeaseState.GRANTED, UnitState.READY: LeaseState.READY}.get(state, wanted)
    assert pools.lease_as_of(GRANTED, had(state)) == replace(GRANTED, state=wanted)


@pytest.mark.parametrize("now", [None, had(is_over=True), had(job="J2"), had(attempt=2), had(order=0), had(fence=5)])
def test_a_lease_that_its_unit_does_not_know_any_more_is_released(now: Unit | None) -> None:
    """SLOT-3: the unit is somebody else's by now, or its row has expired."""
    assert pools.lease_as_of(GRANTED, now).state is LeaseState.RELEASED


@pytest.mark.parametrize("state", [LeaseState.WAITING, LeaseState.RELEASED])
def test_a_lease_without_a_unit_is_what_its_row_says(state: LeaseState) -> None:
    assert pools.lease_as_of(lease(state=state), had()).state is state


def test_leases_are_seen_with_the_units_that_were_read() -> None:
    found = pools.with_units([GRANTED, lease(2)], [unit(), had(UnitState.DIRTY)])
    assert [one.state for one in found] == [LeaseState.RELEASING, LeaseState.WAITING]


def test_the_leases_of_an_attempt_stand_together_and_in_order() -> None:
    keys = [pools.lease_key("J1", attempt, order).sk for attempt in (1, 2, 10) for order in (0, 1, 9, 20)]
    assert keys == sorted(keys)
    assert [key.startswith(pools.lease_prefix(2)) for key in keys] == [False] * 4 + [True] * 4 + [False] * 4


def same(one: Lease) -> Lease:
    return one


def test_nothing_is_put_back_before_anything_is_releasing() -> None:
    assert pools.next_release([], same) is None
    assert pools.next_release([lease(state=LeaseState.READY), lease(state=LeaseState.RELEASED)], same) is None


@given(st.lists(st.integers(WORKER, 20), unique=True))
def test_the_worker_goes_back_first_then_resources_last_to_first(orders: list[int]) -> None:
    open_: list[Lease] = [lease(order, LeaseState.RELEASING) for order in orders]
    turns: list[int] = []
    while (turn := pools.next_release(open_, same)) is not None:
        turns.append(turn.order)
        open_ = [replace(one, state=LeaseState.RELEASED) if one == turn else one for one in open_]
        behind = pools.released_after(open_, turn.order)
        assert {one.order for one in behind} == {*orders} - {*turns}
    resources = sorted((order for order in orders if order != WORKER), reverse=True)
    assert turns == [WORKER] * (WORKER in orders) + resources


@pytest.mark.parametrize(("order", "behind"), [(WORKER, [1, 2, 3]), (3, [1, 2]), (2, [1]), (1, [])])
def test_what_is_released_after_a_lease(order: int, behind: list[int]) -> None:
    assert [one.order for one in pools.released_after(map(lease, range(4)), order)] == behind


def test_no_more_is_asked_than_whose_turn_it_is() -> None:
    asked: list[int] = []

    def now(one: Lease) -> Lease:
        asked.append(one.order)
        return one

    states = [LeaseState.RELEASED, LeaseState.RELEASING, LeaseState.RELEASING]
    found = pools.next_release([lease(order, state) for order, state in zip((0, 2, 1), states, strict=True)], now)
    assert found
    assert (found.order, asked) == (2, [0, 2])
