"""Queues played forward: holders give back one after the other, and who waits is granted by the real rules.

Time in a play is in seconds from now. A holder gives everything back at once, as it does when its job settles.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from penstock.domain.granting import OVERTAKEN, WINDOW, Pick, Stock, pick
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

    def can_grant(self, whose: Whose) -> bool:
        """Whether what somebody wants is there, and kept for nobody else."""
        kept = any(claim.overtaken >= OVERTAKEN for claim in self.before(whose))
        return not kept and Stock(self.pool, (), self.free).has(self.wanted_by(whose))

    @property
    def free(self) -> list[Slot]:
        """The free slots."""
        return [slot for slot in self.slots if slot.state is SlotState.FREE]

    @property
    def held(self) -> list[Slot]:
        """What is held."""
        return [slot for slot in self.slots if slot.state is SlotState.HELD]

    def resumed(self) -> Queue:
        """The same, not paused."""
        return replace(self, pool=replace(self.pool, paused=False))

    def raised(self, limit: int) -> Queue:
        """The same with a higher limit: what was withdrawn comes back first, then there are new slots."""
        pool = replace(self.pool, limit=limit)
        if pool.is_amount:
            return replace(self, pool=pool)
        more = limit - sum(not slot.withdrawn for slot in self.slots)
        slots = []
        for slot in self.slots:
            back = slot.withdrawn and more > 0
            more -= back
            slots.append(replace(slot, withdrawn=False) if back else slot)
        fresh = [Slot(pool=pool.name, name=f"new-{number}", state=SlotState.FREE) for number in range(more)]
        return replace(self, pool=pool, slots=[*slots, *fresh])


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
    """One run of some queues. With `only`, nobody but these jobs gives anything back."""

    def __init__(self, queues: Mapping[str, Queue], now: datetime, only: Collection[str] | None = None) -> None:
        self._pools = {name: queue.pool for name, queue in queues.items()}
        self._claims = {name: list(queue.claims) for name, queue in queues.items()}
        self._free = {name: queue.free for name, queue in queues.items()}
        self._owed = {name: sum(slot.withdrawn for slot in queue.held) for name, queue in queues.items()}
        self._only = only
        self._held: dict[Holder, list[Slot]] = {}
        self._ends: dict[Holder, float | None] = {}
        self._heap: list[tuple[float, int, Holder]] = []
        self._number = count()
        held = (slot for queue in queues.values() for slot in queue.held if slot.since)
        for slot in sorted(held, key=lambda slot: (slot.since or now, slot.pool, slot.name)):
            self._hold((slot.job or "", slot.attempt or 0), [slot], -(now - (slot.since or now)).total_seconds())

    def until(self, whose: Whose) -> Played | None:
        """Play until somebody's claim is granted; None if that never happens."""
        self._whose = whose
        time, is_known = 0.0, True
        steps: list[Step] = []
        while not self._serve(time):
            back = self._next()
            if back is None:
                return None
            time, is_known = max(time, self._ends[back] or 0.0), is_known and self._ends[back] is not None
            steps.append(self._give_back(back))
        return Played(time if is_known else None, tuple(steps))

    def _hold(self, holder: Holder, slots: Iterable[Slot], since: float) -> None:
        """Somebody has some slots since a time: they are expected back when those before had theirs as long."""
        mine = self._held.setdefault(holder, [])
        for slot in slots:
            mine.append(slot)
            pool = self._pools[slot.pool]
            ends = [self._ends.get(holder), max(0.0, since + pool.mean_hold) if pool.holds else None]
            self._ends[holder] = max((end for end in ends if end is not None), default=None)
        heappush(self._heap, (self._ends[holder] or max(0.0, since), next(self._number), holder))

    def _next(self) -> Holder | None:
        """Who gives back next. An entry that was written before its holder got more is passed over."""
        while self._heap:
            time, _, holder = heappop(self._heap)
            is_late = holder in self._held and time >= (self._ends[holder] or 0.0)
            if is_late and holder != self._whose[:2] and (self._only is None or holder[0] in self._only):
                return holder
        return None

    def _give_back(self, holder: Holder) -> Step:
        slots = self._held.pop(holder)
        wanted = [slot for slot in slots if any(Whose.of(one) == self._whose for one in self._claims[slot.pool])]
        for slot in slots:
            pool = self._pools[slot.pool]
            if pool.is_amount:
                self._pools[slot.pool] = replace(pool, used=pool.used - slot.count)
            elif self._owed[slot.pool]:
                self._owed[slot.pool] -= 1
            else:
                self._free[slot.pool].append(slot)
        for claims in self._claims.values():
            claims[:] = [claim for claim in claims if (claim.job, claim.attempt) != holder]
        told = wanted or slots
        return Step(holder[0], told[0].pool, " and ".join(self._name(slot) for slot in told))

    def _name(self, slot: Slot) -> str:
        pool = self._pools[slot.pool]
        if pool.is_amount:
            return f"{slot.count} of {pool.name}"
        return slot.name if pool.names is not None else f"slot {slot.name} of {pool.name}"

    def _serve(self, time: float) -> bool:
        """Grant what can be granted; whether that was what is waited for."""
        while True:
            stocks = {
                name: Stock(pool, self._claims[name][:WINDOW], self._free[name]) for name, pool in self._pools.items()
            }
            found = next((found for name in stocks if (found := pick(name, stocks))), None)
            if found is None:
                return False
            whose = Whose.of(next(iter(found.rows.values())))
            if whose == self._whose:
                return True
            self._grant(found, whose, time)

    def _grant(self, found: Pick, whose: Whose, time: float) -> None:
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
        self._hold((whose.job, whose.attempt), got, time)
