"""What would become of a job, and who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class AcquireView:
    """How much of a pool one step takes. `type` is a target, a resource type or a quota."""

    pool: str
    type: str
    count: int


@dataclass(frozen=True)
class PlanStepView:
    """What is acquired together: all of it or nothing. Steps count from 1; the last is the worker's."""

    step: int
    acquires: list[AcquireView]


@dataclass(frozen=True)
class PlanWaitView:
    """A pool that the job would wait for. `position` counts from 1; `expected_seconds` is null when nobody knows."""

    pool: str
    position: int
    expected_seconds: float | None
    basis: str | None


@dataclass(frozen=True)
class PlanView:
    """What would become of a job if it were submitted now. `privileges` are those that it needs, and its user has.

    `expected_seconds` is until everything may be had: 0 for at once, null when nobody knows.
    """

    target: str
    target_resolved: str
    steps: list[PlanStepView]
    privileges: list[str]
    would_wait: bool
    waits_for: list[PlanWaitView]
    expected_seconds: float | None
    sentences: list[str]


@dataclass(frozen=True)
class NodeView:
    """A job or a pool."""

    id: str
    kind: Literal["job", "pool"]
    label: str


@dataclass(frozen=True)
class EdgeView:
    """From a job to the pool that it waits for, or from a pool to a job that holds some of it."""

    from_: str
    to: str
    kind: Literal["waits", "holds"]


@dataclass(frozen=True)
class GraphView:
    """Who waits for what, and who has it. `cycle` is empty, always; `left_out` is how many nodes are not shown."""

    nodes: list[NodeView]
    edges: list[EdgeView]
    cycle: list[str]
    left_out: int
