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
    needs = [need for need in job.needs if need.step == step]
    wanted = demand(needs)
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
            takes=tuple(need.takes for need in needs),
            fresh=job.proves is not None,
        )
        for pool, count in wanted.items()
    ]


@dataclass(frozen=True)
class Stock:
    """What a pool has, and the first WINDOW claims on it.

    `free` and `warm` hold as many free slots without and with a unit as one claim may want. `idle` are those that kept
    units take besides; it is only read to see who could make room.
    """

    pool: Pool
    claims: Sequence[Claim]
    free: Sequence[Slot] = ()
    warm: Sequence[Slot] = ()
    idle: Sequence[Slot] = ()

    @property
    def left(self) -> int:
        """How much there is without any warm unit; less than nothing while an amount is above its limit."""
        return self.pool.limit - self.pool.used if self.pool.is_amount else len(self.free)

    def has(self, count: int) -> bool:
        """Whether that many slots, or that much of the amount, is there to be granted."""
        return not self.pool.paused and count <= max(0, self.left)


@dataclass(frozen=True)
class Pick:
    """A claim that may be granted: its rows by pool, and the claims that it overtakes."""

    rows: Mapping[str, Claim]
    overtaken: Sequence[Claim]

    @property
    def takes(self) -> Sequence[Mapping[str, int]]:
        """What each of its leases takes."""
        return next(iter(self.rows.values())).takes

    @property
    def reuses(self) -> Sequence[Mapping[str, int]]:
        """What those of its leases take that may be given warm units: all of them, or of a fresh claim none."""
        return () if next(iter(self.rows.values())).fresh else self.takes


def pick(pool: str, stocks: Mapping[str, Stock]) -> Pick | None:
    """The first claim in a pool's queue that all of its pools can grant; None when there is none."""
    for claim in stocks[pool].claims:
        found = _grantable(claim, stocks)
        if found:
            return found
    return None


def _grantable(claim: Claim, stocks: Mapping[str, Stock]) -> Pick | None:
    found = _next(claim, stocks)
    if found and all(stocks[name].has(count) for name, count in wants(found, stocks).items()):
        return found
    return None


def wants(found: Pick, stocks: Mapping[str, Stock]) -> dict[str, int]:
    """What a claim takes from each of its pools beyond what the warm units bring that are handed over to it."""
    total = {name: row.count for name, row in found.rows.items()}
    warm = {name: len(stocks[name].warm) for name in found.rows}
    for takes in found.reuses:
        own = next(iter(takes))
        if warm[own]:
            warm[own] -= 1
            for pool, count in takes.items():
                total[pool] -= count
    return total


def evict(pool: str, stocks: Mapping[str, Stock]) -> list[str]:
    """The kept units to be destroyed so that the first claim that nothing else keeps waiting can be granted.

    None, when what is leaving already is enough, or when no claim could be granted even then. Those go first that
    are not made yet, then those that nobody has leased for longest.
    """
    for claim in stocks[pool].claims:
        found = _next(claim, stocks)
        units = _room(found, stocks) if found else None
        if units is not None:
            return units
    return []


def _room(claim: Pick, stocks: Mapping[str, Stock]) -> list[str] | None:
    """Kept units whose slots are enough, with what is there and what is leaving; None when there are not enough."""
    found: dict[str, None] = {}
    for name, count in wants(claim, stocks).items():
        stock = stocks[name]
        if stock.pool.paused:
            return None
        own = sum(next(iter(takes)) == name for takes in claim.reuses)
        kept = [slot for slot in (*stock.idle, *stock.warm[own:]) if not slot.leaving]
        short = count - stock.left - sum(slot.count for slot in stock.idle if slot.leaving)
        for slot in sorted(kept, key=lambda slot: (slot.unit not in found, *_loss(slot))):
            if short > 0:
                found[str(slot.unit)] = None
                short -= slot.count
        if short > 0:
            return None
    return list(found)


def _loss(slot: Slot) -> tuple[bool, str, str]:
    """How much is lost with a kept unit, by its slot: least with one that is not made yet, then with the idlest."""
    return slot.since is not None, str(slot.since), slot.name


def _next(claim: Claim, stocks: Mapping[str, Stock]) -> Pick | None:
    """A claim with those that it would overtake; None when it may not be granted, whatever its pools have."""
    rows: dict[str, Claim] = {}
    overtaken: list[Claim] = []
    for name in claim.pools:
        stock = stocks.get(name)
        place = _place(claim, stock.claims) if stock else None
        if stock is None or place is None:
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
