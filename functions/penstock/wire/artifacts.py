"""Artifacts: what is kept, for whom, why, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from penstock.domain.artifacts import artifacts
from penstock.wire.shapes import Bound


@dataclass(frozen=True)
class ArtifactView:
    """A file that is kept. `size` in bytes, `sha256` in hex; `by` is whose it is, `owners` are who keeps it.

    `until` is when it goes if nothing changes; null where nobody knows yet.
    """

    id: str
    path: str
    size: int
    sha256: str
    by: str
    time: str
    job: str | None
    owners: list[str]
    state: Literal["creating", "created", "destroying", "lost", "none"]
    until: str | None


@dataclass(frozen=True)
class ArtifactPage:
    """Some artifacts, newest first. `next` is the page to ask for next, or null."""

    items: list[ArtifactView]
    next: str | None


@dataclass(frozen=True)
class KeeperView:
    """One owner: why it keeps the artifact, until when (null: nobody knows yet), and what would end that sooner."""

    owner: str
    why: str
    until: str | None
    frees: str


@dataclass(frozen=True)
class ArtifactWhy:
    """Why an artifact is kept, in a sentence and owner by owner. It goes when the last of them lets it go."""

    artifact: ArtifactView
    summary: str
    keepers: list[KeeperView]


@dataclass(frozen=True)
class PinArtifact:
    """Keep an artifact `for` some seconds, or without that until the pin is taken back."""

    reason: Annotated[str, Bound(most=artifacts.REASON)]
    for_: Annotated[int | None, Bound(least=1, most=artifacts.MOST)] = None


@dataclass(frozen=True)
class GoingView:
    """An artifact that the sweep would let go `at` a time, if nothing changes, and why."""

    id: str
    path: str
    size: int
    at: str
    why: str


@dataclass(frozen=True)
class ForeseenView:
    """What the sweep would let go. `is_whole` is false where there is more than one answer holds."""

    items: list[GoingView]
    is_whole: bool
