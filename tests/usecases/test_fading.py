"""A unit that vanished ends its attempt only while that attempt still has it; what nobody wants is put back. [JOB-1]

Each test calls the step alone, with what a comparison read before: whatever has moved since then is not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.jobs.jobs import Outcome, Report, Result, State
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Row
from penstock.testing.twin import START, Twin
from penstock.usecases.units import reconcile
from tests.usecases.exact import Flows, drop, lease_of, put, running, sent, unit_of
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import dies_after_the_report, job_of, live, submit, told, worker_of

LEASE = timedelta(hours=1)
ENDED = Report(Result.SUCCEEDED, "the script ended", START, 0)
AGED = reconcile.UNWANTED_AFTER
MOMENT = timedelta(milliseconds=1)


def vanish(twin: Twin, unit: Unit) -> bool:
    return reconcile.end_vanished(twin.on, unit, LEASE, twin.world.now())


def stored(twin: Twin, row: Row) -> Row | None:
    return twin.store.get(row.key, type(row))


def test_a_job_that_runs_loses_its_attempt_and_its_flow_is_over(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    unit, flows = worker_of(twin, job), Flows(twin)
    with dies_after_the_report(twin):
        assert vanish(twin, unit)
    cause = f"worker {unit.id} was lost: hand does not list it any more"
    assert job_of(twin, job).run.report == Report(Result.LOST, cause, twin.world.now())
    assert vanish(twin, worker_of(twin, job))
    assert job_of(twin, job).history.attempts[0].reason == cause
    assert (flows.succeeded, flows.failed) == ([], [])
    assert told(twin, job).count(cause) == 1


def test_what_was_reported_stays_and_is_not_written_again(twin: Twin, ada: User) -> None:
    """Its attempt is ended as it said, for who wrote the report may have died."""
    job = running(twin, ada)
    put(twin, job_of(twin, job), report=ENDED)
    before = job_of(twin, job)
    with dies_after_the_report(twin):
        assert vanish(twin, worker_of(twin, job))
    assert job_of(twin, job) == before, "not even its version grew"
    vanish(twin, worker_of(twin, job))
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


@pytest.mark.usefixtures("by_flow")
def test_a_job_whose_worker_boots_has_the_step_ended_that_waits_for_it(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    unit, flows, before = worker_of(twin, job), Flows(twin), job_of(twin, job)
    assert vanish(twin, unit)
    cause = f"worker {unit.id} was lost: hand does not list it any more"
    assert flows.failed == [(lease_of(twin, job, 0).token, "Lost", cause)]
    assert flows.succeeded == []
    assert job_of(twin, job) == before


MOVED: dict[str, Callable[[Twin, str], None]] = {
    "its row is gone": lambda twin, job: drop(twin, worker_of(twin, job)),
    "it is cleaned": lambda twin, job: put(twin, worker_of(twin, job), state=UnitState.CLEANING),
    "it was lent again": lambda twin, job: put(twin, worker_of(twin, job), attempt=2),
    "its job is gone": lambda twin, job: drop(twin, job_of(twin, job)),
    "its job settled": lambda twin, job: put(twin, job_of(twin, job), state=State.SETTLED),
    "its job tries again": lambda twin, job: put(twin, job_of(twin, job), attempt=2),
}


@pytest.mark.parametrize("move", MOVED.values(), ids=MOVED)
def test_what_moved_on_since_it_was_read_loses_nothing(
    twin: Twin, ada: User, move: Callable[[Twin, str], None]
) -> None:
    job = running(twin, ada)
    unit = worker_of(twin, job)
    move(twin, job)
    flows, before = Flows(twin), dict(twin.store.rows)
    assert not vanish(twin, unit)
    assert dict(twin.store.rows) == before
    assert (flows.succeeded, flows.failed) == ([], [])


def test_an_agent_that_speaks_just_before_its_attempt_is_lost_is_alive(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    unit, flows = worker_of(twin, job), Flows(twin)
    before_the_next_commit(twin, lambda: put(twin, unit, due=twin.world.now() + LEASE))
    assert not vanish(twin, unit)
    assert job_of(twin, job).run.report is None
    assert flows.succeeded == []


def test_a_report_that_comes_just_before_stands(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    before_the_next_commit(twin, lambda: put(twin, job_of(twin, job), report=ENDED))
    assert vanish(twin, worker_of(twin, job))
    assert job_of(twin, job).run.report == ENDED


def left_over(twin: Twin, ada: User, order: int = 1) -> Unit:
    """A unit whose job is no more, and that is as old as it must be."""
    job = running(twin, ada, resources=["bench"])
    drop(twin, job_of(twin, job))
    put(twin, unit_of(twin, job, order), since=twin.world.now() - AGED)
    sent(twin)
    return unit_of(twin, job, order)


def assert_put_back(twin: Twin, unit: Unit) -> None:
    found = stored(twin, unit)
    assert isinstance(found, Unit)
    assert (found.state, found.step.reason) == (UnitState.DIRTY, "its attempt is over")


@pytest.mark.parametrize(("order", "queue"), [(0, "factory"), (1, "well")])
def test_a_unit_whose_job_is_no_more_is_put_back(twin: Twin, ada: User, order: int, queue: str) -> None:
    unit = left_over(twin, ada, order)
    reconcile.end_unwanted(twin.on, unit)
    assert_put_back(twin, unit)
    assert sent(twin) == [(queue, {"unit": unit.id})]


def test_a_unit_of_an_attempt_before_is_put_back_while_its_job_tries_again(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, worker_of(twin, job), since=twin.world.now() - AGED)
    unit = worker_of(twin, job)
    reconcile.end_unwanted(twin.on, unit)
    assert stored(twin, unit) == unit, "its attempt is not over"
    put(twin, job_of(twin, job), attempt=2)
    reconcile.end_unwanted(twin.on, unit)
    assert_put_back(twin, unit)


@pytest.mark.parametrize("state", [UnitState.CLEANING, UnitState.IDLE, UnitState.DIRTY, UnitState.GONE])
def test_a_unit_without_a_lease_is_left_to_its_own_steps(twin: Twin, ada: User, state: UnitState) -> None:
    put(twin, left_over(twin, ada), state=state)
    (unit,) = (row for row in twin.store.rows.values() if isinstance(row, Unit) and row.lease.order == 1)
    reconcile.end_unwanted(twin.on, unit)
    assert stored(twin, unit) == unit
    assert sent(twin) == []


def test_a_unit_is_not_asked_for_before_its_time(twin: Twin, ada: User) -> None:
    unit = left_over(twin, ada)
    put(twin, unit, since=unit.since + MOMENT)
    (young,) = (one for one in live(twin, unit.lease.job) if one.lease.order == 1)
    reconcile.end_unwanted(twin.on, young)
    assert stored(twin, unit) == young
    assert sent(twin) == []


def test_a_unit_that_moves_just_before_it_is_put_back_stays(twin: Twin, ada: User) -> None:
    unit = left_over(twin, ada)
    before_the_next_commit(twin, lambda: put(twin, unit, reason="lent again"))
    reconcile.end_unwanted(twin.on, unit)
    assert stored(twin, unit) == replace(unit, step=replace(unit.step, reason="lent again"), version=unit.version + 1)
    assert sent(twin) == []
