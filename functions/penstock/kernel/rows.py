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
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

from penstock.kernel.errors import Newer
from penstock.kernel.frozen import dataclass

FORM = 1
"""The form of the rows, messages and inputs of flows that this release writes; those without a number have form 1.

A release reads its own form and the one before. It writes a form only when the release before can read it, so that
both may run side by side, and either may follow the other: docs/operators/upgrading.md.
"""


def check_form(form: object) -> None:
    """Raises Newer for a form that this release does not know, which it could only misread."""
    if not isinstance(form, int) or form > FORM:
        raise Newer(f"it has the form {form}; this release reads forms up to {FORM}")


class Key(NamedTuple):
    """Where a row is: its collection and its place in it."""

    pk: str
    sk: str


class Place(NamedTuple):
    """Where a row is listed: a listing's name and the row's place in it."""

    name: str
    sort: str


class Listed(NamedTuple):
    """What a listing knows of a row: its place there, and its key."""

    sort: str
    key: Key


@dataclass(frozen=True)
class Look:
    """When the sweep looks at a row, as the due index has it; how often the row was nudged since its last write; the
    shard of the index that has it; and the row's tag when that was written.
    """

    at: datetime
    nudges: int = 0
    shard: str = field(default="", compare=False)
    tag: str = field(default="", compare=False)


class Due(NamedTuple):
    """What the due index knows of a row: when the sweep looks at it, and its key."""

    look: Look
    key: Key

    @property
    def kind(self) -> str:
        """What the sweep does for the row: each kind has shards of its own."""
        return self.look.shard.partition(".")[0]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One item of the table. Subclasses add fields and say where they are kept.

    `later` are the kinds that nobody waits for: the sweep looks at them after all others, so that they hold up none.
    `ends_as` names such a kind for the rows of another that nobody waits for any more. `shards` is over how many
    partitions of the due index the rows of a kind are spread. `indexed` is what the index said when the row was read;
    a row that was not read has none. `unknown` are the fields, as JSON, that only a newer release knows: whoever writes
    the row again keeps them.
    `is_recreated` are the kinds whose rows are deleted, and followed by new ones at the same key.
    """

    kind: ClassVar[str] = ""
    later: ClassVar[bool] = False
    ends_as: ClassVar[str] = ""
    shards: ClassVar[int] = 1
    is_recreated: ClassVar[bool] = False
    version: int = 0
    indexed: Look | None = field(default=None, compare=False, repr=False)
    unknown: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> Key:
        """The row's identity; never changes during its life."""
        raise NotImplementedError(type(self).__name__)

    @property
    def deadline(self) -> datetime | None:
        """When the sweep nudges whoever must move this row on; None when nobody must."""
        return None

    @property
    def due_as(self) -> str:
        """The kind of its shards in the due index: its own, or `ends_as`."""
        return self.kind

    @property
    def is_later(self) -> bool:
        """Whether nobody waits for what the sweep does for it."""
        return self.later or self.due_as == self.ends_as

    @property
    def tag(self) -> str:
        """What the due index says of the row besides, such as its state; it may be that of an earlier write."""
        return ""

    def outgrew(self, has: Look) -> bool:
        """Whether the due index is to be written although it has an earlier time, because its tag misleads."""
        del has
        return False

    @property
    def place(self) -> Place | None:
        """The listing that this row appears in; None when it appears in none."""
        return None

    @property
    def expiry(self) -> datetime | None:
        """When the row may be forgotten; None for never."""
        return None


def shard_of(row: Row) -> str:
    """The shard of the due index that a row belongs to: always the same for a key and a kind."""
    return f"{row.due_as}.{crc32(row.key.pk.encode()) % row.shards}"


def shards_of(kind: type[Row], *, later: bool) -> list[str]:
    """All shards of the due index that have rows of a kind; with `later`, of those that nobody waits for."""
    names = [kind.kind] if kind.later is later else [kind.ends_as] if kind.ends_as else []
    return [f"{name}.{number}" for name in names for number in range(kind.shards)]


def next_look(row: Row) -> Look | None:
    """When the sweep is to look at a row that is written now: never after its deadline.

    An earlier time that the index has already stays, in its shard, for then the write does not change the index. The
    sweep reads the row before it nudges anybody, and moves the entry of one that is not due, or that belongs to another
    shard. After a nudge the time is exact again, and when the row outgrew its entry.
    """
    exact, has = exact_look(row), row.indexed
    stays = exact and has and not has.nudges and has.at <= exact.at and not row.outgrew(has)
    return has if stays else exact


def exact_look(row: Row) -> Look | None:
    """A look at a row at its deadline, in whole milliseconds, as the index has it, in the shard that it belongs to."""
    at = row.deadline
    return Look(at.replace(microsecond=at.microsecond // 1000 * 1000), 0, shard_of(row), row.tag) if at else None


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
    return 1 + (crc32(repr(row).encode()) if row.is_recreated and not row.version else row.version)


ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
RANDOM_BYTES = 10
TIME_CHARS = 10


_SHAPE = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""When the time in ULIDs begins."""


def ulid(now: datetime, chance: bytes) -> str:
    """A ULID for an instant and ten random bytes. Raises ValueError for any other number of bytes."""
    if len(chance) != RANDOM_BYTES:
        raise ValueError(f"a ULID takes {RANDOM_BYTES} random bytes, not {len(chance)}")
    number = (int(now.timestamp() * 1000) << 80) | int.from_bytes(chance, "big")
    return "".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def ulid_time(at: datetime) -> str:
    """What a ULID of an instant begins with. Such texts, and ULIDs, sort by time."""
    return ulid(at, bytes(RANDOM_BYTES))[:TIME_CHARS]


def is_ulid(text: str) -> bool:
    """Whether a text is a ULID in its canonical, upper-case form."""
    return re.fullmatch(_SHAPE, text) is not None


def ulid_in(unit: str) -> str | None:
    """The ULID in the id of a unit, such as w-01KDVDNA02G83EFRTNJJN6PQ8A; None when there is none."""
    found = unit.rpartition("-")[2]
    return found if is_ulid(found) else None


def born(ulid: str) -> datetime:
    """The instant a ULID was made, or the time that it begins with, to the millisecond."""
    number = 0
    for char in ulid[:TIME_CHARS]:
        number = number << 5 | ALPHABET.index(char)
    return datetime.fromtimestamp(number / 1000, UTC)
