"""The Store in a dict that is kept in order, so that a read costs what it finds, however much there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TypeVar

from sortedcontainers import SortedDict

from penstock.aws import dynamodb
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Lease
from penstock.domain.units.units import Unit, unit_key
from penstock.kernel.errors import Newer
from penstock.kernel.rows import (
    Change,
    Check,
    Create,
    Delete,
    Due,
    Key,
    Listed,
    Look,
    Replace,
    Row,
    holds,
    key_of,
    next_look,
    next_version,
)

R = TypeVar("R", bound=Row)

LAST = chr(0x10FFFF)
"""Behind every character that a key may have."""


class MemoryStore:
    """Rows by key. Rows pass through the codec, so that what cannot be stored cannot pass here either."""

    def __init__(self, *, knows_kinds: bool = False) -> None:
        self._ordered = SortedDict()
        self.rows: dict[Key, Row] = self._ordered
        self.commits = 0
        self.unreadable = set[Key]()  # of rows in a form that only a newer release knows, or damaged
        self._deleted: set[Key] = set()
        self._entries: dict[Key, tuple[Row, Look | None]] = {}
        self._seen_keys, self._seen_rows, self._seen_ids = list[Key](), list[Row](), list[int]()
        self._by_shard: Mapping[str, Sequence[Due]] = {}
        self._knows_kinds = knows_kinds

    def get(self, key: Key, kind: type[R]) -> R | None:
        row = self.rows.get(key)
        return None if row is None else _as(kind, self._checked(row))

    def _checked(self, row: R) -> R:
        if row.key in self.unreadable:
            raise Newer(f"the row at {row.key} cannot be read")
        return row

    def find(
        self,
        pk: str,
        prefix: str,
        kind: type[R],
        *,
        limit: int | None = 1000,
        last: bool = False,
        after: str = "",
        upto: str = "",
        readable: bool = False,
    ) -> list[R]:
        if not prefix and not after:
            raise ValueError("DynamoDB refuses a condition on an empty key: give a prefix, or a place to begin after")
        keys = self._keys(pk, prefix, after, upto, last=last)
        found = [self.rows[key] for key in islice(keys, limit) if not readable or key not in self.unreadable]
        return [_as(kind, self._checked(row)) for row in found]

    def _keys(self, pk: str, prefix: str, after: str, upto: str, *, last: bool) -> Iterator[Key]:
        first, end = Key(pk, max(prefix, after)), Key(pk, prefix + LAST)
        if upto:
            end = min(end, Key(pk, upto))
        is_first_in = after < prefix or not after
        keys: Iterator[Key] = self._ordered.irange(first, end, inclusive=(is_first_in, True), reverse=last)
        return keys

    def count(self, pk: str, prefix: str, *, upto: str = "") -> int:
        return sum(1 for _ in self._keys(pk, prefix, "", upto, last=False))

    def commit(self, changes: Sequence[Change]) -> bool:
        dynamodb.check_commit(changes)
        if not all(holds(change, self.rows.get(key_of(change))) for change in changes):
            return False
        for change in changes:
            self._write(change)
        self.commits += 1
        return True

    def _write(self, change: Change) -> None:
        if isinstance(change, Delete):
            del self.rows[change.was.key]
            self._entries.pop(change.was.key, None)
            self._deleted.add(change.was.key)
        elif not isinstance(change, Check):
            row = as_stored(change)
            if self._knows_kinds and row.version == 1:
                assert row.key not in self._deleted, f"a kind whose rows are followed by others: {row.kind}"
            self.rows[row.key] = dynamodb.load(row.kind, dynamodb.dump(row), row.version, row.indexed)

    def shards(self, *, later: bool) -> Sequence[str]:
        return dynamodb.due_shards(later=later)

    def overdue(self, shard: str, now: datetime, *, page: int = 100) -> Iterable[Due]:
        del page
        return [due for due in self._dues().get(shard, ()) if due.look.at <= now]

    def _dues(self) -> Mapping[str, Sequence[Due]]:
        """The entries of the due index by shard, in order. A sweep asks for each shard, and few of its steps write.

        Tests write rows past the store, so whether anything changed is seen by looking at which rows there are.
        """
        keys, rows = list(dict.keys(self._ordered)), list(dict.values(self._ordered))
        ids = list(map(id, rows))
        if (keys, ids) != (self._seen_keys, self._seen_ids):
            self._seen_keys, self._seen_rows, self._seen_ids = keys, rows, ids  # a row that is kept keeps its id
            self._by_shard = self._sorted_dues()
        return self._by_shard

    def _sorted_dues(self) -> Mapping[str, Sequence[Due]]:
        found: dict[str, list[Due]] = {}
        for key, row in self.rows.items():
            look = self._entry(key, row)
            if look:
                found.setdefault(look.shard, []).append(Due(look, key))
        for dues in found.values():
            dues.sort(key=lambda due: (dynamodb.look_text(due.look), due.key))
        return found

    def _entry(self, key: Key, row: Row) -> Look | None:
        """The entry of a row in the due index. A sweep asks for that of each row once for each shard."""
        known = self._entries.get(key)
        if known is None or known[0] is not row:
            known = self._entries[key] = (row, look_at(row) if row.deadline else None)
        return known[1]

    def rows_at(self, keys: Sequence[Key]) -> Mapping[Key, Row]:
        return {key: self.rows[key] for key in keys if key in self.rows and key not in self.unreadable}

    def look_later(self, due: Due, look: Look, was: Row | None) -> bool:
        row = self.rows.get(due.key)
        if row is None or look_at(row) != due.look or (was and row.version != was.version):
            return False
        self.rows[due.key] = with_version(row, row.version, look)
        return True

    def entries(self, name: str, *, after: str = "", newest: bool = False, page: int = 100) -> Iterator[Listed]:
        del page
        yield from (Listed(*place) for place in self._listing(name, after, newest=newest))

    def listed(self, name: str, kind: type[R], *, limit: int = 100, after: str = "", newest: bool = False) -> list[R]:
        places = (key for _, key in self._listing(name, after, newest=newest) if key not in self.unreadable)
        return [_as(kind, self.rows[key]) for key in islice(places, limit)]

    def _listing(self, name: str, after: str, *, newest: bool) -> list[tuple[str, Key]]:
        """Where the rows of a listing have their place, and their keys; also of those that cannot be read."""
        places = sorted((row.place.sort, key) for key, row in self.rows.items() if row.place and row.place.name == name)
        if after:
            places = [place for place in places if (place[0] < after if newest else place[0] > after)]
        return places[::-1] if newest else places


def look_at(row: Row) -> Look | None:
    """The entry that the due index has of a stored row. One that a test changed in its place gets that of a write."""
    return row.indexed if row.deadline and row.indexed and row.indexed.nudges else next_look(row)


def as_stored(change: Create | Replace) -> Row:
    """The row that a change writes, with its version, and with when the sweep looks at it."""
    return with_version(change.row, next_version(change), next_look(change.row))


def with_version(row: R, version: int, indexed: Look | None) -> R:
    """What `replace` gives, in an eighth of its time: simulations write rows by the million."""
    made = object.__new__(type(row))
    made.__dict__.update(row.__dict__, version=version, indexed=indexed)
    return made


def _as(kind: type[R], row: Row) -> R:
    if not isinstance(row, kind):
        raise TypeError(f"{row.key} holds a {row.kind}, not a {kind.kind}")
    return row


def lease_now(rows: Mapping[Key, Row], lease: Lease) -> Lease:
    """A lease in its present state, by the unit's row among all rows."""
    unit = rows.get(unit_key(lease.unit or ""))
    return pools.lease_as_of(lease, unit if isinstance(unit, Unit) else None)
