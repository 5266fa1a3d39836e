"""What every store promises, asked of the table and of the twin's; and that the two are the same.

What a condition means is asked of moto; who wins a race, of the local cloud.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import string
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pynamodb.connection.base import Connection
from pynamodb.exceptions import QueryError

from penstock.aws import dynamodb
from penstock.aws.dynamodb import Table
from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.caches import CacheEntry, Shelf
from penstock.domain.cooldowns import Budget, Cause, CoolDown, Failure
from penstock.domain.pools.pools import Pool, Slot, SlotState, collection, move, pool_key
from penstock.domain.units.comparison import Comparison, LastSweep, Missing
from penstock.domain.users.users import Token, User, user_key
from penstock.kernel.errors import Newer, TooBig
from penstock.kernel.rows import (
    FORM,
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
    next_version,
    shard_of,
)
from penstock.ports import Store
from penstock.testing.store import MemoryStore
from tests.concurrency import faults

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
USER = User(name="ada", privileges=("target.lab",), created=NOW)
ONE = replace(USER, version=1)
SLOT = Slot(pool="p", name="a", state=SlotState.FREE)


@pytest.fixture(params=["table", "memory"])
def store(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("table") if request.param == "table" else MemoryStore()


def test_a_row_comes_back_as_it_was(store: Store) -> None:
    assert store.commit([Create(USER)])
    assert store.get(USER.key, User) == ONE
    assert store.get(user_key("bob"), User) is None


REMEMBERED: tuple[Row, ...] = (
    CoolDown(
        maker="factory/aws", scope="ec2/ü/" + "x" * 500, cause=Cause.QUOTA, why="full", since=NOW, until=NOW,
        met_by="w-1", count=3, probe="w-2", probe_until=NOW,
    ),
    Failure(maker="factory/aws", code="Unknown:Odd", message="it broke", count=2, first=NOW, last=NOW),
    Budget(maker="factory/aws", tokens=0.25, at=NOW),
    Comparison(
        maker="factory/aws", tried=NOW, at=NOW, failures=1, why="no leave", strays={"w-9": NOW}, seen=("w-1",),
        missing={"w-3": Missing(NOW, 2)},
    ),
    LastSweep(at=NOW, resumed=NOW),
)  # fmt: skip


@pytest.mark.parametrize("row", REMEMBERED, ids=lambda row: row.kind)
def test_what_is_remembered_of_a_maker_comes_back_as_it_was(store: Store, row: Row) -> None:
    assert store.commit([Create(row)])
    assert store.get(row.key, type(row)) == replace(row, version=next_version(Create(row)))


def test_what_is_remembered_of_a_maker_is_found_by_its_kind(store: Store) -> None:
    store.commit([Create(row) for row in REMEMBERED])
    assert [row.kind for row in store.find("maker#factory/aws", "scope#", CoolDown)] == ["cooldown"]
    assert [row.kind for row in store.find("maker#factory/aws", "failure#", Failure)] == ["failure"]
    assert store.find("maker#factory/a", "scope#", CoolDown) == []


def test_another_kind_of_row_is_a_loud_mistake(store: Store) -> None:
    store.commit([Create(USER)])
    with pytest.raises(TypeError, match="holds a user, not a token"):
        store.get(USER.key, Token)
    with pytest.raises(TypeError, match="holds a user, not a token"):
        store.find(USER.key.pk, "user", Token)


def test_every_condition_alone(store: Store) -> None:
    assert store.commit([Create(USER)])
    assert not store.commit([Create(USER)])
    assert store.commit([Replace(ONE, replace(ONE, privileges=()))])
    assert not store.commit([Replace(ONE, ONE)])
    assert not store.commit([Delete(ONE)])
    assert store.commit([Delete(replace(ONE, version=2))])
    assert not store.commit([Delete(replace(ONE, version=2))])


def test_a_row_that_comes_back_to_a_key_is_not_the_one_that_was_read_there(store: Store) -> None:
    """SLOT-3: a slot is free, held and free again; who read it when it was free before, has read another row."""
    free, held = (Slot(pool="p", name="1", state=state) for state in (SlotState.FREE, SlotState.HELD))
    assert store.commit([Create(free)])
    read = replace(free, version=1)
    assert store.commit([Delete(read), Create(replace(held, version=1))])
    assert store.commit([Delete(replace(held, version=2)), Create(replace(free, version=2))])
    assert store.get(free.key, Slot) == replace(free, version=3)
    assert not store.commit([Delete(read), Create(replace(held, version=1))])
    assert not store.commit([Delete(read)])


def test_a_commit_is_whole_or_not_at_all(store: Store) -> None:
    """SLOT-2: all changes or none."""
    bob = replace(USER, name="bob")
    assert store.commit([Create(USER), Create(bob)])
    cid = replace(USER, name="cid")
    assert not store.commit([Create(cid), Check(replace(USER, version=9))])
    assert store.get(cid.key, User) is None
    assert store.commit([Create(cid), Check(ONE), Delete(replace(bob, version=1))])
    assert store.get(bob.key, User) is None


@pytest.mark.parametrize("changes", [[Create(USER), Delete(USER)], [Check(ONE), Replace(ONE, ONE)], [Check(ONE)]])
def test_a_commit_that_makes_no_sense_is_a_mistake(store: Store, changes: list[Change]) -> None:
    with pytest.raises(ValueError, match=r"same row|check alone"):
        store.commit(changes)


def test_a_search_without_a_beginning_is_a_mistake(store: Store) -> None:
    """DynamoDB refuses a condition on a key that is empty."""
    with pytest.raises((ValueError, QueryError), match=r"empty key|ValidationException"):
        store.find("users", "", User)


def big(name: str, size: int) -> User:
    """A row whose item has about this many bytes."""
    return replace(USER, name=name, privileges=("x" * size,))


def test_a_commit_has_room_for_a_hundred_rows(store: Store) -> None:
    """The limit of TransactWriteItems. A row that is only checked, or deleted, takes a place too."""
    bobs = [replace(USER, name=f"bob{number:03d}") for number in range(100)]
    assert store.commit([Create(row) for row in bobs])
    stored = [replace(row, version=1) for row in bobs]
    for more in ([Create(USER)], [Check(stored[-1]), Create(USER)]):
        with pytest.raises(TooBig, match="101 changes; there is room for 100"):
            store.commit([*map(Delete, stored[: 101 - len(more)]), *more])
    assert store.get(USER.key, User) is None
    assert store.get(bobs[0].key, User) == stored[0]


@pytest.mark.parametrize("others", [0, 1])
def test_a_row_has_room_for_400_kb(store: Store, others: int) -> None:
    """The limit of an item, alone and in a transaction; KB are of 1,024 bytes."""
    more = [Create(replace(USER, name="bob"))] * others
    with pytest.raises(TooBig, match=r"the user at .* takes 4.* bytes; there is room for 409600"):
        store.commit([Create(big("ada", 400 * 1024)), *more])
    with pytest.raises(TooBig, match="room for 409600"):
        store.commit([Replace(ONE, big("ada", 400 * 1024)), *more])
    assert store.get(USER.key, User) is None
    assert store.commit([Create(big("ada", 395_000)), *more])


@pytest.mark.parametrize("over", [0, 1])
def test_the_last_byte_counts(over: int) -> None:
    """Not asked of the emulator, which is stricter than AWS: it takes 405,000 bytes."""
    exact = 400 * 1024 - dynamodb.item_bytes(big("ada", 0))
    with pytest.raises(TooBig) if over else contextlib.nullcontext():
        assert MemoryStore().commit([Create(big("ada", exact + over))])


def test_a_letter_takes_as_many_bytes_as_in_utf_8(store: Store) -> None:
    with pytest.raises(TooBig, match="room for 409600"):
        store.commit([Create(replace(USER, privileges=("\u00e4" * 210 * 1024,)))])


def test_a_commit_has_room_for_4_mb(store: Store) -> None:
    """Of all its rows together: of those that it only checks, or deletes, too."""
    rows = [big(f"bob{number:02d}", 395_000) for number in range(11)]
    with pytest.raises(TooBig, match=r"a commit of 4\d* bytes; there is room for 4194304"):
        store.commit([Create(row) for row in rows])
    assert store.commit([Create(row) for row in rows[:10]])
    first, *others = (replace(row, version=1) for row in rows[:10])
    with pytest.raises(TooBig, match="there is room for 4194304"):
        store.commit([Create(rows[10]), Delete(first), *map(Check, others)])
    assert store.commit([Create(USER), Delete(first), *map(Check, others)])


@pytest.mark.parametrize("over", [0, 1])
def test_the_last_byte_of_a_commit_counts(over: int) -> None:
    """Checked without the emulator, for the sake of time."""
    rows = [big(f"bob{number:02d}", 380_000) for number in range(11)]
    left = 4 * 1024 * 1024 - sum(map(dynamodb.item_bytes, rows))
    rows[0] = big("bob00", 380_000 + left + over)
    with pytest.raises(TooBig, match="a commit of 4194305 bytes") if over else contextlib.nullcontext():
        assert MemoryStore().commit([Create(row) for row in rows])


def test_a_key_has_room_for_what_an_index_takes(store: Store) -> None:
    for row in (Pool(name="p" * 2044, limit=1), Slot(pool="p", name="a" * 1015, state=SlotState.FREE)):
        with pytest.raises(TooBig, match=r"a key of .* bytes; there is room for"):
            store.commit([Create(row)])
    with pytest.raises(TooBig, match="a key of pool"):
        store.commit([Create(Pool(name="p" * 1025, limit=1))])  # which is the place of its listing
    assert store.commit([Create(Pool(name="p" * 1024, limit=1))])
    assert store.commit([Create(Slot(pool="p", name="a" * 1014, state=SlotState.FREE))])


SIZED: tuple[Row, ...] = (
    USER,
    Pool(name="\u00fc", limit=10**12, due=NOW),
    Pool(name="p" * 1000, limit=1),  # its place in the listing has the name once more
    Token(id="0" * 26, digest="x" * 64, user="ada", created=NOW, expires=NOW),
    SLOT,
    *REMEMBERED,
)


@pytest.mark.parametrize("row", SIZED, ids=lambda row: row.kind)
def test_a_rows_size_is_that_of_its_item_or_little_more(table: Table, row: Row) -> None:
    """The size as documented: names and values in UTF-8; of a number, a byte per two digits and one."""
    assert table.commit([Create(row)])
    key = {"pk": {"S": row.key.pk}, "sk": {"S": row.key.sk}}
    item = boto3.client("dynamodb", "us-east-1").get_item(TableName="state", Key=key)["Item"]
    values = [(kind, found) for value in item.values() for kind, found in value.items()]
    sizes = [len(found) // 2 + 2 if kind == "N" else len(_as_bytes(found)) for kind, found in values]
    size = sum(sizes) + sum(map(len, item))
    assert size <= dynamodb.stored_bytes(row) <= size + 160
    assert dynamodb.stored_bytes(row) <= dynamodb.item_bytes(row)


def _as_bytes(found: str | bytes) -> bytes:
    return found.encode() if isinstance(found, str) else found


def test_a_row_of_more_than_1_kb_is_stored_compressed(table: Table) -> None:
    """A shorter one stays readable. What is as random as text can be gets shorter too."""
    left = 1024 - dynamodb.item_bytes(big("ada", 0))
    short, long = big("ada", left), big("bob", left + 1)
    noise = replace(USER, name="eve", privileges=("".join(random.Random(1).choices(string.printable, k=900)),))
    assert table.commit([Create(short), Create(long), Create(noise)])
    items = [table._item.get(row.key.pk, row.key.sk) for row in (short, long, noise)]
    assert [(item.body is None, item.packed is None) for item in items] == [(False, True), (True, False), (True, False)]
    assert dynamodb.stored_bytes(long) < 512 < 1024 == dynamodb.stored_bytes(short)
    assert dynamodb.stored_bytes(noise) < dynamodb.item_bytes(noise)
    for row in (short, long, noise):
        assert table.get(row.key, User) == replace(row, version=1)


def test_conditions_agree_with_their_twins(store: Store) -> None:
    """Each named condition holds in the store exactly when its pure twin says so, alone and among others."""
    for stored_version, assumed, kind, alone in itertools.product(
        (0, 1, 2), (0, 1, 2), ("create", "replace", "delete", "check"), (True, False)
    ):
        if kind == "check" and alone:
            continue
        _reset(store, stored_version)
        was = replace(USER, version=assumed)
        change = {"create": Create(USER), "replace": Replace(was, was), "delete": Delete(was), "check": Check(was)}[
            kind
        ]
        other = Create(replace(USER, name=f"{stored_version}{assumed}{kind}"))
        stored = store.get(USER.key, User)
        expected = holds(change, stored)
        assert store.commit([change] if alone else [other, change]) == expected, (kind, stored_version, assumed)


def test_a_row_that_follows_a_deleted_one_has_another_version(store: Store) -> None:
    """Who read the one before it changes and deletes nothing."""
    shelf = Shelf("ada", "linux", "pip", "d" * 16)
    entry = CacheEntry(
        shelf=shelf, scope="main", words="k", id="A", job="J", size=1, sha256="0" * 64, about="", made=NOW, used=NOW,
        until=NOW,
    )  # fmt: skip
    assert store.commit([Create(entry)])
    first = store.get(entry.key, CacheEntry)
    assert first
    assert store.commit([Delete(first)])
    other = replace(entry, id="B")
    assert store.commit([Create(other)])
    assert not store.commit([Replace(first, replace(first, used=NOW + timedelta(1)))])
    assert not store.commit([Delete(first)])
    assert not store.commit([Check(first), Create(USER)])
    found = store.get(entry.key, CacheEntry)
    assert found
    assert found.version != first.version
    assert found == replace(other, version=found.version)
    assert store.commit([Replace(found, replace(found, size=2))])
    assert store.get(entry.key, CacheEntry) == replace(other, size=2, version=found.version + 1)


def _reset(store: Store, version: int) -> None:
    stored = store.get(USER.key, User)
    if stored:
        store.commit([Delete(stored)])
    if version:
        store.commit([Create(USER)])
    for number in range(1, version):
        was = replace(USER, version=number)
        store.commit([Replace(was, was)])


def test_a_slot_that_left_and_came_back_is_not_the_one_that_was_read(store: Store) -> None:
    """SLOT-3: who read it before, and was slow, cannot take it: it would get the fence of the holder in between."""
    store.commit([Create(SLOT)])
    (read,) = store.find(collection("p"), "free#", Slot)
    assert store.commit(move(read, replace(read, state=SlotState.HELD, fence=1)))
    (held,) = store.find(collection("p"), "held#", Slot)
    assert store.commit(move(held, replace(held, state=SlotState.FREE)))
    assert not store.commit(move(read, replace(read, state=SlotState.HELD, fence=1)))
    assert store.find(collection("p"), "held#", Slot) == []


@pytest.mark.parametrize("changes", [[Create(SLOT)], [Delete(ONE)], [Replace(ONE, ONE)], [Check(ONE), Create(SLOT)]])
def test_a_write_during_another_transaction_loses_the_race(table: Table, changes: list[Change]) -> None:
    """DynamoDB refuses it, and says so: a reason to read again, not a fault."""
    assert table.commit([Create(USER)])
    dynamodb.model.cache_clear()  # whose connection has no faults
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "_before_send", None)  # which puts back what the faults replace
        faults.install(faults.Rates(conflict=1, throttle=0, lose=0), random.Random(0))
        assert not Table("state", "us-east-1").commit(changes)
    dynamodb.model.cache_clear()


def test_a_collection_is_read_in_order_and_in_part(store: Store) -> None:
    slots = [Slot(pool="p", name=name, state=SlotState.FREE) for name in "cab"]
    store.commit([Create(slot) for slot in slots])
    store.commit([Create(Slot(pool="p", name="d", state=SlotState.HELD))])
    pk = collection("p")
    assert [slot.name for slot in store.find(pk, "free#", Slot)] == ["a", "b", "c"]
    assert [slot.name for slot in store.find(pk, "free#", Slot, limit=1, last=True)] == ["c"]
    assert [slot.name for slot in store.find(pk, "free#", Slot, after="free#cold#a")] == ["b", "c"]
    assert [slot.name for slot in store.find(pk, "free#", Slot, after="free#")] == ["a", "b", "c"]
    assert [slot.name for slot in store.find(pk, "free#", Slot, after="a")] == ["a", "b", "c"], "before all of them"
    assert store.find(pk, "free#", Slot, after="z") == [], "behind all of them"
    assert [slot.name for slot in store.find(pk, "free#", Slot, limit=1, last=True, upto="free#cold#b")] == ["b"]
    assert [slot.name for slot in store.find(pk, "free#", Slot, upto="free#cold#b")] == ["a", "b"]
    assert store.find(collection("q"), "free#", Slot) == []


def test_a_read_goes_on_where_a_page_ends_after_1_mb(store: Store) -> None:
    """The limit of Query, whatever is asked for. These seven rows, which are compressed by half, are two pages."""
    noise = random.Random(1)
    slots = [
        Slot(pool="p", name=str(name), state=SlotState.FREE, unit=noise.randbytes(190_000).hex()) for name in range(7)
    ]
    for slot in slots:
        assert store.commit([Create(slot)])
    pk = collection("p")
    assert [slot.name for slot in store.find(pk, "free#", Slot)] == list("0123456")
    assert [slot.name for slot in store.find(pk, "free#", Slot, last=True, limit=6)] == list("654321")
    assert store.count(pk, "free#") == 7


BEFORE, AFTER = NOW - timedelta(hours=1), NOW + timedelta(hours=1)


def test_what_is_overdue_is_found_and_nothing_else(store: Store) -> None:
    dues = (("a", NOW), ("b", None), ("c", NOW + timedelta(1)), ("d", BEFORE))
    pools = [Pool(name=name, limit=1, due=due) for name, due in dues]
    store.commit([Create(pool) for pool in pools])
    found = list(store.overdue("pool.0", NOW))
    assert found == [Due(Look(BEFORE), pools[3].key), Due(Look(NOW), pools[0].key)]
    assert [due.kind for due in found] == ["pool", "pool"]
    assert list(store.overdue("job.0", NOW)) == []


def test_every_row_is_in_a_shard_of_its_kind_that_the_sweep_knows(store: Store) -> None:
    """Which shard it is does not change while a row is there, nor from one version of the code to the next."""
    files = [
        Artifact(id=f"A.J{number}", path="/a", size=1, sha256="", by="ada", time=NOW, due=NOW) for number in range(20)
    ]
    assert store.commit([Create(row) for row in files])
    found = [due for shard in store.shards(later=True) for due in store.overdue(shard, NOW)]
    assert sorted(due.key for due in found) == sorted(row.key for row in files)
    assert {due.look.shard for due in found} == {"artifact.0", "artifact.1", "artifact.2", "artifact.3"}
    assert {due.look.shard for due in found if due.key == files[0].key} == {shard_of(files[0])} == {"artifact.1"}
    assert not any(list(store.overdue(shard, NOW)) for shard in store.shards(later=False))
    assert not {"token.0", "slot.0", "lease.0"} & {*store.shards(later=False), *store.shards(later=True)}
    assert {*store.shards(later=False)} >= {"job.0", "job.7", "unit.0", "unit.7", "pool.0", "host.0", "check.0"}
    assert not {*store.shards(later=False)} & {*store.shards(later=True)}


def test_many_overdue_rows_come_page_by_page_and_in_order(store: Store) -> None:
    pools = [Pool(name=f"p{at:03d}", limit=1, due=NOW - timedelta(minutes=at)) for at in range(250)]
    for at in range(0, 250, 50):
        assert store.commit([Create(pool) for pool in pools[at : at + 50]])
    assert [due.key for due in store.overdue("pool.0", NOW)] == [pool.key for pool in reversed(pools)]


def test_rows_are_read_together_without_those_that_are_gone(store: Store) -> None:
    store.commit([Create(USER), Create(SLOT)])
    found = store.rows_at([USER.key, user_key("nobody"), SLOT.key])
    assert found == {USER.key: ONE, SLOT.key: replace(SLOT, version=1)}
    assert store.rows_at([]) == {}


def entry(store: Store, by: datetime) -> Due:
    (due,) = store.overdue("pool.0", by)
    return due


def test_a_deadline_that_moves_later_leaves_the_index_as_it_is(store: Store) -> None:
    """The sweep looks at the row at the earlier time, and finds that it is not due."""
    store.commit([Create(Pool(name="a", limit=1, due=NOW))])
    for due in (AFTER, NOW + timedelta(days=1), AFTER):
        was = store.get(pool_key("a"), Pool)
        assert was
        assert store.commit([Replace(was, replace(was, due=due))])
        assert entry(store, NOW).look == Look(NOW)


def test_the_index_never_has_a_later_time_than_the_row(store: Store) -> None:
    store.commit([Create(Pool(name="a", limit=1, due=NOW))])
    was = store.get(pool_key("a"), Pool)
    assert was
    store.commit([Replace(was, replace(was, due=BEFORE))])
    assert entry(store, BEFORE).look == Look(BEFORE)


def test_a_row_that_was_not_read_has_its_own_time_in_the_index(store: Store) -> None:
    store.commit([Create(Pool(name="a", limit=1, due=NOW))])
    store.commit([Replace(Pool(name="a", limit=1, version=1), Pool(name="a", limit=1, due=AFTER))])
    assert list(store.overdue("pool.0", NOW)) == []
    assert entry(store, AFTER).look == Look(AFTER)


def test_an_entry_moves_without_its_row(store: Store) -> None:
    """So no step that has read the row loses a race by it. The write that follows is exact again."""
    store.commit([Create(Pool(name="a", limit=1, due=BEFORE))])
    read = store.get(pool_key("a"), Pool)
    assert read
    assert store.look_later(entry(store, NOW), Look(AFTER, 1, "pool.0"), read)
    assert list(store.overdue("pool.0", NOW)) == []
    assert entry(store, AFTER).look == Look(AFTER, 1)
    fresh = store.get(pool_key("a"), Pool)
    assert fresh == read
    assert fresh.indexed == Look(AFTER, 1)
    assert store.commit([Replace(read, replace(fresh, due=AFTER + timedelta(hours=1)))])
    assert list(store.overdue("pool.0", AFTER)) == []
    assert entry(store, NOW + timedelta(hours=2)).look == Look(AFTER + timedelta(hours=1))


def test_an_entry_that_was_nudged_comes_at_its_time(store: Store) -> None:
    store.commit([Create(Pool(name="a", limit=1, due=BEFORE))])
    assert store.look_later(entry(store, NOW), Look(NOW, 12, "pool.0"), None)
    assert list(store.overdue("pool.0", NOW - timedelta(milliseconds=1))) == []
    assert entry(store, NOW).look == Look(NOW, 12)


def test_an_entry_comes_in_its_millisecond_and_not_before(store: Store) -> None:
    store.commit([Create(Pool(name="a", limit=1, due=NOW + timedelta(milliseconds=1)))])
    assert list(store.overdue("pool.0", NOW + timedelta(microseconds=999))) == []
    assert entry(store, NOW + timedelta(milliseconds=1)).look == Look(NOW + timedelta(milliseconds=1))


def test_of_two_who_move_an_entry_one_does(store: Store) -> None:
    store.commit([Create(Pool(name="a", limit=1, due=BEFORE))])
    due = entry(store, NOW)
    assert store.look_later(due, Look(AFTER, 1, "pool.0"), None)
    assert not store.look_later(due, Look(AFTER, 1, "pool.0"), None)
    assert not store.look_later(due._replace(key=pool_key("b")), Look(AFTER, 1, "pool.0"), None)
    assert store.get(pool_key("b"), Pool) is None


def test_an_entry_does_not_move_for_a_row_that_has_changed(store: Store) -> None:
    """Its deadline may be another by now, although the index has kept the earlier time."""
    store.commit([Create(Pool(name="a", limit=1, due=BEFORE))])
    read = store.get(pool_key("a"), Pool)
    assert read
    assert store.commit([Replace(read, replace(read, due=NOW))])
    assert entry(store, NOW).look == Look(BEFORE)
    assert not store.look_later(entry(store, NOW), Look(AFTER), read)
    assert store.look_later(entry(store, NOW), Look(NOW), store.get(pool_key("a"), Pool))


def test_a_row_that_is_no_longer_due_or_listed_is_not_found(store: Store) -> None:
    pool = Pool(name="a", limit=1, due=NOW)
    store.commit([Create(pool)])
    was = replace(pool, version=1)
    store.commit([Replace(was, replace(was, due=None))])
    assert list(store.overdue("pool.0", NOW)) == []
    store.commit([Delete(replace(was, version=2))])
    assert store.listed("pools", Pool) == []


def test_listings_are_paged_in_both_directions(store: Store) -> None:
    pools = [Pool(name=name, limit=1) for name in ("a", "b", "c")]
    store.commit([Create(pool) for pool in pools])
    assert [pool.name for pool in store.listed("pools", Pool, limit=2)] == ["a", "b"]
    assert [pool.name for pool in store.listed("pools", Pool, after="b")] == ["c"]
    assert [pool.name for pool in store.listed("pools", Pool, after="b", newest=True)] == ["a"]
    assert [pool.name for pool in store.listed("pools", Pool, limit=2, newest=True)] == ["c", "b"]


def damage(store: Store, key: Key) -> None:
    """Have a row be one that the code cannot read."""
    if isinstance(store, MemoryStore):
        store.unreadable.add(key)
    else:
        assert isinstance(store, Table)
        item = store._item
        newer = item.body.set(json.dumps({"form": FORM + 1}))
        item(*key).update(actions=[newer, item.packed.remove()], add_version_condition=False)


def test_a_row_that_cannot_be_read_keeps_nobody_from_the_others(store: Store) -> None:
    """In listings and batches it is left out, and a page is as full as without it."""
    assert store.commit([Create(Pool(name=name, limit=1, due=NOW)) for name in "abcd"])
    damage(store, pool_key("b"))
    assert [pool.name for pool in store.listed("pools", Pool)] == ["a", "c", "d"]
    assert [pool.name for pool in store.listed("pools", Pool, limit=2)] == ["a", "c"]
    assert [pool.name for pool in store.listed("pools", Pool, limit=2, after="c", newest=True)] == ["a"]
    assert list(store.rows_at([pool_key("a"), pool_key("b")])) == [pool_key("a")]
    assert [entry.sort for entry in store.entries("pools")] == ["a", "b", "c", "d"]
    assert pool_key("b") in [due.key for due in store.overdue("pool.0", NOW)]


def test_without_a_limit_all_rows_of_a_collection_are_found(store: Store) -> None:
    rows = [replace(REMEMBERED[0], scope=f"{number:04}") for number in range(1005)]
    for row in rows:
        assert store.commit([Create(row)])
    assert len(store.find(rows[0].key.pk, "scope#", CoolDown)) == 1000
    for readable in (True, False):
        found = store.find(rows[0].key.pk, "scope#", CoolDown, limit=None, readable=readable)
        assert [row.scope for row in found] == [row.scope for row in rows]


def test_a_row_that_cannot_be_read_is_not_taken_for_gone(store: Store) -> None:
    """Without the row of a lease, its slot would look free. Only who says that nobody misses it reads past it."""
    assert store.commit([Create(row) for row in (*REMEMBERED, replace(REMEMBERED[0], scope="sound"))])
    key = REMEMBERED[0].key
    damage(store, key)
    with pytest.raises(Newer):
        store.get(key, CoolDown)
    with pytest.raises(Newer):
        store.find(key.pk, "scope#", CoolDown)
    found = store.find(key.pk, "scope#", CoolDown, readable=True)
    assert [row.scope for row in found] == ["sound"]
    assert not store.commit([Create(REMEMBERED[0])])


def test_the_entries_of_a_listing_are_read_without_its_rows(store: Store) -> None:
    assert store.commit([Create(Pool(name=name, limit=1)) for name in "bac"])
    assert list(store.entries("pools")) == [Listed(name, pool_key(name)) for name in "abc"]
    for page in (1, 2, 100):
        assert [entry.sort for entry in store.entries("pools", newest=True, page=page)] == ["c", "b", "a"]
    assert [entry.sort for entry in store.entries("pools", after="b")] == ["c"]
    assert [entry.sort for entry in store.entries("pools", after="b", newest=True)] == ["a"]
    assert list(store.entries("nothing")) == []


NAMES = ("a", "b", "c")
CHANGES = st.tuples(
    st.sampled_from(["create", "replace", "delete", "check"]),
    st.sampled_from(NAMES),
    st.sampled_from(["as read", "as read", "as read", "older", "never"]),
    st.integers(0, 3),
)
COMMITS = st.lists(st.lists(CHANGES, min_size=1, max_size=3, unique_by=lambda change: change[1]), max_size=8)
EXAMPLES = itertools.count()


def _change(store: Store, example: int, what: tuple[str, str, str, int]) -> Change:
    kind, name, assumed, value = what
    row = Pool(name=f"{example}{name}", limit=value, due=NOW + timedelta(value) if value else None)
    stored = store.get(row.key, Pool)
    version = {"as read": stored.version if stored else 0, "older": (stored.version if stored else 2) - 1, "never": 0}
    was: Row = replace(row, version=version[assumed])
    if kind == "create":
        return Create(row)
    return {"replace": Replace(was, row), "delete": Delete(was), "check": Check(was)}[kind]


def _contents(store: Store, example: int) -> Any:
    return [store.find(collection(f"{example}{name}"), "pool", Pool) for name in NAMES]


def _indexes(store: Store, example: int) -> Any:
    mine = {f"{example}{name}" for name in NAMES}
    due = [due for due in store.overdue("pool.0", NOW + timedelta(2)) if due.key.pk.partition("#")[2] in mine]
    return due, [pool for pool in store.listed("pools", Pool, limit=1000) if pool.name in mine]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=COMMITS)
def test_both_stores_answer_the_same_and_hold_the_same(table: Table, commits: list[Any]) -> None:
    example = next(EXAMPLES)
    memory = MemoryStore()
    for commit in commits:
        changes = [_change(memory, example, what) for what in commit]
        if len(changes) == 1 and isinstance(changes[0], Check):
            continue
        assert table.commit(changes) == memory.commit(changes)
        assert _contents(table, example) == _contents(memory, example)
    assert _indexes(table, example) == _indexes(memory, example)


def test_rows_are_counted_by_the_beginning_of_their_key_and_up_to_one(store: Store) -> None:
    noise = random.Random(0)  # which cannot be packed: all take more than the megabyte that a table counts at once
    slots = [replace(SLOT, name=f"s{number:04d}", unit=noise.randbytes(20_000).hex()) for number in range(70)]
    for row in (*slots, SLOT, replace(SLOT, pool="other")):
        assert store.commit([Create(row)])
    pk, warm = collection("p"), "free#warm#"
    assert (store.count(pk, warm), store.count(pk, "free#"), store.count(pk, "held#")) == (70, 71, 0)
    assert store.count(pk, warm, upto=slots[40].key.sk) == 41
    assert store.count(pk, warm, upto="free#warm#s") == 0
