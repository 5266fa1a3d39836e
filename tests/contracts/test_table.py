"""What the table makes of DynamoDB's answers: only who lost a race is told so; every fault is raised. [SLOT-1]"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from pynamodb.exceptions import CancellationReason, DeleteError, PutError, TransactWriteError, VerboseClientError

from penstock.aws.dynamodb import Table, item_of, model
from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.retention import Retention
from penstock.domain.artifacts.volumes import Volume, VolumeState
from penstock.domain.github.deliveries import Pause
from penstock.domain.pools.pools import Claim, Pool, Slot, SlotState, collection
from penstock.kernel.rows import Change, Check, Create, Delete, Row
from tests.domain.helpers import claim, pool, slot

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ONE, TWO = slot("1"), slot("2")


def refused(code: str, reasons: Sequence[str] = ()) -> VerboseClientError:
    """PynamoDB's error for an answer of DynamoDB."""
    answer: Any = {"Error": {"Code": code, "Message": code}}
    told = [CancellationReason(code=reason) for reason in reasons]
    return VerboseClientError(answer, "TransactWriteItems", {"table_name": "state"}, cancellation_reasons=told)


def answering(table: Table, error: Exception) -> None:
    def fail(_: object) -> None:
        raise error

    table._write = table._transact = fail  # type: ignore[method-assign]


@pytest.mark.parametrize("kind", [PutError, DeleteError])
def test_one_write_that_lost_its_race_says_so(table: Table, kind: type[Any]) -> None:
    answering(table, kind("put", cause=refused("ConditionalCheckFailedException")))
    assert not table.commit([Create(ONE)])


@pytest.mark.parametrize("kind", [PutError, DeleteError])
def test_one_write_that_failed_is_no_lost_race(table: Table, kind: type[Any]) -> None:
    answering(table, kind("put", cause=refused("ProvisionedThroughputExceededException")))
    with pytest.raises(kind):
        table.commit([Create(ONE)])


@pytest.mark.parametrize(
    ("code", "reasons"),
    [
        ("TransactionCanceledException", ["ConditionalCheckFailed"]),
        ("TransactionCanceledException", ["TransactionConflict", "ConditionalCheckFailed"]),
        ("TransactionConflictException", []),
    ],
)
def test_a_transaction_that_lost_its_race_says_so(table: Table, code: str, reasons: list[str]) -> None:
    answering(table, lost(code, reasons))
    assert not table.commit([Create(ONE), Create(TWO)])


@pytest.mark.parametrize(
    ("code", "reasons"),
    [
        ("TransactionCanceledException", []),
        ("TransactionCanceledException", ["ConditionalCheckFailed", "ThrottlingError"]),
        ("TransactionCanceledException", ["ItemCollectionSizeLimitExceeded"]),
        ("InternalServerError", []),
    ],
)
def test_a_transaction_that_failed_is_no_lost_race(table: Table, code: str, reasons: list[str]) -> None:
    answering(table, lost(code, reasons))
    with pytest.raises(TransactWriteError):
        table.commit([Create(ONE), Create(TWO)])


def lost(code: str, reasons: list[str]) -> TransactWriteError:
    return TransactWriteError("transact", cause=refused(code, reasons))


def test_what_stands_before_a_prefix_is_not_found(table: Table) -> None:
    changes: list[Change] = [Create(pool()), Create(slot("1", SlotState.HELD)), Create(claim())]
    assert table.commit(changes)
    assert [type(row) for row in table.find(collection("resource/bench"), "wait#", Claim)] == [Claim]
    assert [type(row) for row in table.find(collection("resource/bench"), "pool", Pool)] == [Pool]


def test_a_row_that_went_after_it_was_listed_is_left_out(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index says that it is there, and the read that follows does not find it."""
    assert table.commit([Create(pool()), Create(pool(name="other"))])
    batch_get = table._item.batch_get
    monkeypatch.setattr(table._item, "batch_get", lambda keys: batch_get([key for key in keys if "other" in key[0]]))
    assert [row.name for row in table.listed("pools", Pool)] == ["other"]


def test_a_transaction_deletes_what_it_says_and_nothing_it_checks(table: Table) -> None:
    assert table.commit([Create(ONE), Create(TWO)])
    first, second = (table.get(row.key, Slot) for row in (ONE, TWO))
    assert first
    assert second
    assert table.commit([Delete(first), Create(slot("3")), Check(second)])
    assert table.get(ONE.key, Slot) is None
    assert table.get(TWO.key, Slot) == second


def test_what_is_due_is_told_by_where_it_stands(table: Table) -> None:
    """A volume stands in its artifact's collection, and is no artifact."""
    rows: list[Row] = [
        Artifact(id="A1", path="/work/it", size=1, sha256="00", by="ada", time=NOW, due=NOW),
        Volume(artifact="A1", state=VolumeState.CREATING, since=NOW, due=NOW),
        Retention(job="J1", until=NOW),
    ]
    assert table.commit([Create(pool(due=NOW)), *map(Create, rows)])
    assert table.overdue(NOW, 10) == [("pool", pool().key)]
    found = table.overdue(NOW, 10, later=True)
    assert sorted(found) == [("artifact", rows[0].key), ("retention", rows[2].key), ("volume", rows[1].key)]


def test_dynamodb_deletes_a_row_that_expires_and_no_other() -> None:
    of = model("state", "eu-central-1")
    assert item_of(Pause(installation=9, until=NOW), 1, of).ttl == int(NOW.timestamp())
    assert item_of(pool(), 1, of).ttl is None
