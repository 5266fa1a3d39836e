"""How long a job held what it acquired, and how long of that it could not use it: the price of one after the other.

Holding without using: a job that waits for its next resource for too long gives back what it has. [QUEUE-3]

    acquiring ──waits for one thing, holding others, for `idle_hold`──▶ queued, parked ──as long again──▶ acquiring

It is the end of an attempt whose script has not begun, and counts against none of its retries: everything goes back
clean, in the usual order, to whoever is first that can use it. The next attempt stands in no queue while it is parked,
so it does not take again at once what it gave back. Then it queues with the place that it had, which is by the age of
its job. After GIVE_BACKS of these it keeps what it holds, as if there were no such limit: so nobody gives back and
takes for ever, and nobody starves for it. docs/decisions/0027-idle-hold-gives-back.md
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.domain.jobs.jobs import Job, State
from penstock.domain.pools.leases import WORKER, Lease, LeaseState


@dataclass(frozen=True)
class HeldTime:
    """What one lease of an attempt was: `held` from its grant until the attempt needed it no more, or until now.

    `unused` is the part of it in which the attempt had not all that it needs, so that its script did not run.
    """

    attempt: int
    name: str
    type: str
    held: timedelta
    unused: timedelta


def held_times(leases: Iterable[Lease], now: datetime) -> list[HeldTime]:
    """What the attempts of a job held, in the order in which they acquire: resources by type, the worker last."""
    every = [lease for lease in leases if lease.granted]
    begun = {lease.attempt: lease.there for lease in every if lease.order == WORKER}
    every.sort(key=lambda lease: (lease.attempt, lease.order == WORKER, lease.order))
    return [_held(lease, lease.granted, begun.get(lease.attempt), now) for lease in every if lease.granted]


def _held(lease: Lease, granted: datetime, begun: datetime | None, now: datetime) -> HeldTime:
    """Times may have been told by two clocks, so none is less than nothing."""
    end = max(granted, lease.ended or now)
    used = max(granted, min(begun or end, end))
    return HeldTime(lease.attempt, lease.name, lease.type, end - granted, used - granted)


IDLE_HOLD_ERROR = "IdleHold"
"""What ends an attempt that gives back what it holds."""

MAX_GIVE_BACKS = 8
"""How often a job gives back. Each time others may be granted what it waits for, so it is bounded. [QUEUE-2]"""

PENDING_STATES = (LeaseState.WAITING, LeaseState.GRANTED)


def give_back_time(job: Job, leases: Collection[Lease]) -> datetime | None:
    """When an attempt with these leases gives back what it holds, if it has got no further by then; None for never.

    What counts is the time in one queue, or for one maker: who gets further begins anew. [QUEUE-3]
    """
    waits = [lease.granted or lease.since for lease in leases if lease.state in PENDING_STATES]
    holds = any(lease.state is LeaseState.READY for lease in leases)
    if (
        not job.idle_hold
        or job.given_back >= MAX_GIVE_BACKS
        or job.state is not State.ACQUIRING
        or not holds
        or not waits
    ):
        return None
    return min(waits) + timedelta(seconds=job.idle_hold)


def next_check(job: Job, leases: Collection[Lease]) -> datetime | None:
    """When somebody has to look at a job that waits: when it gives back, and at its queue deadline."""
    return min((time for time in (give_back_time(job, leases), job.queue_until) if time), default=None)


def is_give_back_due(job: Job, leases: Collection[Lease], now: datetime) -> bool:
    """Whether an attempt is to give back what it holds, for that is all it did for too long."""
    end = give_back_time(job, leases)
    return end is not None and end <= now


def is_parked(job: Job, now: datetime) -> bool:
    """Whether the next attempt of a job that gave back is not to queue yet; one that is cancelled need not wait."""
    return job.parked_until is not None and now < job.parked_until and job.cancelled_by is None
