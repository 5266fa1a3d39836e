"""Artifacts and their owners. An artifact is kept as long as it has an owner. [ART-1] [ART-2]

    begun ──(gets an owner)──▶ owned ──(loses its last owner)──▶ no row, and its volumes are being destroyed
      └──────────(got none in time)────────────────────────────────┘

The artifact's row names its owners as text, such as `job#J`. The commit that writes the owner's own row about the
artifact adds the name; the commit that deletes that row removes it. `KINDS` is the table of owners: the code that
deletes artifacts knows no kinds. A pin is an owner like any other. Volumes say where the bytes are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row


@dataclass(frozen=True)
class Kind:
    """A kind of owner: its row about the artifact, and when it stops owning it."""

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
    """The name of an owner in an artifact's row. Raises KeyError for a kind that the table lacks."""
    if kind not in KINDS:
        raise KeyError(kind)
    return f"{kind}#{id}"


def parts(name: str) -> tuple[str, str]:
    """An owner's kind and id."""
    kind, _, id = name.partition("#")
    return kind, id


@dataclass(frozen=True, kw_only=True)
class Artifact(Row):
    """One stored file. `size` in bytes, `sha256` in hex, `path` as its maker named it; `by`: the user who may see
    it.

    `composite`: the digest of its parts' digests, "" for a file uploaded in one piece (see volumes). `sort`: what it
    was made as; `job`: the job whose agent uploads it, if any. `due`: when it is deleted while it has no owner.
    """

    kind: ClassVar[str] = "artifact"
    shards: ClassVar[int] = 4
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
    """The name that a job has for an artifact that it owns: the row behind the owner. "" while none is assigned."""

    job: str
    artifact: str


def collection(artifact: str) -> str:
    """The collection with an artifact's row and those of its volumes and pins."""
    return f"artifact#{artifact}"


def artifact_key(artifact: str) -> Key:
    """The key of an artifact's row."""
    return Key(collection(artifact), "artifact")


def own(artifact: Artifact, owner: str) -> Artifact:
    """An artifact with one more owner. It is not due any more."""
    return replace(artifact, owners=tuple(sorted({*artifact.owners, owner})), due=None)


def disown(artifact: Artifact, owner: str) -> Artifact | None:
    """An artifact without this owner; None if nobody else owns it and it has to be deleted. [ART-2]"""
    left = tuple(each for each in artifact.owners if each != owner)
    return replace(artifact, owners=left) if left else None


def is_abandoned(artifact: Artifact, now: datetime) -> bool:
    """Whether an artifact got no owner in time. [ART-1]"""
    return not artifact.owners and artifact.due is not None and artifact.due <= now


REASON_CHARS = 300
"""How many characters a pin's reason may have."""

MAX_PIN_SECONDS = 10 * 365 * 24 * 3600
"""The longest time, in seconds, until a pin may expire."""


@dataclass(frozen=True, kw_only=True)
class Pin(Row):
    """A user's pin on an artifact. `until`: None if it lasts until the user removes it."""

    kind: ClassVar[str] = "pin"
    is_recreated: ClassVar[bool] = True
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
        """The pin as an owner in the artifact's row."""
        return owner(PIN, self.by)


def pin_key(artifact: str, by: str) -> Key:
    """The key of a user's pin on an artifact."""
    return Key(collection(artifact), f"pin#{by}")
