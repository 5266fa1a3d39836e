"""Batches of messages from SQS: each is a step, and a step that fails is delivered again by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

log = Logger(child=True)


def each(event: dict[str, Any], context: LambdaContext, step: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Take a step per message and tell SQS which failed."""

    def one(record: SQSRecord) -> None:
        try:
            step(json.loads(record.body))
        except Exception:
            log.exception("a step failed; its message will be delivered again")
            raise

    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    return dict(process_partial_response(event, one, processor, context))
