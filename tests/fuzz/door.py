"""The gateway in front of the functions, as a WSGI application: it makes the events that the local cloud's makes."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from ministack.services.apigateway import _v2_request_body_is_text, decode_http_api_path

from tests.crash.runtime import Runtime
from tests.functions.service import request

Environ = dict[str, Any]
Start = Callable[[str, list[tuple[str, str]]], object]


class Door:
    """Calls the function that a path belongs to. What it raises, or answers and no gateway can send, is raised here."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        event = _event(environ)
        name = "agent_api" if event["rawPath"].startswith("/v1/agent/") else "api"
        given = self._runtime.call(name, event, "user")
        text = given.get("body") or ""
        content = base64.b64decode(text) if given.get("isBase64Encoded") else text.encode()
        start(f"{given['statusCode']} {HTTPStatus(given['statusCode']).phrase}", _headers(given))
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else content]


def _event(environ: Environ) -> dict[str, Any]:
    raw, query = str(environ["REQUEST_URI"]).partition("?")[0], environ["QUERY_STRING"]  # the URI need not have it
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or (name == "CONTENT_TYPE" and value)
    }
    sent = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) or None
    if sent is not None and _v2_request_body_is_text(headers.get("content-type")):
        sent = sent.decode("utf-8", "replace")
    pairs = parse_qsl(query, keep_blank_values=True, errors="replace")
    event = request(environ["REQUEST_METHOD"], decode_http_api_path(raw), sent, headers, pairs)
    return {**event, "rawQueryString": query}


def _headers(given: dict[str, Any]) -> list[tuple[str, str]]:
    many = [(name, value) for name, values in (given.get("multiValueHeaders") or {}).items() for value in values]
    return [*(given.get("headers") or {}).items(), *many]
