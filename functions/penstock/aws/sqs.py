"""Queues on SQS, and the handling of their batches: each message is a step, and SQS delivers failed ones again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


LONGEST_DELAY = 900
"""Seconds. Source: the SQS API reference, SendMessage, DelaySeconds."""


class SqsQueues:
    """Three queues: one for the scheduler, one for factories, one for wells."""

    def __init__(self, client: SQSClient, schedule: str, factory: str, well: str) -> None:
        self._client = client
        self._schedule = schedule
        self._factory = factory
        self._well = well

    def schedule(self, message: Mapping[str, Any]) -> None:
        """Send the scheduler a step."""
        self._send(self._schedule, message, 0)

    def advance(self, unit: str, is_worker: bool, after: int = 0) -> None:
        """Send the unit's factory or well its next step."""
        self._send(self._factory if is_worker else self._well, {"unit": unit}, min(after, LONGEST_DELAY))

    def _send(self, url: str, message: Mapping[str, Any], delay: int) -> None:
        self._client.send_message(QueueUrl=url, MessageBody=json.dumps(message), DelaySeconds=delay)


log = Logger(child=True)


def each(event: dict[str, Any], context: LambdaContext, step: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Take one step per message, and return to SQS which failed."""

    def one(record: SQSRecord) -> None:
        try:
            step(json.loads(record.body))
        except Exception:
            log.exception("a step failed; its message will be delivered again")
            raise

    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    return dict(process_partial_response(event, one, processor, context))
