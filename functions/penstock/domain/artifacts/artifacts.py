"""Artifacts, their bytes and their owners, in one row. An artifact is kept as long as it has an owner. [ART-1] [ART-2]

    creating ──arrived, and owned──▶ created ──(loses its last owner)──▶ destroying ──deleted, and confirmed──▶ no row
        └──────────────────────────(got no owner in time)──────────────────▲
                                                                  (bytes without a row)

The row names its owners as text, such as `job#J`. The commit that writes an owner's own row about the artifact adds
the name; the commit that deletes that row removes it. An output needs no other row: its job owns it from the commit
that its bytes have arrived. `KINDS` is the table of owners: the code that deletes artifacts knows no kinds. A pin is
an owner like any other.

The commit by which an artifact loses its last owner begins to destroy it, and only then are its bytes deleted. To
everybody but the sweep an artifact that is being destroyed is gone. [ART-1]

An artifact's row is in the collection of the job that it was made for, and its id names both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from penstock.domain.artifacts.content import Content, announced
from penstock.kernel import rows
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


OUTPUT, INPUT, LOG = "output", "input", "log"
"""What an artifact was made as; an archive of a cache is made as a CACHE."""

DOWNLOAD_WITHIN = timedelta(hours=1)
"""How long the bytes of a cache's archive stay for downloads that were permitted before. [ART-1]"""

RETRY_AFTER = timedelta(seconds=90)
"""After how long bytes that could not be deleted are tried again. The next sweep, a minute later, passes them by: while
a store fails, it would have no time for those that no sweep came to yet.
"""


RETRY_AFTER_MOST = timedelta(hours=6)


class ArtifactState(StrEnum):
    """The state of an artifact's bytes. The comments say who moves it on, and by when."""

    CREATING = "creating"  # moved on by the commit that its bytes have arrived; due: it is destroyed
    CREATED = "created"  # moved on by the commit by which its last owner lets it go
    DESTROYING = "destroying"  # moved on by the sweep, which deletes the bytes, and the row when they are gone


@dataclass(frozen=True, kw_only=True)
class Artifact(Row):
    """One stored file. `size` in bytes, `sha256` in hex, `path` as its maker named it; `by`: the user who may see
    it.

    `composite`: the digest of its parts' digests, "" for a file uploaded in one piece. Until its bytes have arrived,
    both digests are as announced; after that the row has only the one that the store verified. `sort`: what it was
    made as; `attempt`: the attempt that produced an output; `counted`: by how many bytes its maker's tally was raised.
    `due`: when it is destroyed, or that is tried again;
    `tries`: how often deleting its bytes failed; `lost`: since when they are missing.
    """

    kind: ClassVar[str] = "artifact"
    shards: ClassVar[int] = 4
    later: ClassVar[bool] = True
    is_recreated: ClassVar[bool] = True
    id: str
    path: str
    size: int
    sha256: str
    by: str
    time: datetime
    composite: str = ""
    sort: str = OUTPUT
    attempt: int = 0
    counted: int = 0
    state: ArtifactState = ArtifactState.CREATING
    owners: tuple[str, ...] = ()
    due: datetime | None = None
    tries: int = 0
    lost: datetime | None = None

    @property
    def key(self) -> Key:
        return artifact_key(self.id)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def place(self) -> Place | None:
        return listing(self.id) if self.state is ArtifactState.CREATED else None

    @property
    def content(self) -> Content:
        """What its bytes are."""
        return announced(self.size, self.sha256, self.composite)

    @property
    def job(self) -> str:
        """The job that it was made for."""
        return job_of(self.id)

    @property
    def has_bytes(self) -> bool:
        """Whether its bytes are where they should be."""
        return self.state is ArtifactState.CREATED and self.lost is None


def id_of(job: str, ulid: str) -> str:
    """The id of an artifact that is made for a job. Ids sort by age."""
    return f"{ulid}.{job}"


def is_id(text: str) -> bool:
    """Whether a text looks like the id of an artifact."""
    ulid, _, job = text.partition(".")
    return rows.is_ulid(ulid) and rows.is_ulid(job)


def job_of(id: str) -> str:
    """The job that an artifact was made for."""
    return id.partition(".")[2]


def artifact_key(id: str) -> Key:
    """The key of an artifact's row."""
    ulid, _, job = id.partition(".")
    return Key(f"job#{job}", f"artifact#{ulid}")


def listing(id: str = "") -> Place:
    """The place that lists the artifacts whose bytes are to be there, in the order of their objects' names."""
    return Place("artifacts", id)


def is_output(artifact: Artifact) -> bool:
    """Whether an artifact is an output that its job owns: one whose bytes have arrived."""
    return artifact.sort == OUTPUT and owner(JOB, artifact.job) in artifact.owners


def is_begun(artifact: Artifact) -> bool:
    """Whether an artifact is a named output whose bytes have not arrived."""
    return artifact.sort == OUTPUT and artifact.state is ArtifactState.CREATING


def own(artifact: Artifact, owner: str) -> Artifact:
    """An artifact with one more owner."""
    return replace(artifact, owners=tuple(sorted({*artifact.owners, owner})))


def arrive(artifact: Artifact, owner: str) -> Artifact:
    """An artifact whose bytes have arrived and were verified, with an owner. [ART-1]

    Raises ValueError while it is being destroyed.
    """
    if artifact.state is ArtifactState.DESTROYING:
        raise ValueError(f"the bytes of {artifact.id} are being destroyed")
    return own(replace(artifact, state=ArtifactState.CREATED, due=None, sha256=artifact.content.sha256), owner)


def disown(artifact: Artifact, owner: str, now: datetime) -> Artifact:
    """An artifact without this owner. If that was the last one, it is destroyed. [ART-1] [ART-2]"""
    if owner not in artifact.owners:
        return artifact
    left = replace(artifact, owners=tuple(each for each in artifact.owners if each != owner))
    return left if left.owners else destroy(left, now)


def destroy(artifact: Artifact, now: datetime) -> Artifact:
    """An artifact that nobody owns any more, and whose bytes are deleted. [ART-1]

    A cache's archive may go while a job downloads it: its bytes stay until no URL for them is valid.
    """
    wait = DOWNLOAD_WITHIN if artifact.sort == CACHE else timedelta(0)
    return replace(artifact, state=ArtifactState.DESTROYING, owners=(), due=now + wait)


def renew(artifact: Artifact, upload: timedelta, now: datetime) -> Artifact:
    """An artifact whose upload goes on. It has the whole time again once half of it is over: most uploads write nothing
    for that.
    """
    if artifact.due is None or artifact.due - now > upload / 2:
        return artifact
    return replace(artifact, due=now + upload)


def is_abandoned(artifact: Artifact, now: datetime) -> bool:
    """Whether an artifact got no owner in time. [ART-1]"""
    return artifact.state is ArtifactState.CREATING and artifact.due is not None and artifact.due <= now


def stray(id: str, size: int, now: datetime) -> Artifact:
    """A row for bytes without one: nobody can ever have known of them. [ART-2]"""
    return Artifact(
        id=id, path="", size=size, sha256="", by="", time=now, state=ArtifactState.DESTROYING, due=now
    )  # fmt: skip


def mark_lost(artifact: Artifact, now: datetime) -> Artifact:
    """An artifact whose bytes are missing: nothing of it is deleted, and the loss is reported."""
    return replace(artifact, lost=artifact.lost or now)


def mark_found(artifact: Artifact) -> Artifact:
    """An artifact whose bytes were found again."""
    return replace(artifact, lost=None)


def begin_deletion(artifact: Artifact, now: datetime) -> Artifact:
    """An artifact whose bytes are about to be deleted. A failure is retried, later with every try."""
    wait = min(RETRY_AFTER * 2 ** min(artifact.tries, 20), RETRY_AFTER_MOST)
    return replace(artifact, tries=artifact.tries + 1, due=now + wait)


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
    return Key(f"artifact#{artifact}", f"pin#{by}")
