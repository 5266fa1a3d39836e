"""Holding without using: a job that waits for its next resource for too long gives back what it has. [QUEUE-3]

    acquiring ──waits for one thing, holding others, for `idle_hold`──▶ queued, parked ──as long again──▶ acquiring

It is the end of an attempt whose script has not begun, and counts against none of its retries: everything goes back
clean, in the usual order, to whoever is first that can use it. The next attempt stands in no queue while it is parked,
so it does not take again at once what it gave back. Then it queues with the place that it had, which is by the age of
its job. After GIVE_BACKS of these it keeps what it holds, as if there were no such limit: so nobody gives back and
takes for ever, and nobody starves for it. docs/decisions/0027-idle-hold-gives-back.md
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from penstock.domain.jobs import Job, State
from penstock.domain.leases import Lease, LeaseState

ERROR = "IdleHold"
"""What ends an attempt that gives back what it holds."""

GIVE_BACKS = 8
"""How often a job gives back. Each time others may be granted what it waits for, so it is bounded. [QUEUE-2]"""

PENDING = (LeaseState.WAITING, LeaseState.GRANTED)


def until(job: Job, leases: Collection[Lease]) -> datetime | None:
    """When an attempt with these leases gives back what it holds, if it has got no further by then; None for never.

    What counts is the time in one queue, or for one maker: who gets further begins anew. [QUEUE-3]
    """
    waits = [lease.granted or lease.since for lease in leases if lease.state in PENDING]
    holds = any(lease.state is LeaseState.READY for lease in leases)
    if not job.idle_hold or job.given_back >= GIVE_BACKS or job.state is not State.ACQUIRING or not holds or not waits:
        return None
    return min(waits) + timedelta(seconds=job.idle_hold)


def due(job: Job, leases: Collection[Lease]) -> datetime | None:
    """When somebody has to look at a job that waits: when it gives back, and at its queue deadline."""
    return min((time for time in (until(job, leases), job.queue_until) if time), default=None)


def is_over(job: Job, leases: Collection[Lease], now: datetime) -> bool:
    """Whether an attempt is to give back what it holds, for that is all it did for too long."""
    end = until(job, leases)
    return end is not None and end <= now


def is_parked(job: Job, now: datetime) -> bool:
    """Whether the next attempt of a job that gave back is not to queue yet; one that is cancelled need not wait."""
    return job.parked_until is not None and now < job.parked_until and job.cancelled_by is None
