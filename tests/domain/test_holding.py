"""How long a job held what it could not use yet."""

from __future__ import annotations

from datetime import datetime

import pytest

from penstock.domain.jobs import unused
from penstock.domain.jobs.jobs import Job, PastAttempt
from penstock.domain.pools.pools import WORKER, Lease, LeaseState
from tests.domain.helpers import MINUTE, NOW, job, lease


def at(minutes: int | None) -> datetime | None:
    return None if minutes is None else NOW + minutes * MINUTE


def had(order: int, granted: int | None, attempt: int = 1) -> Lease:
    return lease(order, LeaseState.GRANTED, name=f"n{order}", attempt=attempt, granted=at(granted))


def ran(started: int | None, ended: int | None, past: tuple[int | None, int | None] | None = None) -> Job:
    """A job whose present attempt started and ended then, and the one before it, if there was one."""
    attempts = (PastAttempt(1, "lost", "it was", None, at(past[0]), at(past[1])),) if past else ()
    return job(
        attempt=len(attempts) + 1,
        attempts=attempts,
        worker=None if started is None else "w-1",
        started=at(0 if started is None else started),  # of the attempt before, if it did not start itself
        settled=at(ended),
    )


def minutes(row: Job, leases: list[Lease], now: int) -> list[tuple[int, str, float, float]]:
    found = unused.held_times(row, leases, NOW + now * MINUTE)
    return [(one.attempt, one.name, one.held / MINUTE, one.unused / MINUTE) for one in found]


def test_what_is_held_is_unused_until_the_worker_says_hello() -> None:
    leases = [had(WORKER, 6), had(1, 0), had(2, 5)]
    assert minutes(ran(10, 30), leases, 60) == [(1, "n1", 30, 10), (1, "n2", 25, 5), (1, "n0", 24, 4)]


@pytest.mark.parametrize(("now", "unused"), [(9, 9), (10, 10), (11, 10)])
def test_what_is_still_held_is_counted_up_to_now(now: int, unused: int) -> None:
    assert minutes(ran(10, None), [had(1, 0), had(WORKER, 2)], now)[0] == (1, "n1", now, unused)


def test_an_attempt_whose_script_never_ran_used_nothing() -> None:
    assert minutes(ran(None, 20), [had(1, 0), had(WORKER, 2), had(2, None)], 60) == [
        (1, "n1", 20, 20),
        (1, "n0", 18, 18),
    ]


def test_every_attempt_has_a_start_of_its_own() -> None:
    first, second = [had(1, 0)], [had(1, 30, 2), had(WORKER, 31, 2)]
    assert minutes(ran(35, None, (None, 20)), [*second, *first], 40) == [
        (1, "n1", 20, 20),
        (2, "n1", 10, 5),
        (2, "n0", 9, 4),
    ]
    assert minutes(ran(None, None, (5, 20)), first, 40) == [(1, "n1", 20, 5)]


def test_two_clocks_make_no_time_less_than_nothing() -> None:
    assert minutes(ran(4, 3), [had(1, 5), had(WORKER, 6)], 60) == [(1, "n1", 0, 0), (1, "n0", 0, 0)]
