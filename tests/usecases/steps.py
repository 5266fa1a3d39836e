"""Steps that scenarios share."""

from __future__ import annotations

from penstock.domain.jobs.jobs import State
from penstock.domain.units.units import Unit, UnitState
from penstock.testing.twin import Twin
from penstock.usecases import sweep as usecases_sweep
from tests.usecases.test_one_job import (
    finish,
    hello,
    job_of,
)


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
    return [row for row in rows if isinstance(row, Unit) and row.job == job and row.state is not UnitState.GONE]
