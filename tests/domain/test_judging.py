"""What becomes of a job that depends on others: a table."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain import endings, judging
from penstock.domain.dependencies import Dependency, Dependent, On, dependent_key
from penstock.domain.estimates import Unblock, Way
from penstock.domain.jobs import START_WITHIN, Job, Outcome, State, Times
from penstock.domain.judging import LOOK_MOST, Verdict, judge, look_again, ready
from penstock.domain.plans import plan
from penstock.domain.waits import explain, planned
from penstock.domain.why import Why
from tests.domain.helpers import MINUTE, NOW, SECOND, job

A, B = Dependency("a", "A"), Dependency("b", "B")


def prior(id: str, outcome: Outcome | None = None, **changes: object) -> Job:
    state = State.SETTLED if outcome else State.RUNNING
    return job(id=id, name=f"the {id}", **{"state": state, "outcome": outcome, **changes})


GOOD = {
    (On.SUCCESS, Outcome.SUCCEEDED),
    (On.FAILURE, Outcome.FAILED),
    (On.FAILURE, Outcome.ERRORED),
    *((On.ALWAYS, outcome) for outcome in Outcome),
}


@pytest.mark.parametrize("on", On)
@pytest.mark.parametrize("outcome", Outcome)
def test_each_end_is_what_was_waited_for_or_ends_the_job(on: On, outcome: Outcome) -> None:
    found = judge([Dependency("a", "A", on)], {"A": prior("A", outcome)})
    assert found.is_ready is ((on, outcome) in GOOD)
    assert (found.broken is None) is found.is_ready


@pytest.mark.parametrize(
    ("on", "outcome", "said"),
    [
        (On.SUCCESS, Outcome.FAILED, "completing, but it has failed"),
        (On.SUCCESS, Outcome.CANCELLED, "completing, but it was cancelled"),
        (On.SUCCESS, Outcome.ERRORED, "completing, but it has errored"),
        (On.FAILURE, Outcome.SUCCEEDED, "failing, but it has completed"),
    ],
)
def test_why_it_cannot_be_is_said(on: On, outcome: Outcome, said: str) -> None:
    found = judge([Dependency("a", "A", on)], {"A": prior("A", outcome)})
    assert found.broken == f"this job depends on job A (the A) {said}; failing job"


def test_a_job_that_is_gone_cannot_be_waited_for() -> None:
    assert judge([A], {}).broken == "this job depends on job A (a) which has been deleted; failing job"


def test_all_must_end_and_one_that_ended_wrong_counts_at_once() -> None:
    assert judge([A, B], {"A": prior("A", Outcome.SUCCEEDED), "B": prior("B")}) == Verdict(None, (B,))
    assert judge([A, B], {"A": prior("A"), "B": prior("B", Outcome.FAILED)}).broken
    assert judge([], {}).is_ready


def test_what_is_ready_queues_and_its_flow_is_to_start_soon() -> None:
    found = ready(job(state=State.WAITING, times=Times(NOW), due=None), NOW + MINUTE)
    assert (found.state, found.times.ready, found.due) == (State.QUEUED, NOW + MINUTE, NOW + MINUTE + START_WITHIN)
    assert found.queue_until is None


@pytest.mark.parametrize(
    ("waited", "after"),
    [(SECOND, START_WITHIN), (20 * MINUTE, 5 * MINUTE), (timedelta(days=3), LOOK_MOST)],
)
def test_who_waits_longer_is_looked_at_less_often(waited: timedelta, after: timedelta) -> None:
    assert look_again(job(times=Times(NOW)), NOW + waited).due == NOW + waited + after


def test_a_broken_dependency_fails_the_job_and_a_cancellation_cancels_it() -> None:
    after = endings.conclude(job(state=State.WAITING), judging.ERROR, "so it is", NOW)
    assert (after.outcome, after.reason) == (Outcome.FAILED, "so it is")
    after = endings.conclude(job(state=State.WAITING, cancelled_by="ada"), judging.ERROR, "so it is", NOW)
    assert (after.outcome, after.reason) == (Outcome.CANCELLED, "cancelled by ada")


def test_a_dependent_stands_with_the_job_that_it_waits_for() -> None:
    assert Dependent(job="A", dependent="B").key == dependent_key("A", "B") == ("job#A", "dependent#B")


def waiting(*dependencies: Dependency) -> Job:
    return job(id="D", state=State.WAITING, dependencies=dependencies, times=Times(NOW))


def test_a_waiting_job_is_explained_by_what_it_waits_for() -> None:
    next_ = Why("B", State.RUNNING, "the job runs on w-1", None, None, NOW)
    found = explain(waiting(A, B), {"A": prior("A", Outcome.SUCCEEDED), "B": prior("B")}, next_)
    assert found.summary == (
        "the job waits for 1 of the 2 that it depends on: job B (the B) to succeed; job B: the job runs on w-1"
    )
    assert (found.waiting_for, found.since, found.expected_start) == ("job B", NOW, None)
    assert found.unblocks == (Unblock(Way.END, what="succeeds", job="B"),)
    assert found.next_steps == "job B succeeds"


def test_only_some_of_many_are_named() -> None:
    many = [Dependency(f"n{number}", f"J{number}", On.FAILURE) for number in range(7)]
    found = explain(waiting(*many), {each.job: prior(each.job) for each in many}, None)
    assert found.summary.endswith("job J4 (the J4) to fail and 2 more")
    assert found.next_steps
    assert found.next_steps.endswith("job J4 fails; and 2 more after that")


def test_who_waits_for_nothing_any_more_goes_on() -> None:
    found = explain(waiting(A), {"A": prior("A", Outcome.SUCCEEDED)}, None)
    assert found.summary == "the job waits for nothing any more, and is about to take its next step"
    assert found.waiting_for is None


def test_a_plan_says_first_what_would_be_waited_for() -> None:
    depends = waiting(Dependency("a", "A", On.ALWAYS), B, Dependency("c", "build"))
    first = planned(depends, {"A": prior("A"), "B": prior("B", Outcome.SUCCEEDED)})
    assert first == [
        "first it would wait for job A (the A), which is running, to end",
        "first it would wait for the job of 'build' to succeed",
    ]
    found = plan(depends, [], [], first)
    assert (found.depends, found.seconds) == (True, None)
    assert found.sentences[:2] == tuple(first)
    assert found.sentences[-1] == "when it could start cannot be said"
