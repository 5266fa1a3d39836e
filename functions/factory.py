"""The factory function: workers are created, checked and destroyed by the drivers of the site's factories. Triggered by
SQS.

Its queue also carries EventBridge's events about machines, if the stack has rules for them.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.usecases.units import advance, cloud_events, console
from penstock.usecases.workers import power

log = Logger()
bootstrap.prepare("store", "queues", "flows")


def step(message: dict[str, Any]) -> None:
    """Take the next step of the unit or host that a message names, write a console, or handle a cloud's event."""
    match message:
        case {"do": "console", "unit": str(unit), "by": str(by)}:
            console.read(bootstrap.aws(), unit, by)
        case {"do": "power", "host": str(host)}:
            power.step(bootstrap.aws(), host)
        case {"unit": str(unit)}:
            advance.advance(bootstrap.aws(), unit)
        case {"source": str(), "detail": dict()}:
            cloud_events.handle(bootstrap.aws(), message)
        case _:
            log.error("unknown message")


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take the steps of a batch; those that fail are delivered again."""
    return bootstrap.each(event, step)
