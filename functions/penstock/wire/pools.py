"""Pools, workers and resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from penstock.domain.units import units
from penstock.wire.shapes import Bound


@dataclass(frozen=True)
class QuarantineView:
    """Since when a unit is kept apart, why, and how often its operators were reminded of it, once a day."""

    since: str
    reason: str
    reminders: int


@dataclass(frozen=True)
class HostView:
    """Whether a machine is there, and since when it is or is not; `since` is absent when it was never heard of."""

    is_there: bool
    since: str | None


@dataclass(frozen=True)
class SlotView:
    """A slot and who has it. A warm one is free and carries a unit; an idle one is taken by a unit that is warm.

    One that is coming is warm, but for its unit, which is still being made. One that is held by no job is kept by an
    operator, or by a unit in quarantine: then `quarantine` says since when. `host` is of a slot that is a machine's.
    """

    slot: str
    state: Literal["free", "coming", "warm", "held", "idle", "away", "withdrawn"]
    job: str | None
    attempt: int | None
    since: str | None
    fence: int
    unit: str | None
    quarantine: QuarantineView | None = None
    host: HostView | None = None


@dataclass(frozen=True)
class QueuedView:
    """A claim and its place."""

    position: int
    job: str
    attempt: int
    since: str
    priority: int


@dataclass(frozen=True)
class SetbackView:
    """How many units that were made ahead of need came to nothing in a row, why, and until when none is made."""

    count: int
    until: str
    why: str


@dataclass(frozen=True)
class PoolView:
    """A pool. `warm` of those that are free carry a unit, and of these `coming` are still being made; `away` are hosts
    that are not there.

    `slots` and `queue` are given when one pool is asked for.
    """

    pool: str
    kind: Literal["numbered", "named", "amount"]
    limit: int
    held: int
    free: int
    waiting: int
    paused: bool
    warm: int = 0
    coming: int = 0
    setback: SetbackView | None = None
    away: int = 0
    slots: list[SlotView] | None = None
    queue: list[QueuedView] | None = None


@dataclass(frozen=True)
class PoolPage:
    """All pools."""

    items: list[PoolView]
    next: str | None


@dataclass(frozen=True)
class PoolLimit:
    """How many slots a numbered pool shall have."""

    limit: int


@dataclass(frozen=True)
class HoldView:
    """Who keeps a unit as it is, why, and until when."""

    by: str
    reason: str
    since: str
    until: str


@dataclass(frozen=True)
class DrainView:
    """Who wants that a unit is lent to nobody any more, and why. `at_once`: its present lease is ended for that."""

    by: str
    reason: str
    since: str
    at_once: bool


@dataclass(frozen=True)
class HoldUnit:
    """Keep a unit as it is `for` some seconds, at most 604800. `reason` is for others to read."""

    reason: Annotated[str, Bound(most=units.HOLD_REASON_CHARS)]
    for_: Annotated[int, Bound(least=1, most=units.HOLD_MOST)] = units.HOLD_DEFAULT


@dataclass(frozen=True)
class ReleaseUnit:
    """Let a unit go. `proof` is for one in quarantine that was removed by hand: what was checked, for the record."""

    proof: Annotated[str, Bound(most=units.HOLD_REASON_CHARS)] = ""


@dataclass(frozen=True)
class RemoveUnit:
    """Why a unit is drained or recycled, for others to read."""

    reason: Annotated[str, Bound(most=units.HOLD_REASON_CHARS)] = ""


@dataclass(frozen=True)
class UnitEvent:
    """One entry of a unit's own log. The numbers are the unit's; the oldest entries are forgotten."""

    seq: int
    time: str
    stream: Literal["control"]
    payload: str


@dataclass(frozen=True)
class UnitEventPage:
    """Entries of a unit's log. `next` is the number to ask after; nothing follows when the state is gone."""

    items: list[UnitEvent]
    next: int
    state: str


@dataclass(frozen=True)
class WorkerView:
    """A worker. `due` is when it is looked at again if nothing is heard. The job is the present one, or the last; it
    is null for one that was made ahead of need and had none yet.

    `leases` is how many it had, `next_step` what becomes of it, and by when. `moved_by` is who moves a unit on from
    its state, `due_is` what its due time stands for. `broken` is what was found wrong with the machine. A host's `slot`
    is its name.
    """

    id: str
    target: str
    factory: str
    slot: str
    state: str
    job: str | None
    attempt: int | None
    since: str
    due: str | None
    reason: str | None
    leases: int
    hold: HoldView | None
    drain: DrainView | None
    quarantine: QuarantineView | None
    broken: str | None
    next_step: str
    moved_by: str
    due_is: str


@dataclass(frozen=True)
class WorkerPage:
    """All workers that exist."""

    items: list[WorkerView]
    next: str | None


@dataclass(frozen=True)
class ResourceView:
    """A resource. Its metadata is for its job alone."""

    id: str
    type: str
    well: str
    slot: str
    state: str
    job: str | None
    attempt: int | None
    since: str
    due: str | None
    reason: str | None
    leases: int
    hold: HoldView | None
    drain: DrainView | None
    quarantine: QuarantineView | None
    broken: str | None
    next_step: str
    moved_by: str
    due_is: str


@dataclass(frozen=True)
class ResourcePage:
    """All resources that exist."""

    items: list[ResourceView]
    next: str | None
