"""A lease from its claim to its release, and whose turn it is to be put back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.pools import leases
from penstock.domain.pools.leases import WORKER, Lease, LeaseState
from tests.domain.helpers import MINUTE, NOW, lease

GRANTED = leases.grant(lease(), "bench-1", 4, "r-1", NOW + MINUTE)


def test_a_granted_lease_knows_its_slot_fence_and_unit() -> None:
    assert (GRANTED.state, GRANTED.slot, GRANTED.fence, GRANTED.unit) == (LeaseState.GRANTED, "bench-1", 4, "r-1")
    ready = leases.ready(GRANTED, NOW + 2 * MINUTE)
    assert ready.state is LeaseState.READY
    assert (ready.since, ready.granted, ready.there, ready.ended) == (NOW, NOW + MINUTE, NOW + 2 * MINUTE, None)
    assert leases.released(GRANTED).state is LeaseState.RELEASED


@pytest.mark.parametrize(
    ("state", "after"),
    [
        (LeaseState.WAITING, LeaseState.RELEASED),
        (LeaseState.GRANTED, LeaseState.RELEASING),
        (LeaseState.READY, LeaseState.RELEASING),
        (LeaseState.RELEASING, LeaseState.RELEASING),
        (LeaseState.RELEASED, LeaseState.RELEASED),
    ],
)
def test_the_end_of_an_attempt_makes_of_a_lease(state: LeaseState, after: LeaseState) -> None:
    ended = leases.end(lease(state=state), NOW)
    assert ended.state is after
    assert leases.end(ended, NOW + MINUTE) == ended
    assert ended.ended == (NOW if state in (LeaseState.GRANTED, LeaseState.READY) else None)


def test_the_leases_of_an_attempt_stand_together_and_in_order() -> None:
    keys = [leases.lease_key("J1", attempt, order).sk for attempt in (1, 2, 10) for order in (0, 1, 9, 20)]
    assert keys == sorted(keys)
    assert [key.startswith(leases.prefix(2)) for key in keys] == [False] * 4 + [True] * 4 + [False] * 4


def test_nothing_is_put_back_before_anything_is_releasing() -> None:
    assert leases.next_release([]) is None
    assert leases.next_release([lease(state=LeaseState.READY), lease(state=LeaseState.RELEASED)]) is None


@given(st.lists(st.integers(WORKER, 20), unique=True))
def test_the_worker_goes_back_first_then_resources_last_to_first(orders: list[int]) -> None:
    open_: list[Lease] = [lease(order, LeaseState.RELEASING) for order in orders]
    turns = []
    while (turn := leases.next_release(open_)) is not None:
        turns.append(turn.order)
        open_ = [leases.released(one) if one == turn else one for one in open_]
    resources = sorted((order for order in orders if order != WORKER), reverse=True)
    assert turns == [WORKER] * (WORKER in orders) + resources
