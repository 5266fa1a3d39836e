"""The front end for GitHub: triggered by SQS, and every few minutes to fetch missed deliveries."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.usecases.github import steps, webhook

log = Logger()
bootstrap.prepare("store", "queues", "forge")


def step(message: dict[str, Any]) -> None:
    """Take the step that a message names."""
    if not steps.step(bootstrap.aws(), message):
        log.error("unknown message")


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take the steps of a batch, or fetch missed deliveries."""
    if "Records" in event:
        return bootstrap.each(event, step)
    found = webhook.fetch_missed(bootstrap.aws())
    log.info("fetched missed deliveries", extra={"found": found})
    return {"found": found}
