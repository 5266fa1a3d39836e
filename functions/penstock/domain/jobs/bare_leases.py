"""A lease without a job: to the rest of the system it is a job without a worker. Its owner uses what it holds.

    queued ──▶ acquiring ──everything is ready──▶ running ──its owner releases it, or its time is over──▶ settled

So it stands in the same queues in the same order, and has the same fences, limits, shares and bills as any other job.
docs/decisions/0096-a-lease-without-a-job-has-no-worker.md
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from penstock.domain.jobs import deadlines, jobs
from penstock.domain.jobs.jobs import Job, Report, Result, State
from penstock.domain.units.units import format_time


def begin(job: Job, now: datetime) -> Job:
    """A lease that has everything: from now on it is its owner's, until its time is over."""
    times = replace(job.times, acquired=now, started=now)
    return replace(job, state=State.RUNNING, times=times, due=now + jobs.longest_run(job))


def is_over(job: Job, now: datetime) -> bool:
    """Whether the time of a held lease is over."""
    until = deadlines.ends(job)
    return until is not None and until <= now


def released(job: Job, by: str, now: datetime) -> Job:
    """A held lease that somebody releases."""
    return jobs.report(job, Report(Result.SUCCEEDED, f"released by {by}", now))


def expired(job: Job, now: datetime) -> Job:
    """A held lease whose time is over. Whoever has it may use it still, so that is a failure."""
    until = format_time(deadlines.ends(job) or now)
    return jobs.report(job, Report(Result.TIMED_OUT, f"it was neither released nor renewed by {until}", now))
