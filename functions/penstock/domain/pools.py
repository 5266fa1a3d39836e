"""Pools, slots and claims: who may have what, and who is next.

A slot's row stands at a key that begins with its state, so that the first free slots and the first waiting claims of
a pool are each one short read. Moving a slot is a delete and a create in one commit.

    off ──offer──▶ free ──take──▶ held ──give back──▶ free
     ▲               └──withdraw──▶ off      └─(withdrawn)─▶ off

A slot is never forgotten, because its fence may only grow [SLOT-3].
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from penstock.domain.rows import Change, Create, Delete, Key, Place, Replace, Row

RANK_BASE = 500
"""Ranks are text: priority p sorts as RANK_BASE - p, so that the higher priority comes first."""


class SlotState(StrEnum):
    """Where a slot is, as the first word of its key."""

    FREE = "free"  # moved on by whoever serves the pool
    HELD = "held"  # moved on by the release of its lease
    OFF = "off"  # withdrawn; moved on by an operator who raises the limit again


@dataclass(frozen=True, kw_only=True)
class Pool(Row):
    """The capacity of one target or resource type. Its due time is set while its slots differ from its limit.

    `over` is set while more may be held than the limit, because it was lowered.
    """

    kind: ClassVar[str] = "pool"
    name: str
    names: tuple[str, ...] | None = None
    limit: int
    paused: bool = False
    over: bool = False
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return pool_key(self.name)

    @property
    def place(self) -> Place:
        return Place("pools", self.name)

    @property
    def deadline(self) -> datetime | None:
        return self.due


@dataclass(frozen=True, kw_only=True)
class Slot(Row):
    """One unit of a pool. Whoever's commit moves it from free to held, has it."""

    kind: ClassVar[str] = "slot"
    pool: str
    name: str
    state: SlotState
    fence: int = 0
    withdrawn: bool = False
    job: str | None = None
    attempt: int | None = None
    order: int | None = None
    unit: str | None = None
    since: datetime | None = None

    @property
    def key(self) -> Key:
        return Key(collection(self.pool), f"{self.state}#{self.name}")


@dataclass(frozen=True, kw_only=True)
class SlotName(Row):
    """That a slot was made, whatever its state. Created with it, so that no name is ever two slots. [SLOT-1]"""

    kind: ClassVar[str] = "slotname"
    pool: str
    name: str

    @property
    def key(self) -> Key:
        return Key(collection(self.pool), f"name#{self.name}")


@dataclass(frozen=True, kw_only=True)
class Claim(Row):
    """An attempt's place in a pool's queue, for `count` slots at once."""

    kind: ClassVar[str] = "claim"
    pool: str
    job: str
    attempt: int
    step: int
    count: int
    priority: int
    since: datetime

    @property
    def key(self) -> Key:
        return claim_key(self.pool, self.priority, self.job, self.attempt, self.step)


def collection(pool: str) -> str:
    """The collection of a pool's rows."""
    return f"pool#{pool}"


def claim_key(pool: str, priority: int, job: str, attempt: int, step: int) -> Key:
    """Where a claim is: by priority, then by the age of its job, which is in the job's id. [QUEUE-2]"""
    return Key(collection(pool), f"wait#{RANK_BASE - priority:03d}#{job}#{attempt:04d}#{step:02d}")


def pool_key(pool: str) -> Key:
    """Where a pool's own row is."""
    return Key(collection(pool), "pool")


def move(was: Slot, after: Slot) -> tuple[Change, ...]:
    """The changes that carry a slot to another state."""
    if was.key == after.key:
        return (Replace(was, after),)
    return (Delete(was), Create(replace(after, version=0)))


def take(slot: Slot, claim: Claim, order: int, unit: str, now: datetime) -> Slot:
    """A free slot, held for one lease of a claim, with the next fence. [SLOT-1] [SLOT-3]"""
    if slot.state is not SlotState.FREE:
        raise ValueError(f"only a free slot can be taken; {slot.pool}/{slot.name} is {slot.state}")
    return replace(
        slot,
        state=SlotState.HELD,
        fence=slot.fence + 1,
        job=claim.job,
        attempt=claim.attempt,
        order=order,
        unit=unit,
        since=now,
    )


def give_back(slot: Slot) -> Slot:
    """A held slot, free again; or off, if it was withdrawn while it was held."""
    state = SlotState.OFF if slot.withdrawn else SlotState.FREE
    return Slot(pool=slot.pool, name=slot.name, state=state, fence=slot.fence, version=slot.version)


def swap(back: Slot, withdrawn: Slot) -> tuple[Change, ...]:
    """A slot comes back while another is withdrawn: this one goes in its place, for no more may be held."""
    off = Slot(pool=back.pool, name=back.name, state=SlotState.OFF, fence=back.fence, version=back.version)
    return (*move(back, off), *move(withdrawn, replace(withdrawn, withdrawn=False)))


def fit(pool: Pool, slots: Iterable[Slot]) -> list[tuple[Change, ...]]:
    """The steps that bring a pool's slots to what its row says; each is one commit. Holders keep what they hold.

    Every step is to be committed together with a check of the pool's row, so that two resizes cannot mix.
    """
    everything = list(slots)
    named = {slot.name: slot for slot in everything}
    wanted = _wanted(pool, everything)
    steps = [_off(slot) for slot in everything if slot.name not in wanted and _is_on(slot)]
    for name in wanted:
        slot = named.get(name)
        if slot is None:
            new = Slot(pool=pool.name, name=name, state=SlotState.FREE)
            steps.append((Create(SlotName(pool=pool.name, name=name)), Create(new)))
        elif not _is_on(slot):
            steps.append(_on(slot))
    return steps


def _is_on(slot: Slot) -> bool:
    return slot.state is not SlotState.OFF and not slot.withdrawn


def _wanted(pool: Pool, slots: list[Slot]) -> list[str]:
    """The names that a pool should have: its own, or for a number as many as possible of those in use."""
    if pool.names is not None:
        return list(pool.names)[: pool.limit]
    rank = {SlotState.HELD: 0, SlotState.FREE: 1, SlotState.OFF: 2}
    kept = sorted(slots, key=lambda slot: (rank[slot.state], slot.withdrawn, len(slot.name), slot.name))
    names = [slot.name for slot in kept]
    fresh = (str(number) for number in range(1, pool.limit + len(names) + 1) if str(number) not in names)
    while len(names) < pool.limit:
        names.append(next(fresh))
    return names[: pool.limit]


def _off(slot: Slot) -> tuple[Change, ...]:
    if slot.state is SlotState.HELD:
        return move(slot, replace(slot, withdrawn=True))
    return move(slot, replace(slot, state=SlotState.OFF))


def _on(slot: Slot) -> tuple[Change, ...]:
    if slot.state is SlotState.HELD:
        return move(slot, replace(slot, withdrawn=False))
    return move(slot, replace(slot, state=SlotState.FREE))
