"""Users and operators: woken by API Gateway."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.web import artifacts, caches, canaries, github, identity, jobs, proving, published, site, units, values
from penstock.web.entry import answer, document, resolver

log = Logger()
app = resolver()
app.include_router(artifacts.router)
app.include_router(caches.router)
app.include_router(canaries.router)
app.include_router(github.router)
app.include_router(identity.router)
app.include_router(jobs.router)
app.include_router(proving.router)
app.include_router(published.router)
app.include_router(site.router)
app.include_router(units.router)
app.include_router(values.router)


@app.get("/v1/openapi.json")
def get_openapi() -> Response[Any]:
    return Response(200, "application/json", document())


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request."""
    return answer(app, event, context)
