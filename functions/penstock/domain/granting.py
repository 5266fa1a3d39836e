"""Who is next: which claim of a pool may be granted now, given what all of its pools have. [QUEUE-2]

Claims stand in every queue in one order: by priority, then by the age of their job. The first that can be granted in
all of its pools is granted. Those before it that had to wait are overtaken, once in each queue that it left; a claim
that was overtaken OVERTAKEN times is not passed again: what falls free is kept for it. Because the order is the same in
every queue, of two claims that things are kept for the one ahead is ahead in all, so they cannot wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.domain.jobs import Job
from penstock.domain.leases import demand
from penstock.domain.pools import Claim, Pool, Slot

OVERTAKEN = 8
"""How often a claim may be overtaken in one queue."""

WINDOW = 16
"""How far into a queue one looks, and the most that one grant may overtake. It bounds what is read and committed:
who stands behind so many that wait for something else waits with them, as after OVERTAKEN grants all behind them do."""


def claims(job: Job, step: int, now: datetime) -> list[Claim]:
    """A step's place in the queue of every pool that it takes from: all are written at once, or none. [SLOT-2]"""
    wanted = demand(need for need in job.needs if need.step == step)
    return [
        Claim(
            pool=pool,
            job=job.id,
            attempt=job.attempt,
            step=step,
            count=count,
            pools=tuple(wanted),
            priority=job.priority,
            since=now,
        )
        for pool, count in wanted.items()
    ]


@dataclass(frozen=True)
class Stock:
    """What a pool has, and the first WINDOW claims on it. `free` holds as many free slots as one claim may want."""

    pool: Pool
    claims: Sequence[Claim]
    free: Sequence[Slot] = ()

    def has(self, count: int) -> bool:
        """Whether that many slots, or that much of the amount, is there to be granted."""
        if self.pool.paused:
            return False
        return self.pool.used + count <= self.pool.limit if self.pool.is_amount else len(self.free) >= count


@dataclass(frozen=True)
class Pick:
    """A claim that may be granted: its rows by pool, and the claims that it overtakes."""

    rows: Mapping[str, Claim]
    overtaken: Sequence[Claim]


def pick(pool: str, stocks: Mapping[str, Stock]) -> Pick | None:
    """The first claim in a pool's queue that all of its pools can grant; None when there is none."""
    for claim in stocks[pool].claims:
        found = _grantable(claim, stocks)
        if found:
            return found
    return None


def _grantable(claim: Claim, stocks: Mapping[str, Stock]) -> Pick | None:
    rows: dict[str, Claim] = {}
    overtaken: list[Claim] = []
    for name in claim.pools:
        stock = stocks.get(name)
        place = _place(claim, stock.claims) if stock else None
        if stock is None or place is None or not stock.has(stock.claims[place].count):
            return None
        ahead = stock.claims[:place]
        if any(other.overtaken >= OVERTAKEN for other in ahead):
            return None
        rows[name] = stock.claims[place]
        overtaken += ahead
    return Pick(rows, overtaken) if len(overtaken) <= WINDOW else None


def _place(claim: Claim, claims: Sequence[Claim]) -> int | None:
    whose = (claim.job, claim.attempt, claim.step)
    return next((at for at, row in enumerate(claims) if (row.job, row.attempt, row.step) == whose), None)
