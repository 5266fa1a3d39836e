"""Needs and leases: what an attempt asks for, and what it was granted.

    (none) ──acquire──▶ waiting ──grant──▶ granted ──ready──▶ ready
                           │                  └───────┬─────────┘
                        settle                      settle
                           ▼                          ▼
                        released ◀──unit gone──── releasing

A lease has no due time of its own. Serving its pool moves a waiting lease on (the queue deadline is in the job's row);
the unit that was made for it moves on the others (the due time is in the unit's row).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

WORKER = 0
"""The order and the step of an attempt's worker; resources count from 1. It is acquired last and given back first."""


@dataclass(frozen=True)
class Need:
    """One thing that an attempt must acquire. `order` 0 is the worker, 1 and up are resources in order of type.

    Needs of one type share a step: they are claimed together and granted together or not at all. One after the other,
    two jobs that want two each of three could each hold one and wait for ever. [SLOT-2] [QUEUE-3]

    `privileges` are those that its owner must have whenever it is granted. [SEC-2]
    """

    order: int
    step: int
    name: str
    type: str
    pool: str
    maker: str
    options: Mapping[str, Any] = field(default_factory=dict)
    uses: Mapping[str, int] = field(default_factory=dict)
    privileges: tuple[str, ...] = ()

    @property
    def takes(self) -> dict[str, int]:
        """How much of each pool its unit takes: a slot of its own, and what else its type uses."""
        return {self.pool: 1, **self.uses}


class LeaseState(StrEnum):
    """The state of a lease."""

    WAITING = "waiting"  # moved on by whoever serves the pool
    GRANTED = "granted"  # moved on by the factory or well
    READY = "ready"  # moved on by settle
    RELEASING = "releasing"  # moved on by the factory or well
    RELEASED = "released"  # final


@dataclass(frozen=True, kw_only=True)
class Lease(Row):
    """A lease. `token`: the waiting step of the flow.

    `granted`, `there` and `ended`: when it got its slot, when its unit was ready, and when its attempt needed it no
    more.
    """

    kind: ClassVar[str] = "lease"
    job: str
    attempt: int
    order: int
    step: int
    name: str
    type: str
    pool: str
    state: LeaseState
    token: str
    since: datetime
    slot: str | None = None
    fence: int | None = None
    unit: str | None = None
    granted: datetime | None = None
    there: datetime | None = None
    ended: datetime | None = None

    @property
    def key(self) -> Key:
        return lease_key(self.job, self.attempt, self.order)


def lease_key(job: str, attempt: int, order: int) -> Key:
    """The key of the lease for one need."""
    return Key(f"job#{job}", f"{prefix(attempt)}{order:02d}")


def prefix(attempt: int) -> str:
    """The prefix of the keys of an attempt's leases."""
    return f"lease#{attempt:04d}#"


def grant(lease: Lease, slot: str, fence: int, unit: str, now: datetime) -> Lease:
    """A waiting lease that got its slot."""
    return replace(lease, state=LeaseState.GRANTED, slot=slot, fence=fence, unit=unit, granted=now)


def ready(lease: Lease, now: datetime) -> Lease:
    """A granted lease whose unit is ready."""
    return replace(lease, state=LeaseState.READY, there=now)


def end(lease: Lease, now: datetime) -> Lease:
    """A lease that its attempt needs no more. If nothing was granted it is over; otherwise its unit must go first."""
    if lease.state is LeaseState.WAITING:
        return replace(lease, state=LeaseState.RELEASED)
    if lease.state in (LeaseState.GRANTED, LeaseState.READY):
        return replace(lease, state=LeaseState.RELEASING, ended=now)
    return lease


def released(lease: Lease) -> Lease:
    """A lease whose unit is gone and whose slot was given back."""
    return replace(lease, state=LeaseState.RELEASED)


def next_release(leases: Iterable[Lease]) -> Lease | None:
    """The lease to release next: the worker's, then the resources' in reverse order of their acquisition."""
    open_ = [lease for lease in leases if lease.state is LeaseState.RELEASING]
    workers = [lease for lease in open_ if lease.order == WORKER]
    return workers[0] if workers else max(open_, key=lambda lease: lease.order, default=None)


def demand(needs: Iterable[Need]) -> dict[str, int]:
    """How much of each pool these needs take together, their own pools first."""
    total: dict[str, int] = {}
    for need in needs:
        for pool, count in need.takes.items():
            total[pool] = total.get(pool, 0) + count
    return total
