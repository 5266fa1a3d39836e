"""What becomes of a job that depends on others: a table."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.inputs import ARRIVE_WITHIN, Input, commit, declare, expect, input_key, path_of
from penstock.domain.jobs import outcome, prerequisites
from penstock.domain.jobs.dependencies import Dependency, Dependent, On, dependent_key
from penstock.domain.jobs.jobs import (
    START_WITHIN,
    Job,
    Outcome,
    Provenance,
    State,
    Times,
    approve,
)
from penstock.domain.jobs.plans import plan
from penstock.domain.jobs.prerequisites import MAX_RECHECK, Verdict, judge, outputs_gone, ready, recheck
from penstock.domain.jobs.reviews import Review, ReviewRequest, review_key
from penstock.domain.pools.forecast import Action, Unblock
from penstock.domain.pools.pools import Need
from penstock.domain.pools.why import Why, explain_dependencies, planned_waits
from penstock.domain.site.site import Environment
from penstock.kernel.rows import Place
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
    found = judge([Dependency("a", "A", on)], {"A": prior("A", outcome)}, [], NOW)
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
    found = judge([Dependency("a", "A", on)], {"A": prior("A", outcome)}, [], NOW)
    assert found.broken == f"this job depends on job A (the A) {said}; failing job"


def test_a_job_that_is_gone_cannot_be_waited_for() -> None:
    assert judge([A], {}, [], NOW).broken == "this job depends on job A (a) which has been deleted; failing job"


def test_all_must_end_and_one_that_ended_wrong_counts_at_once() -> None:
    assert judge([A, B], {"A": prior("A", Outcome.SUCCEEDED), "B": prior("B")}, [], NOW) == Verdict(None, (B,))
    assert judge([A, B], {"A": prior("A"), "B": prior("B", Outcome.FAILED)}, [], NOW).broken
    assert judge([], {}, [], NOW).is_ready


def test_what_is_ready_queues_and_its_flow_is_to_start_soon() -> None:
    found = ready(job(state=State.WAITING, times=Times(NOW), due=None), NOW + MINUTE)
    assert (found.state, found.times.ready, found.due) == (State.QUEUED, NOW + MINUTE, NOW + MINUTE + START_WITHIN)
    assert found.flow.queue_until is None


@pytest.mark.parametrize(
    ("waited", "after"),
    [(SECOND, START_WITHIN), (20 * MINUTE, 5 * MINUTE), (timedelta(days=3), MAX_RECHECK)],
)
def test_who_waits_longer_is_looked_at_less_often(waited: timedelta, after: timedelta) -> None:
    assert recheck(job(times=Times(NOW)), Verdict(), NOW + waited).due == NOW + waited + after


def test_a_broken_dependency_fails_the_job_and_a_cancellation_cancels_it() -> None:
    after = outcome.conclude(job(state=State.WAITING), prerequisites.DEPENDENCY_ERROR, "so it is", NOW)
    assert (after.end.outcome, after.end.reason) == (Outcome.FAILED, "so it is")
    after = outcome.conclude(
        job(state=State.WAITING, cancelled_by="ada"), prerequisites.DEPENDENCY_ERROR, "so it is", NOW
    )
    assert (after.end.outcome, after.end.reason) == (Outcome.CANCELLED, "cancelled by ada")


def test_a_dependent_stands_with_the_job_that_it_waits_for() -> None:
    assert Dependent(job="A", dependent="B").key == dependent_key("A", "B") == ("job#A", "dependent#B")


def waiting(*dependencies: Dependency) -> Job:
    return job(id="D", state=State.WAITING, dependencies=dependencies, times=Times(NOW))


def explained(one: Job, priors: dict[str, Job], next_: Why | None, *files: Input) -> Why:
    return explain_dependencies(one, judge(one.request.dependencies, priors, files, NOW), priors, next_)


def test_files_are_waited_for_until_they_are_late() -> None:
    there, missing = commit(declare("D", "a", NOW)), declare("D", "b", NOW)
    assert judge([], {}, [there], NOW).is_ready
    found = judge([A], {"A": prior("A")}, [there, missing], NOW)
    assert (found.waiting, found.inputs, found.is_ready) == ((A,), (missing,), False)
    late = judge([], {}, [missing], NOW + ARRIVE_WITHIN)
    assert late.broken == "the input b did not arrive within 60 min: nobody began to send it; failing job"
    begun = expect(missing, "X", Content(1, "0"), NOW + MINUTE)
    assert judge([], {}, [begun], NOW + ARRIVE_WITHIN).inputs == (begun,)
    late = judge([], {}, [begun], NOW + ARRIVE_WITHIN + MINUTE)
    assert "its upload was begun and not finished" in (late.broken or "")


def test_no_file_is_late_while_another_has_time() -> None:
    """Files are sent one after the other: the second may begin an hour after the submit."""
    sent = expect(declare("D", "a", NOW), "X", Content(1, "0"), NOW + MINUTE)
    for first in (sent, commit(sent)):
        found = judge([], {}, [first, declare("D", "b", NOW)], NOW + ARRIVE_WITHIN)
        assert {each.until for each in found.inputs} == {NOW + ARRIVE_WITHIN + MINUTE}
        assert recheck(job(times=Times(NOW)), found, NOW + ARRIVE_WITHIN).due == NOW + ARRIVE_WITHIN + MINUTE
        assert judge([], {}, [first, declare("D", "b", NOW)], NOW + ARRIVE_WITHIN + MINUTE).broken


def test_a_job_that_waits_for_inputs_is_judged_at_their_deadline() -> None:
    missing = declare("D", "b", NOW)
    found = recheck(job(times=Times(NOW)), Verdict(None, (), (missing,)), NOW + ARRIVE_WITHIN - SECOND)
    assert found.due == NOW + ARRIVE_WITHIN


def test_files_that_are_waited_for_are_named() -> None:
    files = [declare("D", f"f{number}", NOW) for number in range(7)]
    found = explained(waiting(), {}, None, *files)
    assert found.summary.startswith("the job waits for its user to send f0 (until ")
    assert found.summary.endswith("and 2 more")
    assert found.waiting_for == "input f0"
    assert found.unblocks[0] == Unblock(Action.ARRIVE, what="f0")
    assert str(found.unblocks[0]) == "its input f0 arrives"
    both = explained(waiting(A), {"A": prior("A")}, None, files[0])
    assert both.summary.startswith("the job waits for 1 of the 1 that it depends on: job A (the A) to succeed; the job")
    assert planned_waits(job(inputs=("f0", "f1")), {}) == ["first it would wait for its user to send f0, f1"]


REVIEW = Review("production", NOW + MINUTE, ("target.lab",))
REVIEWED = Environment("production", reviewers=("bert",), logins=("octo",))


def test_a_review_is_waited_for_until_it_is_late_or_somebody_approved() -> None:
    found = judge([], {}, [], NOW, REVIEW)
    assert (found.review, found.is_ready, found.broken) == (REVIEW, False, None)
    assert judge([], {}, [], NOW, replace(REVIEW, by="bert")).is_ready
    late = judge([], {}, [], NOW + MINUTE, REVIEW)
    assert late.broken == "nobody approved this job for the environment production in time; failing job"
    assert judge([], {}, [], NOW + MINUTE, replace(REVIEW, by="bert")).is_ready


def test_a_job_that_waits_for_a_review_is_judged_at_its_deadline() -> None:
    found = recheck(job(times=Times(NOW)), Verdict(review=REVIEW), NOW + SECOND)
    assert found.due == NOW + MINUTE


def test_who_has_to_approve_is_named() -> None:
    one = job(id="D", state=State.WAITING, review=REVIEW, times=Times(NOW))
    found = explain_dependencies(one, judge([], {}, [], NOW, REVIEW), {}, None, REVIEWED)
    assert found.summary.startswith("the job waits until bert or octo at GitHub approves it for the environment prod")
    assert found.waiting_for == "a review for production"
    assert found.unblocks == (Unblock(Action.APPROVE, what="bert or octo at GitHub", job="D"),)
    assert str(found.unblocks[0]) == "bert or octo at GitHub approves job D"
    gone = explain_dependencies(one, judge([], {}, [], NOW, REVIEW), {}, None)
    assert (gone.summary.endswith("is no longer there"), str(gone.unblocks[0])) == (True, "nobody approves job D")
    assert planned_waits(one, {}) == ["first it would wait for a review for the environment production"]


def test_a_request_for_a_review_is_listed_until_it_expires() -> None:
    request = ReviewRequest(job="D", environment="production", until=NOW)
    assert (request.key, request.place) == (review_key("D"), Place("reviews", "D"))
    assert (request.expiry, request.deadline) == (NOW, None)


def test_the_first_approval_stands() -> None:
    asks = job(state=State.WAITING, review=REVIEW)
    once = approve(asks, "bert")
    waits = [each.awaits_review for each in (asks, once, job(state=State.WAITING), replace(asks, state=State.SETTLED))]
    assert waits == [True, False, False, False]
    assert once.review == replace(REVIEW, by="bert")
    assert approve(once, "carl") == once
    assert approve(job(), "bert") == job()


def test_what_a_job_has_by_its_review_its_owner_need_not_have() -> None:
    need = Need(0, 0, "worker", "lab", "target/lab", "hand", privileges=("target.lab", "other"))
    one = job(needs=(need,))
    assert one.privileges_of(0) == one.privileges_for(need) == {"target.lab", "other"}
    assert replace(one, review=REVIEW).privileges_of(0) == {"other"}
    assert replace(one, review=REVIEW, provenance=Provenance(canary="target/lab")).privileges_for(need) == set()


@pytest.mark.parametrize(
    ("vouched", "ref"),
    [
        ({}, ""),
        ({"ref": "refs/heads/main", "pull_request": "7"}, "refs/heads/main"),
        ({"pull_request": "7", "event_name": "pull_request"}, "refs/pull/7"),
    ],
)
def test_the_ref_of_a_source_is_what_is_vouched_for(vouched: dict[str, str], ref: str) -> None:
    assert Provenance(vouched=vouched).ref == ref


def test_what_is_not_kept_any_more_is_told() -> None:
    assert outputs_gone(A, "it went") == "this job needs what job A (a) kept, but it went; failing job"


@pytest.mark.parametrize(
    ("path", "whole"),
    [("", "/input/a"), ("/w/b", "/input/a/w/b"), ("//w/./x/../b", "/input/a/w/b"), ("/../../etc", "/input/a/etc")],
)
def test_where_an_input_is(path: str, whole: str) -> None:
    assert path_of("a", path) == whole


def test_an_input_stands_with_its_job() -> None:
    assert declare("D", "a", NOW).key == input_key("D", "a") == ("job#D", "input#a")


def test_a_waiting_job_is_explained_by_what_it_waits_for() -> None:
    next_ = Why("B", State.RUNNING, "the job runs on w-1", None, None, NOW)
    found = explained(waiting(A, B), {"A": prior("A", Outcome.SUCCEEDED), "B": prior("B")}, next_)
    assert found.summary == (
        "the job waits for 1 of the 2 that it depends on: job B (the B) to succeed; job B: the job runs on w-1"
    )
    assert (found.waiting_for, found.since, found.expected_start) == ("job B", NOW, None)
    assert found.unblocks == (Unblock(Action.END, what="succeeds", job="B"),)
    assert found.next_steps == "job B succeeds"


def test_only_some_of_many_are_named() -> None:
    many = [Dependency(f"n{number}", f"J{number}", On.FAILURE) for number in range(7)]
    found = explained(waiting(*many), {each.job: prior(each.job) for each in many}, None)
    assert found.summary.endswith("job J4 (the J4) to fail and 2 more")
    assert found.next_steps
    assert found.next_steps.endswith("job J4 fails; and 2 more after that")


def test_who_waits_for_nothing_any_more_goes_on() -> None:
    found = explained(waiting(A), {"A": prior("A", Outcome.SUCCEEDED)}, None)
    assert found.summary == "the job waits for nothing any more, and is about to take its next step"
    assert found.waiting_for is None


def test_a_plan_says_first_what_would_be_waited_for() -> None:
    depends = waiting(Dependency("a", "A", On.ALWAYS), B, Dependency("c", "build"))
    first = planned_waits(depends, {"A": prior("A"), "B": prior("B", Outcome.SUCCEEDED)})
    assert first == [
        "first it would wait for job A (the A), which is running, to end",
        "first it would wait for the job of 'build' to succeed",
    ]
    found = plan(depends, [], [], first)
    assert (found.depends, found.seconds) == (True, None)
    assert found.sentences[:2] == tuple(first)
    assert found.sentences[-1] == "when it could start cannot be said"
