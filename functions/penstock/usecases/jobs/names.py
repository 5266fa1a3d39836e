"""Whose job it is and what it is called, for all that shows the ids of jobs: read for a page at once.

Whoever may see that a job holds or awaits something may see its name, its owner, and when its time is over: who waits
for a bench wants to know whom to ask, and for how long. Of the job itself, others than its owner and operators see
nothing more. [SEC-2]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.kernel.frozen import dataclass
from penstock.listings import rows_at
from penstock.system import System


@dataclass(frozen=True)
class Named:
    """What a job is called, and whose it is; None of a job of which no row is left.

    `ends`: when its time limit ends its script, if that runs; `run`: in which attempt.
    """

    job_name: str | None = None
    job_owner: str | None = None
    run: int | None = None
    ends: datetime | None = None


NOBODY = Named()


def name_of(names: Mapping[str | None, Named], job: str | None) -> Named:
    """The name and owner of a job, of some names; none where there is no such job, or nothing is left of it."""
    return names.get(job, NOBODY)


def names_of(on: System, jobs: Iterable[str | None]) -> Mapping[str | None, Named]:
    """The names and owners of some jobs, by their ids."""
    found = rows_at(on, [job_key(job) for job in jobs if job])
    return {row.id: _named(row) for row in found.values() if isinstance(row, Job)}


def _named(job: Job) -> Named:
    started = job.times.started if job.state is State.RUNNING else None
    ends = started + timedelta(seconds=job.limits.timeout) if started else None
    return Named(job.name, job.owner, job.attempt, ends)
