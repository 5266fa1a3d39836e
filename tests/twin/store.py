"""The Store in a dict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from penstock.domain.rows import Change, Check, Create, Delete, Key, Row, holds, key_of
from penstock.store import codec

R = TypeVar("R", bound=Row)


class MemoryStore:
    """Rows by key. Rows pass through the codec, so that what cannot be stored cannot pass here either."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.commits = 0

    def get(self, key: Key, kind: type[R]) -> R | None:
        row = self.rows.get(key)
        return None if row is None else _as(kind, row)

    def find(
        self,
        pk: str,
        prefix: str,
        kind: type[R],
        *,
        limit: int = 1000,
        last: bool = False,
        after: str = "",
        upto: str = "",
    ) -> list[R]:
        keys = sorted(key for key in self.rows if key.pk == pk and key.sk.startswith(prefix))
        chosen = [key for key in keys if (not after or key.sk > after) and (not upto or key.sk <= upto)]
        chosen = chosen[::-1] if last else chosen
        return [_as(kind, self.rows[key]) for key in chosen[:limit]]

    def commit(self, changes: Sequence[Change]) -> bool:
        if len({key_of(change) for change in changes}) != len(changes):
            raise ValueError("two changes of one commit are to the same row")
        if len(changes) == 1 and isinstance(changes[0], Check):
            raise ValueError("a check alone writes nothing")
        if not all(holds(change, self.rows.get(key_of(change))) for change in changes):
            return False
        for change in changes:
            self._write(change)
        self.commits += 1
        return True

    def _write(self, change: Change) -> None:
        if isinstance(change, Delete):
            del self.rows[change.was.key]
        elif not isinstance(change, Check):
            version = (change.row if isinstance(change, Create) else change.was).version + 1
            row = replace(change.row, version=version)
            self.rows[row.key] = codec.load(row.kind, codec.dump(row), version)

    def overdue(self, now: datetime, limit: int) -> list[tuple[str, Key]]:
        due = sorted((row.deadline, key) for key, row in self.rows.items() if row.deadline and row.deadline <= now)
        return [(self.rows[key].kind, key) for _, key in due[:limit]]

    def listed(self, name: str, kind: type[R], *, limit: int = 100, after: str = "", newest: bool = False) -> list[R]:
        places = sorted((row.place.sort, key) for key, row in self.rows.items() if row.place and row.place.name == name)
        if after:
            places = [place for place in places if (place[0] < after if newest else place[0] > after)]
        return [_as(kind, self.rows[key]) for _, key in (places[::-1] if newest else places)[:limit]]


def _as(kind: type[R], row: Row) -> R:
    if not isinstance(row, kind):
        raise TypeError(f"{row.key} holds a {row.kind}, not a {kind.kind}")
    return row
