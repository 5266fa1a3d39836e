"""How long a job held what it acquired, and for how long it could not use it.

A job that holds resources while it waits too long for the next one gives back what it has [QUEUE-3]:

    acquiring ──waits for one thing, holding others, for `idle_hold`──▶ queued, parked ──as long again──▶ acquiring

This ends an attempt whose script has not started, and uses up none of the job's retries. Everything is given back
clean, in the usual order, and goes to the first claim that can use it. The next attempt joins no queue while it is
parked, so it does not immediately take back what it released. Afterwards it queues in its old place, which follows from
the age of the job. After MAX_GIVE_BACKS times the job keeps what it holds, so that no job gives back and takes for
ever, and none starves. docs/decisions/0027-idle-hold-gives-back.md

A job also gives back what it holds if the site has changed the order of acquisition, so that something that it holds
comes with or after what it waits for: jobs of the old order and of the new one could wait for each other. Its next
attempt acquires in the site's order. docs/decisions/0112-who-waits-in-an-old-order-begins-anew.md
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.jobs.jobs import MAX_GIVE_BACKS, Job
from penstock.domain.pools.pools import WORKER, Lease, LeaseState, Need
from penstock.domain.site.site import Site, step_numbers, step_of_pools
from penstock.kernel.frozen import dataclass


@dataclass(frozen=True)
class HeldTime:
    """How long one lease was `held`: from its grant until the attempt needed it no more, or until now.

    `unused`: the part in which the attempt lacked something else, so that its script did not run.
    """

    attempt: int
    name: str
    type: str
    held: timedelta
    unused: timedelta
    lease: Lease


def held_times(job: Job, leases: Iterable[Lease], now: datetime) -> list[HeldTime]:
    """The hold times of a job's attempts, in the order of acquisition: resources by type, the worker last."""
    every = sorted(leases, key=lambda lease: (lease.attempt, lease.order == WORKER, lease.order))
    spans = {past.attempt: (past.started, past.ended) for past in job.history.attempts}
    spans[job.attempt] = job.started, job.times.settled
    return [_held(lease, lease.granted, *spans[lease.attempt], now) for lease in every if lease.granted]


def _held(lease: Lease, granted: datetime, begun: datetime | None, ended: datetime | None, now: datetime) -> HeldTime:
    """Times may come from two clocks, so no duration is negative."""
    end = max(granted, ended or now)
    used = max(granted, min(begun or end, end))
    return HeldTime(lease.attempt, lease.name, lease.type, end - granted, used - granted, lease)


IDLE_HOLD_ERROR = "IdleHold"
"""The flow error of an attempt that gives back what it holds."""

REORDERED_ERROR = "Reordered"
"""The flow error of an attempt that holds what the site now puts behind what it waits for."""

ORDER_CHECK = timedelta(minutes=10)
"""How often an attempt that holds something and waits for more is compared with the site. It is not enough to compare
it when a site is applied: an attempt may come to wait in the old order only after that.
"""

HELD_STATES = (LeaseState.GRANTED, LeaseState.READY)

PENDING_STATES = (LeaseState.WAITING, LeaseState.GRANTED)


def give_back_time(job: Job, leases: Collection[Lease]) -> datetime | None:
    """When an attempt gives back what it holds unless it gets further; None for never.

    The time counts for one queue or one maker: it starts anew when the attempt gets further. [QUEUE-3]
    """
    waits = [lease.granted or lease.since for lease in leases if lease.state in PENDING_STATES]
    holds = any(lease.state is LeaseState.READY for lease in leases)
    if not job.may_give_back or not holds or not waits:
        return None
    return min(waits) + timedelta(seconds=job.limits.idle_hold)


def next_check(job: Job, leases: Collection[Lease], now: datetime) -> datetime | None:
    """When a waiting job has to be checked: when it gives back, at its queue deadline, and for the site's order."""
    check = now + ORDER_CHECK if _holds_and_waits(job, leases) else None
    return min((time for time in (give_back_time(job, leases), job.flow.queue_until, check) if time), default=None)


def is_give_back_due(job: Job, leases: Collection[Lease], now: datetime) -> bool:
    """Whether an attempt has held for too long what it cannot use."""
    end = give_back_time(job, leases)
    return end is not None and end <= now


def _holds_and_waits(job: Job, leases: Collection[Lease]) -> bool:
    """Whether an attempt holds something and waits for another resource; the worker comes last in any order."""
    holds = any(lease.state in HELD_STATES for lease in leases)
    waits = any(lease.state is LeaseState.WAITING and lease.order != WORKER for lease in leases)
    return holds and waits and job.history.given_back < MAX_GIVE_BACKS


def is_out_of_order(job: Job, leases: Collection[Lease], site: Site) -> bool:
    """Whether an attempt holds something that the site's jobs now acquire with or after what it waits for. [QUEUE-3]

    If no attempt does, there is no deadlock: each waits for one that runs, or that waits for something later.
    """
    if not _holds_and_waits(job, leases):
        return False
    place = step_of_pools(site)
    needs = {need.order: need for need in job.request.needs}

    def places(states: Collection[LeaseState]) -> list[str]:
        found = [needs[lease.order].takes for lease in leases if lease.state in states and lease.order != WORKER]
        return [place[pool] for takes in found for pool in takes if pool in place]

    holds, waits = places(HELD_STATES), places([LeaseState.WAITING])
    return bool(holds and waits) and max(holds) >= min(waits)


def in_order(job: Job, site: Site) -> Job:
    """A job that acquires in the site's order, with each type what that uses now. Types that are gone stay as they
    are: their pools end the job, or wait for them to come back.
    """
    types = {need.type for need in job.request.needs if need.order != WORKER} & site.resources.keys()
    steps = step_numbers(site, types)

    def moved(need: Need) -> Need:
        if need.order == WORKER or need.type not in steps:
            return need
        return replace(need, step=steps[need.type], uses=site.takes(site.resources[need.type].uses))

    return replace(job, request=replace(job.request, needs=tuple(map(moved, job.request.needs))))


def is_parked(job: Job, now: datetime) -> bool:
    """Whether the next attempt is still parked. A cancelled job does not wait."""
    return job.flow.parked_until is not None and now < job.flow.parked_until and job.cancellation.cancelled_by is None
