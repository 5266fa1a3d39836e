"""Rows and the four ways to write one.

Truth is a row. A decision is a tuple of changes, each of which names what it assumed; a store commits all of them
or none. These four conditions are the only ones there are:

    Create(row)          no row stands at this key
    Replace(was, row)    the row at this key is still `was`
    Delete(was)          the row at this key is still `was`
    Check(was)           the row at this key is still `was`; nothing is written

"Still" means: carries the version that was read. A store numbers versions, starting at 1; 0 is a row never stored.
What is written carries one more than the row it was made from, also when it is created: a row that leaves a key, and
may come back to it, takes its version along. A new row where another was deleted cannot, so rows of its kind begin
with a number made of what is in them. So no two rows that ever stood at a key have the same version.

Ids: ULIDs as in github.com/ulid/spec: 48 bits of time, 80 of chance, in Crockford's base 32. They sort by age.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, NamedTuple
from zlib import crc32


class Key(NamedTuple):
    """Where a row is: its collection and its place in it."""

    pk: str
    sk: str


class Place(NamedTuple):
    """Where a row is listed: a listing's name and the row's place in it."""

    name: str
    sort: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One item of the table. Subclasses add fields and say where they are kept.

    `later` are the kinds that nobody waits for: the sweep looks at them after all others, so that they hold up none.
    `is_succeeded` are the kinds whose rows are deleted, and followed by new ones at the same key.
    """

    kind: ClassVar[str] = ""
    later: ClassVar[bool] = False
    is_succeeded: ClassVar[bool] = False
    version: int = 0

    @property
    def key(self) -> Key:
        """The row's identity; never changes during its life."""
        raise NotImplementedError(type(self).__name__)

    @property
    def deadline(self) -> datetime | None:
        """When the sweep nudges whoever must move this row on; None when nobody must."""
        return None

    @property
    def place(self) -> Place | None:
        """The listing that this row appears in; None when it appears in none."""
        return None

    @property
    def expiry(self) -> datetime | None:
        """When the row may be forgotten; None for never."""
        return None


@dataclass(frozen=True)
class Create:
    """Write a row where none stands."""

    row: Row


@dataclass(frozen=True)
class Replace:
    """Write a row over the one that was read."""

    was: Row
    row: Row

    def __post_init__(self) -> None:
        if self.was.key != self.row.key:
            raise ValueError(f"a replacement stays at its key: {self.was.key} is not {self.row.key}")


@dataclass(frozen=True)
class Delete:
    """Remove the row that was read."""

    was: Row


@dataclass(frozen=True)
class Check:
    """Require that a row that was read still stands."""

    was: Row


Change = Create | Replace | Delete | Check


def key_of(change: Change) -> Key:
    """Where a change is made. Two changes of one commit never share a key."""
    return change.row.key if isinstance(change, Create) else change.was.key


def holds(change: Change, stored: Row | None) -> bool:
    """Whether a change's condition holds over what is stored: the pure twin of every conditional write."""
    if isinstance(change, Create):
        return stored is None
    return stored is not None and stored.version == change.was.version


def next_version(change: Create | Replace) -> int:
    """The version of the row that a change writes. Who read a row that is gone never meets its version again."""
    if isinstance(change, Replace):
        return change.was.version + 1
    row = change.row
    return 1 + (crc32(repr(row).encode()) if row.is_succeeded and not row.version else row.version)


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
