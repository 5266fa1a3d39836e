"""What decisions rest on is read consistently: so it is asked for on the wire. [QUEUE-1] [SLOT-1]

No emulator shows what an eventually consistent read may miss, so the requests themselves are looked at.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.awsrequest import AWSRequest
from botocore.client import BaseClient

from penstock.aws.dynamodb import Table
from penstock.domain.pools.pools import Slot, collection
from penstock.kernel.rows import Create
from tests.domain.helpers import slot

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The operations that go to DynamoDB, with their bodies."""
    found: list[tuple[str, dict[str, Any]]] = []
    send = BaseClient._make_api_call

    def recording(client: Any, operation: str, given: dict[str, Any]) -> Any:
        def record(request: AWSRequest, **_: Any) -> None:
            found.append((operation, json.loads(request.body)))

        client.meta.events.register_first("before-sign.dynamodb", record, unique_id="recorded")
        try:
            return send(client, operation, given)
        finally:
            client.meta.events.unregister("before-sign.dynamodb", unique_id="recorded")

    monkeypatch.setattr(BaseClient, "_make_api_call", recording)
    return found


@pytest.mark.parametrize("is_there", [True, False])
def test_a_row_is_read_consistently(table: Table, asked: list[Any], is_there: bool) -> None:
    if is_there:
        table.commit([Create(slot("1"))])
    asked.clear()
    assert bool(table.get(slot("1").key, Slot)) == is_there
    assert [(operation, body.get("ConsistentRead")) for operation, body in asked] == [("GetItem", True)]


@pytest.mark.parametrize(
    "how", [{}, {"limit": 1}, {"last": True}, {"after": "free#cold#0"}, {"upto": "free#cold#9"}], ids=str
)
def test_a_collection_is_read_consistently_page_by_page(table: Table, asked: list[Any], how: Any) -> None:
    table.commit([Create(slot(str(number))) for number in range(3)])
    asked.clear()
    table.find(collection(slot("1").pool), "free#", Slot, **how)
    assert asked
    assert {(operation, body.get("ConsistentRead")) for operation, body in asked} == {("Query", True)}


def test_an_index_cannot_be_read_consistently(table: Table, asked: list[Any]) -> None:
    """DynamoDB refuses that: who reads an index reads the row itself before anything is decided."""
    list(table.overdue("job.0", NOW))
    assert [(operation, body.get("ConsistentRead")) for operation, body in asked] in (
        [("Query", False)], [("Query", None)]
    )  # fmt: skip


def test_rows_that_are_overdue_are_read_consistently(table: Table, asked: list[Any]) -> None:
    """The sweep decides by them whether somebody is nudged."""
    table.rows_at([slot("1").key])
    assert [next(iter(body["RequestItems"].values()))["ConsistentRead"] for _, body in asked] == [True]
