"""A job's stations, and that its end comes exactly once."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.jobs import jobs
from penstock.domain.jobs.dependencies import Dependency
from penstock.domain.jobs.jobs import SETTLE_WITHIN, START_WITHIN, Job, Outcome, Report, Result, State
from penstock.domain.pools.pools import Need
from tests.domain.helpers import MINUTE, NOW, SECOND, job
from tests.rows import changed

FAILED = Report(Result.FAILED, "exit status 1", NOW, 1)
LOST = Report(Result.LOST, "the worker was lost", NOW)


@pytest.mark.parametrize(
    ("changes", "is_any"),
    [
        ({}, False),
        ({"inputs": ("a",)}, True),
        ({"dependencies": (Dependency("a", "J0"),)}, True),
        ({"dependencies": (Dependency("a", "J0", copy_outputs=False),)}, False),
    ],
)
def test_a_job_downloads_its_inputs_and_the_outputs_that_it_copies(changes: dict[str, object], is_any: bool) -> None:
    assert job(**changes).request.has_downloads is is_any


def test_what_a_step_acquires_needs_the_privileges_of_its_needs() -> None:
    """SEC-2: a canary is the site's own."""
    bench, other, worker = (
        Need(order, step, "it", "t", "p", "m", privileges=wanted)
        for order, step, wanted in ((1, 1, ("bench", "lab")), (2, 1, ("lab",)), (0, 0, ()))
    )
    found = job(needs=(bench, other, worker))
    assert found.privileges_of(1) == {"bench", "lab"}
    assert found.privileges_of(0) == found.privileges_of(2) == set()
    assert changed(found, canary="target/linux").privileges_of(1) == set()


def test_a_job_that_acquires_may_wait_until_its_queue_deadline() -> None:
    found = jobs.acquire(job(nudged=True), NOW + MINUTE)
    assert (found.state, found.due) == (State.ACQUIRING, NOW + MINUTE + timedelta(seconds=3600))
    assert not found.flow.nudged, "or the next step that comes late would be taken for lost at once"


def test_the_next_attempt_has_a_queue_deadline_of_its_own() -> None:
    much_later = NOW + timedelta(days=2)
    tried = job(queue_until=NOW, parked_until=much_later + MINUTE)
    again = jobs.retry(tried, LOST, "lost", much_later)
    assert (again.flow.queue_until, again.flow.parked_until) == (None, None), "nor does it wait for anything"
    assert jobs.acquire(again, much_later).due == much_later + timedelta(seconds=3600)


def test_a_settled_job_is_due_until_its_flows_are_stopped_and_its_secrets_are_deleted() -> None:
    """JOB-1, SEC-1: whichever of the two comes first, the other is not forgotten."""
    left = changed(job(), stop_from=1, has_secrets=True)
    settled = jobs.settle(left, Outcome.ERRORED, "lost", NOW)
    assert settled.due == NOW
    assert jobs.flows_stopped(settled).due == jobs.secrets_deleted(settled).due == NOW
    for done in (jobs.flows_stopped(jobs.secrets_deleted(settled)), jobs.secrets_deleted(jobs.flows_stopped(settled))):
        assert (done.due, done.flow.stop_from, done.usage.has_secrets) == (None, None, False)


def test_what_deletes_the_secrets_of_a_settled_job_has_some_time_before_the_sweep_does() -> None:
    assert jobs.settle(changed(job(), has_secrets=True), Outcome.FAILED, "", NOW).due == NOW + SETTLE_WITHIN
    assert jobs.settle(job(), Outcome.FAILED, "", NOW).due is None


def test_an_attempt_that_another_follows_is_due_as_before_when_its_flow_is_stopped() -> None:
    stopped = jobs.flows_stopped(changed(job(), stop_from=1, due=NOW))
    assert (stopped.due, stopped.flow.stop_from) == (NOW, None)


def test_a_running_job_has_its_timeout_its_grace_and_some() -> None:
    found = jobs.start(jobs.acquire(job(), NOW), "w-1", NOW + MINUTE)
    assert (found.state, found.run.worker) == (State.RUNNING, "w-1")
    assert (found.times.acquired, found.times.started) == (NOW + MINUTE, NOW + MINUTE)
    assert found.due == NOW + MINUTE + timedelta(seconds=630) + SETTLE_WITHIN
    checked = jobs.start(jobs.acquire(job(), NOW), "w-1", NOW + MINUTE, health=40)
    assert (checked.run.health, checked.due) == (40, found.due + timedelta(seconds=40)), "and its health checks' time"


def test_what_a_job_holds_is_put_back_at_the_latest_when_it_has_waited_and_run_as_long_as_it_may() -> None:
    run = timedelta(seconds=630) + SETTLE_WITHIN
    assert jobs.latest_end(job(), NOW) == NOW + timedelta(seconds=3600) + run
    claimed = jobs.acquire(job(), NOW)
    assert jobs.latest_end(claimed, NOW + MINUTE) == NOW + timedelta(seconds=3600) + run
    assert jobs.latest_end(jobs.step_on(claimed, NOW), NOW) == NOW + timedelta(seconds=3600) + run
    assert jobs.latest_end(jobs.start(claimed, "w-1", NOW + MINUTE), NOW) == NOW + MINUTE + run
    checked = jobs.start(claimed, "w-1", NOW + MINUTE, health=40)
    assert jobs.latest_end(checked, NOW) == NOW + MINUTE + run + timedelta(seconds=40)


def test_a_job_keeps_the_time_at_which_it_first_had_everything() -> None:
    first = jobs.start(job(), "w-1", NOW)
    assert jobs.start(first, "w-2", NOW + MINUTE).times.acquired == NOW


def test_the_first_report_stands() -> None:
    told = jobs.report(job(), FAILED)
    assert (told.run.report, told.due) == (FAILED, NOW + SETTLE_WITHIN)
    assert jobs.report(told, LOST) == told


@pytest.mark.parametrize(
    ("due", "after"),
    [
        (None, 30 * SECOND + SETTLE_WITHIN),
        (timedelta(days=1), 30 * SECOND + SETTLE_WITHIN),
        (SECOND, SECOND),
    ],
)
def test_a_cancelled_job_is_due_no_later_than_its_grace_and_some(due: timedelta | None, after: timedelta) -> None:
    found = jobs.cancel(job(due=due and NOW + due), "ada", NOW)
    assert (found.cancellation.cancelled_by, found.due) == ("ada", NOW + after)


def test_who_cancelled_first_is_remembered() -> None:
    assert jobs.cancel(jobs.cancel(job(), "ada", NOW), "bob", NOW).cancellation.cancelled_by == "ada"


def test_a_settled_job_owes_nothing() -> None:
    found = jobs.settle(job(due=NOW), Outcome.SUCCEEDED, "done", NOW, 0)
    assert found.is_settled
    assert (found.due, found.times.settled) == (None, NOW)
    assert (found.end.outcome, found.end.reason, found.end.exit_code) == (Outcome.SUCCEEDED, "done", 0)


@given(st.sampled_from(State), st.sampled_from(Outcome), st.sampled_from(Outcome))
def test_a_job_settles_exactly_once(state: State, first: Outcome, second: Outcome) -> None:
    settled = job(state=State.SETTLED)
    if state is not State.SETTLED:
        settled = jobs.settle(job(state=state), first, "why", NOW)
        assert (settled.is_settled, settled.end.outcome) == (True, first)
    with pytest.raises(ValueError, match="job J1 is settled already"):
        jobs.settle(settled, second, "why", NOW)


def test_the_next_attempt_starts_clean_and_remembers_the_last() -> None:
    tried = changed(jobs.start(job(due=NOW), "w-1", NOW), report=LOST)
    found = jobs.retry(tried, LOST, "lost", NOW + MINUTE)
    assert (found.state, found.attempt, found.due) == (State.QUEUED, 2, NOW + MINUTE + START_WITHIN)
    assert (found.run.worker, found.run.report) == (None, None)
    assert [(past.attempt, past.outcome, past.reason) for past in found.history.attempts] == [(1, "lost", LOST.reason)]
    again = jobs.retry(found, LOST, "lost", NOW + 2 * MINUTE)
    times = [(past.started, past.ended) for past in again.history.attempts]
    assert times == [(NOW, NOW + MINUTE), (None, NOW + 2 * MINUTE)], "its script ran in the first one only"


@given(st.integers(1, 6))
def test_every_attempt_but_the_present_one_is_past(tries: int) -> None:
    found: Job = job()
    for _ in range(tries - 1):
        found = jobs.retry(found, FAILED, "failed", NOW)
    assert [past.attempt for past in found.history.attempts] == list(range(1, found.attempt))
    assert found.attempt == tries


def test_a_job_between_two_steps_is_due_soon_and_one_that_claims_at_its_queue_deadline() -> None:
    claiming = jobs.acquire(job(), NOW)
    between = jobs.step_on(replace(claiming, flow=replace(claiming.flow, nudged=True)), NOW + MINUTE)
    assert (between.due, between.flow.nudged) == (NOW + MINUTE + jobs.STEP_WITHIN, False)
    assert jobs.acquire(between, NOW + 2 * MINUTE).due == claiming.due == claiming.flow.queue_until


def test_a_job_that_no_longer_acquires_takes_no_step() -> None:
    running = jobs.start(jobs.acquire(job(), NOW), "w-1", NOW)
    assert jobs.step_on(running, NOW) == running


def test_a_nudged_job_remembers_it() -> None:
    nudged = jobs.nudge(job(), NOW, MINUTE)
    assert (nudged.due, nudged.flow.nudged) == (NOW + MINUTE, True)
