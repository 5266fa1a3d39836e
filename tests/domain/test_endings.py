"""How every way that an attempt can end becomes its job's end, or its next attempt."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.jobs.jobs import Outcome, Report, Result, State, Times
from penstock.domain.jobs.outcome import MAX_SPARED, REASONS, conclude, describe_duration
from tests.domain.helpers import NOW, job

SETTLED = State.SETTLED
REPORTED = [
    # result, the job, outcome, reason
    (Result.SUCCEEDED, {}, Outcome.SUCCEEDED, "said"),
    (
        Result.SUCCEEDED,
        {"cancelled_by": "ada"},
        Outcome.SUCCEEDED,
        "said; ada cancelled it too late to stop its script",
    ),
    (Result.FAILED, {}, Outcome.FAILED, "said"),
    (Result.FAILED, {"cancelled_by": "ada"}, Outcome.CANCELLED, "cancelled by ada: said"),
    (Result.FAILED, {"retry_failed": True, "retries": 0}, Outcome.FAILED, "said"),
    (Result.FAILED, {"retry_failed": True, "cancelled_by": "ada"}, Outcome.CANCELLED, "cancelled by ada: said"),
    (Result.TIMED_OUT, {"retry_failed": True}, Outcome.FAILED, "said"),
    (Result.CANCELLED, {"cancelled_by": "ada"}, Outcome.CANCELLED, "cancelled by ada: said"),
    (Result.CANCELLED, {}, Outcome.CANCELLED, "cancelled by the worker: said"),
    (Result.LOST, {"retries": 0}, Outcome.ERRORED, "tried once: said"),
    (Result.LOST, {"retries": 1, "attempt": 2}, Outcome.ERRORED, "tried 2 times: said"),
    (Result.LOST, {"cancelled_by": "ada"}, Outcome.CANCELLED, "cancelled by ada"),
]


@pytest.mark.parametrize(("result", "fields", "outcome", "reason"), REPORTED)
def test_a_report_settles_the_job(result: Result, fields: dict[str, Any], outcome: Outcome, reason: str) -> None:
    found = conclude(job(report=Report(result, "said", NOW, 7), **fields), "Lost", "a cause", NOW)
    assert (found.state, found.end.outcome, found.end.reason) == (SETTLED, outcome, reason)


@pytest.mark.parametrize(
    ("result", "fields", "outcome"),
    [
        (Result.LOST, {}, "lost"),
        (Result.LOST, {"retries": 3, "attempt": 3}, "lost"),
        (Result.FAILED, {"retry_failed": True}, "failed"),
    ],
)
def test_a_report_leads_to_the_next_attempt(result: Result, fields: dict[str, Any], outcome: str) -> None:
    before = job(report=Report(result, "said", NOW), **fields)
    found = conclude(before, None, None, NOW)
    assert (found.state, found.attempt) == (State.QUEUED, before.attempt + 1)
    assert found.history.attempts[-1].outcome == outcome


@pytest.mark.parametrize(
    ("error", "cause", "outcome", "reason"),
    [
        ("Unsatisfiable", "no such image", Outcome.FAILED, "no such image"),
        ("Unsatisfiable", None, Outcome.FAILED, REASONS["Unsatisfiable"]),
        ("QueueDeadline", "", Outcome.ERRORED, REASONS["QueueDeadline"]),
        ("TIMED_OUT", None, Outcome.ERRORED, "the flow ended without a result (TIMED_OUT)"),
        (None, None, Outcome.ERRORED, "the flow ended without a result (no error)"),
    ],
)
def test_an_error_of_the_flow_settles_the_job(
    error: str | None, cause: str | None, outcome: Outcome, reason: str
) -> None:
    found = conclude(job(), error, cause, NOW)
    assert (found.state, found.end.outcome, found.end.reason) == (SETTLED, outcome, reason)


def test_a_cancellation_comes_before_the_error_that_it_led_to() -> None:
    found = conclude(job(cancelled_by="ada"), "QueueDeadline", "waited", NOW)
    assert (found.end.outcome, found.end.reason) == (Outcome.CANCELLED, "cancelled by ada")


def test_a_lost_worker_without_a_report_leads_to_the_next_attempt() -> None:
    found = conclude(job(), "Lost", None, NOW)
    assert (found.state, found.history.attempts[0].reason) == (State.QUEUED, REASONS["Lost"])


def test_the_exit_code_is_kept() -> None:
    assert conclude(job(report=Report(Result.FAILED, "said", NOW, 7)), None, None, NOW).end.exit_code == 7


@given(st.data())
def test_whatever_happens_the_job_ends_within_its_retries(data: st.DataObject) -> None:
    retries = data.draw(st.integers(0, 4))
    found = job(retries=retries, retry_failed=data.draw(st.booleans()))
    tries = 0
    while not found.is_settled:
        result = data.draw(st.none() | st.sampled_from(Result))
        told = job(
            retries=retries,
            retry_failed=found.limits.retry_failed,
            attempt=found.attempt,
            attempts=found.history.attempts,
            spared=found.history.spared,
            state=data.draw(st.sampled_from([State.QUEUED, State.ACQUIRING, State.RUNNING])),
            cancelled_by=data.draw(st.sampled_from([None, None, "ada"])),
            report=result and Report(result, "said", NOW),
        )
        found = conclude(told, data.draw(st.sampled_from([None, "Lost", "Unsatisfiable"])), None, NOW)
        tries += 1
    assert tries <= retries + 1 + found.history.spared
    assert found.history.spared <= MAX_SPARED
    assert found.end.reason


@pytest.mark.parametrize(("state", "spared"), [(State.QUEUED, 1), (State.ACQUIRING, 0), (State.RUNNING, 0)])
def test_an_attempt_whose_flow_took_no_step_uses_up_no_retry(state: State, spared: int) -> None:
    found = conclude(job(state=state), "Lost", "the flow never took its first step", NOW)
    assert (found.attempt, found.history.spared) == (2, spared)


@pytest.mark.parametrize("error", ["SQS.SdkClientException", "SQS.AmazonSQSException", "States.TaskFailed", "Stalled"])
def test_an_attempt_whose_flow_failed_itself_uses_up_no_retry_a_few_times(error: str) -> None:
    found = job(retries=0)
    for spared in range(1, MAX_SPARED + 1):
        found = conclude(found, error, "Service unavailable", NOW)
        assert (found.state, found.attempt, found.history.spared) == (State.QUEUED, spared + 1, spared)
        assert found.history.attempts[-1].reason == "Service unavailable"
    found = conclude(found, error, "Service unavailable", NOW)
    assert (found.state, found.end.outcome) == (SETTLED, Outcome.ERRORED)
    assert found.end.reason == f"tried {MAX_SPARED + 1} times: Service unavailable"


def test_how_long_it_took_is_said_with_and_without_a_beginning() -> None:
    """Seconds are whole; what never began has no time of its own."""
    times = Times(submitted=NOW, settled=NOW + timedelta(seconds=90.7))
    assert describe_duration(replace(job(), times=times)) == "took 90 s"
    begun = replace(times, started=NOW + timedelta(seconds=30))
    assert (
        describe_duration(replace(job(attempt=2), times=begun))
        == "took 90 s in 2 attempts, 60 s of it since its script started"
    )
    assert describe_duration(replace(job(), times=Times(submitted=NOW))) == "took 0 s"
