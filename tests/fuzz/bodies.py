"""Readers of what agents and GitHub send: a body is refused with the one error that there is, or becomes rows."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from penstock.api import app, body, logs, openapi
from penstock.api.logs import EventPage
from penstock.api.workers import AgentEvents, AgentFailure, AgentFinish
from penstock.aws import dynamodb
from penstock.domain.github import commits
from penstock.domain.github.deliveries import ACTIONS, Delivery
from penstock.domain.jobs.failures import from_agent
from penstock.domain.logs.logs import LogLimits, append_agent_lines
from penstock.domain.logs.logs import events as numbered
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Row
from penstock.system import NoForge
from penstock.testing.twin import Twin
from penstock.usecases.github import webhook as github_webhook
from penstock.usecases.github.webhook import WebhookRequest
from penstock.usecases.workers.agents import parse_lines
from tests.functions.service import StrictStore

MOST = LogLimits(events=100, bytes=4096)
"""How much of a job's log is kept here: little, so that a batch fills it."""

BODIES = [operation.body for operation in openapi.agents() if operation.body]
NAMES = (*sorted(ACTIONS), "ping")
REFUSED = {400, 401, 413, 422}


def agent(data: bytes) -> None:
    """Any body of an agent, which its first byte chooses; odd ones come in Base64, as what is not text does."""
    kind, raw = BODIES[data[0] % len(BODIES)] if data else AgentFinish, data[1:]
    found = _read(kind, raw, is_encoded=bool(data and data[0] & 128))
    if isinstance(found, AgentFinish) and found.failure:
        _failure(found.failure)


def _failure(said: AgentFailure) -> None:
    found = from_agent(said.kind, said.evidence, said.task, said.task_name, said.lines)
    assert found is None or len(repr(found)) < limits.BODY_BYTES // 4


def events(data: bytes) -> None:
    """A batch of lines: kept as a row, it comes back the same and is shown to people; once more it is nothing new."""
    found = _read(AgentEvents, data)
    if not isinstance(found, AgentEvents):
        return
    try:
        lines = parse_lines(found.events)
    except Refused as refused:
        _declared(refused)
        return
    batch = append_agent_lines(None, "job", 1, found.first, lines, MOST)
    if batch is None:
        return
    assert batch.size <= MOST.bytes + 2 * 1024**2
    assert append_agent_lines(batch, "job", 1, found.first, lines, MOST) is None
    _kept(batch)
    shown = [logs.show(each) for each in numbered(batch)]
    assert all(each.time.endswith("Z") for each in shown), "people are shown times in UTC"
    assert json.loads(app.reply(EventPage(shown, 1, len(shown), "running", None, None)).body)["items"]


def webhook(data: bytes) -> None:
    """A signed delivery, whose first byte chooses its kind: stored so that it can be read, and only once."""
    on, raw = _with_forge(), data[1:]
    on.store.rows.clear()
    said = "sha256=" + hmac.new(b"secret", raw, hashlib.sha256).hexdigest()
    hook = WebhookRequest(raw, said, "d-1", NAMES[data[0] % len(NAMES)] if data else "push")
    try:
        told = github_webhook.receive(on, hook)
    except Refused as refused:
        _declared(refused)
        told = ""
    for row in list(on.store.rows.values()):
        _kept(row)
        if isinstance(row, Delivery) and row.event:
            _kept(commits.new_set(row.event, row.received))
    assert told != "stored" or github_webhook.receive(on, hook) == "known"


def _read(kind: type[Any], raw: bytes, *, is_encoded: bool = False) -> Any:
    """A body as the handler gets it, or None for one that is refused."""
    text = base64.b64encode(raw).decode() if is_encoded else raw.decode("utf-8", "replace")
    event = APIGatewayProxyEventV2({"body": text, "isBase64Encoded": is_encoded})
    try:
        text = app.text(SimpleNamespace(current_event=event))  # type: ignore[arg-type]
        found = body.parse(kind, text, 4 * limits.EVENT_BATCH_BYTES)
    except Refused as refused:
        _declared(refused)
        return None
    assert isinstance(found, kind)
    return found


def _declared(refused: Refused) -> None:
    """A refusal is one that a client may get, and no longer than somebody reads."""
    assert refused.status in REFUSED
    assert len(refused.detail) < 100_000


def _kept(row: Row) -> None:
    """A row comes back from the table as it went there."""
    text = dynamodb.dump(row)
    text.encode()
    assert dynamodb.load(row.kind, text, row.version) == row


class Signed(NoForge):
    """A front end for GitHub that only knows its secret."""

    def enqueue(self, message: Mapping[str, Any], after: int = 0) -> None:
        """Nobody takes the next step here."""

    def secret(self) -> str:
        return "secret"


@cache
def _with_forge() -> Any:
    return replace(Twin().on, store=StrictStore(), forge=Signed())
