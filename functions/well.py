"""The well function: resources are created, renewed, cleaned and destroyed by the drivers of the site's wells.
Triggered by SQS.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.usecases.units import advance

log = Logger()
bootstrap.prepare("store", "queues", "flows")


def step(message: dict[str, Any]) -> None:
    """Take the next step of the unit that a message names."""
    advance.advance(bootstrap.aws(), message["unit"])


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take the steps of a batch; those that fail are delivered again."""
    return bootstrap.each(event, step)
