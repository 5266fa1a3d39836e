"""Why a job is where it is: what blocks it, who is ahead, and when it may go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

JobState = Literal["waiting", "queued", "acquiring", "running", "settled"]
JobOutcome = Literal["succeeded", "failed", "cancelled", "errored"]


@dataclass(frozen=True)
class HolderView:
    """Who has a slot."""

    slot: str
    job: str
    since: str


@dataclass(frozen=True)
class AheadView:
    """Who comes first."""

    job: str
    since: str


@dataclass(frozen=True)
class AwayView:
    """A host that is not there; `since` is null for one that was never heard of."""

    host: str
    since: str | None


@dataclass(frozen=True)
class BlockView:
    """The pool that a job waits for. `position` counts from 1; `away` are its hosts that are not there."""

    pool: str
    kind: Literal["numbered", "named", "amount"]
    position: int
    ahead: list[AheadView]
    held_by: list[HolderView]
    limit: int
    held: int
    free: int
    paused: bool
    away: list[AwayView] = field(default_factory=list)


@dataclass(frozen=True)
class WhyView:
    """Why a job is where it is.

    `expected_start` is when it may have all that it needs, and `basis` what that was guessed from; null when nobody
    knows. `unblocks` says what has to happen before it goes on.
    """

    job: str
    state: JobState
    summary: str
    blocked_on: BlockView | None
    waiting_for: str | None
    since: str
    expected_start: str | None
    basis: str | None
    unblocks: str | None
