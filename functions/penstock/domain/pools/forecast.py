"""Forecasts: when a claim may be granted, and what has to happen first.

`Simulation` plays the queues forward: holders give back one after the other, and the claims are granted by the real
rules. Times in it are in seconds from now. A holder gives everything back at once, as it does when its job settles.

How long a holder keeps its slots is estimated from the holders before it. The estimate decides the times, and which of
several holders is likely to be first; what has to happen at all follows from the rules alone.

A holder that waits for more itself gives nothing back before it was granted that. And what keeps a unit after its job,
such as an operator's hold, has to end too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import heappop, heappush
from itertools import count, groupby
from math import inf
from typing import NamedTuple

from penstock.domain.pools import pools
from penstock.domain.pools.capacity import after_transition
from penstock.domain.pools.delays import Cause, Delay
from penstock.domain.pools.grants import Pick, Stock, can_grant, heads_in_order, pick
from penstock.domain.pools.pools import RECENT_HOLDERS, WORKER, Claim, HoldTimes, Pool, Slot, SlotState, serving_order
from penstock.domain.pools.stops import in_words
from penstock.kernel.frozen import dataclass


class ClaimId(NamedTuple):
    """What identifies a claim."""

    job: str
    attempt: int
    step: int

    @classmethod
    def from_claim(cls, claim: Claim) -> ClaimId:
        """What identifies this claim."""
        return cls(claim.job, claim.attempt, claim.step)


@dataclass(frozen=True)
class Queue:
    """A pool as it was read: its row, its free and held slots, its claims in order, and how long slots were kept."""

    pool: Pool
    slots: Sequence[Slot]
    claims: Sequence[Claim]
    times: HoldTimes | None = None

    @property
    def mean_hold(self) -> float | None:
        """How many seconds the last holders kept what they had; None if none is known."""
        return self.times.mean_hold if self.times and self.times.holds else None

    def before(self, whose: ClaimId) -> Sequence[Claim]:
        """The claims before this one; all of them, if it is not in this queue."""
        places = [ClaimId.from_claim(claim) for claim in self.claims]
        return self.claims[: places.index(whose)] if whose in places else self.claims

    def wanted_by(self, whose: ClaimId) -> int:
        """How much this claim wants here."""
        return next((claim.count for claim in self.claims if ClaimId.from_claim(claim) == whose), 0)

    def can_grant(self, whose: ClaimId, stocks: Mapping[str, Stock]) -> bool:
        """Whether the pool has what this claim wants, and reserves it for nobody else."""
        row = next((claim for claim in self.claims if ClaimId.from_claim(claim) == whose), None)
        return row is None or can_grant(row, stocks)

    @property
    def stock(self) -> Stock:
        """The pool's stock. Idle slots count as free; a pool that is over its limit is as if it was resized."""
        had = self.held if self.pool.share else ()
        return Stock(replace(self.pool, over=False), self.claims, self.free, had=had)

    @property
    def free(self) -> list[Slot]:
        """The free slots."""
        return [slot for slot in self.slots if slot.state is SlotState.FREE]

    @property
    def held(self) -> list[Slot]:
        """The held slots."""
        return [slot for slot in self.slots if slot.state is SlotState.HELD]


class Holder(NamedTuple):
    """A job and its attempt; or a unit that is kept, and that no job has any more."""

    job: str
    attempt: int = 0
    unit: str = ""

    @property
    def label(self) -> str:
        """What it is known by: its job or its unit; "" for operators of whose units nothing was read."""
        return self.job or self.unit


class GiveBack(NamedTuple):
    """A holder gives something back. `what` names it; it is "" if all of that is kept by somebody else from then on."""

    holder: Holder
    pool: str
    what: str
    delay: Delay | None = None

    @property
    def unblock(self) -> Unblock:
        """What has to happen for it."""
        if self.delay:
            return Unblock(Action.LET_GO, self.pool, self.what, unit=self.delay.unit, said=self.delay.act)
        if not self.what:
            return Unblock(Action.END, self.pool, "ends", self.holder.job)
        return Unblock(Action.GIVE_BACK, self.pool, self.what, self.holder.job)


@dataclass(frozen=True)
class SimulatedGrant:
    """How a claim is granted in the simulation. `seconds` is None when some holder's time cannot be estimated."""

    seconds: float | None
    steps: tuple[GiveBack, ...]


NEW = "new slot "
"""How the names of slots begin that exist in a simulation only. No slot's name has a space."""

NO_DELAYS: Mapping[str, Delay] = {}


@dataclass(frozen=True)
class Scene:
    """What is simulated: some queues, and whose claim is to be granted.

    `delays`: what keeps units, by unit. `waits_too`: who waits for more gives nothing back before.
    """

    queues: Mapping[str, Queue]
    whose: ClaimId
    now: datetime
    delays: Mapping[str, Delay]
    waits_too: bool = True


class Simulation:
    """One run of some queues, to see when one claim is granted.

    With `only`, no other holders give anything back.
    """

    def __init__(self, scene: Scene, only: Collection[str] | None = None) -> None:
        queues, now = scene.queues, scene.now
        self._pools = {name: replace(queue.pool, over=False) for name, queue in queues.items()}
        self._means = {name: queue.mean_hold for name, queue in queues.items()}
        self._claims = {name: list(queue.claims) for name, queue in queues.items()}
        self._heads: dict[str, list[Claim]] = {}
        self._free = {name: queue.free for name, queue in queues.items()}
        self._owed = {name: sum(slot.withdrawn for slot in queue.held) for name, queue in queues.items()}
        self._scene, self._whose, self._only = scene, scene.whose, only
        self._waits_in = {
            name for name, queue in queues.items() if self._whose in map(ClaimId.from_claim, queue.claims)
        }
        self._kept = {delay.unit: delay for delay in scene.delays.values()}
        self._waiting = Counter(_whose(claim) for claims in self._claims.values() for claim in claims)
        self._held: dict[Holder, list[Slot]] = {}
        self._ends: dict[Holder, float | None] = {}
        self._heap: list[tuple[float, int, Holder]] = []
        self._number = count()
        self._time, self._is_granted = 0.0, False
        held = (slot for queue in queues.values() for slot in queue.held)
        for slot in sorted(held, key=lambda slot: (slot.since or now, slot.pool, slot.name)):
            self._hold(self._holder(slot), [slot], ((slot.since or now) - now).total_seconds())

    def _holder(self, slot: Slot) -> Holder:
        """Who has a slot: what keeps its unit, if its job has ended."""
        delay = self._scene.delays.get(slot.unit or "")
        if delay and delay.has_ended:
            return Holder("", 0, delay.unit)
        return Holder(slot.job or "", slot.attempt or 0)

    def resume(self, name: str) -> None:
        """An operator resumes a pool."""
        self._pools[name] = replace(self._pools[name], paused=False, stops=())
        self._serve([name])

    def raise_to(self, name: str, limit: int) -> None:
        """An operator raises a pool's limit: withdrawn slots come back first, then there are new ones."""
        pool = self._pools[name] = replace(self._pools[name], limit=limit)
        if not pool.is_amount:
            held = sum(slot.pool == name for slots in self._held.values() for slot in slots)
            more = max(0, limit - len(self._free[name]) - held + self._owed[name])
            back = min(more, self._owed[name])
            self._owed[name] -= back
            self._restore(name, back)
            self._free[name] += [
                Slot(pool=name, name=f"{NEW}{number}", state=SlotState.FREE) for number in range(more - back)
            ]
        self._serve([name])

    def _restore(self, name: str, count: int) -> None:
        """Put some withdrawn slots that are still held into use again, the first by name."""
        held = [(slot, slots) for slots in self._held.values() for slot in slots if slot.pool == name]
        withdrawn = sorted(((slot, slots) for slot, slots in held if slot.withdrawn), key=lambda one: one[0].name)
        for slot, slots in withdrawn[:count]:
            slots[slots.index(slot)] = replace(slot, withdrawn=False)

    def until_granted(self) -> SimulatedGrant | None:
        """Let holders give back until the claim is granted; None if that never happens."""
        self._serve(self._pools)
        is_known = True
        steps: list[GiveBack] = []
        while not self._is_granted:
            back = self._next()
            if back is None:
                return None
            end = self._ends[back]
            self._time, is_known = max(self._time, end or 0.0), is_known and end is not None
            steps.append(self._give_back(back))
        return SimulatedGrant(self._time if is_known else None, tuple(steps))

    def _hold(self, holder: Holder, slots: Iterable[Slot], since: float) -> None:
        """Record that a holder has some slots since a time."""
        mine = self._held.setdefault(holder, [])
        for slot in slots:
            mine.append(slot)
            ends = (self._ends.get(holder), self._end(holder, slot, since))
            self._ends[holder] = max((end for end in ends if end is not None), default=None)
        first = self._ends[holder]
        if first is None:
            first = max(0.0, since) if self._is_timed(holder) else inf
        heappush(self._heap, (first, next(self._number), holder))

    def _end(self, holder: Holder, slot: Slot, since: float) -> float | None:
        """When a slot is expected back: after the pool's mean hold time, or when its unit's hold ends.

        What no job holds comes back last, at an unknown time, unless its unit is only being cleaned.
        """
        delay = self._kept.get(holder.unit)
        if delay and delay.until:
            return max(0.0, since, (delay.until - self._scene.now).total_seconds())
        mean = self._means[slot.pool]
        return max(0.0, since + mean) if mean is not None and self._is_timed(holder) else None

    def _is_timed(self, holder: Holder) -> bool:
        """Whether a holder gives back by itself, after some time."""
        delay = self._kept.get(holder.unit)
        return bool(holder.job) or (delay is not None and delay.cause is Cause.CLEANING)

    def _next(self) -> Holder | None:
        """The holder that gives back next. An entry from before its holder got more is skipped."""
        while self._heap:
            time, _, holder = heappop(self._heap)
            is_last = holder in self._held and time >= (self._ends[holder] or 0.0)
            if is_last and self._may_end(holder):
                return holder
        return None

    def _may_end(self, holder: Holder) -> bool:
        """Whether a holder can give back now. Who waits for more has another entry once it was granted that."""
        if holder == Holder(*self._whose[:2]) or (self._scene.waits_too and self._waiting[holder]):
            return False
        return self._only is None or holder.label in self._only

    def _give_back(self, holder: Holder) -> GiveBack:
        """A job ends: its claims are removed, then its units are put back, and the pools are served each time."""
        slots = sorted(self._held.pop(holder), key=_turn)
        told = [slot for slot in slots if slot.pool in self._waits_in] or slots
        self._withdraw_claims(holder)
        kept = [slot for slot in slots if holder.job and slot.unit in self._scene.delays]
        for slot in kept:
            self._hold(Holder("", 0, self._scene.delays[str(slot.unit)].unit), [slot], self._time)
        for _, unit in groupby((slot for slot in slots if slot not in kept), key=lambda slot: slot.unit):
            mine = list(unit)
            for slot in mine:
                self._put_back(slot)
            self._serve(slot.pool for slot in mine)
        self._serve(self._pools)
        back = " and ".join(self._name(slot) for slot in told if slot not in kept)
        return GiveBack(holder, told[0].pool, back, self._kept.get(holder.unit))

    def _withdraw_claims(self, holder: Holder) -> None:
        """A job that ends wants nothing more."""
        if not self._waiting[holder]:
            return
        left = [name for name, claims in self._claims.items() if any(_whose(claim) == holder for claim in claims)]
        for name in left:
            self._claims[name][:] = [claim for claim in self._claims[name] if _whose(claim) != holder]
            self._heads.pop(name, None)
        self._waiting[holder] = 0
        self._serve(left)

    def _put_back(self, slot: Slot) -> None:
        pool = self._pools[slot.pool]
        if pool.is_amount:
            self._pools[slot.pool] = replace(pool, used=pool.used - slot.count)
        elif self._owed[slot.pool] and (slot.withdrawn or pool.names is None):
            self._owed[slot.pool] -= 1
            self._free[slot.pool] += after_transition(pool, slot, self._held_of(pool))
        else:
            self._free[slot.pool].append(slot)

    def _name(self, slot: Slot) -> str:
        pool = self._pools[slot.pool]
        if pool.is_amount:
            return f"{slot.count} of {pool.name}"
        if slot.name.startswith(NEW):
            return f"a slot of {pool.name}"
        return slot.name if pool.names is not None else f"slot {slot.name} of {pool.name}"

    def _serve(self, names: Iterable[str]) -> None:
        """Serve pools in turn, as the scheduler does: grant what can be granted from their queues."""
        for name in serving_order(names):
            while not self._is_granted and self._has_any(name) and (found := pick(name, self._stocks())):
                self._grant(found)

    def _has_any(self, name: str) -> bool:
        """Whether somebody waits for a pool that has anything: else nothing of it can be granted."""
        pool = self._pools[name]
        return bool(self._claims[name]) and (pool.limit > pool.used if pool.is_amount else bool(self._free[name]))

    def _stocks(self) -> dict[str, Stock]:
        return {
            name: Stock(pool, self._heads_of(name), self._free[name], had=self._had(pool))
            for name, pool in self._pools.items()
        }

    def _had(self, pool: Pool) -> Sequence[Slot]:
        """What is had of a pool, where that matters."""
        return self._held_of(pool) if pool.share else ()

    def _held_of(self, pool: Pool) -> list[Slot]:
        return [slot for slots in self._held.values() for slot in slots if slot.pool == pool.name]

    def _heads_of(self, name: str) -> list[Claim]:
        """The heads of a pool's queue. They are looked for anew only when the queue has changed."""
        if name not in self._heads:
            self._heads[name] = heads_in_order(self._claims[name])
        return self._heads[name]

    def _grant(self, found: Pick) -> None:
        whose = ClaimId.from_claim(next(iter(found.rows.values())))
        self._is_granted = whose == self._whose
        got: list[Slot] = []
        for name, claim in found.rows.items():
            pool = self._pools[name]
            self._claims[name].remove(claim)
            self._heads.pop(name, None)
            self._waiting[_whose(claim)] -= 1
            if pool.is_amount:
                self._pools[name] = replace(pool, used=pool.used + claim.count)
                got.append(Slot(pool=name, name=claim.job, state=SlotState.HELD, count=claim.count))
            else:
                taken = found.taken(name) or self._free[name][: claim.count]
                got += taken
                self._free[name] = [slot for slot in self._free[name] if slot not in taken]
        for claim in found.overtaken:
            claims = self._claims[claim.pool]
            claims[claims.index(claim)] = replace(claim, overtaken=claim.overtaken + 1)
            self._heads.pop(claim.pool, None)
        owner = next(iter(found.rows.values())).owner
        mine = [replace(slot, order=whose.step, unit=f"of step {whose.step}", owner=owner) for slot in got]
        self._hold(Holder(whose.job, whose.attempt), mine, self._time)


def _whose(claim: Claim) -> Holder:
    return Holder(claim.job, claim.attempt)


def _turn(slot: Slot) -> tuple[object, ...]:
    """The order in which slots are put back: with its unit, the worker first, resources in reverse order, quotas
    last.
    """
    order = slot.order or 0
    is_quota = pools.is_quota(slot.pool)
    return order != WORKER, -order, slot.unit or "", is_quota, slot.pool, slot.name


MAX_PRUNED = 16
"""Up to how many steps a forecast is pruned of those that are unnecessary."""


class Action(StrEnum):
    """The kinds of things that move a job on."""

    RESUME = "resume"
    RAISE = "raise"
    GIVE_BACK = "give back"
    LET_GO = "let go"
    HELLO = "hello"
    MAKE = "make"
    PUT_BACK = "put back"
    END = "end"
    ARRIVE = "arrive"
    APPROVE = "approve"
    FEWER = "fewer"
    BUDGET = "budget"


@dataclass(frozen=True)
class Unblock:
    """One thing that has to happen. `what` is given back or made, by `job`; `limit` is what is enough.

    For a job that has to end, `what` says how; for a file that has to arrive, which; for a review, who has to approve.
    Where one of many jobs has to end, or a budget is spent, it says whose. `unit` is what is let go of, and `said` how
    that happens; of what is to be made, when its maker is asked again; of a budget, when the next period begins; of a
    paused pool, who may resume it, and `what` is to be resumed.
    """

    way: Action
    pool: str = ""
    what: str = ""
    job: str = ""
    limit: int = 0
    is_named: bool = False
    unit: str = ""
    said: str = ""

    def __str__(self) -> str:
        return {
            Action.RESUME: f"{self.said or 'an operator'} resumes {self.what or self.pool}",
            Action.RAISE: f"an operator gives {self.pool} {self.limit} slots in the site's configuration"
            if self.is_named
            else f"an operator raises the limit of {self.pool} to {self.limit}",
            Action.GIVE_BACK: f"an operator releases what keeps {self.what}"
            if not self.job
            else f"{self.what} {'are' if ' and ' in self.what else 'is'} given back by {self.job}",
            Action.LET_GO: self.said,
            Action.HELLO: "the agent of its worker says hello",
            Action.MAKE: f"{self.what} is made ready{self.said}",
            Action.PUT_BACK: f"what its attempt {self.what} used is put back",
            Action.END: f"{self.job if self.pool else f'job {self.job}'} {self.what}",
            Action.ARRIVE: f"its input {self.what} arrives",
            Action.APPROVE: f"{self.what} approves job {self.job}",
            Action.FEWER: f"one of the jobs of {self.what} that are under way ends",
            Action.BUDGET: f"the budget of {self.what} is raised, or its next period begins at {self.said}",
        }[self.way]


@dataclass(frozen=True)
class Forecast:
    """What has to happen before one claim is granted. `pool`: the pool that it waits for first; `position` counts
    from 1.

    `seconds`: None when unknown, such as how long an operator takes; 0 when it is granted now. `unblocks`: everything
    that has to happen, in order.
    """

    pool: str
    position: int
    seconds: float | None
    basis: str | None
    unblocks: tuple[Unblock, ...]

    @property
    def would_wait(self) -> bool:
        """Whether anything has to happen first."""
        return bool(self.unblocks) or self.seconds is None


def forecast(
    queues: Mapping[str, Queue], claim: Claim, now: datetime, delays: Mapping[str, Delay] = NO_DELAYS
) -> Forecast:
    """The forecast for a claim that is in its queues. `delays`: what keeps units, by unit."""
    scene = Scene(queues, ClaimId.from_claim(claim), now, delays)
    pool = blocking(queues, claim)
    acts, steps, seconds = _way(scene, claim)
    position = len(queues[pool].before(scene.whose)) + 1
    basis = _basis(queues[pool], now, [step.delay for step in steps if step.delay]) if steps and not acts else None
    given = tuple(step.unblock for step in steps)
    return Forecast(pool, position, None if acts else seconds, basis, (*acts, *given))


Way = tuple[tuple["Unblock", ...], tuple[GiveBack, ...], float | None]
"""What operators do, what is given back then, and after how many seconds that is."""


def _way(scene: Scene, claim: Claim) -> Way:
    """How a claim is granted, with as few things to do for operators as possible.

    Where nobody can tell how those who have something get what they wait for, they are taken to end without it.
    """
    own = _by_operators(scene.queues, [claim])
    every = _by_operators(scene.queues, [claim, *_of_holders(scene.queues)])
    for how, acts in ((scene, own), (scene, every), (replace(scene, waits_too=False), own)):
        found = _play(how, acts)
        if found:
            less, steps, seconds = _pruned(how, acts, found)
            return less, steps, seconds
    return own, (), None


def _of_holders(queues: Mapping[str, Queue]) -> list[Claim]:
    """A claim of each holder that waits for more."""
    holders = {(slot.job, slot.attempt) for queue in queues.values() for slot in queue.held if slot.job}
    claims = {
        ClaimId.from_claim(claim): claim
        for queue in queues.values()
        for claim in queue.claims
        if (claim.job, claim.attempt) in holders and queues.keys() >= set(claim.pools)
    }
    return list(claims.values())


def _play(scene: Scene, acts: Sequence[Unblock], only: Collection[str] | None = None) -> SimulatedGrant | None:
    """How a claim is granted after operators did these things in order."""
    play = Simulation(scene, only)
    for act in acts:
        if act.way is Action.RESUME:
            play.resume(act.pool)
        else:
            play.raise_to(act.pool, act.limit)
    return play.until_granted()


def blocking(queues: Mapping[str, Queue], claim: Claim) -> str:
    """The first of a claim's pools that could not grant it now; its own pool if all could."""
    whose = ClaimId.from_claim(claim)
    stocks = {name: queue.stock for name, queue in queues.items()}
    short = (name for name in claim.pools if not queues[name].can_grant(whose, stocks))
    return next(short, claim.pools[0])


def _by_operators(queues: Mapping[str, Queue], claims: Sequence[Claim]) -> tuple[Unblock, ...]:
    """What only an operator can do for some claims: resume paused pools, raise limits that are too low."""
    wanted: dict[str, int] = {}
    for claim in claims:
        for name in claim.pools:
            wanted[name] = max(wanted.get(name, 0), queues[name].wanted_by(ClaimId.from_claim(claim)))
    paused = [_resume(queues[name].pool) for name in wanted if queues[name].pool.is_paused]
    low = [
        Unblock(Action.RAISE, name, limit=count, is_named=queues[name].pool.names is not None)
        for name, count in wanted.items()
        if queues[name].pool.limit < count
    ]
    return (*paused, *low)


def _resume(pool: Pool) -> Unblock:
    """To resume a pool, and what it belongs to: every operator may, and who paused it knows best when."""
    by, own = pool.paused_by, [pool.name] if pool.paused else []
    what = " and ".join([*own, *(in_words(stop.scope) for stop in pool.stops)])
    return Unblock(Action.RESUME, pool.name, what, said=f"{by.by} or another operator" if by else "")


def _pruned(scene: Scene, acts: Sequence[Unblock], found: SimulatedGrant) -> Way:
    """The same steps without those that happened to come first but are unnecessary."""
    acts, best = tuple(acts), found
    if len(acts) + len(found.steps) > MAX_PRUNED:
        return acts, found.steps, found.seconds
    for act in acts:
        less = tuple(one for one in acts if one != act)
        shorter = _play(scene, less, [step.holder.label for step in best.steps])
        acts, best = (less, shorter) if shorter else (acts, best)
    for step in best.steps:
        label = step.holder.label
        best = _play(scene, acts, [one.holder.label for one in best.steps if one.holder.label != label]) or best
    return acts, best.steps, found.seconds


def _basis(queue: Queue, now: datetime, delays: Sequence[Delay]) -> str | None:
    """What the estimate is based on; None if something has no end that is known."""
    if any(delay.until is None and delay.cause is not Cause.CLEANING for delay in delays):
        return None
    held = [delay.says for delay in delays if delay.until]
    return "; ".join([*held, *filter(None, [_by_the_mean(queue, now)])]) or None


def _by_the_mean(queue: Queue, now: datetime) -> str | None:
    pool, times = queue.pool, queue.times
    if times is None or not times.holds:
        return None
    mean = timedelta(seconds=times.mean_hold)
    kept = f"kept it {format_duration(times.mean_hold)}"
    said = f"the last {min(times.holds, RECENT_HOLDERS)} holders of {pool.name} {kept} on average"
    if times.holds == 1:
        said = f"the last holder of {pool.name} {kept}"
    late = sum(slot.since is not None and now - slot.since > mean for slot in queue.held)
    return f"{said}; {late} of the present {len(queue.held)} already longer" if late else said


def combined_start(forecasts: Sequence[Forecast]) -> tuple[float | None, str | None]:
    """When all of a job's steps may be granted, in seconds from now, and what the estimate is based on.

    The steps follow one another, but the queues move all the time: the slowest step decides.
    """
    unknown = [one for one in forecasts if one.seconds is None]
    if unknown:
        return None, next((one.basis for one in unknown if one.basis), None)
    last = max(forecasts, key=lambda one: one.seconds or 0.0, default=None)
    return (last.seconds, last.basis) if last else (None, None)


def format_duration(seconds: float) -> str:
    """A duration as text: 40 s, 4 min, 3 h, 2 d."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
