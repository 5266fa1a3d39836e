"""Why a job did not succeed whose agent did not say so: what the rows and its log have to show for it. [JOB-1]"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from penstock.domain.jobs import failures, outcome
from penstock.domain.jobs.failures import Failure, Kind
from penstock.domain.jobs.jobs import Job
from penstock.domain.jobs.outcome import Ending, LostBy
from penstock.domain.pools.leases import Lease
from penstock.system import System
from penstock.usecases import logs

CONSOLE = ("worker",)
SAID = ("stdout", "stderr")


def told(on: System, ending: Ending, leases: Collection[Lease]) -> Job:
    """The job after an attempt's end, with what there is to show for why it did not succeed."""
    job = ending.after
    kind = job.failure.kind if job.failure else None
    if kind is Kind.QUEUE_EXPIRED:
        return replace(job, failure=outcome.expired(ending, leases))
    if kind is Kind.WORKER_LOST:
        return replace(job, failure=_with_lines(on, ending, outcome.lost(ending)))
    return job


def _with_lines(on: System, ending: Ending, failure: Failure) -> Failure:
    """With what the job said last; of a machine that never said hello, with what its console said last."""
    is_console = ending.lost_by is LostBy.NO_HELLO
    job = ending.before
    found = logs.last_lines(on, job.id, job.attempt, CONSOLE if is_console else SAID, failures.LINES)
    said = failures.said(failure, [line.payload for line in found], is_console=is_console)
    return replace(said, task=found[-1].task if found else None)
