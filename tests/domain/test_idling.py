"""When a job gives back what it holds, and what becomes of it. [QUEUE-2] [QUEUE-3] [JOB-1]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.jobs import jobs, outcome, unused
from penstock.domain.jobs.jobs import MAX_GIVE_BACKS, Outcome, Report, Result, State
from penstock.domain.pools import why
from penstock.domain.pools.pools import WORKER, Lease, LeaseState
from tests.domain.helpers import MINUTE, NOW, SECOND, job, lease

HELD, WAITS = lease(1, LeaseState.READY), lease(2, since=NOW + MINUTE)
GRANTED = lease(2, LeaseState.GRANTED, since=NOW, granted=NOW + 2 * MINUTE)
IDLE: dict[str, Any] = {"state": State.ACQUIRING, "idle_hold": 60, "queue_until": NOW + 60 * MINUTE}


@pytest.mark.parametrize(
    ("leases", "changes", "minutes"),
    [
        ([HELD, WAITS], {}, 2),
        ([HELD, GRANTED], {}, 3),
        ([HELD, lease(2, LeaseState.GRANTED, since=NOW)], {}, 1),  # granted before that was noted
        ([HELD, GRANTED, lease(3, since=NOW)], {}, 1),
        ([HELD, WAITS], {"given_back": MAX_GIVE_BACKS - 1}, 2),
        ([HELD, WAITS], {"given_back": MAX_GIVE_BACKS}, None),
        ([HELD, WAITS], {"idle_hold": 0}, None),
        ([HELD, GRANTED], {"state": State.RUNNING}, None),
        ([WAITS], {}, None),
        ([HELD], {}, None),
        ([GRANTED, WAITS], {}, None),
        ([HELD, lease(2, LeaseState.RELEASED)], {}, None),
    ],
)
def test_when_an_attempt_gives_back(leases: list[Lease], changes: dict[str, Any], minutes: int | None) -> None:
    given = job(**{**IDLE, **changes})
    end = None if minutes is None else NOW + minutes * MINUTE
    assert unused.give_back_time(given, leases) == end
    assert unused.next_check(given, leases, NOW + 60 * MINUTE) == (end or NOW + 60 * MINUTE)
    for before, is_over in ((SECOND, False), (0 * SECOND, True)):
        assert unused.is_give_back_due(given, leases, (end or NOW + 99 * MINUTE) - before) is (
            end is not None and is_over
        )


def test_a_queue_deadline_that_comes_before_is_due_before() -> None:
    assert unused.next_check(job(**{**IDLE, "queue_until": NOW}), [HELD, WAITS], NOW) == NOW
    assert unused.next_check(job(**{**IDLE, "queue_until": None}), [WAITS], NOW) is None


@pytest.mark.parametrize(
    ("leases", "is_checked"),
    [
        ([HELD, WAITS], True),
        ([GRANTED, lease(3)], True),
        ([HELD, lease(WORKER)], False),  # a worker comes last in any order
        ([HELD, GRANTED], False),
        ([lease(1, LeaseState.RELEASED), WAITS], False),
        ([WAITS], False),
        ([HELD], False),
    ],
)
def test_who_holds_something_and_waits_for_another_resource_is_compared_with_its_site(
    leases: list[Lease], is_checked: bool
) -> None:
    for given_back in (0, MAX_GIVE_BACKS - 1, MAX_GIVE_BACKS):
        given = job(**{**IDLE, "idle_hold": 0, "queue_until": None, "given_back": given_back})
        expected = NOW + 10 * MINUTE if is_checked and given_back < MAX_GIVE_BACKS else None
        assert unused.next_check(given, leases, NOW) == expected


@pytest.mark.parametrize(
    ("changes", "is_parked"),
    [
        ({}, False),
        ({"parked_until": NOW + SECOND}, True),
        ({"parked_until": NOW}, False),
        ({"parked_until": NOW + SECOND, "cancelled_by": "ada"}, False),
    ],
)
def test_who_is_parked(changes: dict[str, Any], is_parked: bool) -> None:
    assert unused.is_parked(job(**changes), NOW) is is_parked


def test_what_is_given_back_is_no_retry_and_no_new_wait() -> None:
    was = job(**IDLE, retries=0)
    after = outcome.conclude(was, unused.IDLE_HOLD_ERROR, "it held a bench", NOW)
    assert (after.state, after.attempt, after.history.given_back, after.history.spared) == (State.QUEUED, 2, 1, 0)
    assert (after.flow.parked_until, after.due, after.flow.queue_until) == (
        NOW + MINUTE,
        NOW + MINUTE,
        was.flow.queue_until,
    )
    assert [(past.outcome, past.reason) for past in after.history.attempts] == [("gave back", "it held a bench")]
    assert why.explain(after, [], None).summary == (
        "the job gave back what it held (it held a bench), and queues again at 2026-01-02 03:05:05Z"
    )
    again = jobs.acquire(after, NOW + 2 * MINUTE)
    assert (again.flow.parked_until, again.flow.queue_until) == (None, was.flow.queue_until)
    lost = outcome.conclude(again, "Lost", "its machine vanished", NOW)
    assert (lost.end.outcome, lost.end.reason) == (Outcome.ERRORED, "tried 2 times: its machine vanished")
    assert not outcome.conclude(jobs.acquire(jobs.give_back(job(**IDLE), REPORT, NOW), NOW), "Lost", "", NOW).is_settled


REPORT = Report(Result.LOST, "it held a bench", NOW)


def test_it_is_parked_no_longer_than_it_may_wait() -> None:
    assert jobs.give_back(job(**{**IDLE, "queue_until": NOW + SECOND}), REPORT, NOW).due == NOW + SECOND
    assert jobs.give_back(job(**{**IDLE, "queue_until": None}), REPORT, NOW).due == NOW + MINUTE


def test_who_is_cancelled_or_has_reported_gives_nothing_back() -> None:
    """JOB-1."""
    assert (
        outcome.conclude(job(**IDLE, cancelled_by="ada"), unused.IDLE_HOLD_ERROR, "", NOW).end.outcome
        is Outcome.CANCELLED
    )
    done = job(**IDLE, report=Report(Result.SUCCEEDED, "it ended", NOW))
    assert outcome.conclude(done, unused.IDLE_HOLD_ERROR, "", NOW).end.outcome is Outcome.SUCCEEDED
