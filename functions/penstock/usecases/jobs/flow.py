"""The flow of an attempt: it is started, and its parked steps are answered. Its definition is attempt.asl.json.

It acquires, and is over when the worker's agent says hello: the agent's report ends the attempt, or the sweep does.

The schedule function calls `start` for messages. Whatever makes a step's leases ready calls `answer_step`.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.jobs import unused
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.pools import leases
from penstock.domain.pools.leases import WORKER, Lease, LeaseState, Need
from penstock.system import System


def answer_step(on: System, held: Sequence[Lease]) -> bool:
    """Answer the step that waits for these leases, if all are ready; returns whether it waited. Safe to repeat."""
    return bool(held) and all(lease.state is LeaseState.READY for lease in held) and on.flows.succeed(held[0].token)


def leases_of_step(on: System, job_id: str, attempt: int, step: int) -> list[Lease]:
    """The leases that one step of an attempt's flow waits for."""
    found = on.store.find(f"job#{job_id}", leases.prefix(attempt), Lease)
    return [lease for lease in found if lease.step == step]


def start(on: System, job_id: str) -> bool:
    """Start the flow of a queued attempt, unless it is parked, or the last attempt's worker may still run. [JOB-2]

    False when it was not to be started. True does not say that it takes its steps: it may have been started before.
    """
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.state is not State.QUEUED or unused.is_parked(job, on.world.now()):
        return False
    if job.attempt > 1:
        before = on.store.find(f"job#{job_id}", leases.prefix(job.attempt - 1), Lease)
        worker = next((lease for lease in before if lease.order == WORKER), None)
        if worker and worker.state is not LeaseState.RELEASED:
            return False
    on.flows.start(job.id, job.attempt, steps(job.request.needs))
    return True


def steps(needs: Sequence[Need]) -> list[int]:
    """The steps in which an attempt acquires its resources; the worker's comes after them."""
    return sorted({need.step for need in needs} - {WORKER})
