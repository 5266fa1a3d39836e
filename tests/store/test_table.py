"""The Store's promises, kept by the table. What one call means is asked of moto; who wins a race, of the local cloud."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from moto import mock_aws

from penstock.domain.pools import Pool, Slot, SlotState, collection
from penstock.domain.rows import Check, Create, Delete, Replace, holds
from penstock.domain.users import Token, User, user_key
from penstock.store.table import Table

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
USER = User(name="ada", privileges=("target.lab",), created=NOW)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        index = [
            {
                "IndexName": name,
                "KeySchema": [{"AttributeName": h, "KeyType": "HASH"}, {"AttributeName": r, "KeyType": "RANGE"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            for name, h, r in (("due", "due_shard", "due"), ("listing", "list_key", "list_sort"))
        ]
        names = ("pk", "sk", "due_shard", "due", "list_key", "list_sort")
        boto3.client("dynamodb", "us-east-1").create_table(
            TableName="state",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            GlobalSecondaryIndexes=index,
        )
        yield Table("state", "us-east-1")


def test_a_row_comes_back_as_it_was(table: Table) -> None:
    assert table.commit([Create(USER)])
    assert table.get(USER.key, User) == replace(USER, version=1)
    assert table.get(user_key("bob"), User) is None


def test_another_kind_of_row_is_a_loud_mistake(table: Table) -> None:
    table.commit([Create(USER)])
    with pytest.raises(TypeError, match="holds a user, not a token"):
        table.get(USER.key, Token)


def test_every_condition_alone(table: Table) -> None:
    assert table.commit([Create(USER)])
    assert not table.commit([Create(USER)])
    one = replace(USER, version=1)
    assert table.commit([Replace(one, replace(one, privileges=()))])
    assert not table.commit([Replace(one, one)])
    assert not table.commit([Delete(one)])
    assert table.commit([Delete(replace(one, version=2))])
    assert not table.commit([Delete(replace(one, version=2))])


def test_a_commit_is_whole_or_not_at_all(table: Table) -> None:
    bob = replace(USER, name="bob")
    assert table.commit([Create(USER), Create(bob)])
    cid = replace(USER, name="cid")
    assert not table.commit([Create(cid), Check(replace(USER, version=9))])
    assert table.get(cid.key, User) is None
    assert table.commit([Create(cid), Check(replace(USER, version=1)), Delete(replace(bob, version=1))])
    assert table.get(bob.key, User) is None


def test_two_changes_of_one_row_are_a_mistake(table: Table) -> None:
    with pytest.raises(ValueError, match="same row"):
        table.commit([Create(USER), Delete(USER)])


def test_conditions_agree_with_their_twins(table: Table) -> None:
    """Each named condition holds in the table exactly when its pure twin says so."""
    for stored_version in (0, 1, 2):
        for assumed in (0, 1, 2):
            for kind in ("create", "replace", "delete"):
                _reset(table, stored_version)
                was = replace(USER, version=assumed)
                change = {"create": Create(USER), "replace": Replace(was, was), "delete": Delete(was)}[kind]
                stored = table.get(USER.key, User)
                assert table.commit([change]) == holds(change, stored), (kind, stored_version, assumed)


def _reset(table: Table, version: int) -> None:
    stored = table.get(USER.key, User)
    if stored:
        table.commit([Delete(stored)])
    if version:
        table.commit([Create(USER)])
    for number in range(1, version):
        was = replace(USER, version=number)
        table.commit([Replace(was, was)])


def test_a_collection_is_read_in_order_and_in_part(table: Table) -> None:
    slots = [Slot(pool="p", name=name, state=SlotState.FREE) for name in "cab"]
    table.commit([Create(slot) for slot in slots])
    table.commit([Create(Slot(pool="p", name="d", state=SlotState.HELD))])
    pk = collection("p")
    assert [slot.name for slot in table.find(pk, "free#", Slot)] == ["a", "b", "c"]
    assert [slot.name for slot in table.find(pk, "free#", Slot, limit=1, last=True)] == ["c"]
    assert [slot.name for slot in table.find(pk, "free#", Slot, after="free#a")] == ["b", "c"]
    assert [slot.name for slot in table.find(pk, "free#", Slot, limit=1, last=True, upto="free#b")] == ["b"]


def test_what_is_overdue_is_found_and_nothing_else(table: Table) -> None:
    pools = [Pool(name=name, limit=1, due=due) for name, due in (("a", NOW), ("b", None), ("c", NOW + timedelta(1)))]
    table.commit([Create(pool) for pool in pools])
    assert table.overdue(NOW, 10) == [("pool", pools[0].key)]


def test_listings_are_paged_in_both_directions(table: Table) -> None:
    pools = [Pool(name=name, limit=1) for name in ("a", "b", "c")]
    table.commit([Create(pool) for pool in pools])
    assert [pool.name for pool in table.listed("pools", Pool, limit=2)] == ["a", "b"]
    assert [pool.name for pool in table.listed("pools", Pool, after="b")] == ["c"]
    assert [pool.name for pool in table.listed("pools", Pool, after="b", newest=True)] == ["a"]
