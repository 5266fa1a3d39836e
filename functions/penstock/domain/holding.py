"""How long a job held what it acquired, and how long of that it could not use it: the price of one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.domain.leases import WORKER, Lease


@dataclass(frozen=True)
class Held:
    """What one lease of an attempt was: `held` from its grant until the attempt needed it no more, or until now.

    `unused` is the part of it in which the attempt had not all that it needs, so that its script did not run.
    """

    attempt: int
    name: str
    type: str
    held: timedelta
    unused: timedelta


def of(leases: Iterable[Lease], now: datetime) -> list[Held]:
    """What the attempts of a job held, in the order in which they acquire: resources by type, the worker last."""
    every = [lease for lease in leases if lease.granted]
    begun = {lease.attempt: lease.there for lease in every if lease.order == WORKER}
    every.sort(key=lambda lease: (lease.attempt, lease.order == WORKER, lease.order))
    return [_held(lease, lease.granted, begun.get(lease.attempt), now) for lease in every if lease.granted]


def _held(lease: Lease, granted: datetime, begun: datetime | None, now: datetime) -> Held:
    """Times may have been told by two clocks, so none is less than nothing."""
    end = max(granted, lease.ended or now)
    used = max(granted, min(begun or end, end))
    return Held(lease.attempt, lease.name, lease.type, end - granted, used - granted)
