"""The Store on a DynamoDB table: rows as JSON in items, and conditional writes.

Rows become JSON by their dataclass; times are RFC 3339 in UTC. What takes more than 1 KB is stored compressed, because
each KB is charged anew. Every write has a condition, and every condition a name.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields as fields_of
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from aws_lambda_powertools import Logger
from botocore.session import Session, get_session
from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.connection import Connection
from pynamodb.exceptions import DeleteError, GetError, PutError, QueryError, TransactWriteError, UpdateError
from pynamodb.expressions.condition import Condition
from pynamodb.indexes import GlobalSecondaryIndex, KeysOnlyProjection
from pynamodb.models import Model
from pynamodb.transactions import TransactWrite

from penstock.aws import clock, codec
from penstock.domain.account import AccountDiff
from penstock.domain.artifacts.artifacts import Artifact, Pin
from penstock.domain.artifacts.inputs import Input
from penstock.domain.artifacts.retention import LatestFailure, Retention
from penstock.domain.artifacts.volumes import Inventory
from penstock.domain.caches import CacheEntry, CacheUse
from penstock.domain.cooldowns import Budget, CoolDown, Failure
from penstock.domain.costs import Spend
from penstock.domain.github.accounts import Account
from penstock.domain.github.checks import CheckRun
from penstock.domain.github.commits import CheckSet, Tip
from penstock.domain.github.deliveries import Delivery, ListCheck, Pause, Payload
from penstock.domain.github.tokens import Minted
from penstock.domain.jobs.backlogs import Backlogged
from penstock.domain.jobs.dependencies import Dependent
from penstock.domain.jobs.jobs import Job, Spec
from penstock.domain.jobs.members import Member
from penstock.domain.jobs.reviews import ReviewRequest
from penstock.domain.jobs.store import Value
from penstock.domain.jobs.submissions import Submission
from penstock.domain.logs.logs import Archive, Batch, Watch
from penstock.domain.pools.pools import Claim, HoldTimes, Lease, Pool, Slot, SlotName
from penstock.domain.pools.series import Hour
from penstock.domain.pools.shares import Use
from penstock.domain.pools.stops import Stop
from penstock.domain.probes.canaries import Canary
from penstock.domain.published import Published, Series
from penstock.domain.site.site import Rollout, SiteText
from penstock.domain.units.comparison import Comparison, LastSweep
from penstock.domain.units.hosts import Host
from penstock.domain.units.power import PowerOrder
from penstock.domain.units.units import Unit
from penstock.domain.users.audit import Entry
from penstock.domain.users.logins import Login, LoginPace
from penstock.domain.users.requests import PrivilegeRequest
from penstock.domain.users.users import Tally, Token, User
from penstock.kernel import limits
from penstock.kernel.errors import Newer, Throttled, TooBig
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
    check_form,
    key_of,
    next_look,
    next_version,
    shards_of,
)

UNIT_BYTES = 1024
"""How many bytes of an item are one write unit."""

PAGE = 100
"""How many entries of the due index are read at once: as many as one BatchGetItem then reads rows."""

log = Logger(child=True)

KINDS: Mapping[str, type[Row]] = {
    kind.kind: kind
    for kind in (
        Job, Spec, Lease, Batch, Pool, HoldTimes, Use, Slot, SlotName, Claim, Unit, User, Token, Submission, Watch,
        SiteText, Rollout, Tally, Spend, Login, LoginPace, Member,
        AccountDiff, Hour, Stop, CoolDown, Failure, Budget, Comparison, LastSweep, Host, PowerOrder, Canary, Entry,
        Dependent, Input, ReviewRequest, PrivilegeRequest, Backlogged, Value,
        Retention, LatestFailure, Artifact, Inventory, Pin, Published, Series, CacheEntry, CacheUse, Archive,
        Delivery, Payload, CheckSet, CheckRun, Tip, ListCheck, Pause, Minted, Account,
    )
}  # fmt: skip


NOT_STORED = ("version", "indexed", "unknown")
"""Fields of a row that are attributes of the item, or say how it was read."""

BUSIEST = (Job, Spec, Lease, Pool, Slot, Claim, Unit)
"""The kinds of rows that most calls of functions meet."""


def prepare() -> None:
    """Work out how rows of the busiest kinds are converted, which first calls would do otherwise."""
    for kind in BUSIEST:
        codec.codec_of(kind)


def dump(row: Row) -> str:
    """A row as JSON, without its version and its due time, which are attributes of the item, and without defaults."""
    fields = codec.dump(row)
    for name in NOT_STORED:
        fields.pop(name, None)
    if row.unknown:
        fields = {**row.unknown, **fields}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def load(kind: str, body: str, version: int, look: Look | None = None) -> Row:
    """The row that JSON describes. Raises Newer for a kind or a form that only a newer release knows."""
    fields: dict[str, Any] = json.loads(body)
    check_form(fields.get("form", 1))
    if kind not in KINDS:
        raise Newer(f"there are no rows of the kind {kind!r} in this release")
    row = codec.load(KINDS[kind], fields | {"version": version})
    object.__setattr__(row, "indexed", look)
    known = _names(kind)
    unknown = {name: value for name, value in fields.items() if name not in known}
    object.__setattr__(row, "unknown", unknown or None)
    return row


@cache
def _names(kind: str) -> frozenset[str]:
    return frozenset(each.name for each in fields_of(KINDS[kind]))


def pack(row: Row, text: bytes) -> bytes | None:
    """What is stored of a row instead of its JSON; None for a row that is short as it is.

    It is always less: no byte of JSON in UTF-8 says more than seven bits. The same row always becomes the same bytes.
    """
    return zlib.compress(text) if _bytes(row, text) > UNIT_BYTES else None


def unpack(packed: bytes) -> str:
    """The JSON of a row that was packed."""
    return zlib.decompress(packed).decode()


def due_shards(*, later: bool) -> list[str]:
    """The shards of the due index, of every kind of row that may be due; with `later`, of those nobody waits for."""
    kinds = [kind for kind in KINDS.values() if kind.deadline is not Row.deadline]
    return [shard for kind in kinds for shard in shards_of(kind, later=later)]


def look_text(look: Look) -> str:
    """A look as the due index sorts it: its time, after a nudge how many there were, and the row's tag."""
    time = look.at.isoformat(timespec="milliseconds")
    nudged = f"{time}#{look.nudges}" if look.nudges else time
    return f"{nudged}@{look.tag}" if look.tag else nudged


def look_of(text: str, shard: str) -> Look:
    """The look that a shard of the index has."""
    nudged, _, tag = text.partition("@")
    time, _, nudges = nudged.partition("#")
    return Look(datetime.fromisoformat(time), int(nudges or 0), shard, tag)


class DueIndex(GlobalSecondaryIndex["Item"]):  # type: ignore[no-untyped-call]
    """Unfinished rows by the time at which the sweep looks at them, in shards: `due_shards`."""

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
    """A stored row: `body` is the row as JSON, or `packed` if it is long; the other attributes are for keys, conditions
    and indexes.
    """

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    row_version = NumberAttribute(attr_name="version")
    kind = UnicodeAttribute()
    body = UnicodeAttribute(null=True)
    packed = BinaryAttribute(null=True, legacy_encoding=False)
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


class SharedSession(Connection):
    """A connection whose client comes from a given session, and is made at once."""

    def __init__(self, region: str, session: Session) -> None:
        super().__init__(region=region)
        self._session = session
        self._client = self.client

    @property
    def session(self) -> Session:
        return self._session


def connect(of: type[Item], region: str, session: Session) -> Connection:
    """One connection for the model and its transactions. By default, each would have its own client and session."""
    table = of._get_connection()
    connection = SharedSession(region, session)
    connection.add_meta_table(table.get_meta_table())
    table.connection = connection
    return connection


def item_of(row: Row, version: int, of: type[Item]) -> Item:
    """A row as an item with a version."""
    item = of(row.key.pk, row.key.sk, row_version=version, kind=row.kind)
    text = dump(row)
    item.packed = pack(row, text.encode())
    item.body = None if item.packed else text
    look = next_look(row)
    if look:
        item.due_shard, item.due = look.shard, look_text(look)
    if row.place:
        item.list_key, item.list_sort = row.place
    if row.expiry:
        item.ttl = int(row.expiry.timestamp())
    return item


def check_commit(changes: Sequence[Change]) -> None:
    """Refuse what DynamoDB would refuse, however often it is sent: before it is sent, and alike in every store.

    Raises ValueError for a commit that makes no sense, and TooBig for one that is over a limit.
    """
    if len({key_of(change) for change in changes}) != len(changes):
        raise ValueError("two changes of one commit are to the same row")
    if len(changes) == 1 and isinstance(changes[0], Check):
        raise ValueError("a check alone writes nothing")
    if len(changes) > limits.TRANSACTION_ITEMS:
        raise TooBig(f"a commit of {len(changes)} changes; there is room for {limits.TRANSACTION_ITEMS}")
    for change in changes:
        if isinstance(change, Create | Replace):
            _check_row(change.row)
    if len(changes) * limits.ITEM_BYTES > limits.TRANSACTION_BYTES:
        total = sum(
            item_bytes(change.row if isinstance(change, Create | Replace) else change.was) for change in changes
        )
        if total > limits.TRANSACTION_BYTES:
            raise TooBig(f"a commit of {total} bytes; there is room for {limits.TRANSACTION_BYTES}")


def _check_row(row: Row) -> None:
    listing, place = row.place or ("", "")
    for text, most in (
        (row.key.pk, limits.PARTITION_KEY_BYTES),
        (row.key.sk, limits.SORT_KEY_BYTES),
        (listing, limits.PARTITION_KEY_BYTES),
        (place, limits.SORT_KEY_BYTES),
    ):
        if len(text.encode()) > most:
            raise TooBig(
                f"a key of {row.kind} {text[:40]!r}… takes {len(text.encode())} bytes; there is room for {most}"
            )
    size = item_bytes(row)
    if size > limits.ITEM_BYTES:
        raise TooBig(f"the {row.kind} at {row.key} takes {size} bytes; there is room for {limits.ITEM_BYTES}")


def item_bytes(row: Row) -> int:
    """How many bytes a row's item takes at most, as DynamoDB counts them: every attribute's name and value, in UTF-8.

    A number takes a byte per two digits, and one more. Source: Amazon DynamoDB Developer Guide, "Item sizes and
    formats". Limits are kept by rows as they are, packed or not: what has room does not depend on what is in it.
    """
    return _bytes(row, dump(row).encode())


def stored_bytes(row: Row) -> int:
    """The same for the item as it is stored: what is charged for."""
    text = dump(row).encode()
    return _bytes(row, pack(row, text) or text)


def _bytes(row: Row, body: bytes) -> int:
    texts = [row.key.pk, row.key.sk, row.kind, *(row.place or ())]
    return ATTRIBUTES_BYTES + len(body) + sum(len(text.encode()) for text in texts)


ATTRIBUTES_BYTES = 160
"""The names of all attributes of an item, two numbers, and a due time with its shard."""


def row_of(item: Item) -> Row:
    """The row that an item holds."""
    body = unpack(item.packed) if item.packed else item.body
    return load(item.kind, body, int(item.row_version), look_of(item.due, item.due_shard) if item.due else None)


R = TypeVar("R", bound=Row)

GONE, MET = "ConditionalCheckFailed", "TransactionConflict"
"""Why a transaction is cancelled when somebody else moved first, or moves now. Then the rows are read again."""

BUSY = ("ThrottlingError", "ProvisionedThroughputExceeded")
"""Why a transaction is cancelled when a partition has too much to do. No SDK tries that again: it knows the codes of
whole answers, and not the reasons inside of TransactionCanceledException. So we do.
"""

CONFLICT_CODES = ("ConditionalCheckFailedException", "TransactionConflictException")
"""The same for a single write. DynamoDB also refuses it during a transaction on its row, and no SDK retries that."""

BUSY_ALONE = (
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "TransactionInProgressException",
)
"""The codes of answers which the SDK has tried again, in vain."""

THROTTLED_TRIES = 7
"""How often a throttled transaction is sent. Between the tries pass 3.5 s at most, in all: a request has 29 s, and
makes several commits. Then its message comes again, or its client is asked to. When 32 functions claim at once more
than a partition takes, one of 2,000 transactions was not through after five tries.
"""


def absent() -> Condition:
    """There is no row at this key."""
    return Item.pk.does_not_exist()


def unchanged(was: Row) -> Condition:
    """The row at this key still has the version that was read."""
    return Item.row_version == was.version


class Table:
    """Rows in one DynamoDB table."""

    def __init__(self, table: str, region: str, session: Session | None = None) -> None:
        self._item = model(table, region)
        self._connection = connect(self._item, region, session or get_session())

    def get(self, key: Key, kind: type[R]) -> R | None:
        """The row at a key, read consistently."""
        try:
            with _reading():
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
        limit: int | None = 1000,
        last: bool = False,
        after: str = "",
        upto: str = "",
        readable: bool = False,
    ) -> list[R]:
        """The rows of a collection, read consistently."""
        place: Condition = self._item.sk.startswith(prefix)
        if after >= prefix + "~":
            return []  # nothing is behind it, and DynamoDB refuses a range whose end comes before its beginning
        if after > prefix:
            place = self._item.sk.between(after + " ", prefix + "~")
        if upto:
            place = self._item.sk.between(prefix, upto)
        with _reading():
            found = self._item.query(pk, place, consistent_read=True, limit=limit, scan_index_forward=not last)
            rows = _readable_rows(found).values() if readable else map(row_of, found)
            return [_as(kind, row) for row in rows]

    def count(self, pk: str, prefix: str, *, upto: str = "") -> int:
        """How many rows of a collection there are, counted by the table, page by page."""
        place = self._item.sk.between(prefix, upto) if upto else self._item.sk.startswith(prefix)
        with _reading():
            return int(self._item.count(pk, place, consistent_read=True))

    def commit(self, changes: Sequence[Change]) -> bool:
        """All changes or none. One change is one conditional write; more are one transaction. Raises Throttled."""
        check_commit(changes)
        for tries in range(THROTTLED_TRIES):
            done = self._try(changes)
            if done is not None:
                return done
            if tries < THROTTLED_TRIES - 1:
                clock.back_off(tries)
        raise Throttled(f"a commit of {len(changes)} rows was throttled {THROTTLED_TRIES} times")

    def _try(self, changes: Sequence[Change]) -> bool | None:
        """Whether the changes were made; None if the transaction was cancelled because a partition is busy."""
        try:
            if len(changes) == 1:
                self._write(changes[0])
            else:
                self._transact(changes)
        except (PutError, DeleteError, TransactWriteError) as error:
            code = error.cause_response_code
            reasons = {reason.code for reason in getattr(error, "cancellation_reasons", ()) if reason}
            if code in CONFLICT_CODES or (reasons and reasons <= {GONE, MET}):
                return False
            if reasons and reasons <= {GONE, MET, *BUSY}:
                return False if GONE in reasons else None
            if code in BUSY_ALONE:
                raise Throttled(f"a commit of {len(changes)} rows was throttled: {code}") from error
            raise
        return True

    def shards(self, *, later: bool) -> Sequence[str]:
        """The shards of the due index."""
        return due_shards(later=later)

    def overdue(self, shard: str, now: datetime, *, page: int = PAGE) -> Iterator[Due]:
        """Entries of a shard, read page by page as they are taken."""
        past = self._item.due < look_text(Look(now + timedelta(milliseconds=1)))  # also those that were nudged
        with _reading():
            for item in self._item.due_index.query(shard, past, page_size=page):
                yield Due(look_of(item.due, shard), Key(item.pk, item.sk))

    def rows_at(self, keys: Sequence[Key]) -> dict[Key, Row]:
        """Rows by their keys, read consistently, without those that are gone or cannot be read."""
        with _reading():
            items = list(self._item.batch_get([tuple(key) for key in keys], consistent_read=True))
        return _readable_rows(items)

    def look_later(self, due: Due, look: Look, was: Row | None) -> bool:
        """Move an entry of the due index, and nothing else: not even the row's version."""
        is_same: Condition = self._item.due == look_text(due.look)
        try:
            self._item(*due.key).update(
                actions=[self._item.due.set(look_text(look)), self._item.due_shard.set(look.shard)],
                condition=is_same & unchanged(was) if was else is_same,
                add_version_condition=False,
            )
        except UpdateError as error:
            if error.cause_response_code in CONFLICT_CODES:
                return False
            if error.cause_response_code in BUSY_ALONE:
                raise Throttled(f"a move in the due index was throttled: {error.cause_response_code}") from error
            raise
        return True

    def listed(self, name: str, kind: type[R], *, limit: int = 100, after: str = "", newest: bool = False) -> list[R]:
        """The rows of a listing: the index has their keys, the rows are then read in batches.

        The index may still have rows that have left, and some may be unreadable. More are read in their place, or a
        page would look like the last.
        """
        place = self._item.list_sort
        edge = None if not after else (place < after if newest else place > after)
        found: list[R] = []
        with _reading():
            keys = iter(self._item.listing_index.query(name, edge, page_size=limit, scan_index_forward=not newest))
            while page := list(islice(keys, limit - len(found))):
                found += self._listed_still(name, [Key(item.pk, item.sk) for item in page], kind)
        return found

    def entries(self, name: str, *, after: str = "", newest: bool = False, page: int = 100) -> Iterator[Listed]:
        """What a listing has, page by page as it is taken: no row is read."""
        place = self._item.list_sort
        edge = None if not after else (place < after if newest else place > after)
        with _reading():
            index = self._item.listing_index
            for item in index.query(name, edge, page_size=page, scan_index_forward=not newest):
                yield Listed(item.list_sort, Key(item.pk, item.sk))

    def _listed_still(self, name: str, keys: Sequence[Key], kind: type[R]) -> list[R]:
        rows = _readable_rows(self._item.batch_get(keys))
        still = {key for key, row in rows.items() if row.place and row.place.name == name}
        return [_as(kind, rows[key]) for key in keys if key in still]

    def _write(self, change: Change) -> None:
        if isinstance(change, Create):
            item = item_of(change.row, next_version(change), self._item)
            item.save(condition=absent(), add_version_condition=False)
        elif isinstance(change, Replace):
            item = item_of(change.row, next_version(change), self._item)
            item.save(condition=unchanged(change.was), add_version_condition=False)
        elif isinstance(change, Delete):
            self._item(*change.was.key).delete(condition=unchanged(change.was), add_version_condition=False)

    def _transact(self, changes: Sequence[Change]) -> None:
        with TransactWrite(connection=self._connection) as transaction:
            for change in changes:
                if isinstance(change, Create):
                    transaction.save(item_of(change.row, next_version(change), self._item), condition=absent())
                elif isinstance(change, Replace):
                    item = item_of(change.row, next_version(change), self._item)
                    transaction.save(item, condition=unchanged(change.was))
                elif isinstance(change, Delete):
                    transaction.delete(self._item(*change.was.key), condition=unchanged(change.was))
                elif isinstance(change, Check):
                    key = change.was.key
                    transaction.condition_check(self._item, key.pk, key.sk, condition=unchanged(change.was))


@contextmanager
def _reading() -> Iterator[None]:
    """Reads, which the SDK tries again when they are throttled. Raises Throttled if that was in vain."""
    try:
        yield
    except (GetError, QueryError) as error:
        if error.cause_response_code in BUSY_ALONE:
            raise Throttled(f"a read was throttled: {error.cause_response_code}") from error
        raise


def _as(kind: type[R], row: Row) -> R:
    if not isinstance(row, kind):
        raise TypeError(f"{row.key} holds a {row.kind}, not a {kind.kind}")
    return row


def _readable_rows(items: Iterable[Item]) -> dict[Key, Row]:
    """The rows of items, by their keys, without those that the code cannot read."""
    return dict(filter(None, map(_readable, items)))


def _readable(item: Item) -> tuple[Key, Row] | None:
    """The row of an item, by its key; None if the code cannot read it."""
    try:
        return Key(item.pk, item.sk), row_of(item)
    except Exception:
        log.exception("a row cannot be read", extra={"key": [item.pk, item.sk]})
        return None
