"""Steps that scenarios share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from penstock.domain.commands import Hello, SubmitJob
from penstock.domain.jobs.jobs import Job, Result, State, job_key
from penstock.domain.logs.logs import Event
from penstock.domain.pools.pools import Claim, Slot, SlotState, collection
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.testing.twin import Twin
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import settle
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.logs import logs
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from penstock.usecases.workers.agents import Caller


def sweep(twin: Twin, seconds: float = 61) -> usecases_sweep.SweepResult:
    twin.pass_time(seconds)
    done = usecases_sweep.sweep(twin.on)
    twin.run()
    return done


def run_to_end(twin: Twin, job: str) -> None:
    twin.run()
    if job_of(twin, job).state is State.ACQUIRING:
        hello(twin, job)
    finish(twin, job)


def live(twin: Twin, job: str) -> list[Unit]:
    rows = twin.store.rows.values()
    return [row for row in rows if isinstance(row, Unit) and row.lease.job == job and row.state is not UnitState.GONE]


SCRIPT = "#!/bin/bash\necho hello\n"


TOKEN = "t" * 43


def submit(twin: Twin, user: User, **ask: object) -> str:
    return jobs_submit.submit(twin.on, user, SubmitJob(SCRIPT, **ask), None)  # type: ignore[arg-type]


def job_of(twin: Twin, job: str) -> Job:
    found = twin.store.get(job_key(job), Job)
    assert found
    return found


def worker_of(twin: Twin, job: str) -> Unit:
    found = [
        row
        for row in twin.store.rows.values()
        if isinstance(row, Unit) and row.lease.job == job and row.lease.order == 0
    ]
    return max(found, key=lambda unit: unit.lease.attempt)


def hello(twin: Twin, job: str) -> Caller:
    worker = worker_of(twin, job).id
    key = drivers.bootstrap_key(twin.on.signing_key(), worker)
    agents.hello(twin.on, Hello(worker, key, TOKEN))
    twin.run()
    return agents.authenticate(twin.on, job, TOKEN)


def finish(twin: Twin, job: str, result: Result = Result.SUCCEEDED) -> None:
    agents.report_finished(twin.on, agents.authenticate(twin.on, job, TOKEN), result, "the script ended", 0)
    twin.run()


@contextmanager
def dies_after_the_report(twin: Twin) -> Iterator[None]:
    """A function dies once it has written how an attempt ended, and before it settles the attempt.

    Only of a job that publishes are the two written apart, so every job that runs now is one.
    """
    for job in [
        row
        for row in twin.store.rows.values()
        if isinstance(row, Job) and row.state is State.RUNNING and row.run.report is None
    ]:
        twin.store.rows[job.key] = replace(job, request=replace(job.request, publishes=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settle, "settle", lambda *given: None)
        yield


def told(twin: Twin, job: str) -> list[str]:
    """All lines of a job's log: a page of it ends where its archive does."""
    found: list[Event] = []
    while page := logs.read(twin.on, job, found[-1].seq if found else 0, 1000):
        found += page
    return [event.line.payload for event in found]


def slots(twin: Twin, pool: str, state: SlotState) -> list[str]:
    return [slot.name for slot in twin.store.find(collection(pool), f"{state}#", Slot)]


def assert_all_is_put_back(twin: Twin) -> None:
    assert slots(twin, "resource/bench", SlotState.FREE) == ["bench-1"]
    assert len(slots(twin, "resource/licence", SlotState.FREE)) == 2
    assert len(slots(twin, "target/linux", SlotState.FREE)) == 2
    assert not [row for row in twin.store.rows.values() if isinstance(row, Unit) and row.state is not UnitState.GONE]
    assert not [row for row in twin.store.rows.values() if isinstance(row, Claim)]
    assert not twin.drivers.hand.made
