"""The API for users and operators: called by API Gateway."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.api.app import answer, resolver
from penstock.api.routers import ROUTERS

log = Logger()
bootstrap.prepare("store", "queues", "flows")
app = resolver(router.http for router in ROUTERS)


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request."""
    return answer(app, event, context)
