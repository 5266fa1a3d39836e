"""What the two HTTP handlers share: reading a request, and answering it whatever happens.

Nothing that a client sends ends in a 500: what cannot be read is refused with what, where, and what to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import fastjsonschema
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.api_gateway import BaseRouter
from aws_lambda_powertools.utilities.typing import LambdaContext

from penstock import wire
from penstock.kernel import limits
from penstock.kernel.errors import Fault, Moved, Refused
from penstock.web.reading import read

T = TypeVar("T")
log = Logger(child=True)

TITLES = {
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict", 410: "Gone",
    413: "Content Too Large", 422: "Unprocessable Content", 429: "Too Many Requests", 500: "Internal Server Error",
    503: "Service Unavailable",
}  # fmt: skip
RETRY_AFTER = 1
"""Seconds that a client is asked to wait when rows would not stop changing."""

GUESSES = 50
"""For how many unknown keys it is guessed what was meant: a body may hold very many."""

_PAGE = re.compile(r"[A-Za-z0-9._-]{0,128}")


def resolver() -> APIGatewayHttpResolver:
    """A resolver that answers every refusal as RFC 9457 says."""
    app = APIGatewayHttpResolver()
    app.exception_handler(Refused)(problem)
    app.exception_handler(Moved)(_busy)
    app.not_found(_no_route)
    return app


def answer(app: APIGatewayHttpResolver, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Resolve a request. What we did wrong is logged whole and told to the client in a sentence."""
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


def reply(value: object, status: int = 200) -> Response[Any]:
    """An answer in JSON; views lose what is None only where their class says that it may be absent."""
    body = asdict(value, dict_factory=_fields) if is_dataclass(value) and not isinstance(value, type) else value
    return Response(status, "application/json", json.dumps(body, ensure_ascii=False))


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Fields by the names that they are sent by: without the underscore that keeps some from being Python's words."""
    return {name.rstrip("_"): value for name, value in pairs}


def problem(refused: Refused) -> Response[Any]:
    """A refusal as RFC 9457 problem details."""
    errors = [wire.FaultView(**asdict(fault)) for fault in refused.faults[:100]]
    title = TITLES.get(refused.status, "Refused")
    view = wire.ProblemView("about:blank", title, refused.status, refused.code, refused.detail, errors)
    headers = {"www-authenticate": "Bearer"} if refused.status == 401 else {}
    if refused.status in (429, 503):
        headers["retry-after"] = str(RETRY_AFTER)
    return Response(refused.status, "application/problem+json", json.dumps(asdict(view)), headers)


def _busy(_: Moved) -> Response[Any]:
    return problem(Refused(429, "busy", "too many changed the same thing at once; try again in a moment"))


def _no_route(_: Exception) -> Response[Any]:
    return problem(Refused(404, "not-found", "there is nothing at this path; GET /v1/openapi.json lists what there is"))


def body(app: BaseRouter, kind: type[T], most: int = limits.BODY_BYTES) -> T:
    """The request's body as a class of `wire`. Raises Refused 413 or 400 with everything that is wrong."""
    raw = _text(app)
    if len(raw.encode("utf-8", "surrogatepass")) > most:
        raise Refused(413, "body-too-big", f"the body has more than {most} bytes")
    given = read(raw)
    _known(kind, given)
    try:
        _validator(kind.__name__)(given)
    except fastjsonschema.JsonSchemaValueException as error:
        name = error.name or "data"
        where = name.removeprefix("data").lstrip(".") or None
        said = f"{where or 'the body'} {error.message.removeprefix(name).strip()}"
        raise Refused(400, "bad-request", said, [Fault(said, where=where)]) from None
    return _build(kind, given)


def _text(app: BaseRouter) -> str:
    """The body as text. Raises Refused 400 for bytes that are none."""
    try:
        return app.current_event.decoded_body or ""
    except ValueError:
        raise Refused(400, "malformed-json", "the body is not text in UTF-8") from None


def _build(kind: type[T], given: Mapping[str, Any]) -> T:
    """A value of a class, and of the classes in it and in its lists, from what was validated."""
    built = {}
    for name, hint in get_type_hints(kind).items():
        sent = name.rstrip("_")
        inner = next(iter(get_args(hint)), None)
        if sent not in given:
            continue
        built[name] = value = given[sent]
        if isinstance(inner, type) and is_dataclass(inner) and value is not None:
            built[name] = [_build(inner, one) for one in value] if isinstance(value, list) else _build(inner, value)
    return kind(**built)


def _known(kind: type, given: object) -> None:
    """Keys that the class does not have, with what was perhaps meant."""
    if not isinstance(given, dict):
        raise Refused(400, "bad-request", "the body must be a JSON object")
    keys = [name.rstrip("_") for name in getattr(kind, "__dataclass_fields__", {})]
    faults = []
    for key in islice((key for key in given if key not in keys), GUESSES):
        close = get_close_matches(key[:64], keys, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(keys)}"
        faults.append(Fault(f"unknown key {key[:64]!r}", where=key[:64], hint=hint))
    if faults:
        raise Refused(400, "bad-request", "the body has keys that are not known", faults)


def document() -> str:
    """The OpenAPI document, as it is kept beside the code."""
    return Path(__file__).with_name("openapi.json").read_text(encoding="utf-8")


@cache
def _schemas() -> Mapping[str, Any]:
    schemas: Mapping[str, Any] = json.loads(document())["components"]["schemas"]
    return schemas


@cache
def _validator(name: str) -> Callable[[object], object]:
    """A checker of one class of `wire`, made from its schema."""
    whole = json.dumps(_schemas()).replace("#/components/schemas/", "#/$defs/")
    made: Callable[[object], object] = fastjsonschema.compile(
        {"$ref": f"#/$defs/{name}", "$defs": json.loads(whole)}, use_default=False, detailed_exceptions=True
    )
    return made


def whole_number(app: BaseRouter, name: str, default: int, least: int, most: int) -> int:
    """A query parameter that is a whole number. Raises Refused 400."""
    text = app.current_event.get_query_string_value(name, "") or ""
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 12 or not least <= int(text) <= most:
        raise Refused(400, "bad-request", f"{name} must be a whole number from {least} to {most}")
    return int(text)


def moment(app: BaseRouter, name: str) -> datetime | None:
    """A query parameter that is a time; without a zone it is UTC. Raises Refused 400."""
    text = app.current_event.get_query_string_value(name, "") or ""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text[:40].replace(" ", "+"))
    except ValueError:
        raise Refused(400, "bad-request", f"{name} must be a time as in RFC 3339, like 2026-01-31T10:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def is_on(app: BaseRouter, name: str) -> bool:
    """Whether a query parameter says yes. Raises Refused 400 for what says neither yes nor no."""
    text = (app.current_event.get_query_string_value(name, "") or "").lower()
    if text not in ("", "true", "1", "false", "0"):
        raise Refused(400, "bad-request", f"{name} must be true or false")
    return text in ("true", "1")


def idempotency_key(app: BaseRouter) -> str | None:
    """The Idempotency-Key of a request, if it has one. Raises Refused 400."""
    key: str | None = app.current_event.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= 255:
        raise Refused(400, "bad-request", "an Idempotency-Key has 1 to 255 characters")
    return key


def page_after(app: BaseRouter) -> str:
    """The page that was asked for. Raises Refused 400 for what no answer ever named as one."""
    text = app.current_event.get_query_string_value("page", "") or ""
    if not _PAGE.fullmatch(text):
        raise Refused(400, "bad-request", "page must be what `next` of the page before it says")
    return text
