"""Volumes: where the bytes of an artifact are.

    creating ──arrived──▶ created ──(no artifact)──▶ destroying ──deleted, and looked for──▶ no row
        └────────────────(no artifact, or too late)──────▲
                                          (bytes without a row)

It begins to be destroyed in the commit that deletes its artifact, and in no other; only then bytes are deleted. [ART-1]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from penstock.domain.artifacts import collection
from penstock.kernel import ids
from penstock.kernel.rows import Key, Place, Row

STORE = "store"
"""The volume that is an object in the object store."""

PREFIX = "artifacts/"
"""What the names of all our objects begin with; others are not ours to touch."""

LENT = timedelta(hours=1)
"""How long bytes stay that somebody may just be fetching, with leave that was given before. [ART-1]"""

AGAIN = timedelta(minutes=1)
AGAIN_MOST = timedelta(hours=6)


INVENTORY_KEY = Key(f"inventory#{STORE}", "inventory")


class VolumeState(StrEnum):
    """Where a volume is. Each says who moves it on, and by when."""

    CREATING = "creating"  # moved on by the commit that its bytes have arrived; due: it is destroyed
    CREATED = "created"  # moved on by its artifact's end, which has no time of its own here
    DESTROYING = "destroying"  # moved on by the sweep, which deletes the bytes, and the row when they are gone


@dataclass(frozen=True, kw_only=True)
class Volume(Row):
    """Bytes in one place. `tries` is how often they were deleted and not gone; `lost`, since when they are missed.

    `in_parts` says that they are sent in parts, which may be there without the whole.
    """

    kind: ClassVar[str] = "volume"
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
    """Where a volume's row is."""
    return Key(collection(artifact), f"volume#{where}")


def listing(where: str = STORE, artifact: str = "") -> Place:
    """Where volumes are listed, in the order of their objects' names."""
    return Place(f"volumes#{where}", artifact)


def object_name(artifact: str) -> str:
    """The name of the object that holds an artifact's bytes."""
    return f"{PREFIX}{artifact}"


def artifact_of(name: str) -> str | None:
    """Whose bytes an object holds; None for one that is not named by us."""
    id = name.removeprefix(PREFIX)
    return id if name.startswith(PREFIX) and ids.is_ulid(id) else None


def arrive(volume: Volume, now: datetime) -> Volume:
    """A volume whose bytes are there. Raises ValueError for one that is being destroyed."""
    if volume.state is VolumeState.DESTROYING:
        raise ValueError(f"the bytes of {volume.artifact} are being destroyed")
    if volume.state is VolumeState.CREATED:
        return volume
    return replace(volume, state=VolumeState.CREATED, since=now, due=None)


def doom(volume: Volume, now: datetime, after: timedelta = timedelta(0)) -> Volume:
    """A volume whose artifact is gone; its bytes go `after` a while. [ART-1]"""
    if volume.state is VolumeState.DESTROYING:
        return volume
    return replace(volume, state=VolumeState.DESTROYING, since=now, due=now + after)


def stray(artifact: str, now: datetime) -> Volume:
    """The row for bytes that have none: nobody can ever have known of them. [ART-2]"""
    return Volume(artifact=artifact, state=VolumeState.DESTROYING, since=now, due=now)


def lose(volume: Volume, now: datetime) -> Volume:
    """A volume whose bytes are not where they should be: nothing of it is deleted, and it is told."""
    return replace(volume, lost=volume.lost or now)


def find(volume: Volume) -> Volume:
    """A volume whose bytes are there after all."""
    return replace(volume, lost=None)


def attempt(volume: Volume, now: datetime) -> Volume:
    """A volume whose bytes are about to be deleted: if that fails, then again, later with every try."""
    wait = min(AGAIN * 2 ** min(volume.tries, 20), AGAIN_MOST)
    return replace(volume, tries=volume.tries + 1, due=now + wait)
