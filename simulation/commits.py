"""What a check gets: one commit, and the facts from before it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from functools import partial
from typing import TypeVar, cast

from penstock.domain.pools import matching
from penstock.domain.pools.grants import WINDOW, heads
from penstock.domain.pools.pools import (
    WAITING,
    WORKER,
    Claim,
    Lease,
    Pool,
    Slot,
    SlotState,
    collection,
    lease_prefix,
    pool_key,
)
from penstock.domain.units import quarantine
from penstock.domain.units.units import CleanProof, Unit, UnitState, unit_key
from penstock.kernel.rows import Change, Check, Create, Delete, Key, Row, key_of
from simulation import choices
from simulation.ports import SimulatedStore
from simulation.tasks import Task

OVERTAKEN = 8
"""How many may pass a waiting claim. Source: QUEUE-2."""

ENDED = (UnitState.CLEANING, UnitState.DIRTY)
"""Where a unit is when its lease has ended."""

R = TypeVar("R", bound=Row)

Move = tuple[Row | None, Row | None]

Aside = Callable[[str], Sequence[Slot]]
"""Which slots of a pool are aside."""

Broke = tuple[str, str]
"""The label of a promise, and how it was broken."""


@dataclass
class Facts:
    """Facts from earlier commits, which rows do not contain."""

    fences: dict[tuple[str, str], int] = field(default_factory=dict)
    highest: dict[str, int] = field(default_factory=dict)
    overtaken: dict[Key, int] = field(default_factory=lambda: defaultdict(int))
    born: dict[Key, int] = field(default_factory=dict)
    opened: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    moved: dict[str, int] = field(default_factory=dict)
    """When a pool was last other than free things make it: claimed, granted from, limited, paused."""
    earlier: Mapping[str, int] = field(default_factory=dict)
    """The same, before the commit."""
    at: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    workers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ended: dict[str, datetime] = field(default_factory=dict)
    portions: dict[tuple[str, str], Fraction] = field(default_factory=dict)
    """How much of a host each of its slots was when it was lent last."""


@dataclass
class Moment:
    """One commit: how it moved rows, who made it, and the rows after it."""

    store: SimulatedStore
    facts: Facts
    moves: Sequence[Move]
    before: Mapping[Key, Row | None]
    task: Task | None
    proofs: Mapping[str, CleanProof]
    cleanings: Mapping[str, CleanProof]
    rests: Callable[[str], bool]
    running: Callable[[], Iterator[tuple[str, int, str]]]

    def of(self, kind: type[R]) -> Iterator[tuple[R | None, R | None]]:
        """How the commit moved rows of one kind."""
        return (cast("tuple[R | None, R | None]", move) for move in self.moves if isinstance(move[1] or move[0], kind))

    def is_amount(self, pool: str) -> bool:
        """Whether a pool is an amount, which has no slots but for what is held."""
        row = self.store.rows.get(pool_key(pool))
        return isinstance(row, Pool) and row.is_amount

    def could_see(self, claim: Claim) -> bool:
        """Whether the claim stood in every one of its queues when the handler looked there."""
        looked = self.task.looked if self.task else {}
        born = self.facts.born.get(claim.key, 0)
        return all(looked.get(collection(pool), -1) >= born for pool in claim.pools)

    def unit_of(self, slot: Slot) -> Unit | None:
        """The unit that a slot is with."""
        row = self.store.rows.get(unit_key(slot.unit or ""))
        return row if isinstance(row, Unit) else None

    def _granted(self, but: Collection[str]) -> tuple[list[Slot], Counter[str]]:
        """What the commit gave to jobs but some: slots that were warm, as they were, and how much else of each pool."""
        warm, cold = list[Slot](), Counter[str]()
        for was, now in self.of(Slot):
            is_taken = now and now.state is SlotState.HELD and (was is None or was.state is SlotState.FREE)
            if now and is_taken and now.job not in but:
                if was and was.unit:
                    warm.append(was)
                else:
                    cold[now.pool] += now.count
        return warm, cold

    def has_room(self, claim: Claim, but: Collection[str]) -> bool:
        """Whether all pools of a claim had room for it since the handler looked.

        What the commit gave to jobs `but` these counts as room: those were before it. What a warm unit takes, it brings
        along, if it serves the claim's owner. What is kept for a claim that was overtaken too often is no room. Nobody
        looks beyond the first WINDOW of a line, or grants what passes more claims than that: a transaction has its
        bounds.
        """
        looked = self.task.looked if self.task else {}
        warm, cold = self._granted(but)
        passed = 0
        wants = self._wants(claim, warm)
        for name in claim.pools:
            pool = self.store.rows.get(pool_key(name))
            row = self.store.rows.get(replace(claim, pool=name).key)
            if not isinstance(pool, Pool) or not isinstance(row, Claim) or pool.is_closed:
                return False
            if pool.share:  # share_invariants looks at those
                return False
            queue = self.store.scan(collection(name), WAITING, Claim)
            ahead = [other for other in queue if other.order < row.order]
            passed += len(ahead)
            if self.chooses(pool, row):
                if passed > WINDOW or row not in heads(queue) or not self._may_have(row, pool, ahead, but):
                    return False
                continue
            taken = sum(slot.pool == name for slot in warm) + cold.get(name, 0)
            left = self.room(name) + taken - row.count
            harmed = [other for aside in self.asides(queue) for other in self._harmed(row, left, aside)]
            if passed > WINDOW or row not in heads(queue) or any(other.overtaken >= OVERTAKEN for other in harmed):
                return False
            there = len(self.store.scan(collection(name), "free#cold#", Slot)) + cold.get(name, 0)
            there = pool.limit - pool.used + cold.get(name, 0) if pool.is_amount else there
            if wants[name] > max(0, there) or self.facts.opened[name] > looked.get(collection(name), -1):
                return False
        return True

    def chooses(self, pool: Pool, claim: Claim) -> bool:
        """Whether anybody in a pool's queue, or this claim, chooses among its things."""
        queue = self.store.scan(collection(pool.name), WAITING, Claim)
        return bool(matching.choosing([claim, *queue], pool.name))

    def _may_have(self, row: Claim, pool: Pool, ahead: Sequence[Claim], but: Collection[str]) -> bool:
        """Whether a pool where somebody chooses had what a claim wants, and surely kept it for nobody: neither for one
        that was overtaken too often, nor for one that wants a thing for itself.
        """
        pk = collection(pool.name)
        looked = self.task.looked.get(pk, -1) if self.task else -1
        alone = any(choice.exclusive for choice in matching.choosing([row, *ahead], pool.name))
        is_kept = alone or any(other.overtaken >= OVERTAKEN for other in ahead)
        taken = {now.name for was, now in self._taken(pool.name) if not was.unit and now.job not in but}
        names = {slot.name for slot in self.store.scan(pk, "free#cold#", Slot)} | taken
        is_later = self.facts.opened[pool.name] > looked
        return not is_kept and not is_later and choices.can_have(row, pool, names)

    def names_taken(self, pool: str, job: str) -> set[str]:
        """The slots of a pool that the commit gave to a job."""
        return {now.name for _, now in self._taken(pool) if now.job == job}

    def _taken(self, pool: str) -> Iterator[tuple[Slot, Slot]]:
        """The slots of a pool that the commit gave to jobs, as they were, and as they are."""
        for was, now in self.of(Slot):
            if was and now and (now.pool, now.state, was.state) == (pool, SlotState.HELD, SlotState.FREE):
                yield was, now

    def room(self, name: str) -> int:
        """How much of a pool has no lease: what is free, and what kept units have."""
        pool, pk = self.store.rows.get(pool_key(name)), collection(name)
        idle = sum(slot.count for slot in self.store.scan(pk, "idle#", Slot) if not slot.withdrawn)
        if isinstance(pool, Pool) and pool.is_amount:
            return pool.limit - pool.used + idle
        return len(self.store.scan(pk, "free#", Slot)) + idle

    def harmed_by(self, claim: Claim) -> list[Claim]:
        """Those before a granted claim in its queue from whom it took, whatever its handler took as aside: no room is
        left for them. But for none, where something came back since the handler looked: it may have been aside.
        """
        queue = self.store.scan(collection(claim.pool), WAITING, Claim)
        looked = self.task.looked if self.task else {}
        pools = {name for other in queue for name in other.pools}
        if any(self.facts.opened[name] > looked.get(collection(name), self.store.commits) for name in pools):
            return []
        first, *others = [self._harmed_by(claim, aside) for aside in self.asides(queue)]
        return [other for other in first if all(other in each for each in others)]

    def _harmed_by(self, claim: Claim, aside: Aside) -> list[Claim]:
        pool = self.store.rows.get(pool_key(claim.pool))
        if not isinstance(pool, Pool) or not self.chooses(pool, claim):
            return self._harmed(claim, self.room(claim.pool), aside)
        if pool.share:  # share_invariants looks at those
            return []
        pk = collection(claim.pool)
        queue = heads(self.store.scan(pk, WAITING, Claim))
        if any(choice.exclusive for choice in matching.choosing(queue, claim.pool)):
            return []
        left = [slot.name for state in ("free#", "idle#") for slot in self.store.scan(pk, state, Slot)]
        ahead = [other for other in queue if other.order < claim.order]
        taken = self.names_taken(claim.pool, claim.job)
        return choices.harmed(ahead, pool, left, taken, choices.Everything(self._pool, aside))

    def _harmed(self, claim: Claim, left: int, aside: Aside) -> list[Claim]:
        """Those before a claim in its queue for whom, and those before them, what is left after it is not enough.

        But for those who could not be granted with those before them even if nobody had anything.
        """
        found: list[Claim] = []
        everything, wanted = choices.Everything(self._pool, aside), 0
        for other in heads(self.store.scan(collection(claim.pool), WAITING, Claim)):
            if other.order < claim.order and everything.add(other):
                wanted += other.count
                found += [other] if wanted > left else []
        return found

    def asides(self, queue: Sequence[Claim]) -> list[Aside]:
        """What a handler may have taken as what no job's end brings back, of each pool that a queue's claims want.

        Nothing, as it looks for that only where something is reserved, or where it sees what is held; or what no job
        holds; also what hosts have that are away, if those are away for long; and also what units have whose lease
        ended long ago. How long ago that was, and when the handler looked, is not reckoned here.
        """
        maybe = {name: self._maybe_aside(name) for claim in queue for name in claim.pools}
        kinds = sorted({kind for slots in maybe.values() for kind, _ in slots})
        return [partial(_up_to, maybe, most) for most in (0, *kinds)]

    def _maybe_aside(self, name: str) -> list[tuple[int, Slot]]:
        """The slots of a pool that may be aside, by how sure that is."""
        held = self.store.scan(collection(name), "held#", Slot)
        jobless = [(1, slot) for slot in held if slot.job is None]
        away = [(2, slot) for slot in self.store.scan(collection(name), "away#", Slot)]
        units = ((slot, self.unit_of(slot)) for slot in held if slot.job is not None)
        return [*jobless, *away, *((3, slot) for slot, unit in units if unit and unit.state in ENDED)]

    def _pool(self, name: str) -> Pool | None:
        row = self.store.rows.get(pool_key(name))
        return row if isinstance(row, Pool) else None

    def decided_alone(self, claim: Claim) -> bool:
        """Whether nothing moved in a granted claim's pools since its handler looked, but for what came free."""
        looked = self.task.looked if self.task else {}
        since = min(looked.get(collection(name), -1) for name in claim.pools)
        return all(self.facts.earlier.get(name, -1) <= since for name in claim.pools)

    def _wants(self, claim: Claim, taken: Sequence[Slot]) -> dict[str, int]:
        """What a claim takes from its pools beyond what warm units bring, those too that were granted instead."""
        warm = [slot for name in claim.pools for slot in self.store.scan(collection(name), "free#warm#", Slot)]
        left = Counter(slot.pool for slot in (*warm, *taken) if slot.owner in ("", claim.owner))
        total: Counter[str] = Counter()
        for takes in claim.takes:
            own = next(iter(takes))
            left[own] -= 1
            total.update(takes if left[own] < 0 else {})
        return {name: total[name] for name in claim.pools}

    def pools(self) -> list[str]:
        """The pools whose rows the commit touched."""
        kinds = (Slot, Claim, Pool)
        rows = [row for move in self.moves for row in move if isinstance(row, kinds)]
        return sorted({row.name if isinstance(row, Pool) else row.pool for row in rows})

    def step_of(self, lease: Lease) -> list[Lease]:
        """All leases of a lease's step."""
        found = self.store.scan(f"job#{lease.job}", lease_prefix(lease.attempt), Lease)
        return [other for other in found if other.step == lease.step]


def _up_to(maybe: Mapping[str, Sequence[tuple[int, Slot]]], most: int, name: str) -> list[Slot]:
    """The slots of a pool that are aside, if those up to a kind are."""
    return [slot for kind, slot in maybe.get(name, ()) if kind <= most]


def moves_of(changes: Sequence[Change], before: Mapping[Key, Row | None], now: Mapping[Key, Row]) -> list[Move]:
    """What each row was and is. A slot that moves is one move, though its key changes."""
    was: dict[object, Row] = {}
    is_: dict[object, Row] = {}
    for change in changes:
        if isinstance(change, Check):
            continue
        key = key_of(change)
        old = before.get(key)
        if old and not isinstance(change, Create):
            was[_identity(old)] = old
        if not isinstance(change, Delete):
            is_[_identity(now[key])] = now[key]
    return [(was.get(name), is_.get(name)) for name in dict.fromkeys([*was, *is_])]


def _identity(row: Row) -> object:
    return ("slot", row.pool, row.name) if isinstance(row, Slot) else row.key


def remember(moment: Moment) -> None:
    """Bring the facts up to date, before the checks."""
    facts = moment.facts
    facts.earlier = dict(facts.moved)
    for was, now in moment.moves:
        facts.moved.update(dict.fromkeys(_stirred(was, now), moment.store.commits))
        if isinstance(now, Unit):
            _remember_unit(facts, cast("Unit | None", was), now, moment.task)
        if isinstance(now, Claim) and was is None:
            facts.born[now.key] = moment.store.commits
        if isinstance(was, Claim) and now is None:
            facts.overtaken.pop(was.key, None)
        if isinstance(now, Slot) and now.state is SlotState.FREE:
            facts.opened[now.pool] = moment.store.commits
        if isinstance(now, Pool):
            facts.opened[now.name] = moment.store.commits if _has_more(was, now) else facts.opened[now.name]
            before = facts.highest.get(now.name, 0) if now.due or now.over else 0
            facts.highest[now.name] = max(before, now.limit)


def _remember_unit(facts: Facts, was: Unit | None, now: Unit, task: Task | None) -> None:
    change = set.discard if now.state is UnitState.GONE else set.add
    change(facts.at[now.lease.pool, now.lease.slot], now.id)
    if now.lease.order == WORKER and (was is None or now.state is UnitState.CREATING):
        facts.workers[now.lease.job].add(now.id)
    is_apart = now.state is UnitState.QUARANTINED and quarantine.may_continue(now)
    if is_apart or now.lease.is_over or now.state in (UnitState.IDLE, UnitState.GONE):
        facts.workers[now.lease.job].discard(now.id)
    if was and was.state in (UnitState.CREATING, UnitState.READY) and now.state in ENDED:
        facts.ended[now.id] = now.since
    has_cleaned = was and (was.state, now.state) == (UnitState.CLEANING, UnitState.IDLE)
    has_reported = was and was.state is UnitState.READY and now.state in ENDED
    if task and task.unit == now.id and (has_cleaned or has_reported):
        task.goes_on = True


def _stirred(was: Row | None, now: Row | None) -> Iterator[str]:
    """The pool where something else moved than what comes free."""
    row = now or was
    if isinstance(row, Claim) and (was is None or now is None):
        yield row.pool
    if isinstance(row, Slot) and not (isinstance(now, Slot) and now.state is SlotState.FREE):
        yield row.pool
    if isinstance(was, Pool) and isinstance(now, Pool) and (was.limit, was.is_paused) != (now.limit, now.is_paused):
        yield now.name


def _has_more(was: Row | None, now: Pool) -> bool:
    """Whether more may be granted of a pool than before: it has more, or is not closed any more."""
    is_open = isinstance(was, Pool) and not was.is_closed
    return (
        not isinstance(was, Pool) or now.limit - now.used > was.limit - was.used or (not now.is_closed and not is_open)
    )
