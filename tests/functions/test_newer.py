"""Functions of two releases run side by side during a deployment.

What the release before has sent is taken, and what a newer one wrote is left to it.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Job
from penstock.kernel.errors import Newer
from penstock.kernel.rows import FORM, Key, Row
from tests.functions.service import Context, Service

ROOT = Path(__file__).parents[2]
SENT = [json.loads(line) for line in (ROOT / "tests/stored/released/messages.jsonl").read_text().splitlines()]
FLOW = (ROOT / "functions/attempt.asl.json").read_text()


def deliver(function: str, body: str) -> list[Any]:
    """Which messages of a batch of one are delivered again."""
    record = {"messageId": "0", "eventSource": "aws:sqs", "body": body, "attributes": {}, "receiptHandle": "r"}
    answer = importlib.import_module(function).handler({"Records": [record]}, Context())
    again: list[Any] = answer["batchItemFailures"]
    return again


@pytest.mark.parametrize("sent", SENT, ids=lambda sent: sent["of"])
def test_what_the_release_before_has_sent_is_taken(
    service: Service, monkeypatch: pytest.MonkeyPatch, sent: dict[str, str]
) -> None:
    function = sent["of"].split()[0]
    errors: list[object] = []
    monkeypatch.setattr(importlib.import_module(function).log, "error", lambda *said, **_: errors.append(said))
    assert deliver(function, sent["body"]) == []
    assert errors == []


@pytest.mark.parametrize("function", ["schedule", "factory", "well", "sweep", "github_work"])
def test_a_message_in_a_newer_form_is_delivered_again(service: Service, function: str) -> None:
    assert deliver(function, json.dumps({"form": FORM + 1, "unit": "w-1"})) != []


def test_a_flow_in_a_newer_form_is_not_misread(service: Service) -> None:
    job = service.submit()
    with pytest.raises(Newer):
        importlib.import_module("settle").handler({"form": FORM + 1, "job": job, "attempt": 1}, Context())


def test_the_flow_says_its_form() -> None:
    assert FLOW.count('"do": "acquire"') == FLOW.count(f'"form": {FORM},') == 2


def test_a_request_that_meets_a_newer_row_is_to_be_sent_again(service: Service) -> None:
    job = service.submit()
    get = service.twin.store.get

    def read(key: Key, kind: type[Row]) -> Row | None:
        if kind is Job:
            raise Newer
        return get(key, kind)

    service.twin.store.get = read  # type: ignore[method-assign, assignment]
    answer = service.ask("GET", f"/v1/jobs/{job}")
    assert (answer.status, answer.json["code"]) == (503, "newer")
