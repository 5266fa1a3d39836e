"""Canaries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CanaryView:
    """The canary of a target or a resource type, by its pool: its last job, how that ended, how many failed in a row.

    `is_out` says that its job has not settled yet; `due` when there is something to do next.
    """

    pool: str
    is_out: bool
    job: str | None
    since: str | None
    outcome: str | None
    reason: str | None
    failures: int
    due: str | None


@dataclass(frozen=True)
class CanaryPage:
    """All canaries of the site."""

    items: list[CanaryView]
    next: str | None
