"""How long a job held what it could not use yet."""

from __future__ import annotations

from datetime import datetime

import pytest

from penstock.domain.jobs import unused
from penstock.domain.pools.leases import WORKER, Lease, LeaseState
from tests.domain.helpers import MINUTE, NOW, lease


def at(minutes: int | None) -> datetime | None:
    return None if minutes is None else NOW + minutes * MINUTE


def had(order: int, granted: int | None, there: int | None = None, ended: int | None = None, attempt: int = 1) -> Lease:
    times = {"granted": at(granted), "there": at(there), "ended": at(ended)}
    return lease(order, LeaseState.GRANTED, name=f"n{order}", attempt=attempt, **times)


def minutes(leases: list[Lease], now: int) -> list[tuple[int, str, float, float]]:
    found = unused.held_times(leases, NOW + now * MINUTE)
    return [(one.attempt, one.name, one.held / MINUTE, one.unused / MINUTE) for one in found]


def test_what_is_held_is_unused_until_the_worker_says_hello() -> None:
    leases = [had(WORKER, 6, 10, 30), had(1, 0, 1, 30), had(2, 5, 6, 30)]
    assert minutes(leases, 60) == [(1, "n1", 30, 10), (1, "n2", 25, 5), (1, "n0", 24, 4)]


@pytest.mark.parametrize(("now", "unused"), [(9, 9), (10, 10), (11, 10)])
def test_what_is_still_held_is_counted_up_to_now(now: int, unused: int) -> None:
    assert minutes([had(1, 0, 1), had(WORKER, 2, 10)], now)[0] == (1, "n1", now, unused)


def test_an_attempt_whose_script_never_ran_used_nothing() -> None:
    assert minutes([had(1, 0, 1, 20), had(WORKER, 2, None, 20), had(2, None)], 60) == [
        (1, "n1", 20, 20),
        (1, "n0", 18, 18),
    ]


def test_every_attempt_has_a_start_of_its_own() -> None:
    first, second = [had(1, 0, 1, 20)], [had(1, 30, 31, None, 2), had(WORKER, 31, 35, None, 2)]
    assert minutes([*second, *first], 40) == [(1, "n1", 20, 20), (2, "n1", 10, 5), (2, "n0", 9, 4)]


def test_two_clocks_make_no_time_less_than_nothing() -> None:
    assert minutes([had(1, 5, 5, 3), had(WORKER, 6, 4, 3)], 60) == [(1, "n1", 0, 0), (1, "n0", 0, 0)]
