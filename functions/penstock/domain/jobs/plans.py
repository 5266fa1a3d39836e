"""A plan: what would happen to a job if it were submitted now. What it acquires, in which order, and each wait."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.jobs.admission import describe_wait
from penstock.domain.jobs.jobs import Job
from penstock.domain.pools.forecast import Forecast, combined_start, format_duration
from penstock.domain.pools.pools import WORKER, Need, demand
from penstock.kernel.frozen import dataclass

UNKNOWN = "when it could start cannot be said"


@dataclass(frozen=True)
class Acquire:
    """How much of a pool one step takes. `type` is a target, a resource type or a quota."""

    pool: str
    type: str
    count: int


@dataclass(frozen=True)
class Plan:
    """What a job would acquire, step by step, the worker last; the privileges that it needs; and each wait.

    `seconds` until everything may be granted: 0 for now, None if unknown. Making it takes additional time. `depends`:
    other jobs have to end first.
    """

    target: str
    target_resolved: str
    steps: tuple[tuple[Acquire, ...], ...]
    privileges: tuple[str, ...]
    waits: tuple[Forecast, ...]
    seconds: float | None
    sentences: tuple[str, ...]
    depends: bool = False


def steps_of(job: Job) -> list[int]:
    """The steps in which a job acquires what it needs, in order. The worker's is the last."""
    return sorted({need.step for need in job.request.needs}, key=lambda step: (step == WORKER, step))


def plan(job: Job, privileges: Sequence[str], forecasts: Sequence[Forecast], first: Sequence[str] = ()) -> Plan:
    """The plan of a job that would be accepted, given the forecast of each of its steps.

    `first`: a sentence for each job that it would wait for; nobody knows how long those take.
    """
    steps = tuple(_acquires([need for need in job.request.needs if need.step == step]) for step in steps_of(job))
    waits = tuple(one for one in forecasts if one.would_wait)
    seconds = None if first else combined_start(forecasts)[0]
    told = (*first, _order(job), *map(_wait, waits), UNKNOWN if first else _start(waits, seconds))
    return Plan(
        job.request.target, job.request.target_resolved, steps, tuple(privileges), waits, seconds, told, bool(first)
    )


def _acquires(needs: Sequence[Need]) -> tuple[Acquire, ...]:
    types = {need.pool: need.type for need in needs}
    wanted = demand(needs)
    return tuple(Acquire(pool, types.get(pool, pool.partition("/")[2]), count) for pool, count in wanted.items())


def _order(job: Job) -> str:
    names = [need.said for need in job.request.needs if need.order != WORKER]
    aliased = f" ({job.request.came_by})" if job.request.came_by else ""
    first = f"first {', '.join(names)}, then " if names else ""
    return f"the job would acquire {first}a worker of {job.request.target_resolved}{aliased}"


def _wait(one: Forecast) -> str:
    said = describe_wait(one) or ""
    return f"{said}, until {one.unblocks[0]}" if one.unblocks else said


def _start(waits: Sequence[Forecast], seconds: float | None) -> str:
    if not waits:
        return "everything that it needs is free at present: it would start at once"
    if seconds is None:
        return UNKNOWN
    basis = combined_start(waits)[1]
    return f"it could start in about {format_duration(seconds)}" + (f": {basis}" if basis else "")
