"""Answers requests, whatever happens: what a client sends never ends in a 500."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.api_gateway import BaseRouter
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock.kernel.errors import Moved, Refused, Throttled

log = Logger(child=True)

TITLES = {
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict", 410: "Gone",
    413: "Content Too Large", 422: "Unprocessable Content", 429: "Too Many Requests", 500: "Internal Server Error",
    503: "Service Unavailable",
}  # fmt: skip
RETRY_AFTER = 1
"""After how many seconds a client should try again when rows would not stop changing."""

FAULTS = 100
"""How many errors a refusal lists at most."""


@dataclass(frozen=True)
class FaultView:
    """One thing that is wrong with a request."""

    message: Annotated[str, "What is wrong."]
    where: Annotated[str | None, "The key in the body, as a path like `resources[0]`; null if it is not one key."] = (
        None
    )
    file: Annotated[str | None, "The file that the error is in: a job file or a site's configuration."] = None
    line: Annotated[int | None, "The line in that file, or in the body. Lines count from 1."] = None
    column: Annotated[int | None, "The column in that line. Columns count from 1."] = None
    hint: Annotated[str | None, "What was probably meant, or what is possible."] = None


@dataclass(frozen=True)
class ProblemView:
    """A refusal, as RFC 9457 describes it."""

    type: Annotated[str, "Always `about:blank`."]
    title: Annotated[str, "The HTTP status in words."]
    status: Annotated[int, "The HTTP status."]
    code: Annotated[str, "A stable code for programs, such as `job-not-found`."]
    detail: Annotated[str, "What is wrong, in a sentence."]
    errors: Annotated[list[FaultView], "What is wrong in detail; at most 100 errors."]


def resolver(routers: Iterable[BaseRouter] = ()) -> APIGatewayHttpResolver:
    """A resolver of some routers' routes that answers every refusal as RFC 9457 says."""
    app = APIGatewayHttpResolver()
    app.exception_handler(Refused)(problem)
    app.exception_handler(Moved)(_busy)
    app.exception_handler(Throttled)(_throttled)
    app.not_found(_no_route)
    for router in routers:
        app.include_router(router)  # type: ignore[arg-type]
    return app


def answer(app: APIGatewayHttpResolver, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request. An error of ours is logged in full; the client gets a sentence and the id of the log entry."""
    try:
        if any(not char.isprintable() for char in str(event.get("rawPath", ""))):
            raise Refused(404, "not-found", "there is nothing at a path with characters that cannot be printed")
        event = {**event, "rawPath": str(event.get("rawPath", "")).replace("%2F", "/").replace("%2f", "/")}
        return app.resolve(event, context)
    except Refused as refused:
        return _plain(problem(refused))
    except Exception:
        log.exception("a request failed")
        ours = Refused(500, "internal-error", f"this is our fault; it is logged under {context.aws_request_id}")
        return _plain(problem(ours))


def _plain(response: Response[Any]) -> dict[str, Any]:
    headers = {"content-type": "application/problem+json"}
    return {
        "statusCode": response.status_code,
        "headers": headers,
        "body": response.body,
        "isBase64Encoded": False,
    }


def problem(refused: Refused) -> Response[Any]:
    """A refusal as RFC 9457 problem details."""
    errors = [FaultView(**asdict(fault)) for fault in refused.faults[:FAULTS]]
    title = TITLES.get(refused.status, "Refused")
    view = ProblemView("about:blank", title, refused.status, refused.code, refused.detail, errors)
    headers = {"www-authenticate": "Bearer"} if refused.status == 401 else {}
    if refused.status in (429, 503):
        headers["retry-after"] = str(RETRY_AFTER)
    return Response(refused.status, "application/problem+json", json.dumps(asdict(view)), headers)


def _busy(_: Moved) -> Response[Any]:
    return problem(Refused(429, "busy", "too many changed the same thing at once; try again in a moment"))


def _throttled(_: Throttled) -> Response[Any]:
    return problem(Refused(503, "throttled", "the service has too much to do at the moment; try again in a moment"))


def _no_route(_: Exception) -> Response[Any]:
    return problem(Refused(404, "not-found", "there is nothing at this path; GET /v1/openapi.json lists what there is"))


def text(app: BaseRouter) -> str:
    """A request's body as text. Raises Refused 400 for bytes that are not UTF-8."""
    try:
        return app.current_event.decoded_body or ""
    except ValueError:
        raise Refused(400, "malformed-json", "the body is not text in UTF-8") from None


def reply(value: object, status: int = 200) -> Response[Any]:
    """A reply in JSON."""
    return Response(status, "application/json", json.dumps(sent(value), ensure_ascii=False))


def sent(value: Any) -> Any:
    """A value as JSON has it. Names lose the underscore that keeps some from being Python's words."""
    if hasattr(value, "__dataclass_fields__"):
        return {name.rstrip("_"): sent(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {key: sent(each) for key, each in value.items()}
    return [sent(each) for each in value] if isinstance(value, list | tuple) else value
