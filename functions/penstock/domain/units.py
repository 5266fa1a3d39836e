"""Units: the workers that factories make and the resources that wells make. One life for both.

    creating ──made──▶ ready ──its lease ends──▶ dirty ──cleaned and destroyed──▶ gone
        └──────────────────its lease ends──────────┘

A resource is ready when its well says so; a worker when its agent says hello. What was never made is dirty all the
same: only the driver knows that there is nothing to clean. [UNIT-1]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar

from penstock.domain.rows import Key, Place, Row

STEP_WITHIN = timedelta(seconds=45)
"""How long a message to a factory or well may take before the sweep sends it again."""

BACK_OFF = timedelta(seconds=15)
BACK_OFF_MOST = timedelta(minutes=10)
_DOUBLINGS = 10
"""More than BACK_OFF_MOST takes; without a bound, a provider that is down for hours would overflow a timedelta."""


EARLY = timedelta(seconds=2)
"""A message may come that much before its time, for its delay is in whole seconds; what comes earlier is another."""


class UnitKind(StrEnum):
    """Who makes the unit: a factory makes workers, a well makes resources."""

    WORKER = "worker"
    RESOURCE = "resource"


class UnitState(StrEnum):
    """Where a unit is. Each says who moves it on, and by when."""

    CREATING = "creating"  # by its driver, and hello; due: the next step, then the boot deadline
    READY = "ready"  # by the end of its lease; a worker's due: its next heartbeat
    DIRTY = "dirty"  # by its driver; due: the next step
    GONE = "gone"  # final


@dataclass(frozen=True)
class CleanProof:
    """The record that a unit was cleaned: who did it, when, and what was checked. [UNIT-2]"""

    by: str
    time: datetime
    checked: str


@dataclass(frozen=True, kw_only=True)
class Unit(Row):
    """A worker or a resource, known by an id that was chosen before it was made.

    `also` are the pools and names of the other slots that it takes, for as long as it exists. `next_look` is when the
    message comes that asks for its step again; None when none was sent for later.
    """

    kind: ClassVar[str] = "unit"
    id: str
    is_a: UnitKind
    maker: str
    type: str
    state: UnitState
    job: str
    attempt: int
    order: int
    pool: str
    slot: str
    fence: int
    also: tuple[tuple[str, str], ...] = ()
    since: datetime
    due: datetime | None
    next_look: datetime | None = None
    made: datetime | None = None
    tries: int = 0
    reason: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    token_hash: str | None = None
    proof: CleanProof | None = None

    @property
    def key(self) -> Key:
        return unit_key(self.id)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def place(self) -> Place | None:
        return None if self.state is UnitState.GONE else Place(f"{self.is_a}s", self.id)

    @property
    def expiry(self) -> datetime | None:
        return self.since + timedelta(days=30) if self.state is UnitState.GONE else None


def unit_key(unit: str) -> Key:
    """Where a unit's row is."""
    return Key(f"unit#{unit}", "unit")


def made(unit: Unit, now: datetime, boot: timedelta) -> Unit:
    """A worker whose machine was ordered: it has until the boot deadline to say hello."""
    return replace(unit, made=now, tries=0, reason=None, due=now + boot, next_look=None)


def ready(unit: Unit, metadata: Mapping[str, Any], now: datetime) -> Unit:
    """A resource that its well has made. Its job's row has the due time from here."""
    return replace(unit, state=UnitState.READY, made=now, since=now, due=None, reason=None, tries=0, metadata=metadata)


def hello(unit: Unit, token_hash: str, now: datetime, lease: timedelta) -> Unit:
    """A worker whose agent said hello; it must renew before its lease runs out.

    Its hello says that it was made, also where it comes before its factory's own word.
    """
    made = unit.made or now
    return replace(unit, state=UnitState.READY, made=made, token_hash=token_hash, since=now, due=now + lease)


def renew(unit: Unit, now: datetime, lease: timedelta) -> Unit:
    """A worker that was heard of."""
    return replace(unit, due=now + lease)


def soil(unit: Unit, reason: str, now: datetime) -> Unit:
    """A unit whose lease has ended: its credentials are worth nothing from here on. [SEC-1]"""
    if unit.state in (UnitState.DIRTY, UnitState.GONE):
        return unit
    return replace(
        unit,
        state=UnitState.DIRTY,
        reason=reason,
        tries=0,
        since=now,
        due=now + STEP_WITHIN,
        next_look=None,
        token_hash=None,
    )


def later(unit: Unit, reason: str | None, now: datetime, after: timedelta | None = None) -> Unit:
    """A unit whose driver is not done: the same step again, with a growing pause unless the driver named one."""
    pause = after if after is not None else min(BACK_OFF * 2 ** min(unit.tries, _DOUBLINGS), BACK_OFF_MOST)
    tries = unit.tries if after is not None else unit.tries + 1
    return replace(unit, reason=reason, tries=tries, due=now + pause)


def look_again(unit: Unit, reason: str | None, now: datetime, after: timedelta | None = None) -> Unit:
    """The same, by a message that is sent for then; unless one that comes no later is on its way.

    Without that, a nudge and the message that it did not wait for would each go on sending the next, and every further
    coincidence would add another, for as long as the driver is not done.
    """
    next_try = later(unit, reason, now, after)
    if unit.next_look and next_try.due and now + EARLY < unit.next_look <= next_try.due:
        return replace(unit, reason=reason)
    return replace(next_try, next_look=next_try.due)


def gone(unit: Unit, proof: CleanProof, now: datetime) -> Unit:
    """A unit that is no more. Only with the record that it was cleaned up. [UNIT-2]"""
    return replace(unit, state=UnitState.GONE, proof=proof, since=now, due=None, metadata={})
