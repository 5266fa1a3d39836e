"""The rows of a pool: the pool itself, its slots, the claims that wait for them, and the leases that come of claims.

A slot's key begins with its state, so that the first free slots and the first waiting claims of a pool are each one
short read. Moving a slot to another state is a delete and a create in one commit.

    off ──offer──▶ free ──take──▶ held ──give back──▶ free
     ▲               └──withdraw──▶ off      └─(withdrawn)─▶ off

A host's slot is free only while the host is connected; otherwise it is away. A slot is never deleted, because its fence
may only grow [SLOT-3].

A unit that is kept for the next lease stays on its own slot, which is then free and warm. The other slots that it takes
are idle: nobody leases them, and they come back when the unit is handed over, or destroyed to make room.

A need is one thing that an attempt asks for. Its lease says whether it waits for it or was granted it:

    (none) ──acquire──▶ waiting ──grant──▶ granted ──ready──▶ ready
                           │                  └───────┬─────────┘
                        settle                      settle
                           ▼                          ▼
                        released ◀──unit gone──── releasing

A lease has no due time of its own. Serving its pool moves a waiting lease on (the queue deadline is in the job's row);
the unit that was made for it moves on the others (the due time is in the unit's row).

The row of a lease says whether it waits or was granted. From then on the row of its unit says what became of it, and
the lease's is not written again: whoever reads leases reads their units, and has `lease_as_of` say their state.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar

from penstock.domain.pools.choices import Choice
from penstock.domain.pools.stops import ByHand
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Delete, Key, Place, Replace, Row

RANK_BASE = 500
"""Ranks are text: priority p sorts as RANK_BASE - p, so that the higher priority comes first."""


class SlotState(StrEnum):
    """The state of a slot, the first part of its key."""

    FREE = "free"  # moved on by whoever serves the pool; with a unit it is warm
    HELD = "held"  # moved on by the release of its lease
    IDLE = "idle"  # kept by a unit that nobody leases; moved on with it
    AWAY = "away"  # its host is not there; moved on by the host's word
    OFF = "off"  # withdrawn; moved on by an operator who raises the limit again


@dataclass(frozen=True, kw_only=True)
class Pool(Row):
    """The capacity of one target, resource type or quota. Its due time is set while its slots differ from its limit.

    A pool is numbered, named, or an amount: then it has no slots but for what is held, and `used` is their sum, which
    one conditional write raises and lowers. A million blocks are one row. [SLOT-1]

    `hosts` says that its names are machines that come and go. `labels` are those of its things, by name: by them claims
    choose. A thing that serves several leases at once has a slot for each, `thing/1` and so on. `share` says how jobs
    share its machines, if they do: see penstock.domain.pools.packing.
    `over` is set while more may be held than the limit, because it was lowered. `setback` is set while what is made
    ahead of need comes to nothing. `broken` is how many of its workers were broken, or did not boot, one after the
    other.

    `pause` says who paused it; it counts only while `paused` is set, and is None where nobody was named. `stops` are
    those of the whole site, and of its factory or well, the oldest first. `resized` says who set the limit, if that was
    not the site's configuration.

    `spec` tells by which settings its units are made; what was made before `renewed`, when these changed last, is kept
    no longer than it takes to replace it.

    Grants and releases of slots do not write this row: all that are made at once would wait for each other.
    """

    kind: ClassVar[str] = "pool"
    name: str
    names: tuple[str, ...] | None = None
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hosts: bool = False
    share: Sharing | None = None
    is_amount: bool = False
    limit: int
    used: int = 0
    paused: bool = False
    over: bool = False
    warm: Warm | None = None
    setback: Setback | None = None
    broken: int = 0
    due: datetime | None = None
    pause: ByHand | None = None
    resized: ByHand | None = None
    stops: tuple[ByHand, ...] = ()
    spec: str = ""
    renewed: datetime | None = None

    @property
    def key(self) -> Key:
        return pool_key(self.name)

    @property
    def place(self) -> Place:
        return Place("pools", self.name)

    @property
    def min_warm(self) -> int:
        """How many units the pool keeps warm at least: if it has fewer, units are made ahead of need."""
        return self.warm.least if self.warm else 0

    @property
    def is_paused(self) -> bool:
        """Whether operators have paused it, or all that it belongs to."""
        return self.paused or bool(self.stops)

    @property
    def paused_by(self) -> ByHand | None:
        """Who paused it, or else what it belongs to; None while it is open, or if nobody was named."""
        own = self.pause if self.paused else None
        return own or next(iter(self.stops), None)

    @property
    def is_above_limit(self) -> bool:
        """Whether it has slots by number, and more than those that the limit allows may be held. Names tell themselves
        which slots are to go.
        """
        return self.over and self.names is None and not self.is_amount

    def is_of_last_division(self, slot: Slot) -> bool:
        """Whether a slot of a host is a part although jobs share it no longer, or all of it although they do."""
        return self.hosts and (slot.name != slot.thing) is not (self.share is not None)

    @property
    def is_closed(self) -> bool:
        """Whether nothing may be granted: it is paused, or above its limit. Then a resize decides which of its slots
        are free. [SLOT-1]
        """
        return self.is_paused or self.is_above_limit

    @property
    def keeps_apart(self) -> bool:
        """Whether jobs share its machines, but only those of one owner at a time. [SEC-2]"""
        return self.share is not None and self.share.serves is Serves.OWNER

    @property
    def sort(self) -> str:
        """Numbered, named or amount."""
        return "amount" if self.is_amount else "numbered" if self.names is None else "named"

    @property
    def deadline(self) -> datetime | None:
        return self.due


@dataclass(frozen=True, kw_only=True)
class HoldTimes(Row):
    """How long holders of a pool kept what they had: how many were counted, and the mean of the last, in seconds.

    `mean_wait` is how long of that they waited for their worker, which is short if it was warm; rows of releases that
    did not count it say 0. `boots` and `mean_boot` are of those workers that were made for them.
    """

    kind: ClassVar[str] = "holdtimes"
    pool: str
    holds: int = 0
    mean_hold: float = 0.0
    mean_wait: float = 0.0
    boots: int = 0
    mean_boot: float = 0.0

    @property
    def mean_use(self) -> float:
        """How long they had a worker that was there."""
        return max(0.0, self.mean_hold - self.mean_wait)

    @property
    def key(self) -> Key:
        return Key(collection(self.pool), "holdtimes")


@dataclass(frozen=True, kw_only=True)
class Slot(Row):
    """One slot of a pool. The commit that moves it from free to held owns it.

    In an amount pool a slot exists only while a unit takes it, and `count` is its share. `leaving`: an idle slot whose
    unit is being destroyed. A free or idle slot with a unit and no `since` waits for the unit to be made.
    `owner` is whose jobs its unit serves, "" if it serves anybody's.
    """

    kind: ClassVar[str] = "slot"
    pool: str
    name: str
    state: SlotState
    fence: int = 0
    withdrawn: bool = False
    leaving: bool = False
    count: int = 1
    job: str | None = None
    attempt: int | None = None
    order: int | None = None
    unit: str | None = None
    owner: str = ""
    since: datetime | None = None

    @property
    def thing(self) -> str:
        """The name of the thing that it is a slot of."""
        return thing_of(self.name)

    @property
    def key(self) -> Key:
        rank = ("warm#" if self.unit else "cold#") if self.state is SlotState.FREE else ""
        return Key(collection(self.pool), f"{self.state}#{rank}{self.name}")


@dataclass(frozen=True, kw_only=True)
class SlotName(Row):
    """The name of a slot, whatever its state. It is created with the slot, so that no name is two slots. [SLOT-1]"""

    kind: ClassVar[str] = "slotname"
    pool: str
    name: str

    @property
    def key(self) -> Key:
        return Key(collection(self.pool), f"name#{self.name}")


@dataclass(frozen=True, kw_only=True)
class Claim(Row):
    """An attempt's place in a pool's queue, for `count` slots, or that much of an amount, at once.

    A claim over several pools stands in the queue of each, and is granted in all or in none. [SLOT-2] `overtaken` is
    how often a claim behind it was granted from this pool so that there was no room left for it. [QUEUE-2] `takes` is
    what each of its leases takes, its own pool first: a warm unit on a slot of that pool brings all of it, if it serves
    the job's `owner`. A `fresh` claim is granted no warm unit: those that are in its way make room, and its own units
    are not kept. `choices` says which things each lease may have of its own pool; it is empty if none chooses.
    `turn` is by when it stands there, if not by its job's age: the time, as a ULID begins with it.

    Claims that take the same stand in one `line`: if its first cannot be granted for lack of something, none of it can.
    So of a queue only the first claims of each line are read. docs/decisions/0051-queues-have-lines.md
    """

    kind: ClassVar[str] = "claim"
    pool: str
    job: str
    attempt: int
    step: int
    count: int
    pools: tuple[str, ...]
    priority: int
    since: datetime
    overtaken: int = 0
    takes: tuple[Mapping[str, int], ...] = ()
    choices: tuple[Choice, ...] = ()
    fresh: bool = False
    owner: str = ""
    line: str = ""
    turn: str = ""

    @property
    def key(self) -> Key:
        return Key(collection(self.pool), f"{self.before_it}{self.step:02d}")

    @property
    def before_it(self) -> str:
        """A sort key behind the claims of its line that stand before it, and before its own."""
        rank = RANK_BASE - self.priority
        return f"{WAITING}{self.line}#{rank:03d}#{self.turn}{self.job}#{self.attempt:04d}#"

    @property
    def order(self) -> tuple[int, str, int, int]:
        """Its place among all claims of a queue: by priority, then by its turn, or the age of its job, which is in the
        job's id: both begin with a time. [QUEUE-2]
        """
        return -self.priority, f"{self.turn}{self.job}", self.attempt, self.step


WAITING = "wait#"
"""How the keys of all claims begin, line by line."""

QUOTA = "quota/"
"""How the name of every amount begins."""

BEFORE_ITS_ROW = "poo"
"""A sort key before that of a pool's own row; the first claim is the next one after the row."""


def is_quota(pool: str) -> bool:
    """Whether a pool is an amount, by its name."""
    return pool.startswith(QUOTA)


def serving_order(names: Iterable[str]) -> list[str]:
    """Pools in the order in which they are served: quotas first. Who waits for one waits for many other pools, and all
    are read together; so its first claims have their turn before those behind them, whatever else these wait for.
    """
    return sorted(names, key=is_quota, reverse=True)


def group_of(names: Sequence[str]) -> str:
    """The group in which pools are served that a claim takes from: that of a quota among them, which others share."""
    return next(filter(is_quota, names), names[0])


def collection(pool: str) -> str:
    """The collection of a pool's rows."""
    return f"pool#{pool}"


def thing_of(slot: str) -> str:
    """The thing that a slot is of, by its name: `bench-3` of `bench-3/1`, as of `bench-3`."""
    return slot.partition("/")[0]


def line_of(takes: Sequence[Mapping[str, int]], *, fresh: bool, choices: Sequence[Choice] = (), owner: str = "") -> str:
    """The line of the claims that take this. Where jobs share machines, those of each owner have lines of their own,
    since one owner may have what another has not.
    """
    said = repr(([sorted(each.items()) for each in takes], fresh, *map(astuple, choices), *filter(None, [owner])))
    return hashlib.sha256(said.encode()).hexdigest()[:8]


def line_prefix(line: str) -> str:
    """What the sort keys of a line's claims begin with."""
    return f"{WAITING}{line}#"


def behind(line: str) -> str:
    """A sort key behind all claims of a line, and before those of the next."""
    return f"{WAITING}{line}$"


def pool_key(pool: str) -> Key:
    """The key of a pool's own row."""
    return Key(collection(pool), "pool")


def move(was: Slot, after: Slot) -> tuple[Change, ...]:
    """The changes that move a slot to another state.

    Its version moves along: a free slot that was held in between is not the one that somebody read before. [SLOT-3]
    """
    if was.key == after.key:
        return (Replace(was, after),)
    return (Delete(was), Create(replace(after, version=was.version)))


def take(slot: Slot, claim: Claim, order: int, unit: str, now: datetime) -> Slot:
    """A free slot, held for one lease of a claim, with the next fence. [SLOT-1] [SLOT-3]"""
    if slot.state is not SlotState.FREE or slot.unit not in (None, unit):
        raise ValueError(f"only a free slot can be taken; {slot.pool}/{slot.name} is {slot.state}, with {slot.unit}")
    return replace(
        slot,
        state=SlotState.HELD,
        fence=slot.fence + 1,
        job=claim.job,
        attempt=claim.attempt,
        order=order,
        unit=unit,
        owner=claim.owner,
        since=now,
    )


def take_amount(pool: Pool, claim: Claim, order: int, count: int, unit: str, now: datetime) -> tuple[Pool, Slot]:
    """A pool with this much more used, and the slot that uses it. Raises ValueError for more than there is. [SLOT-1]"""
    if pool.used + count > pool.limit:
        raise ValueError(f"{pool.name} has {pool.limit - pool.used} left, not {count}")
    held = Slot(
        pool=pool.name,
        name=unit,
        state=SlotState.HELD,
        fence=1,
        count=count,
        job=claim.job,
        attempt=claim.attempt,
        order=order,
        unit=unit,
        since=now,
    )
    return replace(pool, used=pool.used + count), held


def reserve(slot: Slot, unit: str, *, is_own: bool) -> Slot:
    """A free slot reserved for a unit without a lease: its own slot stays free, the others are idle. [SLOT-1]"""
    if slot.state is not SlotState.FREE or slot.unit:
        raise ValueError(f"only a free, cold slot can be reserved; {slot.pool}/{slot.name} is {slot.state}")
    return replace(slot, state=SlotState.FREE if is_own else SlotState.IDLE, unit=unit)


def reserve_amount(pool: Pool, count: int, unit: str) -> tuple[Pool, Slot]:
    """A pool with this much more used by a unit without a lease. Raises ValueError for too much. [SLOT-1]"""
    if pool.used + count > pool.limit:
        raise ValueError(f"{pool.name} has {pool.limit - pool.used} left, not {count}")
    idle = Slot(pool=pool.name, name=unit, state=SlotState.IDLE, fence=1, count=count, unit=unit)
    return replace(pool, used=pool.used + count), idle


def keep_warm(slot: Slot, warm: Warm, *, is_own: bool, now: datetime | None) -> Slot:
    """A held slot whose lease has ended and whose unit stays: its own is free and warm, the others are idle.

    `now` is None for a unit that is not made yet.
    """
    state = SlotState.FREE if is_own else SlotState.IDLE
    owner = slot.owner if warm.serves is Serves.OWNER else ""
    return replace(slot, state=state, job=None, attempt=None, order=None, owner=owner, since=now)


def serves(slot: Slot, claim: Claim) -> bool:
    """Whether the unit of a warm slot may be handed over to a claim. [SEC-2]

    What a job left on a machine, however well hidden, no job of somebody else meets.
    """
    return slot.owner in ("", claim.owner)


def mark_ready(slot: Slot, now: datetime) -> Slot:
    """A slot whose unit is ready."""
    return replace(slot, since=now)


def set_aside(slot: Slot, now: datetime) -> Slot:
    """A slot of a unit that is held or in quarantine: held, but by no job. [UNIT-1] [UNIT-3]"""
    return replace(slot, state=SlotState.HELD, leaving=False, job=None, attempt=None, order=None, since=now)


def is_aside(slot: Slot) -> bool:
    """Whether a slot is held, but by no job: its unit is held by somebody, or in quarantine."""
    return slot.state is SlotState.HELD and slot.job is None


def hand_over(slot: Slot, claim: Claim, order: int, now: datetime) -> Slot:
    """An idle slot that goes to its unit's next lease."""
    return replace(
        slot, state=SlotState.HELD, job=claim.job, attempt=claim.attempt, order=order, owner=claim.owner, since=now
    )


def mark_leaving(slot: Slot) -> Slot:
    """A slot of a kept unit that will be destroyed: nobody's until then."""
    return replace(slot, state=SlotState.IDLE, leaving=True)


def give_back(slot: Slot, to: SlotState = SlotState.FREE) -> Slot:
    """A slot whose unit is gone: free again, or away if its host is; off if it was withdrawn."""
    state = SlotState.OFF if slot.withdrawn else to
    return Slot(pool=slot.pool, name=slot.name, state=state, fence=slot.fence, version=slot.version)


def amounts(slots: Iterable[Slot]) -> Counter[str]:
    """How much of each pool these slots are."""
    found: Counter[str] = Counter()
    for slot in slots:
        found[slot.pool] += slot.count
    return found


def as_free(pool: Pool, slots: Sequence[Slot], idle: Sequence[Slot]) -> tuple[Pool, list[Slot]]:
    """A pool and its slots as if idle slots were free: a waiting claim can have them, with or without their unit."""
    if pool.is_amount:
        return replace(pool, used=pool.used - sum(slot.count for slot in idle)), list(slots)
    return pool, [*slots, *(give_back(slot) for slot in idle if not slot.withdrawn)]


class Serves(StrEnum):
    """Whose jobs a unit serves after its first."""

    OWNER = "owner"  # those of the same user or repository
    SITE = "site"  # anybody's


@dataclass(frozen=True)
class Sharing:
    """How several jobs share each machine of a pool: into how many parts it is divided, and whose jobs it serves at the
    same time.
    """

    parts: int
    serves: Serves = Serves.OWNER


@dataclass(frozen=True)
class Warm:
    """What a pool keeps warm for the next lease. Durations in seconds.

    At most `most` units, each for at most `idle` without a lease, `life` in all, and `reuse` leases. Below `least`
    that serve anybody, units are prewarmed.
    """

    least: int = 0
    most: int = 1
    idle: int = 600
    life: int = 24 * 3600
    reuse: int = 100
    serves: Serves = Serves.OWNER

    @property
    def most_of_owners(self) -> int:
        """How many of the kept units may serve one owner only: there is room for those that serve anybody."""
        return self.most - self.least

    @property
    def keeps(self) -> bool:
        """Whether a unit may stay after a lease. If not, it is destroyed at once: to clean it would be for nothing."""
        return self.serves is Serves.SITE or self.most_of_owners > 0


@dataclass(frozen=True)
class Setback:
    """Prewarming failed: how often in a row, why, and until when it pauses."""

    count: int
    until: datetime
    why: str


RECENT_HOLDERS = 12
"""Over about how many holders the mean is taken: a new one counts for one in this many."""


def record_hold(times: HoldTimes, kept: timedelta, waited: timedelta = timedelta(0)) -> HoldTimes:
    """A pool's hold times with one more holder, which counts for one in RECENT_HOLDERS: they forget slowly.

    `waited`: how long of that it waited for its worker.
    """
    holds = times.holds + 1
    return replace(
        times,
        holds=holds,
        mean_hold=_moved(times.mean_hold, kept, holds),
        mean_wait=_moved(times.mean_wait, waited, holds),
    )


def record_boot(times: HoldTimes, took: timedelta) -> HoldTimes:
    """A pool's hold times with one more boot."""
    boots = times.boots + 1
    return replace(times, boots=boots, mean_boot=_moved(times.mean_boot, took, boots))


def _moved(mean: float, by: timedelta, count: int) -> float:
    """A mean with one more, the last of so many."""
    return mean + (max(0.0, by.total_seconds()) - mean) / min(count, RECENT_HOLDERS)


def count_broken(pool: Pool, unit: Unit) -> Pool:
    """The unit's pool after a lease of it ended: one more broken in a row, or none.

    A worker whose job was cancelled before it booted tells nothing, nor does a resource that no canary used.
    """
    if pool.name != unit.lease.pool:
        return pool
    if unit.is_broken:
        return replace(pool, broken=pool.broken + 1)
    return replace(pool, broken=0) if unit.session.past_hash else pool


WORKER = 0
"""The order and the step of an attempt's worker; resources count from 1. It is acquired last and given back first."""


@dataclass(frozen=True)
class Need:
    """One thing that an attempt must acquire. `order` 0 is the worker, 1 and up are resources in order of type.

    `options` is what the job says of how it is made.

    Needs of one type share a step: they are claimed together and granted together or not at all. One after the other,
    two jobs that want two each of three could each hold one and wait for ever. [SLOT-2] [QUEUE-3]

    `choice` says which things of a named pool it may be; None for any. An exclusive one is all `slots` of a thing, one
    of a machine that jobs share so many parts of it, `beside` which the machine has others.
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
    choice: Choice | None = None
    slots: int = 1
    beside: int = 0

    @property
    def takes(self) -> dict[str, int]:
        """How much of each pool its unit takes: slots of its own, and what else its type uses."""
        return {self.pool: self.slots, **self.uses}

    @property
    def is_made_to_order(self) -> bool:
        """Whether it is a worker that is made as its job says, and so serves no other job."""
        return self.order == WORKER and bool(self.options)

    @property
    def said(self) -> str:
        """What it is, and what it chooses, for people."""
        chosen = str(self.choice or "")
        return f"{self.type} ({chosen})" if chosen else self.type

    @property
    def is_exclusive(self) -> bool:
        """Whether it has all slots of a thing."""
        return self.choice is not None and self.choice.exclusive

    @property
    def is_of_one_thing(self) -> bool:
        """Whether all its slots are of one thing."""
        return self.choice is not None and (self.choice.exclusive or self.choice.together)


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
    return Key(f"job#{job}", f"{lease_prefix(attempt)}{order:02d}")


def lease_prefix(attempt: int) -> str:
    """The prefix of the keys of an attempt's leases."""
    return f"lease#{attempt:04d}#"


def grant_lease(lease: Lease, slot: str, fence: int, unit: str, now: datetime) -> Lease:
    """A waiting lease that got its slot."""
    return replace(lease, state=LeaseState.GRANTED, slot=slot, fence=fence, unit=unit, granted=now)


def withdraw_lease(lease: Lease) -> Lease:
    """A waiting lease that its attempt needs no more."""
    return replace(lease, state=LeaseState.RELEASED)


LEASE_STATES: Mapping[UnitState, LeaseState] = {
    UnitState.CREATING: LeaseState.GRANTED,
    UnitState.READY: LeaseState.READY,
    UnitState.CLEANING: LeaseState.RELEASING,
    UnitState.DIRTY: LeaseState.RELEASING,
    UnitState.QUARANTINED: LeaseState.RELEASING,
    UnitState.IDLE: LeaseState.RELEASED,
    UnitState.GONE: LeaseState.RELEASED,
}
"""The state of a lease by that of its unit, until the unit's row says that the lease is over."""


def lease_as_of(lease: Lease, unit: Unit | None) -> Lease:
    """The lease in its present state, by the row of its unit. One whose unit has another lease by now is over.

    A unit's row is never forgotten before it is gone.
    """
    if lease.state is not LeaseState.GRANTED:
        return lease
    if unit is None or unit.lease.is_over or not is_lease_of(lease, unit):
        return replace(lease, state=LeaseState.RELEASED)
    return replace(lease, state=LEASE_STATES[unit.state])


def with_units(rows: Iterable[Lease], units: Iterable[Unit]) -> list[Lease]:
    """The leases of these rows in their present state, by the rows of their units."""
    by_id: dict[str | None, Unit] = {unit.id: unit for unit in units}
    return [lease_as_of(lease, by_id.get(lease.unit)) for lease in rows]


def is_lease_of(lease: Lease, unit: Unit) -> bool:
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
