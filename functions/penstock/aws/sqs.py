"""Queues on SQS."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.kernel.rows import FORM

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


LONGEST_DELAY = 900
"""Seconds. Source: the SQS API reference, SendMessage, DelaySeconds."""


class SqsQueues:
    """Five queues: two for the scheduler, one for factories, one for wells, one for the sweep."""

    def __init__(self, client: SQSClient, schedule: str, serve: str, factory: str, well: str, sweep: str) -> None:
        self._client = client
        self._schedule = schedule
        self._serve = serve
        self._factory = factory
        self._well = well
        self._sweep = sweep

    def schedule(self, message: Mapping[str, Any]) -> None:
        """Send the scheduler a step."""
        self._send(self._schedule, message, 0)

    def serve(self, names: Sequence[str], group: str) -> None:
        """Have some pools served. The queue is a FIFO queue: of a group, one call at a time has messages.

        Each message is for itself: SQS drops one within five minutes of another with the same id of deduplication.
        """
        body = json.dumps({"form": FORM, "do": "serve", "pools": list(names), "group": group})
        group_id = hashlib.sha256(group.encode()).hexdigest()
        self._client.send_message(
            QueueUrl=self._serve, MessageBody=body, MessageGroupId=group_id, MessageDeduplicationId=uuid4().hex
        )

    def advance(self, unit: str, is_worker: bool, after: int = 0, maker: str = "") -> None:
        """Send the unit's factory or well its next step.

        A standard queue is fair to the groups of its messages: it delivers those of others first while one group takes
        much of the time of all. A message without a group is a group of its own.
        """
        url = self._factory if is_worker else self._well
        self._send(url, {"unit": unit}, min(after, LONGEST_DELAY), maker)

    def console(self, unit: str, by: str, maker: str = "") -> None:
        """Send a worker's factory the request. A release that does not know it takes the unit's next step, as for
        every message that names one, and writes no output.
        """
        self._send(self._factory, {"unit": unit, "do": "console", "by": by}, 0, maker)

    def power(self, host: str, after: int = 0, maker: str = "") -> None:
        """Send a host's factory the next step of switching it. A release that does not know this drops it."""
        self._send(self._factory, {"do": "power", "host": host}, min(after, LONGEST_DELAY), maker)

    def sweep(self, message: Mapping[str, Any]) -> None:
        """Leave a part of the sweep to another call of its function."""
        self._send(self._sweep, message, 0)

    def _send(self, url: str, message: Mapping[str, Any], delay: int, group: str = "") -> None:
        more: Any = {"MessageGroupId": group} if group else {}
        self._client.send_message(
            QueueUrl=url, MessageBody=json.dumps({"form": FORM, **message}), DelaySeconds=delay, **more
        )
