"""Who may own an artifact, as data. A new kind is one row of the table: what frees an artifact knows no kinds.

An owner is a text, `job#J`, in the artifact's row. It is written there in the commit that writes the owner's own row
about it, and taken out in the one that deletes that.

Artifacts: what is kept, and for whom. Where the bytes are, its volumes say; what it is called, its owners' names.

    begun ──(somebody owns it)──▶ owned ──(the last owner lets go)──▶ no row, and its volumes are being destroyed
      └─────────────────(nobody did in time)───────────────────────────┘

It has no state of its own: who owns it is all that decides. [ART-1] [ART-2]

Pins: users who want an artifact kept, why, and until when. A pin is an owner like any other. [ART-1]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from penstock.kernel.rows import Key, Place, Row


@dataclass(frozen=True)
class Kind:
    """One kind of owner: its row about the artifact, and when it lets go."""

    row: str
    ends: str


JOB, PIN, CACHE, PUBLISHED = "job", "pin", "cache", "published"

KINDS: Mapping[str, Kind] = {
    JOB: Kind("an output or input of the job, or its log", "the job's retention ends"),
    PIN: Kind("a user's pin, with a reason", "the pin expires, or the user removes it"),
    PUBLISHED: Kind("a published file", "its owner or an operator withdraws it; it never expires"),
    CACHE: Kind(
        "a cache entry, with its key",
        "it was unused for the time `cache`, makes room for other entries, or is deleted",
    ),
}


def owner(kind: str, id: str) -> str:
    """An owner as artifacts name it. Raises KeyError for a kind that the table does not have."""
    if kind not in KINDS:
        raise KeyError(kind)
    return f"{kind}#{id}"


def parts(name: str) -> tuple[str, str]:
    """An owner's kind and id."""
    kind, _, id = name.partition("#")
    return kind, id


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


def disown(artifact: Artifact, owner: str) -> Artifact | None:
    """An artifact without an owner; None when nobody else owns it, and it is to go. [ART-2]"""
    left = tuple(each for each in artifact.owners if each != owner)
    return replace(artifact, owners=left) if left else None


def is_abandoned(artifact: Artifact, now: datetime) -> bool:
    """Whether nobody came to own it in time. [ART-1]"""
    return not artifact.owners and artifact.due is not None and artifact.due <= now


REASON_CHARS = 300
"""How many characters say why."""

MAX_PIN_SECONDS = 10 * 365 * 24 * 3600
"""The longest that a pin may last which ends, in seconds."""


@dataclass(frozen=True, kw_only=True)
class Pin(Row):
    """One user's pin on an artifact; `until` is None for as long as they don't take it back."""

    kind: ClassVar[str] = "pin"
    later: ClassVar[bool] = True
    artifact: str
    by: str
    reason: str
    since: datetime
    until: datetime | None = None

    @property
    def key(self) -> Key:
        return pin_key(self.artifact, self.by)

    @property
    def deadline(self) -> datetime | None:
        return self.until

    @property
    def owner(self) -> str:
        """What the artifact calls its owner."""
        return owner(PIN, self.by)


def pin_key(artifact: str, by: str) -> Key:
    """Where a user's pin on an artifact is."""
    return Key(collection(artifact), f"pin#{by}")
