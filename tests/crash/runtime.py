"""The Lambda runtime, in this process: takes events from where they come and calls the real handlers with them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any
from urllib.parse import parse_qsl

from aws_lambda_powertools.event_handler.api_gateway import BaseRouter

from tests.crash.emulator import Task
from tests.crash.faults import Died, Mode, Plan, Seam, calm
from tests.crash.site import CONSUMERS, Site
from tests.functions.service import Context, request

FAILED = -1
"""The status of a request that no function answered: a gateway says 502 or 504."""


@dataclass
class Reply:
    """What a client of the HTTP API sees."""

    status: int
    body: Any

    @property
    def should_be_repeated(self) -> bool:
        """Whether a client that knows its trade asks again."""
        return self.status == FAILED or self.status == 429 or self.status >= 500


class Runtime:
    """Delivers events one at a time; `busy` are those whose handler has not returned yet."""

    def __init__(self, site: Site, plan: Plan = calm) -> None:
        self.site = site
        self.seam = site.hub.seam = Seam(site.wire, plan)
        self.busy: set[object] = set()
        self.woken: set[str] = set()

    def call(self, name: str, event: dict[str, Any], who: object) -> Any:
        """Call a function with an event. Raises Died, or whatever the function raises."""
        handler = importlib.import_module(name).handler
        self.woken.add(name)
        self.site.hub.forget()

        def run() -> Any:
            before = BaseRouter.__dict__.get("current_event")  # of the handler that this one runs in the middle of
            with self.seam.running(name), redirect_stdout(StringIO()):  # where Lambda reads metrics from
                try:
                    return handler(event, Context())
                finally:
                    BaseRouter.current_event = before  # type: ignore[assignment]

        outer, self.seam.again = self.seam.again, lambda: _quietly(run)
        self.busy.add(who)
        try:
            return run()
        finally:
            self.seam.again = outer
            self.busy.discard(who)

    def hook(self, who: object, body: str, headers: Mapping[str, str]) -> None:
        """A webhook. Its sender does not send it again: what is lost is asked for."""
        _quietly(lambda: self.call("github_webhook", request("POST", "/v1/github/webhook", body, headers, ()), who))

    def ask(self, who: object, method: str, path: str, token: str, body: Any = None, key: str = "") -> Reply:
        """One HTTP request."""
        name = "agent_api" if path.startswith("/v1/agent/") else "api"
        headers = {"authorization": f"Bearer {token}"} | ({"idempotency-key": key} if key else {})
        try:
            where, _, query = path.partition("?")
            given = self.call(name, request(method, where, body, headers, parse_qsl(query)), who)
        except Died:
            return Reply(FAILED, None)
        return Reply(given["statusCode"], json.loads(given.get("body") or "null"))

    def deliver(self) -> bool:
        """Deliver one message from one queue. False when there is none."""
        for name, url in self.site.urls.items():
            found = self.site.clients["sqs"].receive_message(QueueUrl=url, AttributeNames=["All"])
            for message in found.get("Messages", ()):
                self._take(name, url, message)
                return True
        return False

    def _take(self, name: str, url: str, message: dict[str, Any]) -> None:
        event = json.loads(message["Body"]) if name == "settle" else _batch(name, message)
        name = CONSUMERS.get(name, name)
        receipt = {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}
        before = self.seam.mode
        try:
            answer = self.call(name, event, message["MessageId"])
        except (Died, Exception):
            answer = {"batchItemFailures": [message["MessageId"]]}
        if not answer.get("batchItemFailures"):
            self.site.clients["sqs"].delete_message(**receipt)
        elif self.seam.mode not in (before, Mode.DIES_BEFORE):  # whoever fails later waits, as with SQS
            self.site.clients["sqs"].change_message_visibility(**receipt, VisibilityTimeout=0)

    def settle(self) -> bool:
        """Run the Lambda task of a flow that waits for it. False when none does."""
        if not self.site.flows.tasks:
            return False
        task: Task = self.site.flows.tasks.pop(0)
        try:
            self.call("settle", task.event, task)
        except (Died, Exception) as error:
            task.finish("Sandbox.Timedout" if isinstance(error, Died) else type(error).__name__)
        else:
            task.finish()
        self.site.flows.rest()
        return True

    def sweep(self) -> None:
        """What the rule does each minute. A sweep that fails is the next one's to make good."""
        _quietly(lambda: self.call("sweep", {}, "sweep"))

    def look(self) -> None:
        """What another rule does every five minutes: GitHub is asked for what never came."""
        _quietly(lambda: self.call("github_work", {}, "look"))


def _quietly(run: Callable[[], Any]) -> None:
    try:
        run()
    except (Died, Exception):
        return


def _batch(name: str, message: dict[str, Any]) -> dict[str, Any]:
    record = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:000000000000:{name}",
        "awsRegion": "us-east-1",
    }
    return {"Records": [record]}
