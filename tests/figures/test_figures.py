"""What a grant takes does not depend on how many wait, nor on how big the pool is; a release wakes whom it grants."""

from __future__ import annotations

import pytest

from penstock.domain.pools.pools import SlotState
from tests.figures import grants, packing, report, scale, shares, sweeping


def test_a_grant_takes_the_same_with_any_number_waiting() -> None:
    few, many = grants.by_queue(100), grants.by_queue(1000)
    assert few == many
    assert few.grants == 1
    assert report.Budgets().keeps(few)


@pytest.mark.parametrize(
    ("kind", "waiting", "for_", "granted"),
    [
        ("licence", 0, "licence", 0),
        ("licence", 1, "licence", 1),
        ("licence", 100, "licence", 1),
        ("farm", 1, "rig", 1),
        ("farm", 100, "rig", 2),
        ("rig", 100, "farm", 1),
    ],
)
def test_a_release_wakes_only_the_granted_jobs(kind: str, waiting: int, for_: str, granted: int) -> None:
    """QUEUE-1, and nobody polls: one message for a grant, or for several that are made at once, whoever else waits."""
    found = grants.wakes(kind, waiting, for_)
    assert (found.grants, found.wakes) == (granted, min(granted, 1))
    assert found.hints <= 1  # of the one other queue that a claim for a rig or farm leaves


def test_serving_and_releasing_take_the_same_in_a_pool_of_any_size() -> None:
    assert grants.by_size(10) == grants.by_size(1000)
    assert grants.by_size(10, SlotState.HELD) == grants.by_size(1000, SlotState.HELD)


def test_what_nobody_can_move_on_delays_nothing_else() -> None:
    """Rows of three kinds that fill their shards, and pools for several messages: all others are moved on at once."""
    found = sweeping.run(rows=2000, pools=300, minutes=2)
    assert found.missed == 0
    assert max(found.kinds.values()) < 10
    assert found.calls > 50


def test_small_projects_do_not_wait_for_a_greedy_one() -> None:
    """QUEUE-2: with shares they have the next machine; without, they wait for all that was there before them."""
    fair = shares.run(jobs=60, rounds=12, shares="[shares]")
    assert shares.is_kept(fair)
    plain = shares.run(jobs=60, rounds=12, shares="")
    assert not shares.is_kept(plain)
    assert fair.greedy == plain.greedy == 60


def test_small_jobs_that_share_machines_are_done_sooner_and_for_less() -> None:
    """Also where the jobs of each owner have machines for themselves."""
    plain, apart, mixed = (packing.run(24, share) for share in packing.WAYS.values())
    assert (plain.jobs, apart.jobs, mixed.jobs) == (24, 24, 24)
    assert packing.is_better(plain, apart)
    assert packing.is_better(plain, mixed)
    assert mixed.paid_for_work <= apart.paid_for_work


def test_many_jobs_one_after_the_other_succeed_and_leave_nothing() -> None:
    few, more = scale.run(60), scale.run(120)
    assert few.outcomes == {"succeeded": 60}
    assert more.outcomes == {"succeeded": 120}
    assert few.rows_left == more.rows_left
