"""What the table makes of DynamoDB's answers: only who lost a race is told so; every fault is raised. [SLOT-1]"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.retries import standard
from pynamodb.exceptions import (
    CancellationReason,
    DeleteError,
    GetError,
    PutError,
    QueryError,
    TransactWriteError,
    UpdateError,
    VerboseClientError,
)

from penstock import listings
from penstock.aws import clock, dynamodb
from penstock.aws.dynamodb import Table, item_of, model
from penstock.domain.artifacts.artifacts import Artifact, Pin
from penstock.domain.artifacts.retention import Retention
from penstock.domain.github.deliveries import Pause
from penstock.domain.pools.pools import Claim, Pool, Slot, SlotState, collection
from penstock.kernel.errors import Throttled
from penstock.kernel.rows import Change, Check, Create, Delete, Due, Look, Place, Row
from penstock.testing.twin import Twin
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
    answering(table, kind("put", cause=refused("InternalServerError")))
    with pytest.raises(kind):
        table.commit([Create(ONE)])


@pytest.mark.parametrize("code", dynamodb.BUSY_ALONE)
def test_what_the_sdk_tried_again_in_vain_is_throttled(
    table: Table, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each code stands in the SDK's own table of what it tries again."""
    assert code in standard.ThrottledRetryableChecker._THROTTLED_ERROR_CODES
    answering(table, PutError("put", cause=refused(code)))
    with pytest.raises(Throttled):
        table.commit([Create(ONE)])
    answering(table, lost(code, []))
    with pytest.raises(Throttled):
        table.commit([Create(ONE), Create(TWO)])
    monkeypatch.setattr(table._item, "get", failing(GetError("get", cause=refused(code))))
    monkeypatch.setattr(table._item, "query", failing(QueryError("query", cause=refused(code))))
    with pytest.raises(Throttled):
        table.get(ONE.key, Slot)
    with pytest.raises(Throttled):
        table.find("a", "b", Slot)
    monkeypatch.setattr(table._item, "batch_get", failing(GetError("batch", cause=refused(code))))
    monkeypatch.setattr(table._item.due_index, "query", failing(QueryError("query", cause=refused(code))))
    monkeypatch.setattr(table._item, "update", failing(UpdateError("update", cause=refused(code))))
    with pytest.raises(Throttled):
        table.rows_at([ONE.key])
    with pytest.raises(Throttled):
        list(table.overdue("pool.0", NOW))
    with pytest.raises(Throttled, match="a move in the due index"):
        table.look_later(Due(Look(NOW, 0, "pool.0"), ONE.key), Look(NOW, 1), None)


@pytest.mark.parametrize("code", dynamodb.CONFLICT_CODES)
def test_an_entry_that_meets_another_write_stays(table: Table, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table._item, "update", failing(UpdateError("update", cause=refused(code))))
    assert not table.look_later(Due(Look(NOW, 0, "pool.0"), ONE.key), Look(NOW, 1), None)


def test_an_entry_that_cannot_be_moved_is_a_fault(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table._item, "update", failing(UpdateError("update", cause=refused("InternalServerError"))))
    with pytest.raises(UpdateError):
        table.look_later(Due(Look(NOW, 0, "pool.0"), ONE.key), Look(NOW, 1), None)


def test_the_index_has_a_time_and_after_it_how_many_nudges_there_were() -> None:
    """Text that sorts by time, whatever the number."""
    time = NOW.isoformat(timespec="milliseconds")
    for look, text in (
        (Look(NOW), time),
        (Look(NOW, 12), f"{time}#12"),
        (Look(NOW, 0, "", "running"), f"{time}@running"),
        (Look(NOW, 1, "", "running"), f"{time}#1@running"),
    ):
        assert dynamodb.look_text(look) == text
        assert dynamodb.look_of(text, "pool.3") == look
        assert dynamodb.look_of(text, "pool.3").shard == "pool.3"
        assert dynamodb.look_of(text, "pool.3").tag == look.tag


def test_a_row_that_cannot_be_read_is_left_out(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    assert table.commit([Create(ONE), Create(TWO)])
    table._item(*ONE.key).update(actions=[table._item.body.set("{")], add_version_condition=False)
    assert list(table.rows_at([ONE.key, TWO.key])) == [TWO.key]


def test_a_read_that_failed_otherwise_is_raised(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table._item, "get", failing(GetError("get", cause=refused("InternalServerError"))))
    with pytest.raises(GetError):
        table.get(ONE.key, Slot)


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


@dataclass
class Wire:
    """Answers transactions by a list of reasons each; after them, the emulator does. Keeps what was sent and waited."""

    reasons: list[tuple[str, ...]] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    waited: list[int] = field(default_factory=list)

    def before_call(self, model: Any, params: Any, **_: Any) -> Any:
        """What botocore asks before it sends, so that the emulator does nothing that is answered otherwise here."""
        if model.name != "TransactWriteItems":
            return None
        self.sent.append(json.loads(params["body"]))
        if not self.reasons:
            return None
        told = [{"Code": code, "Message": code} for code in self.reasons.pop(0)]
        left = len(self.sent[-1]["TransactItems"]) - len(told)
        error = {"Code": "TransactionCanceledException", "Message": "cancelled"}
        answer = {"Error": error, "CancellationReasons": [*told, *[{"Code": "None"}] * left], "ResponseMetadata": {}}
        return SimpleNamespace(status_code=400), answer


@pytest.fixture
def wire(table: Table, monkeypatch: pytest.MonkeyPatch) -> Wire:
    made = Wire()
    table._connection.client.meta.events.register_first("before-call.dynamodb.*", made.before_call)
    monkeypatch.setattr(clock, "back_off", made.waited.append)
    return made


BUSY = [
    ("ThrottlingError",),
    ("ProvisionedThroughputExceeded",),
    ("ThrottlingError", "TransactionConflict"),
]


@pytest.mark.parametrize("reasons", BUSY)
def test_a_throttled_transaction_is_sent_again_by_us_for_no_sdk_does(
    table: Table, wire: Wire, reasons: tuple[str, ...]
) -> None:
    assert "TransactionCanceledException" not in standard.ThrottledRetryableChecker._THROTTLED_ERROR_CODES
    wire.reasons = [reasons] * 3
    assert table.commit([Create(ONE), Create(TWO)])
    assert (len(wire.sent), wire.waited) == (4, [0, 1, 2])
    tokens = {each["ClientRequestToken"] for each in wire.sent}
    assert len(tokens) == 4, "a cancelled transaction is over: the next is a new one"


@pytest.mark.parametrize("reasons", BUSY)
def test_a_transaction_that_stays_throttled_is_for_another_time(
    table: Table, wire: Wire, reasons: tuple[str, ...]
) -> None:
    wire.reasons = [reasons] * 99
    with pytest.raises(Throttled, match="a commit of 2 rows was throttled 7 times"):
        table.commit([Create(ONE), Create(TWO)])
    assert (len(wire.sent), wire.waited) == (7, [0, 1, 2, 3, 4, 5])
    wire.reasons = []
    assert table.get(ONE.key, Slot) is None


@pytest.mark.parametrize(
    "reasons",
    [("ThrottlingError", "ConditionalCheckFailed"), (dynamodb.GONE, dynamodb.MET, *dynamodb.BUSY)],
    ids=["one reason of each kind", "every reason"],
)
def test_a_throttled_transaction_that_also_lost_its_race_is_not_sent_again(
    table: Table, wire: Wire, reasons: tuple[str, ...]
) -> None:
    wire.reasons = [reasons]
    assert not table.commit([Create(slot(str(number))) for number in range(4)])
    assert (len(wire.sent), wire.waited) == (1, [])


def test_one_change_is_a_plain_write_and_no_transaction(table: Table, wire: Wire) -> None:
    """A transaction costs twice as much."""
    assert table.commit([Create(ONE)])
    assert wire.sent == []
    assert table.commit([Create(TWO), Create(slot("3"))])
    assert len(wire.sent) == 1


def test_the_waits_of_a_throttled_transaction_fit_into_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has 29 s, and makes several commits."""
    waited: list[float] = []
    monkeypatch.setattr(clock.time, "sleep", waited.append)
    monkeypatch.setattr(clock.RANDOM, "uniform", lambda least, most: most)
    for tries in range(dynamodb.THROTTLED_TRIES - 1):
        clock.back_off(tries)
    assert waited == [0.1, 0.2, 0.4, 0.8, 1, 1]
    clock.back_off(9)
    assert waited[-1] == 1


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
        ("TransactionCanceledException", ["ConditionalCheckFailed", "ValidationError"]),
        ("TransactionCanceledException", ["ThrottlingError", "ValidationError"]),
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


@pytest.mark.parametrize("after", ["wait#~", "z"])
def test_what_stands_behind_a_prefix_is_asked_of_nobody(
    table: Table, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """DynamoDB refuses a range whose end comes before its beginning."""
    monkeypatch.setattr(table._item, "query", lambda *given, **named: pytest.fail("it was asked"))
    assert table.find("any", "wait#", Claim, after=after) == []


def test_a_row_that_went_after_it_was_listed_is_left_out(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index says that it is there, and the read that follows does not find it. A short page would be the last."""
    assert table.commit([Create(pool(name=name)) for name in ("a", "b", "c", "d")])
    batch_get = table._item.batch_get
    monkeypatch.setattr(table._item, "batch_get", lambda keys: batch_get([key for key in keys if key.pk != "pool#b"]))
    assert [row.name for row in table.listed("pools", Pool)] == ["a", "c", "d"]
    assert [row.name for row in table.listed("pools", Pool, limit=2)] == ["a", "c"]


def test_a_row_that_left_a_listing_is_left_out(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index still has it, and the row itself is listed no more, or elsewhere."""
    names = ("a", "b", "c")
    assert table.commit([Create(pool(name=name)) for name in names])
    place = Pool.place.fget
    moved = {"a": None, "b": Place("other pools", "b")}
    monkeypatch.setattr(Pool, "place", property(lambda row: moved[row.name] if row.name in moved else place(row)))
    assert [row.name for row in table.listed("pools", Pool, limit=1)] == ["c"]


def test_a_listing_is_read_page_by_page_to_its_end(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "PAGE", 2)
    names = ["a", "b", "c", "d"]
    assert table.commit([Create(pool(name=name)) for name in names])
    on = replace(Twin().on, store=table)
    assert [row.name for row in listings.every(on, "pools", Pool)] == names


def test_a_transaction_deletes_what_it_says_and_nothing_it_checks(table: Table) -> None:
    assert table.commit([Create(ONE), Create(TWO)])
    first, second = (table.get(row.key, Slot) for row in (ONE, TWO))
    assert first
    assert second
    assert table.commit([Delete(first), Create(slot("3")), Check(second)])
    assert table.get(ONE.key, Slot) is None
    assert table.get(TWO.key, Slot) == second


def test_what_is_due_is_told_by_where_it_stands(table: Table) -> None:
    """A retention stands in its job's collection beside its artifacts, and is no artifact."""
    rows: list[Row] = [
        Artifact(id="A1.J1", path="/work/it", size=1, sha256="00", by="ada", time=NOW, due=NOW),
        Pin(artifact="A1.J1", by="ada", reason="", since=NOW, until=NOW),
        Retention(job="J1", until=NOW),
    ]
    assert table.commit([Create(pool(due=NOW)), *map(Create, rows)])
    for later, expected in ((False, [("pool", pool().key)]), (True, [(row.kind, row.key) for row in rows])):
        found = [due for shard in table.shards(later=later) for due in table.overdue(shard, NOW)]
        assert sorted((due.kind, due.key) for due in found) == sorted(expected)


def test_dynamodb_deletes_a_row_that_expires_and_no_other() -> None:
    of = model("state", "eu-central-1")
    assert item_of(Pause(installation=9, until=NOW), 1, of).ttl == int(NOW.timestamp())
    assert item_of(pool(), 1, of).ttl is None


def test_only_what_no_field_has_is_kept_as_unknown() -> None:
    """Else a field that has its default again would get back what was read."""
    body = json.loads(dynamodb.dump(replace(ONE, fence=2)))
    read = dynamodb.load(Slot.kind, json.dumps(body | {"later": {"a": [1]}}), 1)
    assert read.unknown == {"later": {"a": [1]}}
    assert isinstance(read, Slot)
    assert json.loads(dynamodb.dump(replace(read, fence=0))) == json.loads(dynamodb.dump(ONE)) | read.unknown
    assert dynamodb.load(Slot.kind, json.dumps(body), 1).unknown is None
