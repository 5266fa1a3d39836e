"""The API for workers' agents: called by API Gateway. A worker acts only for the attempt that it was made for."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.api.app import answer, resolver
from penstock.api.workers import router

log = Logger()
bootstrap.prepare("store", "queues", "flows", "objects")
app = resolver([router.http])


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request."""
    return answer(app, event, context)
