"""Pools, workers and resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SlotView:
    """A slot and who has it. A warm one is free and carries a unit; an idle one is taken by a unit that is warm."""

    slot: str
    state: Literal["free", "warm", "held", "idle", "withdrawn"]
    job: str | None
    attempt: int | None
    since: str | None
    fence: int
    unit: str | None


@dataclass(frozen=True)
class QueuedView:
    """A claim and its place."""

    position: int
    job: str
    attempt: int
    since: str
    priority: int


@dataclass(frozen=True)
class PoolView:
    """A pool. `warm` of those that are free carry a unit. `slots` and `queue` are given when one pool is asked for."""

    pool: str
    kind: Literal["numbered", "named", "amount"]
    limit: int
    held: int
    free: int
    waiting: int
    paused: bool
    warm: int = 0
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
class WorkerView:
    """A worker. `due` is when it is looked at again if nothing is heard. The job is the present one, or the last.

    `leases` is how many it had.
    """

    id: str
    target: str
    factory: str
    state: str
    job: str
    attempt: int
    since: str
    due: str | None
    reason: str | None
    leases: int


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
    job: str
    attempt: int
    since: str
    due: str | None
    reason: str | None
    leases: int


@dataclass(frozen=True)
class ResourcePage:
    """All resources that exist."""

    items: list[ResourceView]
    next: str | None
