"""Until when a job may run, or a lease without a job is held; and more time for either, which its owner asks for."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.jobs.jobs import Job, State, longest_run


def ends(job: Job) -> datetime | None:
    """When a job that runs has had its time; None for one that does not run."""
    if job.state is not State.RUNNING or job.times.started is None:
        return None
    return job.times.started + timedelta(seconds=job.limits.timeout)


def extend(job: Job, seconds: int, now: datetime) -> Job:
    """A job that may run for so many seconds from now, or longer if it may anyway; from its start, if that is to come.

    The timeout counts from the start.
    """
    started = job.times.started if job.state is State.RUNNING else None
    had = max(0, (now - started) // timedelta(seconds=1)) if started else 0
    more = max(0, had + seconds - job.limits.timeout)
    if not more:
        return job
    limits = replace(job.limits, timeout=job.limits.timeout + more, extended=job.limits.extended + more)
    longer = replace(job, limits=limits)
    return replace(longer, due=started + longest_run(longer)) if started else longer
