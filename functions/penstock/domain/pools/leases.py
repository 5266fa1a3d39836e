"""Needs and leases: what an attempt asks for, and what it was granted.

    (none) ──acquire──▶ waiting ──grant──▶ granted ──ready──▶ ready
                           │                  └───────┬─────────┘
                        settle                      settle
                           ▼                          ▼
                        released ◀──unit gone──── releasing

A lease has no due time of its own. Serving its pool moves a waiting lease on (the queue deadline is in the job's row);
the unit that was made for it moves on the others (the due time is in the unit's row).

The row of a lease says whether it waits or was granted. From then on the row of its unit says what became of it, and
the lease's is not written again: whoever reads leases reads their units, and has `as_of` say their state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from penstock.domain.units.units import Unit, UnitState
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
    """The state of a lease. A row has no other than waiting, granted and released."""

    WAITING = "waiting"  # moved on by whoever serves the pool
    GRANTED = "granted"  # moved on by the factory or well
    READY = "ready"  # moved on by settle
    RELEASING = "releasing"  # moved on by the factory or well
    RELEASED = "released"  # final


@dataclass(frozen=True, kw_only=True)
class Lease(Row):
    """A lease. `token`: the step of the flow that waits for it; "" if its attempt has no flow. `granted`: when it got
    its slot.
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
    token: str = ""
    since: datetime
    slot: str | None = None
    fence: int | None = None
    unit: str | None = None
    granted: datetime | None = None

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


def withdraw(lease: Lease) -> Lease:
    """A waiting lease that its attempt needs no more."""
    return replace(lease, state=LeaseState.RELEASED)


OF_UNIT: Mapping[UnitState, LeaseState] = {
    UnitState.CREATING: LeaseState.GRANTED,
    UnitState.READY: LeaseState.READY,
    UnitState.CLEANING: LeaseState.RELEASING,
    UnitState.DIRTY: LeaseState.RELEASING,
    UnitState.QUARANTINED: LeaseState.RELEASING,
    UnitState.IDLE: LeaseState.RELEASED,
    UnitState.GONE: LeaseState.RELEASED,
}
"""The state of a lease by that of its unit, until the unit's row says that the lease is over."""


def as_of(lease: Lease, unit: Unit | None) -> Lease:
    """The lease in its present state, by the row of its unit. One whose unit has another lease by now is over.

    A unit's row is never forgotten before it is gone.
    """
    if lease.state is not LeaseState.GRANTED:
        return lease
    if unit is None or unit.lease.is_over or not is_of(lease, unit):
        return replace(lease, state=LeaseState.RELEASED)
    return replace(lease, state=OF_UNIT[unit.state])


def with_units(rows: Iterable[Lease], units: Iterable[Unit]) -> list[Lease]:
    """The leases of these rows in their present state, by the rows of their units."""
    by_id: dict[str | None, Unit] = {unit.id: unit for unit in units}
    return [as_of(lease, by_id.get(lease.unit)) for lease in rows]


def is_of(lease: Lease, unit: Unit) -> bool:
    """Whether this is the present lease of a unit, or its last. [SLOT-3]"""
    had = unit.lease
    return (had.job, had.attempt, had.order, had.fence) == (lease.job, lease.attempt, lease.order, lease.fence)


def next_release(leases: Iterable[Lease], now: Callable[[Lease], Lease]) -> Lease | None:
    """The lease to release next: the worker's, then the resources' in reverse order of their acquisition.

    `now` tells the present state of one, and is asked in this order, until one is found.
    """
    ordered = sorted(leases, key=lambda lease: (lease.order != WORKER, -lease.order))
    return next((lease for lease in map(now, ordered) if lease.state is LeaseState.RELEASING), None)


def released_after(leases: Iterable[Lease], order: int) -> list[Lease]:
    """Those of an attempt's leases that are released after the one with this order."""
    return [lease for lease in leases if lease.order != WORKER and (order == WORKER or lease.order < order)]


def demand(needs: Iterable[Need]) -> dict[str, int]:
    """How much of each pool these needs take together, their own pools first."""
    total: dict[str, int] = {}
    for need in needs:
        for pool, count in need.takes.items():
            total[pool] = total.get(pool, 0) + count
    return total
