"""GitHub's webhook, behind API Gateway: checks the signature, stores the delivery, and sends a message. It never calls
GitHub.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import bootstrap
from penstock.api.app import answer, reply, resolver
from penstock.kernel.errors import Refused
from penstock.usecases.github import webhook
from penstock.usecases.github.webhook import WebhookRequest

log = Logger()
bootstrap.prepare("store", "forge")
app = resolver()


@app.post("/v1/github/webhook")
def github_webhook() -> Response[Any]:
    headers = app.current_event.headers
    request = WebhookRequest(
        _body(),
        headers.get("x-hub-signature-256") or "",
        headers.get("x-github-delivery") or "",
        headers.get("x-github-event") or "",
    )
    return reply({"delivery": webhook.receive(bootstrap.aws(), request)}, 202)


def _body() -> bytes:
    """The unchanged body. Raises Refused 400 if it is not UTF-8: GitHub sends JSON."""
    try:
        return (app.current_event.decoded_body or "").encode()
    except ValueError:
        raise Refused(400, "malformed-json", "the body is not text in UTF-8") from None


@log.inject_lambda_context
@bootstrap.metered
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one delivery."""
    return answer(app, event, context)
