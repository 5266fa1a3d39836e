"""The Store on a DynamoDB table. Every write is conditional, and every condition has a name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from pynamodb.connection import Connection
from pynamodb.exceptions import DeleteError, PutError, TransactWriteError
from pynamodb.expressions.condition import Condition
from pynamodb.transactions import TransactWrite

from penstock.kernel.rows import Change, Check, Create, Delete, Key, Replace, Row, key_of
from penstock.store.item import DUE, LATER, Item, item_of, model, row_of

R = TypeVar("R", bound=Row)

LOST = ("ConditionalCheckFailed", "TransactionConflict")
"""Why a transaction is cancelled when somebody else moved first. Anything else is a fault and is raised."""

LOST_ALONE = ("ConditionalCheckFailedException", "TransactionConflictException")
"""The same of a single write, which is refused as well while a transaction has its row. No SDK tries that again."""


def absent() -> Condition:
    """No row stands at this key."""
    return Item.pk.does_not_exist()


def still(was: Row) -> Condition:
    """The row at this key carries the version that was read."""
    return Item.row_version == was.version


class Table:
    """Rows in one DynamoDB table."""

    def __init__(self, table: str, region: str) -> None:
        self._item = model(table, region)
        self._connection = Connection(region=region)

    def get(self, key: Key, kind: type[R]) -> R | None:
        """The row at a key, read consistently."""
        try:
            item = self._item.get(key.pk, key.sk, consistent_read=True)
        except self._item.DoesNotExist:
            return None
        return _as(kind, row_of(item))

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
        """The rows of a collection, read consistently."""
        place: Condition = self._item.sk.startswith(prefix)
        if after:
            place = self._item.sk.between(after + " ", prefix + "~")
        if upto:
            place = self._item.sk.between(prefix, upto)
        found = self._item.query(pk, place, consistent_read=True, limit=limit, scan_index_forward=not last)
        return [_as(kind, row_of(item)) for item in found]

    def commit(self, changes: Sequence[Change]) -> bool:
        """All changes or none. One change is one conditional write; more are one transaction."""
        if len({key_of(change) for change in changes}) != len(changes):
            raise ValueError("two changes of one commit are to the same row")
        try:
            if len(changes) == 1:
                self._write(changes[0])
            else:
                self._transact(changes)
        except (PutError, DeleteError) as error:
            if error.cause_response_code in LOST_ALONE:
                return False
            raise
        except TransactWriteError as error:
            reasons = [reason.code for reason in error.cancellation_reasons if reason]
            if error.cause_response_code == "TransactionConflictException" or (
                reasons and all(code in LOST for code in reasons)
            ):
                return False
            raise
        return True

    def overdue(self, now: datetime, limit: int, *, later: bool = False) -> list[tuple[str, Key]]:
        """Keys from the due index. The kind of row is told by where it stands."""
        before = now.isoformat(timespec="milliseconds")
        found = self._item.due_index.query(LATER if later else DUE, self._item.due <= before, limit=limit)
        return [(_kind(item.sk), Key(item.pk, item.sk)) for item in found]

    def listed(self, name: str, kind: type[R], *, limit: int = 100, after: str = "", newest: bool = False) -> list[R]:
        """The rows of a listing: the index has their keys, the rows are then read in batches."""
        place = self._item.list_sort
        edge = None if not after else (place < after if newest else place > after)
        found = self._item.listing_index.query(name, edge, limit=limit, scan_index_forward=not newest)
        keys = [(item.pk, item.sk) for item in found]
        rows = {row.key: row for row in map(row_of, self._item.batch_get(keys))}
        return [_as(kind, rows[Key(*key)]) for key in keys if Key(*key) in rows]

    def _write(self, change: Change) -> None:
        if isinstance(change, Create):
            item = item_of(change.row, change.row.version + 1, self._item)
            item.save(condition=absent(), add_version_condition=False)
        elif isinstance(change, Replace):
            item = item_of(change.row, change.was.version + 1, self._item)
            item.save(condition=still(change.was), add_version_condition=False)
        elif isinstance(change, Delete):
            self._item(*change.was.key).delete(condition=still(change.was), add_version_condition=False)
        else:
            raise ValueError("a check alone writes nothing")

    def _transact(self, changes: Sequence[Change]) -> None:
        with TransactWrite(connection=self._connection) as transaction:
            for change in changes:
                if isinstance(change, Create):
                    transaction.save(item_of(change.row, change.row.version + 1, self._item), condition=absent())
                elif isinstance(change, Replace):
                    item = item_of(change.row, change.was.version + 1, self._item)
                    transaction.save(item, condition=still(change.was))
                elif isinstance(change, Delete):
                    transaction.delete(self._item(*change.was.key), condition=still(change.was))
                elif isinstance(change, Check):
                    key = change.was.key
                    transaction.condition_check(self._item, key.pk, key.sk, condition=still(change.was))


def _as(kind: type[R], row: Row) -> R:
    if not isinstance(row, kind):
        raise TypeError(f"{row.key} holds a {row.kind}, not a {kind.kind}")
    return row


def _kind(sk: str) -> str:
    """The kind of row at a key that has a due time: what the place of such a row begins with."""
    return sk.partition("#")[0]
