"""Ids: ULIDs as in github.com/ulid/spec: 48 bits of time, 80 of chance, in Crockford's base 32. They sort by age."""

from __future__ import annotations

import re
from datetime import UTC, datetime

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


RANDOM_BYTES = 10


_SHAPE = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def ulid(now: datetime, chance: bytes) -> str:
    """A ULID for an instant and ten random bytes. Raises ValueError for any other number of bytes."""
    if len(chance) != RANDOM_BYTES:
        raise ValueError(f"a ULID takes {RANDOM_BYTES} random bytes, not {len(chance)}")
    number = (int(now.timestamp() * 1000) << 80) | int.from_bytes(chance, "big")
    return "".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def is_ulid(text: str) -> bool:
    """Whether a text is a ULID in its canonical, upper-case form."""
    return _SHAPE.fullmatch(text) is not None


def ulid_in(unit: str) -> str | None:
    """The ULID in the id of a unit, such as w-01KDVDNA02G83EFRTNJJN6PQ8A; None when there is none."""
    found = unit.rpartition("-")[2]
    return found if is_ulid(found) else None


def born(ulid: str) -> datetime:
    """The instant a ULID was made, to the millisecond."""
    number = 0
    for char in ulid[:10]:
        number = number << 5 | ALPHABET.index(char)
    return datetime.fromtimestamp(number / 1000, UTC)
