"""When a claim may be granted, and what must happen before: its queues are played forward by the rules that serve them.

How long a holder keeps what it has is guessed from how long those before it did. That guess decides the times, and
which of several holders is likely to be the first; what has to happen at all is decided by the rules alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from penstock.domain.forward import Play, Played, Queue, Step, Whose
from penstock.domain.pools import Claim, Pool, Slot

RECENT = 12
"""How many of the last holders the mean is mostly of: a new one counts for one in so many."""

PRUNED = 16
"""Up to how many give-backs it is tried which of them could be left out."""


def learn(pool: Pool, slots: Collection[Slot], now: datetime) -> Pool:
    """A pool that remembers how long the holders of some of its slots kept them, in one mean that forgets slowly."""
    for slot in slots:
        if slot.since is not None:
            kept = max(0.0, (now - slot.since).total_seconds())
            holds = pool.holds + 1
            mean = pool.mean_hold + (kept - pool.mean_hold) / min(holds, RECENT)
            pool = replace(pool, holds=holds, mean_hold=mean)
    return pool


class Way(StrEnum):
    """What moves a job on, as the first word of a sentence about it."""

    RESUME = "resume"
    RAISE = "raise"
    GIVE_BACK = "give back"
    HELLO = "hello"
    MAKE = "make"
    PUT_BACK = "put back"
    END = "end"
    ARRIVE = "arrive"


@dataclass(frozen=True)
class Unblock:
    """One thing that has to happen. `what` is what is given back or made, `job` by whom, `limit` what is enough.

    Of a job that has to end, `what` says how; of a file that has to come, which.
    """

    way: Way
    pool: str = ""
    what: str = ""
    job: str = ""
    limit: int = 0
    is_named: bool = False

    def __str__(self) -> str:
        return {
            Way.RESUME: f"an operator resumes {self.pool}",
            Way.RAISE: f"an operator gives {self.pool} {self.limit} slots in the site's configuration"
            if self.is_named
            else f"an operator raises the limit of {self.pool} to {self.limit}",
            Way.GIVE_BACK: f"an operator releases what keeps {self.what}"
            if not self.job
            else f"{self.what} {'are' if ' and ' in self.what else 'is'} given back by job {self.job}",
            Way.HELLO: "the agent of its worker says hello",
            Way.MAKE: f"{self.what} is made ready",
            Way.PUT_BACK: f"what its attempt {self.what} used is put back",
            Way.END: f"job {self.job} {self.what}",
            Way.ARRIVE: f"its input {self.what} arrives",
        }[self.way]


@dataclass(frozen=True)
class Forecast:
    """What one claim has before it. `pool` is the one of its pools that it waits for first, `position` counts from 1.

    `seconds` is None when nobody knows, such as how long an operator takes; 0 when it is granted at once. `unblocks`
    are the things that have to happen, in order; when all of them have, it is granted.
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


def forecast(queues: Mapping[str, Queue], claim: Claim, now: datetime) -> Forecast:
    """What a claim that stands in its queues has before it."""
    whose = Whose.of(claim)
    pool = blocking(queues, claim)
    acts = _by_operators(queues, claim)
    found = _play(queues, whose, now, acts)
    acts, steps = _pruned(queues, whose, now, acts, found.steps) if found else (acts, ())
    given = tuple(Unblock(Way.GIVE_BACK, step.pool, step.what, step.job) for step in steps)
    position = len(queues[pool].before(whose)) + 1
    seconds = found.seconds if found and not acts else None
    return Forecast(pool, position, seconds, _basis(queues[pool], now) if steps else None, (*acts, *given))


def _play(
    queues: Mapping[str, Queue],
    whose: Whose,
    now: datetime,
    acts: Sequence[Unblock],
    only: Collection[str] | None = None,
) -> Played | None:
    """How a claim is granted when operators do some things first, one after the other."""
    play = Play(queues, whose, now, only)
    for act in acts:
        if act.way is Way.RESUME:
            play.resume(act.pool)
        else:
            play.raise_to(act.pool, act.limit)
    return play.until_granted()


def blocking(queues: Mapping[str, Queue], claim: Claim) -> str:
    """The first of a claim's pools that could not grant it as it is; its own pool if all could."""
    whose = Whose.of(claim)
    stocks = {name: queue.stock for name, queue in queues.items()}
    short = (name for name in claim.pools if not queues[name].can_grant(whose, stocks))
    return next(short, claim.pools[0])


def _by_operators(queues: Mapping[str, Queue], claim: Claim) -> tuple[Unblock, ...]:
    """What only an operator can do for a claim: resume what is paused, raise what is too low."""
    wanted = {name: queues[name].wanted_by(Whose.of(claim)) for name in claim.pools}
    paused = [Unblock(Way.RESUME, name) for name in wanted if queues[name].pool.paused]
    low = [
        Unblock(Way.RAISE, name, limit=count, is_named=queues[name].pool.names is not None)
        for name, count in wanted.items()
        if queues[name].pool.limit < count
    ]
    return (*paused, *low)


def _pruned(
    queues: Mapping[str, Queue], whose: Whose, now: datetime, acts: Sequence[Unblock], steps: Sequence[Step]
) -> tuple[tuple[Unblock, ...], tuple[Step, ...]]:
    """The same without what only happened to come first."""
    acts, steps = tuple(acts), tuple(steps)
    if len(acts) + len(steps) > PRUNED:
        return acts, steps
    for act in acts:
        less = tuple(one for one in acts if one != act)
        found = _play(queues, whose, now, less, [step.job for step in steps])
        acts, steps = (less, found.steps) if found else (acts, steps)
    for step in steps:
        found = _play(queues, whose, now, acts, [one.job for one in steps if one.job != step.job])
        steps = found.steps if found else steps
    return acts, steps


def _basis(queue: Queue, now: datetime) -> str | None:
    """What a time was guessed from."""
    pool = queue.pool
    if not pool.holds:
        return None
    mean = timedelta(seconds=pool.mean_hold)
    said = f"the last {min(pool.holds, RECENT)} holders of {pool.name} kept it {lasting(pool.mean_hold)} on average"
    if pool.holds == 1:
        said = f"the last holder of {pool.name} kept it {lasting(pool.mean_hold)}"
    late = sum(slot.since is not None and now - slot.since > mean for slot in queue.held)
    return f"{said}; {late} of the present {len(queue.held)} already longer" if late else said


def altogether(forecasts: Sequence[Forecast]) -> tuple[float | None, str | None]:
    """When all of a job's steps may be granted, in seconds from now, and what that was guessed from.

    The steps follow one another, but the queues move all the time: the slowest of them decides.
    """
    if any(one.seconds is None for one in forecasts):
        return None, next((one.basis for one in forecasts if one.basis), None)
    last = max(forecasts, key=lambda one: one.seconds or 0.0, default=None)
    return (last.seconds, last.basis) if last else (None, None)


def lasting(seconds: float) -> str:
    """A time as one says it: 40 s, 4 min, 3 h, 2 d."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
