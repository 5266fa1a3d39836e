"""Big objects are sent in parts, side by side, each with its digest: what was sent is not sent again.

The digest of digests says what the parts are together; S3 calls it composite.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/tutorial-s3-mpu-additional-checksums.html
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

PART_BYTES = 64 * 1024**2
"""How big each part is but the last one. S3 takes 5 MiB to 5 GiB."""

MOST = 10_000
"""How many parts S3 takes."""

WHOLE_BYTES = 5 * 1024**3
"""The most that S3 takes in one piece."""

PER_CALL = 100
"""For how many parts leave is given at once."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Part:
    """A part: its number, from 1 on, its size in bytes, its SHA-256 in hex."""

    number: int
    size: int
    sha256: str


def count(size: int) -> int:
    """Of how many parts an object of this size (bytes) consists."""
    return -(-size // PART_BYTES)


def named(size: int, first: int, digests: Sequence[str]) -> list[Part]:
    """The parts from a number on of an object of this size (bytes). Raises ValueError for what it does not have."""
    last = first + len(digests) - 1
    if not 1 <= first <= last <= count(size):
        raise ValueError(f"of its {count(size)} parts, {first} to {last} were named")
    if len(digests) > PER_CALL:
        raise ValueError(f"name at most {PER_CALL} parts at once")
    if not all(map(_DIGEST.fullmatch, digests)):
        raise ValueError("a part's SHA-256 has 64 hex digits, in lower case")
    return [Part(number, _size(size, number), digest) for number, digest in enumerate(digests, first)]


def _size(size: int, number: int) -> int:
    return min(PART_BYTES, size - (number - 1) * PART_BYTES)


def composite(digests: Sequence[str]) -> str:
    """The digest of all parts' digests, in their order; all of them SHA-256 in hex."""
    return hashlib.sha256(b"".join(map(bytes.fromhex, digests))).hexdigest()
