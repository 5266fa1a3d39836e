"""The jobs that depend on others, as those that they depend on count them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.jobs.dependencies import dependent_key
from penstock.domain.jobs.jobs import Job, job_key
from penstock.kernel.rows import Change, Delete
from penstock.listings import rows_at
from penstock.system import System


def forget(on: System, job: Job) -> list[Change]:
    """The changes by which a job that ends while it waits counts no more among those that wait for unsettled jobs."""
    found = rows_at(on, [job_key(each.job) for each in job.request.dependencies]).values()
    priors = [row.id for row in found if isinstance(row, Job) and not row.is_settled]
    return [Delete(row) for row in rows_at(on, [dependent_key(prior, job.id) for prior in priors]).values()]


def unsettled(on: System, names: Sequence[str]) -> tuple[str, ...]:
    """Some jobs without those that have settled, in their order. One whose row cannot be read may not have. [ART-1]"""
    found = rows_at(on, [job_key(name) for name in names]).values()
    settled = {row.id for row in found if isinstance(row, Job) and row.is_settled}
    return tuple(name for name in names if name not in settled)
