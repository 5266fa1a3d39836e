"""The front end for GitHub, as operators see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeliveryView:
    """What GitHub said, and what it led to: nothing yet while `outcome` is null. `missed` ones had to be asked for."""

    id: str
    event: str
    action: str
    repository: str | None
    commit: str | None
    sender: str | None
    received: str
    missed: bool
    outcome: str | None


@dataclass(frozen=True)
class DeliveryPage:
    """Some deliveries, newest first. `next` is the page to ask for next, or null."""

    items: list[DeliveryView]
    next: str | None


@dataclass(frozen=True)
class AcceptRepository:
    """What GitHub calls the repository that a user is from now on."""

    id: int


@dataclass(frozen=True)
class CommitView:
    """A commit whose jobs are run, or not: then `why` says why."""

    repository: str
    commit: str
    branch: str | None
    pull_request: int | None
    stage: str
    why: str | None
    approved_by: str | None
    since: str


@dataclass(frozen=True)
class CommitPage:
    """Some commits, newest first. `next` is the page to ask for next, or null."""

    items: list[CommitView]
    next: str | None
