"""Why a job is where it is, in a sentence and in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.domain.jobs import Job, State
from penstock.domain.leases import Lease, LeaseState
from penstock.domain.pools import Claim, Pool, Slot, SlotState


@dataclass(frozen=True)
class Holder:
    """Who has a slot that somebody waits for."""

    slot: str
    job: str
    since: datetime


@dataclass(frozen=True)
class Ahead:
    """Who comes first."""

    job: str
    since: datetime


@dataclass(frozen=True)
class Block:
    """The pool that a job waits for. `position` counts from 1; `kind` is numbered or named."""

    pool: str
    kind: str
    position: int
    ahead: tuple[Ahead, ...]
    held_by: tuple[Holder, ...]
    limit: int
    held: int
    free: int
    paused: bool


@dataclass(frozen=True)
class Why:
    """What a job waits for, who has it, and since when."""

    job: str
    state: State
    summary: str
    blocked_on: Block | None
    waiting_for: str | None
    since: datetime


def block(pool: Pool, slots: Sequence[Slot], claims: Sequence[Claim], job: str) -> Block | None:
    """What keeps a job's claim in a pool from being granted; None when it has no claim there."""
    place = next((number for number, claim in enumerate(claims) if claim.job == job), None)
    if place is None:
        return None
    held = [slot for slot in slots if slot.state is SlotState.HELD]
    return Block(
        pool=pool.name,
        kind="numbered" if pool.names is None else "named",
        position=place + 1,
        ahead=tuple(Ahead(claim.job, claim.since) for claim in claims[:place]),
        held_by=tuple(Holder(slot.name, slot.job, slot.since) for slot in held if slot.job is not None and slot.since),
        limit=pool.limit,
        held=len(held),
        free=sum(slot.state is SlotState.FREE for slot in slots),
        paused=pool.paused,
    )


def explain(job: Job, leases: Sequence[Lease], blocked: Block | None, unit_reason: str | None = None) -> Why:
    """The explanation of a job, given the leases of its present attempt and the block of the waiting one."""
    since = job.times.settled or job.times.started or job.times.ready or job.times.submitted
    current = next((lease for lease in leases if lease.state in (LeaseState.WAITING, LeaseState.GRANTED)), None)
    if job.is_settled:
        summary = f"the job is settled: {job.outcome}: {job.reason}"
        return Why(job.id, job.state, summary, None, None, since)
    if job.state is State.RUNNING:
        summary = f"the job runs on {job.worker}" + (" and is being cancelled" if job.cancelled_by else "")
        return Why(job.id, job.state, summary, None, None, since)
    if current and blocked:
        return Why(job.id, job.state, _waiting(current, blocked), blocked, current.type, current.since)
    if current:
        maker = "its worker to say hello" if current.order == 0 else f"{current.type} to be made ready"
        note = f" ({unit_reason})" if unit_reason else ""
        return Why(job.id, job.state, f"the job waits for {maker}{note}", None, current.type, current.since)
    if job.attempts and job.state is State.QUEUED:
        last = job.attempts[-1]
        summary = f"attempt {job.attempt} starts when what attempt {last.attempt} used is put back ({last.reason})"
        return Why(job.id, job.state, summary, None, None, since)
    return Why(job.id, job.state, "the job is about to take its next step", None, None, since)


def _waiting(lease: Lease, blocked: Block) -> str:
    what = f"the job waits for {lease.type}" if lease.order else f"the job waits for a worker of {lease.type}"
    place = f"position {blocked.position} in the queue"
    if blocked.paused:
        return f"{what}: {blocked.pool} is paused by an operator; {place}"
    if not blocked.limit:
        return f"{what}: {blocked.pool} has a limit of 0, so nothing is granted until an operator raises it; {place}"
    holders = ", ".join(f"{holder.slot} by job {holder.job}" for holder in blocked.held_by[:3])
    more = len(blocked.held_by) - 3
    tail = f" and {more} more" if more > 0 else ""
    return f"{what}: held are {holders}{tail}; {place}" if holders else f"{what}; {place}"
