"""However a job ends, and whatever it has by then of what it wants, nothing of it is left. [UNIT-1] [UNIT-2] [JOB-1]

Every stage, from having none of five resources of five real wells to running with all of them, by every way to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.usecases.jobs import cancel, settle
from tests.aws.account import Account
from tests.usecases.steps import finish, hello, job_of, sweep
from tests.wells.lending import ADA, QUEUE, TYPES, WORKER, Lending
from tests.wells.rack import Rack

WANTED = (*TYPES, WORKER)


WAITS = [(has, how) for has in range(len(WANTED)) for how in ("queue", "half")]
WORKS = [(len(TYPES), how) for how in ("booting", "running")]
SHORT = {(0, "half"), (3, "queue"), (len(TYPES), "half"), *WORKS}


def tried(stages: Sequence[tuple[int, str]]) -> list[ParameterSet]:
    """Parameters of a test. The stages that are not in SHORT are tried by the long tests."""
    return [pytest.param(*each, marks=() if each in SHORT else pytest.mark.long) for each in stages]


STAGES = tried([*WAITS, *WORKS])
"""How many resources a job has, and where it gets no further: in the queue of the next, or where that was made and the
answer lost; or its worker boots; or its script runs."""


@pytest.fixture(scope="module")
def rack() -> Iterator[Rack]:
    made = Rack()
    yield made
    made.end()


@pytest.fixture
def lending(account: Account, rack: Rack, tmp_path: Path) -> Lending:
    return Lending(account, rack, tmp_path)


def reach(lending: Lending, has: int, how: str) -> str:
    """Bring a job to where it gets no further. It uses what it has."""
    if how not in ("booting", "running"):
        lending.stop_at(WANTED[has], how)
    job = lending.submit()
    if how == "running":
        hello(lending.twin, job)
    lending.use()
    assert lending.had(job)[:has] == list(TYPES[:has])
    assert job_of(lending.twin, job).state is (State.RUNNING if how == "running" else State.ACQUIRING)
    return job


def is_over(lending: Lending, job: str, outcome: Outcome, attempt: int = 1) -> None:
    """All of it has ended, once, and nothing is left, nowhere."""
    lending.go_on()
    lending.finish(job)
    found = job_of(lending.twin, job)
    assert (found.end.outcome, found.attempt, lending.ends) == (outcome, attempt, [job]), found.end.reason
    assert lending.left() == []
    assert lending.good() == []


def stop_flow(lending: Lending, job: str) -> None:
    lending.twin.flows.stop(job, 1)


@pytest.mark.parametrize(("has", "how"), STAGES)
def test_a_job_is_cancelled(lending: Lending, has: int, how: str) -> None:
    job = reach(lending, has, how)
    cancel.cancel(lending.twin.on, ADA, job)
    lending.twin.run()
    is_over(lending, job, Outcome.CANCELLED)


@pytest.mark.parametrize(("has", "how"), STAGES)
def test_an_attempt_is_aborted(lending: Lending, has: int, how: str) -> None:
    """Its flow is stopped from outside, and an event says so."""
    job = reach(lending, has, how)
    stop_flow(lending, job)
    settle.settle(lending.twin.on, job, 1, "ABORTED", None)
    lending.twin.run()
    is_over(lending, job, Outcome.ERRORED)


@pytest.mark.parametrize(("has", "how"), STAGES)
def test_a_flow_is_gone_and_nobody_says_so(lending: Lending, has: int, how: str) -> None:
    """The sweep finds it; before a worker was asked for, by the next attempt."""
    job = reach(lending, has, how)
    stop_flow(lending, job)
    is_over(lending, job, Outcome.SUCCEEDED, attempt=1 if has == len(TYPES) else 2)


@pytest.mark.parametrize(("has", "how"), tried([*WAITS, WORKS[0]]))
def test_a_job_waits_for_too_long(lending: Lending, has: int, how: str) -> None:
    job = reach(lending, has, how)
    sweep(lending.twin, QUEUE + 1)
    is_over(lending, job, Outcome.ERRORED)


@pytest.mark.parametrize("has", range(len(WANTED)))
def test_the_next_cannot_be_had_at_all(lending: Lending, has: int) -> None:
    """A well or the factory says that it has no such thing."""
    lending.stop_at(WANTED[has], "refused")
    job = lending.submit()
    is_over(lending, job, Outcome.FAILED)


@pytest.mark.parametrize("has", [1, *(pytest.param(has, marks=pytest.mark.long) for has in range(2, len(WANTED)))])
def test_a_job_gives_back_what_it_cannot_use(account: Account, rack: Rack, tmp_path: Path, has: int) -> None:
    lending = Lending(account, rack, tmp_path, 'idle_hold = "15m"')
    job = reach(lending, has, "queue")
    sweep(lending.twin, 901)
    assert job_of(lending.twin, job).history.given_back == 1
    is_over(lending, job, Outcome.SUCCEEDED, attempt=2)


def test_a_worker_never_says_hello(lending: Lending) -> None:
    job = reach(lending, len(TYPES), "booting")
    sweep(lending.twin, 601)
    is_over(lending, job, Outcome.SUCCEEDED, attempt=2)


def test_a_worker_is_lost(lending: Lending) -> None:
    job = reach(lending, len(TYPES), "running")
    sweep(lending.twin, 301)
    is_over(lending, job, Outcome.SUCCEEDED, attempt=2)


@pytest.mark.parametrize("result", [Result.SUCCEEDED, Result.FAILED, Result.TIMED_OUT])
def test_a_script_ends(lending: Lending, result: Result) -> None:
    job = reach(lending, len(TYPES), "running")
    finish(lending.twin, job, result)
    is_over(lending, job, Outcome.SUCCEEDED if result is Result.SUCCEEDED else Outcome.FAILED)


def test_what_is_left_is_seen(lending: Lending) -> None:
    """One of each is there, and the well of one of them lies."""
    job = reach(lending, len(TYPES), "running")
    assert {each.rpartition(" ")[2] for each in lending.there()} == {"bucket", "sandbox", "exists"}
    lending.rack.on("DELETE", lambda asked: asked.say(200, {"proof": {"checked": "trust me"}}), times=1000)
    finish(lending.twin, job)
    lending.finish(job)
    lending.rack.faults.clear()
    assert any("project is quarantined" in each for each in lending.left())
    assert [each for each in lending.listed()] == [f"{unit} is listed by project" for unit in lending.rack.units]
    lending.rack.units.clear()
