"""The one model of an item. Conditions on it are in `table`; what it holds is the domain's."""

from __future__ import annotations

from functools import cache

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.indexes import GlobalSecondaryIndex, KeysOnlyProjection
from pynamodb.models import Model

from penstock.kernel.rows import Row
from penstock.store import codec

DUE = "due"
"""The one shard of the due index: a sweep reads it whole."""

LATER = "later"
"""The shard for kinds of rows that nobody waits for: however many are overdue, they stand in nobody's way."""


class DueIndex(GlobalSecondaryIndex["Item"]):  # type: ignore[no-untyped-call]
    """Every unfinished row, by the time somebody must move it on."""

    class Meta:
        index_name = "due"
        projection = KeysOnlyProjection()

    due_shard = UnicodeAttribute(hash_key=True)
    due = UnicodeAttribute(range_key=True)


class ListingIndex(GlobalSecondaryIndex["Item"]):  # type: ignore[no-untyped-call]
    """Rows that are listed: a user's jobs, the pools, the workers."""

    class Meta:
        index_name = "listing"
        projection = KeysOnlyProjection()

    list_key = UnicodeAttribute(hash_key=True)
    list_sort = UnicodeAttribute(range_key=True)


class Item(Model):
    """A row as it is stored: `body` is the row as JSON, the rest is what DynamoDB must see of it."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    row_version = NumberAttribute(attr_name="version")
    kind = UnicodeAttribute()
    body = UnicodeAttribute()
    due_shard = UnicodeAttribute(null=True)
    due = UnicodeAttribute(null=True)
    list_key = UnicodeAttribute(null=True)
    list_sort = UnicodeAttribute(null=True)
    ttl = NumberAttribute(null=True)
    due_index = DueIndex()
    listing_index = ListingIndex()


@cache
def model(table: str, region: str) -> type[Item]:
    """The model of items in a table."""

    class Stored(Item):
        class Meta:
            table_name = table

    Stored.Meta.region = region  # type: ignore[attr-defined]
    return Stored


def item_of(row: Row, version: int, of: type[Item]) -> Item:
    """A row as an item that will carry a version."""
    item = of(row.key.pk, row.key.sk, row_version=version, kind=row.kind, body=codec.dump(row))
    if row.deadline:
        item.due_shard, item.due = LATER if row.later else DUE, row.deadline.isoformat(timespec="milliseconds")
    if row.place:
        item.list_key, item.list_sort = row.place
    if row.expiry:
        item.ttl = int(row.expiry.timestamp())
    return item


def row_of(item: Item) -> Row:
    """The row that an item holds."""
    return codec.load(item.kind, item.body, int(item.row_version))
