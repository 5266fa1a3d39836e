"""Volumes: where the bytes of an artifact are. They are an object in the store, named after the artifact.

What a row says of the bytes is in the artifact's own row.

Parts are uploaded in parallel, each with its digest, and uploaded parts are skipped on a retry. The digest of their
digests identifies the whole; S3 calls it composite. S3 verifies the SHA-256 of an object that is sent in one piece, and
the composite of one that is sent in parts, never both. So that one digest is an object's identity.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/tutorial-s3-mpu-additional-checksums.html
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from penstock.domain.artifacts.artifacts import is_id
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

STORE = "store"
"""The volume that is an object in the object store."""

PREFIX = "artifacts/"
"""The prefix of the names of all our objects; others are never touched."""

INVENTORY_KEY = Key(f"inventory#{STORE}", "inventory")


@dataclass(frozen=True, kw_only=True)
class Inventory(Row):
    """How far the store's list was compared with the rows: up to the object `after`, "" between two comparisons."""

    kind: ClassVar[str] = "inventory"
    began: datetime
    after: str = ""

    @property
    def key(self) -> Key:
        return INVENTORY_KEY


def object_name(artifact: str) -> str:
    """The name of the object that holds an artifact's bytes."""
    return f"{PREFIX}{artifact}"


def artifact_of(name: str) -> str | None:
    """The artifact whose bytes an object holds; None for an object that we did not name."""
    id = name.removeprefix(PREFIX)
    return id if name.startswith(PREFIX) and is_id(id) else None


PART_BYTES = 64 * 1024**2
"""The size of each part except the last. S3 takes 5 MiB to 5 GiB."""


MAX_PARTS = 10_000
"""How many parts S3 takes."""


WHOLE_BYTES = 5 * 1024**3
"""The most that S3 takes in one piece."""


PARTS_PER_CALL = 100
"""For how many parts one call gives permission to upload."""


_DIGEST = r"[0-9a-f]{64}"


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
    if not all(re.fullmatch(_DIGEST, each) for each in digests):
        raise ValueError("a part's SHA-256 has 64 hex digits, in lower case")
    return [Part(number, _size(size, number), digest) for number, digest in enumerate(digests, first)]


def _size(size: int, number: int) -> int:
    return min(PART_BYTES, size - (number - 1) * PART_BYTES)


def composite(digests: Sequence[str]) -> str:
    """The digest of all parts' digests, in their order; all of them SHA-256 in hex."""
    return hashlib.sha256(b"".join(map(bytes.fromhex, digests))).hexdigest()
