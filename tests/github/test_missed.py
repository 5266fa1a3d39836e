"""Deliveries that never came are asked for, and taken as if they had."""

from __future__ import annotations

from typing import Any

import github_work
import pytest

from penstock import bootstrap
from penstock.domain.github.deliveries import LIST_CHECK_KEY, ListCheck
from penstock.usecases.github import webhook
from tests.functions.service import Context
from tests.github.payloads import push
from tests.github.rig import A, B, Rig


def sent(rig: Rig, guid: str, payload: Any, *, event: str = "push", action: str | None = None, ago: float = 0) -> None:
    """GitHub sent something, some seconds ago: the latest stands first."""
    at = rig.now().timestamp() - ago
    item = {
        "id": 7000 + len(rig.fake.deliveries), "guid": guid, "redelivery": False, "status_code": 502, "event": event,
        "delivered_at": type(rig.now()).fromtimestamp(at, rig.now().tzinfo).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "action": action, "installation_id": 99, "repository_id": 55, "request": {"headers": {}, "payload": payload},
    }  # fmt: skip
    rig.fake.deliveries.insert(0, item)


def asked_for(rig: Rig) -> int:
    return len([path for _, path in rig.fake.asked if path.startswith("/app/hook/deliveries/")])


def test_what_never_came_is_taken_as_if_it_had(rig: Rig) -> None:
    sent(rig, "one", push(A))
    assert webhook.fetch_missed(rig.on) == 1
    rig.twin.run()
    row = rig.delivery("one")
    assert (row.outcome, row.missed) == (f"jobs of {A[:12]}", True)
    assert len(rig.all_jobs()) == 2
    assert webhook.fetch_missed(rig.on) == 0
    assert asked_for(rig) == 1


def test_what_came_is_not_asked_for_again(rig: Rig) -> None:
    rig.hook("push", push(A), id="one")
    sent(rig, "one", push(A))
    sent(rig, "two", {"zen": "x"}, event="ping")
    sent(rig, "three", {"action": "created"}, event="check_run", action="created")
    sent(rig, "not an id", push(A))
    assert (webhook.fetch_missed(rig.on), asked_for(rig)) == (0, 0)


def test_all_pages_are_looked_through(rig: Rig) -> None:
    rig.fake.page = 3
    for number in range(10):
        sent(rig, f"g{number}", push(A))
    assert webhook.fetch_missed(rig.on) == 10
    found = rig.on.store.get(LIST_CHECK_KEY, ListCheck)
    assert found is not None
    assert (found.at, found.found) == (rig.now(), 10)


def test_an_outage_longer_than_one_look_is_made_good_by_several(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "PAGES_MOST", 2)
    rig.fake.page = 3
    for number in range(7):
        sent(rig, f"g{number}", push(A))
    assert webhook.fetch_missed(rig.on) == 6
    assert rig.on.store.get(LIST_CHECK_KEY, ListCheck) is None  # not all was seen: nothing says that it was


def test_one_does_not_look_behind_the_last_look(rig: Rig) -> None:
    rig.fake.page = 1
    sent(rig, "old", push(A), ago=-60)
    webhook.fetch_missed(rig.on)
    rig.twin.pass_time(2 * 3600 + 60)
    for number in range(3):
        sent(rig, f"g{number}", push(B), ago=10)
    before = len(rig.fake.asked)
    assert webhook.fetch_missed(rig.on) == 3
    assert len(rig.fake.asked) - before == 3 + 4  # each, and the pages down to the first that is too old


def test_nothing_new_costs_nothing(rig: Rig) -> None:
    sent(rig, "one", push(A))
    webhook.fetch_missed(rig.on)
    first = rig.on.store.get(LIST_CHECK_KEY, ListCheck)
    rig.twin.pass_time(300)
    rig.fake.asked.clear()
    assert webhook.fetch_missed(rig.on) == 0
    assert rig.fake.asked == [("GET", "/app/hook/deliveries")]  # which says 304
    assert rig.on.store.get(LIST_CHECK_KEY, ListCheck) == first


def test_what_is_malformed_is_stored_and_not_asked_for_for_ever(rig: Rig) -> None:
    sent(rig, "bad", {"ref": 7})
    assert webhook.fetch_missed(rig.on) == 1
    assert rig.delivery("bad").outcome.startswith("malformed")
    sent(rig, "good", push(A))
    assert webhook.fetch_missed(rig.on) == 1
    assert asked_for(rig) == 2


def test_github_is_called_later_if_it_is_rate_limited_or_down(rig: Rig) -> None:
    sent(rig, "one", push(A))
    rig.fake.limit(120)
    assert webhook.fetch_missed(rig.on) == 0
    assert webhook.fetch_missed(rig.on) == 0
    assert rig.fake.rude == 1  # nobody calls until it is over
    rig.twin.pass_time(130)
    assert webhook.fetch_missed(rig.on) == 1


def test_the_function_looks_when_no_message_brings_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "aws", lambda: rig.on)
    sent(rig, "one", push(A))
    assert github_work.handler({"source": "aws.events"}, Context()) == {"found": 1}  # type: ignore[arg-type]


def test_messages_that_fail_come_again_and_strange_ones_do_not(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "aws", lambda: rig.on)
    rig.hook("push", push(A), id="one")
    rig.twin.queues.messages.clear()
    records = [record("1", '{"delivery": "one"}'), record("2", '{"what": 1}'), record("3", '{"check": "x"}')]
    told = github_work.handler({"Records": records}, Context())  # type: ignore[arg-type]
    assert told == {"batchItemFailures": [{"itemIdentifier": "3"}]}
    assert rig.delivery("one").outcome


def record(id: str, body: str) -> dict[str, Any]:
    source = {"eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:github", "awsRegion": "eu-west-1"}
    return {"messageId": id, "receiptHandle": "x", "body": body, "attributes": {}, "messageAttributes": {}, **source}
