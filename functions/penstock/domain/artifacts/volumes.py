"""Volumes: where the bytes of an artifact are, and the parts in which large objects are uploaded.

    creating ──arrived──▶ created ──(no artifact)──▶ destroying ──deleted, and confirmed──▶ no row
        └────────────────(no artifact, or too late)──────▲
                                          (bytes without a row)

Only the commit that deletes an artifact starts to destroy its volume, and only then are bytes deleted. [ART-1]

Parts are uploaded in parallel, each with its digest, and uploaded parts are skipped on a retry. The digest of their
digests identifies the whole; S3 calls it composite.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/tutorial-s3-mpu-additional-checksums.html
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from penstock.domain.artifacts.artifacts import collection
from penstock.kernel import rows
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

STORE = "store"
"""The volume that is an object in the object store."""

PREFIX = "artifacts/"
"""The prefix of the names of all our objects; others are never touched."""

DOWNLOAD_WITHIN = timedelta(hours=1)
"""How long bytes stay for downloads that were permitted before. [ART-1]"""

RETRY_AFTER = timedelta(minutes=1)


RETRY_AFTER_MOST = timedelta(hours=6)


INVENTORY_KEY = Key(f"inventory#{STORE}", "inventory")


class VolumeState(StrEnum):
    """The state of a volume. The comments say who moves it on, and by when."""

    CREATING = "creating"  # moved on by the commit that its bytes have arrived; due: it is destroyed
    CREATED = "created"  # moved on by its artifact's end, which has no time of its own here
    DESTROYING = "destroying"  # moved on by the sweep, which deletes the bytes, and the row when they are gone


@dataclass(frozen=True, kw_only=True)
class Volume(Row):
    """Bytes in one place. `tries`: how often deleting them failed; `lost`: since when they are missing.

    `in_parts`: they are uploaded in parts, which may exist without the whole.
    """

    kind: ClassVar[str] = "volume"
    shards: ClassVar[int] = 4
    later: ClassVar[bool] = True
    artifact: str
    state: VolumeState
    since: datetime
    size: int = 0
    where: str = STORE
    in_parts: bool = False
    tries: int = 0
    lost: datetime | None = None
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return volume_key(self.artifact, self.where)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def place(self) -> Place:
        return listing(self.where, self.artifact)

    @property
    def object_name(self) -> str:
        """The name of the object that holds the bytes."""
        return object_name(self.artifact)


@dataclass(frozen=True, kw_only=True)
class Inventory(Row):
    """How far the store's list was compared with the rows: up to the object `after`, "" between two comparisons."""

    kind: ClassVar[str] = "inventory"
    began: datetime
    after: str = ""

    @property
    def key(self) -> Key:
        return INVENTORY_KEY


def volume_key(artifact: str, where: str = STORE) -> Key:
    """The key of a volume's row."""
    return Key(collection(artifact), f"volume#{where}")


def listing(where: str = STORE, artifact: str = "") -> Place:
    """The place that lists volumes, in the order of their objects' names."""
    return Place(f"volumes#{where}", artifact)


def object_name(artifact: str) -> str:
    """The name of the object that holds an artifact's bytes."""
    return f"{PREFIX}{artifact}"


def artifact_of(name: str) -> str | None:
    """The artifact whose bytes an object holds; None for an object that we did not name."""
    id = name.removeprefix(PREFIX)
    return id if name.startswith(PREFIX) and rows.is_ulid(id) else None


def arrive(volume: Volume, now: datetime) -> Volume:
    """A volume whose bytes have arrived. Raises ValueError while it is being destroyed."""
    if volume.state is VolumeState.DESTROYING:
        raise ValueError(f"the bytes of {volume.artifact} are being destroyed")
    if volume.state is VolumeState.CREATED:
        return volume
    return replace(volume, state=VolumeState.CREATED, since=now, due=None)


def destroy(volume: Volume, now: datetime, after: timedelta = timedelta(0)) -> Volume:
    """A volume whose artifact is deleted. Its bytes are deleted `after` a while. [ART-1]"""
    if volume.state is VolumeState.DESTROYING:
        return volume
    return replace(volume, state=VolumeState.DESTROYING, since=now, due=now + after)


def stray(artifact: str, now: datetime) -> Volume:
    """A row for bytes without one: nobody can ever have known of them. [ART-2]"""
    return Volume(artifact=artifact, state=VolumeState.DESTROYING, since=now, due=now)


def mark_lost(volume: Volume, now: datetime) -> Volume:
    """A volume whose bytes are missing: nothing of it is deleted, and the loss is reported."""
    return replace(volume, lost=volume.lost or now)


def mark_found(volume: Volume) -> Volume:
    """A volume whose bytes were found again."""
    return replace(volume, lost=None)


def begin_deletion(volume: Volume, now: datetime) -> Volume:
    """A volume whose bytes are about to be deleted. A failure is retried, later with every try."""
    wait = min(RETRY_AFTER * 2 ** min(volume.tries, 20), RETRY_AFTER_MOST)
    return replace(volume, tries=volume.tries + 1, due=now + wait)


PART_BYTES = 64 * 1024**2
"""The size of each part except the last. S3 takes 5 MiB to 5 GiB."""


MAX_PARTS = 10_000
"""How many parts S3 takes."""


WHOLE_BYTES = 5 * 1024**3
"""The most that S3 takes in one piece."""


PARTS_PER_CALL = 100
"""For how many parts one call gives permission to upload."""


_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Part:
    """A part: its number, from 1 on, its size in bytes, its SHA-256 in hex."""

    number: int
    size: int
    sha256: str


def count_parts(size: int) -> int:
    """How many parts an object of this size (bytes) has."""
    return -(-size // PART_BYTES)


def name_parts(size: int, first: int, digests: Sequence[str]) -> list[Part]:
    """The parts of an object of this size (bytes) from a number on. Raises ValueError for parts that it does not
    have.
    """
    last = first + len(digests) - 1
    if not 1 <= first <= last <= count_parts(size):
        raise ValueError(f"of its {count_parts(size)} parts, {first} to {last} were named")
    if len(digests) > PARTS_PER_CALL:
        raise ValueError(f"name at most {PARTS_PER_CALL} parts at once")
    if not all(map(_DIGEST.fullmatch, digests)):
        raise ValueError("a part's SHA-256 has 64 hex digits, in lower case")
    return [Part(number, _size(size, number), digest) for number, digest in enumerate(digests, first)]


def _size(size: int, number: int) -> int:
    return min(PART_BYTES, size - (number - 1) * PART_BYTES)


def composite(digests: Sequence[str]) -> str:
    """The digest of all parts' digests, in their order; all of them SHA-256 in hex."""
    return hashlib.sha256(b"".join(map(bytes.fromhex, digests))).hexdigest()
