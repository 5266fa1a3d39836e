"""Artifacts: what is kept, and for whom. Where the bytes are, its volumes say; what it is called, its owners' names.

    begun ──(somebody owns it)──▶ owned ──(the last owner lets go)──▶ no row, and its volumes are being destroyed
      └─────────────────(nobody did in time)───────────────────────────┘

It has no state of its own: who owns it is all that decides. [ART-1] [ART-2]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from penstock.kernel.rows import Key, Place, Row


@dataclass(frozen=True, kw_only=True)
class Artifact(Row):
    """One file. `size` in bytes, `sha256` in hex, `path` as whoever made it knew it; `by` is the user who may see it.

    `composite` is the digest of its parts' digests, "" for what was sent in one piece (parts.py).
    `sort` is what it was made as, `job` whose agent sends it, if one does. `due` is when it goes while nobody owns it.
    """

    kind: ClassVar[str] = "artifact"
    later: ClassVar[bool] = True
    id: str
    path: str
    size: int
    sha256: str
    by: str
    time: datetime
    composite: str = ""
    sort: str = "output"
    job: str = ""
    owners: tuple[str, ...] = ()
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return artifact_key(self.id)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def place(self) -> Place:
        return Place(f"artifacts#{self.by}", self.id)


@dataclass(frozen=True, kw_only=True)
class Name(Row):
    """What a job calls an artifact that it owns: the row behind the owner. "" for what it only knows of."""

    job: str
    artifact: str


def collection(artifact: str) -> str:
    """Where an artifact's row is, and those of its volumes and its pins."""
    return f"artifact#{artifact}"


def artifact_key(artifact: str) -> Key:
    """Where an artifact's row is."""
    return Key(collection(artifact), "artifact")


def own(artifact: Artifact, owner: str) -> Artifact:
    """An artifact with one owner more. It is due no more."""
    return replace(artifact, owners=tuple(sorted({*artifact.owners, owner})), due=None)


def let_go(artifact: Artifact, owner: str) -> Artifact | None:
    """An artifact without an owner; None when nobody else owns it, and it is to go. [ART-2]"""
    left = tuple(each for each in artifact.owners if each != owner)
    return replace(artifact, owners=left) if left else None


def is_forgotten(artifact: Artifact, now: datetime) -> bool:
    """Whether nobody came to own it in time. [ART-1]"""
    return not artifact.owners and artifact.due is not None and artifact.due <= now
