"""Discarding: the owner of a job does not want what it made kept any longer. [ART-1]

The job's retention ends, and the sweep deletes its files and its log as it does when the time is over.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.artifacts import retention
from penstock.domain.artifacts.retention import Retention
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change
from penstock.system import System, transact
from penstock.usecases.jobs import settle
from penstock.usecases.users import audit


def discard(on: System, user: User, job: Job) -> None:
    """End a job's retention, if that is not done. Raises Refused 409 while the job, or one that needs it, goes on."""
    if not job.is_settled:
        raise Refused(409, "job-goes-on", f"job {job.id} is {job.state}: cancel it first, or wait until it has settled")

    def decide() -> tuple[Sequence[Change], None]:
        row, found = settle.find_retention(on, job.id)
        if row is None or row.ended:
            return [], None
        needed = _dependent(on, row)
        if needed:
            raise Refused(409, "outputs-needed", f"job {needed} depends on job {job.id}, and has not settled yet")
        changes = settle.retention_changes(row, found, retention.discard(row, user.name, on.world.now()))
        return audit.record(on, changes, user.name, "discard", f"job {job.id}"), None

    transact(on, decide)


def _dependent(on: System, row: Retention) -> str | None:
    """An unsettled job that needs what this one owns."""
    found = (on.store.get(job_key(name), Job) for name in row.dependents)
    return next((job.id for job in found if job and not job.is_settled), None)
