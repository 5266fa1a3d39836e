"""What the emulator never answers by itself, at botocore's edge; and, for control, a store without its conditions.

The emulator does one thing after the other, so nothing is ever throttled and no transaction meets another. AWS does
both, and an answer may be lost on its way after the write was made.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ReadTimeoutError
from pynamodb.connection.base import Connection

from penstock.aws import dynamodb

WRITES = ("PutItem", "DeleteItem", "TransactWriteItems")


@dataclass(frozen=True)
class Rates:
    """How often: a write meets a transaction; a request is throttled; an answer is lost; a transaction is cancelled
    because a partition is busy.
    """

    conflict: float = 0.02
    throttle: float = 0.001
    lose: float = 0.001
    busy: float = 0.001


def install(rates: Rates, dice: random.Random) -> None:
    """Let every connection of this process's store have these faults."""

    def before_send(self: Connection, request: Any, event_name: str, **_: Any) -> AWSResponse | None:
        operation = event_name.rpartition(".")[2]
        if operation in WRITES and dice.random() < rates.conflict:
            return _conflict(request, operation)
        if operation == "TransactWriteItems" and dice.random() < rates.busy:
            return cancelled(request, "ThrottlingError")
        if dice.random() < rates.throttle:
            return _answer(request, "ThrottlingException", {})
        if dice.random() < rates.lose:
            self.client._endpoint.http_session.send(request)  # it is done, and nobody is told
            raise ReadTimeoutError(endpoint_url=request.url)
        return None

    Connection._before_send = before_send  # type: ignore[assignment,method-assign]


def _conflict(request: Any, operation: str) -> AWSResponse:
    if operation != "TransactWriteItems":
        return _answer(request, "TransactionConflictException", {})
    return cancelled(request, "TransactionConflict")


def cancelled(request: Any, *codes: str) -> AWSResponse:
    """The answer that a transaction was cancelled, for the reasons of its first items."""
    items = len(json.loads(request.body)["TransactItems"])
    reasons = [{"Code": code, "Message": "as a busy AWS would answer"} for code in codes]
    nothing = [{"Code": "None"}] * (items - len(codes))
    return _answer(request, "TransactionCanceledException", {"CancellationReasons": reasons + nothing})


def _answer(request: Any, code: str, more: dict[str, Any]) -> AWSResponse:
    answer = AWSResponse(request.url, 400, {"content-type": "application/x-amz-json-1.0"}, None)
    told = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "as a busy AWS would answer", **more}
    answer._content = json.dumps(told).encode()
    return answer


def drop(condition: str) -> None:
    """Take a condition away from the store of this process: `still`, or `all` of them."""
    setattr(dynamodb, "unchanged", lambda was: None)  # noqa: B010
    if condition == "all":
        setattr(dynamodb, "absent", lambda: None)  # noqa: B010
