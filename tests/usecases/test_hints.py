"""Messages are hints: about what is not there, or is over, they change nothing. [JOB-1] [SLOT-3] [UNIT-1]"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.domain.artifacts.artifacts import artifact_key
from penstock.domain.artifacts.inputs import declare
from penstock.domain.jobs.jobs import Outcome, job_key
from penstock.domain.pools.pools import pool_key
from penstock.domain.units.units import unit_key
from penstock.domain.users.users import User
from penstock.kernel.rows import Key
from penstock.testing.twin import Twin
from penstock.usecases import sweep
from penstock.usecases.artifacts import expire, owners
from penstock.usecases.jobs import cancel, flow, settle
from penstock.usecases.pools import resize, scheduler, serving
from penstock.usecases.units import advance
from tests.usecases.steps import assert_all_is_put_back, finish, hello, job_of, live, run_to_end, submit

pytestmark = pytest.mark.usefixtures("by_flow")

NOBODY = "01KDVDNA01AAAAAAAAAAAAAAAA"
NOTHING = f"{NOBODY}.{NOBODY}"

ABOUT_NOTHING: dict[str, Callable[[Twin], object]] = {
    "acquire": lambda twin: scheduler.acquire(twin.on, NOBODY, 1, 0, "token"),
    "start": lambda twin: flow.start(twin.on, NOBODY),
    "serve": lambda twin: serving.serve(twin.on, ["resource/none"]),
    "resize": lambda twin: resize.resize(twin.on, "resource/none"),
    "settle": lambda twin: settle.settle(twin.on, NOBODY, 1, None, None),
    "put back": lambda twin: settle.start_release(twin.on, NOBODY, 1),
    "advance": lambda twin: advance.advance(twin.on, "w-none"),
    "forget": lambda twin: owners.delete_unowned(twin.on, NOTHING),
    "destroy": lambda twin: owners.delete_bytes(twin.on, NOTHING),
    "let go": lambda twin: owners.release_output(twin.on, NOTHING, "job#1"),
    "let an input go": lambda twin: owners.release_input(twin.on, declare(NOBODY, "a", twin.world.now()), "job#1"),
    "nudge a unit": lambda twin: sweep.nudge(twin.on, "unit", unit_key("w-none")),
    "nudge a job": lambda twin: sweep.nudge(twin.on, "job", job_key(NOBODY)),
    "nudge an artifact": lambda twin: expire.nudge(twin.on, "artifact", artifact_key(NOTHING)),
    "nudge what nobody waits for": lambda twin: expire.nudge(twin.on, "wheel", Key("wheel#1", "wheel")),
    "nudge what is not known": lambda twin: sweep.nudge(twin.on, "wheel", Key("wheel#1", "wheel")),
}


@pytest.mark.parametrize("hint", ABOUT_NOTHING)
def test_a_hint_about_nothing_does_nothing(twin: Twin, hint: str) -> None:
    rows = dict(twin.store.rows)
    ABOUT_NOTHING[hint](twin)
    twin.run()
    assert twin.store.rows == rows
    assert not twin.queues.messages
    assert not twin.flows.executions


def test_a_resize_of_nothing_serves_nobody(twin: Twin) -> None:
    """A pool that is not there, nudged: the scheduler is told, finds nothing, and is done."""
    sweep.nudge(twin.on, "pool", pool_key("resource/none"))
    assert [message for _, _, message in twin.queues.messages] == [{"do": "resize", "pool": "resource/none"}]
    rows = dict(twin.store.rows)
    twin.run()
    assert twin.store.rows == rows


OVER: dict[str, Callable[[Twin, str, str], object]] = {
    "acquire": lambda twin, job, unit: scheduler.acquire(twin.on, job, 1, 0, "token"),
    "acquire a step that it has not": lambda twin, job, unit: scheduler.acquire(twin.on, job, 1, 7, "token"),
    "acquire an attempt that was not": lambda twin, job, unit: scheduler.acquire(twin.on, job, 2, 0, "token"),
    "start": lambda twin, job, unit: flow.start(twin.on, job),
    "settle": lambda twin, job, unit: settle.settle(twin.on, job, 1, "Lost", "again"),
    "put back": lambda twin, job, unit: settle.start_release(twin.on, job, 1),
    "advance": lambda twin, job, unit: advance.advance(twin.on, unit),
    "nudge the job": lambda twin, job, unit: sweep.nudge(twin.on, "job", job_key(job)),
    "nudge the unit": lambda twin, job, unit: sweep.nudge(twin.on, "unit", unit_key(unit)),
}


@pytest.mark.parametrize("hint", OVER)
def test_a_hint_about_what_is_over_does_nothing(twin: Twin, ada: User, hint: str) -> None:
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    (unit,) = (unit.id for unit in live(twin, job) if unit.lease.order == 0)
    run_to_end(twin, job)
    rows, flows = dict(twin.store.rows), len(twin.flows.executions)
    OVER[hint](twin, job, unit)
    assert twin.store.rows == rows
    assert not twin.queues.messages
    assert len(twin.flows.executions) == flows
    assert_all_is_put_back(twin)


def test_a_step_of_an_attempt_that_is_over_is_told_so(twin: Twin, ada: User) -> None:
    """JOB-1: whoever waits for what never comes must hear of it, or the flow would be parked for ever."""
    job = submit(twin, ada)
    twin.run()
    told: list[tuple[str, str]] = []
    twin.flows.fail = lambda token, error, cause: told.append((token, error))  # type: ignore[method-assign]
    scheduler.acquire(twin.on, job, 1, 7, "no such step")
    scheduler.acquire(twin.on, job, 2, 0, "no such attempt")
    scheduler.acquire(twin.on, NOBODY, 1, 0, "no such job")
    assert told == [("no such step", "Stale"), ("no such attempt", "Stale"), ("no such job", "Stale")]
    hello(twin, job)
    finish(twin, job)
    scheduler.acquire(twin.on, job, 1, 0, "no more")
    assert told[3:] == [("no more", "Stale")]
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_a_step_of_a_cancelled_job_is_told_that_it_is(twin: Twin, ada: User) -> None:
    """JOB-1: also before any claim of it is written."""
    job = submit(twin, ada)
    cancel.cancel(twin.on, ada, job)
    told: list[tuple[str, str]] = []
    twin.flows.fail = lambda token, error, cause: told.append((token, error))  # type: ignore[method-assign]
    scheduler.acquire(twin.on, job, 1, 0, "token")
    assert told == [("token", "Cancelled")]
