"""Units that are held, and released."""

from __future__ import annotations

from typing import Any

from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.testing.twin import START, Twin
from penstock.usecases.units import maintenance
from tests.usecases.steps import hello, submit, sweep, worker_of
from tests.usecases.warm import unit_of

HOUR = 3600


ROOT = User(name="root", privileges=("admin",), created=START)


def hold(twin: Twin, unit: Unit | str, seconds: int = HOUR, reason: str = "looking") -> Unit:
    found = unit_of(twin, unit if isinstance(unit, str) else unit.id)
    held = maintenance.hold(twin.on, ROOT, found.is_a, found.id, reason, seconds)
    twin.run()
    return held


def release(twin: Twin, unit: Unit | str) -> Unit:
    found = unit_of(twin, unit if isinstance(unit, str) else unit.id)
    maintenance.release(twin.on, ROOT, found.is_a, found.id)
    twin.run()
    return unit_of(twin, found.id)


def running(twin: Twin, ada: User, **ask: Any) -> tuple[str, Unit]:
    """A job whose script runs, on a worker that is not kept."""
    job = submit(twin, ada, **({"target": "other"} | ask))
    twin.run()
    hello(twin, job)
    return job, worker_of(twin, job)


def wait(twin: Twin, seconds: float, each: float = 601) -> None:
    """Let time pass, and the sweep come."""
    while seconds > 0:
        sweep(twin, min(each, seconds))
        seconds -= each
