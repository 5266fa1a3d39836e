"""The flow of an attempt: it is started, and its parked steps are answered. Its definition is attempt.asl.json.

It acquires, and is over when the worker's agent says hello: the agent's report ends the attempt, or the sweep does. An
attempt whose worker was granted with its job has no flow, and its lease no token.

The schedule function calls `start` for messages. Whatever makes a step's leases ready calls `answer_step`.

Who writes for an attempt checks with `fence` that it is not over. What an attempt runs and acquired is read here too:
its spec, its leases, with the units that say what became of them, and the slots of these units. The rows are not read
at one moment. But leases end together, and none goes back to a state that it has left: who has read of one unit that
its lease has ended, and reads the attempt's leases after that, finds all of them ended. [SLOT-3]
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from penstock.domain.jobs import unused
from penstock.domain.jobs.jobs import Job, Spec, State, job_key, spec_key
from penstock.domain.pools import pools
from penstock.domain.pools.pools import WORKER, Lease, LeaseState, Need, Slot, SlotState, lease_key
from penstock.domain.units import retries, units
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Check
from penstock.system import System


class LeaseGone(Refused):
    """The attempt is over. Created anew for each use: a stored exception would keep every frame that raised it."""

    def __init__(self) -> None:
        super().__init__(410, "lease-gone", "this worker is no longer wanted: stop, and exit")


def answer_step(on: System, held: Sequence[Lease]) -> bool:
    """Answer the step that waits for these leases, if all are ready; returns whether it waited. Safe to repeat."""
    return bool(held) and all(lease.state is LeaseState.READY for lease in held) and lease_ready(on, held[0])


def lease_ready(on: System, lease: Lease) -> bool:
    """Answer the step that waits for a lease; returns whether there was one, and it waited. Safe to repeat."""
    return bool(lease.token) and on.flows.succeed(lease.token)


def start(on: System, job_id: str) -> bool:
    """Start the flow of a queued attempt, unless it is parked, or the last attempt's worker may still run. [JOB-2]

    False when it was not to be started. True does not say that it takes its steps: it may have been started before.
    """
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.state is not State.QUEUED or unused.is_parked(job, on.world.now()):
        return False
    if job.attempt > 1:
        worker = on.store.get(lease_key(job_id, job.attempt - 1, WORKER), Lease)
        if worker and see(on, worker).state is not LeaseState.RELEASED:
            return False
    on.flows.start(job.id, job.attempt, steps(job.request.needs))
    return True


def steps(needs: Sequence[Need]) -> list[int]:
    """The steps in which an attempt acquires its resources; the worker's comes after them."""
    return sorted({need.step for need in needs} - {WORKER})


def spec_of(on: System, job: Job) -> Spec | None:
    """What a job runs; None if that is no longer kept."""
    return job.spec or on.store.get(spec_key(job.id), Spec)


def kept_spec(on: System, job: Job) -> Spec:
    """What a job runs. Raises Refused 410 if that is no longer kept."""
    spec = spec_of(on, job)
    if spec is None:
        raise Refused(410, "spec-gone", f"the script of job {job.id} is no longer kept")
    return spec


def unit_of(on: System, lease: Lease) -> Unit | None:
    """The unit that a lease was granted; None while it waits, and once the unit's row has expired."""
    return on.store.get(unit_key(lease.unit), Unit) if lease.unit else None


def see(on: System, lease: Lease) -> Lease:
    """A lease that was read, in its present state."""
    return pools.lease_as_of(lease, unit_of(on, lease))


def leases_of(on: System, job: Job) -> list[Lease]:
    """The leases of a job's present attempt."""
    return [see(on, lease) for lease in lease_rows(on, job.id, job.attempt)]


def lease_rows(on: System, job: str, attempt: int) -> list[Lease]:
    """The rows of an attempt's leases: what was granted has ended, perhaps."""
    return on.store.find(f"job#{job}", pools.lease_prefix(attempt), Lease)


def leases_of_job(on: System, job: str) -> list[Lease]:
    """The leases of all attempts of a job."""
    return [see(on, lease) for lease in on.store.find(f"job#{job}", "lease#", Lease)]


def leases_of_step(on: System, job: str, attempt: int, step: int) -> list[Lease]:
    """The leases that one step of an attempt's flow waits for."""
    return [see(on, lease) for lease in lease_rows(on, job, attempt) if lease.step == step]


def lease_of_unit(on: System, unit: Unit) -> Lease | None:
    """The row of a unit's present lease, or its last; None if there was none, or its job is forgotten."""
    return on.store.get(lease_key(unit.lease.job, unit.lease.attempt, unit.lease.order), Lease)


def leases_beside(on: System, unit: Unit) -> list[Lease]:
    """The leases of the step that a unit's lease is of, that one included; the unit was just read or written."""
    rows = lease_rows(on, unit.lease.job, unit.lease.attempt)
    own = {lease.step for lease in rows if lease.order == unit.lease.order}
    return [_see_with(on, lease, unit) for lease in rows if lease.step in own]


def next_release(on: System, job: str, attempt: int, known: Unit | None = None) -> Lease | None:
    """The lease of an attempt to release next. `known`: a unit of it that was just read."""
    return pools.next_release(lease_rows(on, job, attempt), lambda lease: _see_with(on, lease, known))


def release_after(on: System, unit: Unit) -> Lease | None:
    """The lease of the attempt to release after that of a unit, which is released: all before had their turn."""
    rows = lease_rows(on, unit.lease.job, unit.lease.attempt)
    return pools.next_release(pools.released_after(rows, unit.lease.order), lambda lease: see(on, lease))


def _see_with(on: System, lease: Lease, known: Unit | None) -> Lease:
    return pools.lease_as_of(lease, known) if known and lease.unit == known.id else see(on, lease)


def fence(on: System, job: Job) -> Check:
    """The check, for a commit of an attempt's worker, that it still has its lease. Raises Refused 410. [SLOT-3]"""
    return Check(fenced(on, job))


def fenced(on: System, job: Job) -> Job:
    """The job's row, for a commit of its worker that checks or writes it. Raises Refused 410. [SLOT-3]

    A worker has its lease from its hello until its attempt is settled. Both write this row, and little else does while
    the script runs: heartbeats don't conflict with it.
    """
    fresh = on.store.get(job.key, Job)
    if fresh is None or fresh.attempt != job.attempt or fresh.state is not State.RUNNING:
        raise LeaseGone
    return fresh


def slots_of(on: System, unit: Unit) -> list[Slot]:
    """Every slot that a unit has, its own first, except slots that another unit has by now. [SLOT-3]"""
    is_free = unit.state is UnitState.IDLE and unit.hold is None
    found = []
    for pool, name in ((unit.lease.pool, unit.lease.slot), *unit.lease.also):
        is_own = pool == unit.lease.pool and name == unit.lease.slot
        first = SlotState.FREE if is_free and is_own else SlotState.IDLE if is_free else SlotState.HELD
        slot = _slot_at(on, pool, name, unit.id, first) or _slot_at(on, pool, name, unit.id, SlotState.IDLE)
        if slot and (slot.fence == unit.lease.fence or not is_own):
            found.append(slot)
    return found


def _slot_at(on: System, pool: str, name: str, unit: str, state: SlotState) -> Slot | None:
    """A slot in one state, unless another unit has it by now. [SLOT-3]"""
    slot = on.store.get(Slot(pool=pool, name=name, state=state, unit=unit).key, Slot)
    return slot if slot and slot.unit == unit else None


def turn_pause(on: System, unit: Unit) -> timedelta | None:
    """How long until a unit checks again whether it may be released; None when it may now. [UNIT-3]

    An attempt's worker is released first, then its resources in reverse order. A unit that an operator holds keeps all
    after it as they are. One whose lease is over has had its turn: it waits for no other of its last job. [QUEUE-1]
    """
    if unit.lease.is_over:
        return None
    turn = next_release(on, unit.lease.job, unit.lease.attempt, unit)
    if turn is None or turn.order == unit.lease.order:
        return None
    ahead = unit_of(on, turn)
    if ahead and ahead.state is UnitState.QUARANTINED:  # ending the quarantine wakes this unit, as a release does
        return retries.BACK_OFF_MOST
    if ahead and ahead.hold:
        return min(max(units.STEP_WITHIN, ahead.hold.until - on.world.now()), retries.BACK_OFF_MOST)
    return units.STEP_WITHIN
