"""Queues played forward: holders give back one after the other, and who waits is granted by the real rules.

Time in a play is in seconds from now. A holder gives everything back at once, as it does when its job settles.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import heappop, heappush
from itertools import count, groupby
from math import inf
from typing import NamedTuple

from penstock.domain.granting import WINDOW, Pick, Stock, harmed, is_kept_for, pick
from penstock.domain.leases import WORKER
from penstock.domain.pools import Claim, Pool, Slot, SlotState


class Whose(NamedTuple):
    """Who claims."""

    job: str
    attempt: int
    step: int

    @classmethod
    def of(cls, claim: Claim) -> Whose:
        """Who has a claim."""
        return cls(claim.job, claim.attempt, claim.step)


@dataclass(frozen=True)
class Queue:
    """What was read of a pool: its row, its free and held slots, and who waits, in order."""

    pool: Pool
    slots: Sequence[Slot]
    claims: Sequence[Claim]

    def before(self, whose: Whose) -> Sequence[Claim]:
        """Who comes first; all, for somebody who does not wait here."""
        places = [Whose.of(claim) for claim in self.claims]
        return self.claims[: places.index(whose)] if whose in places else self.claims

    def wanted_by(self, whose: Whose) -> int:
        """How much somebody who waits here wants."""
        return next((claim.count for claim in self.claims if Whose.of(claim) == whose), 0)

    def can_grant(self, whose: Whose, stocks: Mapping[str, Stock]) -> bool:
        """Whether what somebody wants is there, and kept for nobody else."""
        row = next((claim for claim in self.claims if Whose.of(claim) == whose), None)
        is_kept = row is not None and any(map(is_kept_for, harmed(row, self.before(whose), stocks)))
        return not is_kept and self.stock.has(self.wanted_by(whose))

    @property
    def stock(self) -> Stock:
        """What the pool has; what is idle is free in it."""
        return Stock(self.pool, self.claims, self.free)

    @property
    def free(self) -> list[Slot]:
        """The free slots."""
        return [slot for slot in self.slots if slot.state is SlotState.FREE]

    @property
    def held(self) -> list[Slot]:
        """What is held."""
        return [slot for slot in self.slots if slot.state is SlotState.HELD]


class Step(NamedTuple):
    """A job gives something back. `what` names it."""

    job: str
    pool: str
    what: str


@dataclass(frozen=True)
class Played:
    """How a claim came to be granted. `seconds` is None when some holder's time could not be guessed."""

    seconds: float | None
    steps: tuple[Step, ...]


Holder = tuple[str, int]
"""Who holds: a job and its attempt."""


class Play:
    """One run of some queues, to see when somebody's claim is granted.

    With `only`, nobody but these jobs gives anything back.
    """

    def __init__(
        self, queues: Mapping[str, Queue], whose: Whose, now: datetime, only: Collection[str] | None = None
    ) -> None:
        self._pools = {name: queue.pool for name, queue in queues.items()}
        self._claims = {name: list(queue.claims) for name, queue in queues.items()}
        self._free = {name: queue.free for name, queue in queues.items()}
        self._owed = {name: sum(slot.withdrawn for slot in queue.held) for name, queue in queues.items()}
        self._whose, self._only = whose, only
        self._held: dict[Holder, list[Slot]] = {}
        self._ends: dict[Holder, float | None] = {}
        self._heap: list[tuple[float, int, Holder]] = []
        self._number = count()
        self._time, self._is_granted = 0.0, False
        held = (slot for queue in queues.values() for slot in queue.held)
        for slot in sorted(held, key=lambda slot: (slot.since or now, slot.pool, slot.name)):
            self._hold((slot.job or "", slot.attempt or 0), [slot], ((slot.since or now) - now).total_seconds())

    def resume(self, name: str) -> None:
        """An operator resumes a pool."""
        self._pools[name] = replace(self._pools[name], paused=False)
        self._serve([name])

    def raise_to(self, name: str, limit: int) -> None:
        """An operator raises a pool's limit: what was withdrawn comes back first, then there are new slots."""
        pool = self._pools[name] = replace(self._pools[name], limit=limit)
        if not pool.is_amount:
            held = sum(slot.pool == name for slots in self._held.values() for slot in slots)
            more = max(0, limit - len(self._free[name]) - held + self._owed[name])
            back = min(more, self._owed[name])
            self._owed[name] -= back
            self._restore(name, back)
            self._free[name] += [
                Slot(pool=name, name=f"new-{number}", state=SlotState.FREE) for number in range(more - back)
            ]
        self._serve([name])

    def _restore(self, name: str, count: int) -> None:
        """Some of the slots that were withdrawn while they are held are in use again: the first by name."""
        held = [(slot, slots) for slots in self._held.values() for slot in slots if slot.pool == name]
        withdrawn = sorted(((slot, slots) for slot, slots in held if slot.withdrawn), key=lambda one: one[0].name)
        for slot, slots in withdrawn[:count]:
            slots[slots.index(slot)] = replace(slot, withdrawn=False)

    def until_granted(self) -> Played | None:
        """Let holders give back until the claim is granted; None if that never happens."""
        self._serve(self._pools)
        is_known = True
        steps: list[Step] = []
        while not self._is_granted:
            back = self._next()
            if back is None:
                return None
            end = self._ends[back]
            self._time, is_known = max(self._time, end or 0.0), is_known and end is not None
            steps.append(self._give_back(back))
        return Played(self._time if is_known else None, tuple(steps))

    def _hold(self, holder: Holder, slots: Iterable[Slot], since: float) -> None:
        """Somebody has some slots since a time: they are expected back when those before had theirs as long.

        What no job holds, an operator does: it comes back last, and nobody knows when.
        """
        mine = self._held.setdefault(holder, [])
        for slot in slots:
            mine.append(slot)
            pool = self._pools[slot.pool]
            ends = [self._ends.get(holder), max(0.0, since + pool.mean_hold) if pool.holds and holder[0] else None]
            self._ends[holder] = max((end for end in ends if end is not None), default=None)
        first = self._ends[holder] or max(0.0, since)
        heappush(self._heap, (first if holder[0] else inf, next(self._number), holder))

    def _next(self) -> Holder | None:
        """Who gives back next. An entry that was written before its holder got more is passed over."""
        while self._heap:
            time, _, holder = heappop(self._heap)
            is_last = holder in self._held and time >= (self._ends[holder] or 0.0)
            if is_last and holder != self._whose[:2] and (self._only is None or holder[0] in self._only):
                return holder
        return None

    def _give_back(self, holder: Holder) -> Step:
        """A job ends: its claims go, then its units as they are put back, and each time the pools are served."""
        slots = sorted(self._held.pop(holder), key=_turn)
        wanted = [slot for slot in slots if any(Whose.of(one) == self._whose for one in self._claims[slot.pool])]
        told = wanted or slots
        left = [name for name, claims in self._claims.items() if any(_whose(claim) == holder for claim in claims)]
        for name in left:
            self._claims[name][:] = [claim for claim in self._claims[name] if _whose(claim) != holder]
        self._serve(left)
        for _, unit in groupby(slots, key=lambda slot: slot.unit):
            mine = list(unit)
            for slot in mine:
                self._put_back(slot)
            self._serve(slot.pool for slot in mine)
        self._serve(self._pools)
        return Step(holder[0], told[0].pool, " and ".join(self._name(slot) for slot in told))

    def _put_back(self, slot: Slot) -> None:
        pool = self._pools[slot.pool]
        if pool.is_amount:
            self._pools[slot.pool] = replace(pool, used=pool.used - slot.count)
        elif self._owed[slot.pool] and (slot.withdrawn or pool.names is None):
            self._owed[slot.pool] -= 1
        else:
            self._free[slot.pool].append(slot)

    def _name(self, slot: Slot) -> str:
        pool = self._pools[slot.pool]
        if pool.is_amount:
            return f"{slot.count} of {pool.name}"
        return slot.name if pool.names is not None else f"slot {slot.name} of {pool.name}"

    def _serve(self, names: Iterable[str]) -> None:
        """Serve pools in turn, as `serve` does: grant what can be granted to those who wait in their queues."""
        for name in list(names):
            while not self._is_granted and (found := pick(name, self._stocks())):
                self._grant(found)

    def _stocks(self) -> dict[str, Stock]:
        return {name: Stock(pool, self._claims[name][:WINDOW], self._free[name]) for name, pool in self._pools.items()}

    def _grant(self, found: Pick) -> None:
        whose = Whose.of(next(iter(found.rows.values())))
        self._is_granted = whose == self._whose
        got: list[Slot] = []
        for name, claim in found.rows.items():
            pool = self._pools[name]
            self._claims[name].remove(claim)
            if pool.is_amount:
                self._pools[name] = replace(pool, used=pool.used + claim.count)
                got.append(Slot(pool=name, name=claim.job, state=SlotState.HELD, count=claim.count))
            else:
                got += self._free[name][: claim.count]
                del self._free[name][: claim.count]
        for claim in found.overtaken:
            claims = self._claims[claim.pool]
            claims[claims.index(claim)] = replace(claim, overtaken=claim.overtaken + 1)
        mine = [replace(slot, order=whose.step, unit=f"of step {whose.step}") for slot in got]
        self._hold((whose.job, whose.attempt), mine, self._time)


def _whose(claim: Claim) -> Holder:
    return claim.job, claim.attempt


def _turn(slot: Slot) -> tuple[object, ...]:
    """When a slot is put back: with its unit, the worker first, then resources in reverse order; quotas come last."""
    order = slot.order or 0
    is_quota = slot.pool.startswith("quota/")
    return order != WORKER, -order, slot.unit or "", is_quota, slot.pool, slot.name
