"""The sweep function: triggered by EventBridge each minute."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.usecases import sweep

log = Logger()
bootstrap.prepare("store", "queues", "flows", "objects")


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Sweep once."""
    done = asdict(sweep.sweep(bootstrap.aws()))
    log.info("swept", extra=done)
    return done
