"""The sweep function: triggered by EventBridge each minute, and by SQS with what a sweep leaves to others."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.usecases import sweep

log = Logger()
bootstrap.prepare("store", "queues", "flows", "objects")


RESERVE = timedelta(seconds=10)
"""How long before the function is killed it begins nothing more."""


def step(message: dict[str, Any], context: LambdaContext) -> None:
    """Take what a sweep left, until shortly before the function is killed."""
    on = bootstrap.aws()
    sweep.go_on(on, message, on.world.now() + time_left(context))


def time_left(context: LambdaContext) -> timedelta:
    """For how long a call of the function may begin anything."""
    return timedelta(milliseconds=context.get_remaining_time_in_millis()) - RESERVE


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Sweep once, or take what a sweep left to a message."""
    if "Records" in event:
        return bootstrap.each(event, lambda message: step(message, context))
    done = asdict(sweep.sweep(bootstrap.aws(), time_left(context)))
    log.info("swept", extra=done)
    return done
