"""Cancelling a job, for its owner or an operator."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.jobs import jobs
from penstock.domain.jobs.jobs import Job, State
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Replace
from penstock.system import System, transact
from penstock.usecases.jobs import settle
from penstock.usecases.jobs.jobs import find
from penstock.usecases.logs import logs
from penstock.usecases.users import audit


def cancel(on: System, user: User, job_id: str) -> Job:
    """Cancel a job: its waiting step fails at once; a running agent learns it by its next call. Raises Refused 409 if
    settled.
    """

    def decide() -> tuple[Sequence[Change], tuple[Job, bool]]:
        job = find(on, user, job_id)
        if job.is_settled:
            raise Refused(409, "job-settled", f"job {job_id} is settled already: {job.end.outcome}")
        now = jobs.cancel(job, user.name, on.world.now())
        changes = [Replace(job, now)] if not job.cancellation.cancelled_by else []
        by = user.name if user.name != job.owner else ""  # the job's log already shows what its owner does
        return audit.record(on, changes, by, "cancel", f"job {job_id}", f"of {job.owner}"), (
            now,
            not job.cancellation.cancelled_by,
        )

    job, is_new = transact(on, decide)
    if is_new:
        logs.append(on, job.id, job.attempt, f"cancelled by {user.name}")
    settle.stop_waiting(on, job, "Cancelled", f"cancelled by {job.cancellation.cancelled_by}")
    if job.flow.parked_until:  # start its flow, which then ends it as cancelled
        on.queues.schedule({"do": "start", "job": job.id})
    if job.state is not State.WAITING and not (job.is_lease and job.state is State.RUNNING):
        return job
    settle.settle(on, job.id, job.attempt, "Cancelled", None)  # neither a flow nor an agent would do it
    return find(on, user, job_id)
