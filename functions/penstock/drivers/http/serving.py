"""The server side of the protocol, for services in Python: of the `http` well, and of factories.

An Endpoint verifies requests (signature, time, repetition), calls what you implement, and signs its answers.
This module needs only Python's standard library, and no function imports it. See docs/operators/wells/http.md and
docs/operators/http.md. [SEC-2]
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from threading import Lock
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

from penstock.drivers.http import protocol
from penstock.drivers.http.protocol import (
    BODY_BYTES,
    HOSTS,
    PAGE,
    REQUEST_ID,
    RESOURCES,
    SECRET_LEAST,
    SIGNATURE,
    TIMESTAMP,
    WINDOW,
    WORKERS,
)
from penstock.kernel.frozen import dataclass

JsonObject = Mapping[str, Any]
Call = Callable[[], JsonObject]
log = logging.getLogger(__name__)


class Service(Protocol):
    """What you implement for wells: answers as in http.openapi.json. Methods may raise Refused or Later instead."""

    def create(self, unit: str, order: JsonObject) -> JsonObject:
        """Create the unit, or prepare a cleaned unit for its next lease."""

    def status(self, unit: str) -> JsonObject:
        """Describe the unit."""

    def clean(self, unit: str, lease: JsonObject) -> JsonObject:
        """Make the unit like new."""

    def destroy(self, unit: str, lease: JsonObject) -> JsonObject:
        """Remove the unit completely."""

    def list(self, owner: str, start: str) -> Iterable[str]:
        """The ids of this owner's units, sorted, from `start` on."""


class Controller(Protocol):
    """What you implement for factories: answers as in http-factory.openapi.json. Methods may raise as those above."""

    def create(self, unit: str, order: JsonObject) -> JsonObject:
        """Make the worker, unless it is there, or was destroyed."""

    def status(self, unit: str) -> JsonObject:
        """Describe the worker."""

    def destroy(self, unit: str, query: JsonObject) -> JsonObject:
        """Remove the worker completely, and never make it again."""

    def console(self, unit: str) -> str:
        """What the worker's machine printed last, at most some 10,000 characters."""

    def list(self, owner: str, start: str) -> Iterable[str | JsonObject]:
        """This owner's workers, sorted, from `start` on: ids, or objects with an id as `unit`, and `things`."""


class HostsController(Protocol):
    """What you implement to clean hosts: answers as in http-factory.openapi.json. Methods may raise as those above.

    It may have `console(unit)` as a Controller has, for a factory that says `console = true`.
    """

    def status(self, unit: str) -> JsonObject:
        """Describe the host."""

    def clean(self, unit: str, lease: JsonObject) -> JsonObject:
        """Make the host as it was before its last lease, for example write its image anew."""


class PowerController(HostsController, Protocol):
    """What you implement to clean hosts, and to switch them on and off. Refuse an older `serial` than the last: 409."""

    def on(self, unit: str, order: JsonObject) -> JsonObject:
        """Switch the host on. With `missed` in the order, it was on before and did not come."""

    def off(self, unit: str, order: JsonObject) -> JsonObject:
        """Switch the host off."""


class Refused(Exception):
    """Raised to answer with an error: a status, and a problem's code and detail. `later` becomes Retry-After."""

    def __init__(self, status: int, code: str, detail: str = "", later: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.later = status, code, detail, later


class Later(Exception):
    """Raised to answer "not done yet": the well repeats the request after some seconds."""

    def __init__(self, seconds: int, reason: str = "") -> None:
        super().__init__(reason)
        self.seconds, self.reason = seconds, reason


@dataclass(frozen=True)
class Reply:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class SeenRequests:
    """The ids of recent requests, to refuse repetitions. It works in one process; several need a shared store."""

    def __init__(self) -> None:
        self._when: dict[str, float] = {}
        self._lock = Lock()

    def is_new(self, request: str, now: float) -> bool:
        """Whether this request is new. Remembers it."""
        with self._lock:
            for old in [each for each, when in self._when.items() if when < now - 2 * WINDOW]:
                del self._when[old]
            is_new = request not in self._when
            self._when.setdefault(request, now)
            return is_new


class Endpoint:
    """Verifies requests, calls the service one request at a time, and signs the answers.

    With several secrets, each is accepted, so that a new one can replace an old one. It serves one collection:
    RESOURCES with a Service, WORKERS with a Controller, or HOSTS with a HostsController or PowerController.
    """

    def __init__(
        self,
        service: Service | Controller | HostsController,
        *secrets: str,
        of: str = RESOURCES,
        is_new: Callable[[str, float], bool] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not secrets or any(len(secret) < SECRET_LEAST for secret in secrets):
            raise ValueError(f"a service needs a secret of at least {SECRET_LEAST} characters")
        self._service: Any = service
        self._secrets, self._of, self._clock = secrets, of, clock
        self._is_new = is_new or SeenRequests().is_new
        self._lock = Lock()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """The response to a request. `target` is its path and query exactly as in the request line."""
        given = {name.lower(): value for name, value in headers.items()}
        path, _, query = target.partition("?")
        at, request = given.get(TIMESTAMP.lower(), ""), given.get(REQUEST_ID.lower(), "")
        signature = given.get(SIGNATURE.lower(), "")
        for secret in self._secrets:  # the answer is signed with the secret of the request
            wanted = protocol.sign_request(secret, method, path, query, at, request, body)
            if protocol.is_same(signature, wanted):
                return _signed(self._checked(method, path, query, at, request, body), secret, request)
        return _reply(401, _problem("unknown", "the request has no valid signature"))  # not signed either

    def _checked(self, method: str, path: str, query: str, at: str, request: str, body: bytes) -> Reply:
        now = self._clock()
        if abs(now - _number(at)) > WINDOW or not self._is_new(request, now):
            return _reply(401, _problem("unknown-request", "the request is too old, too new, or repeated"))
        try:
            with self._lock:
                return _reply(200, self._call(method, path, dict(parse_qsl(query)), json.loads(body or b"{}")))
        except Later as not_yet:
            return _reply(202, {"reason": not_yet.reason}, not_yet.seconds)
        except Refused as refused:
            return _reply(refused.status, _problem(refused.code, refused.detail), refused.later)
        except Exception:
            log.exception("the service failed on %s %s", method, path)
            return _reply(500, _problem("trouble", "see the service's own log"))

    def _call(self, method: str, path: str, query: Mapping[str, str], body: JsonObject) -> JsonObject:
        _, is_ours, rest = path.rpartition(self._of)
        unit, _, do = rest.strip("/").partition("/")
        unit = unquote(unit)
        if is_ours and self._of != HOSTS and (method, do, bool(unit)) == ("GET", "", False):
            return self._page(query)
        calls = self._calls(unit, query, body)
        if not is_ours or not unit or (method, do) not in calls:
            raise Refused(405, "unknown-call", f"there is no {method} of {path}")
        return calls[method, do]()

    def _calls(self, unit: str, query: Mapping[str, str], body: JsonObject) -> Mapping[tuple[str, str], Call]:
        """The calls that this collection has, by method and what follows the unit."""
        to = self._service
        status: Mapping[tuple[str, str], Call] = {("GET", ""): lambda: to.status(unit)}
        console: Mapping[tuple[str, str], Call] = {("GET", "console"): lambda: {"console": to.console(unit)}}
        if self._of == HOSTS:
            switches = ("on", "off") if hasattr(to, "on") else ()
            power = {("POST", do): lambda do=do: getattr(to, do)(unit, body) for do in switches}
            shown = console if hasattr(to, "console") else {}
            return {**status, ("POST", "clean"): lambda: to.clean(unit, body), **power, **shown}
        gone = {**query, "fence": _number(query.get("fence", "0"))} if self._of == RESOURCES else query
        both = {
            **status,
            ("PUT", ""): lambda: to.create(unit, body),
            ("DELETE", ""): lambda: to.destroy(unit, gone),
        }
        if self._of == WORKERS:
            return {**both, **console}
        return {**both, ("POST", "clean"): lambda: to.clean(unit, body)}

    def _page(self, query: Mapping[str, str]) -> JsonObject:
        most, owner = min(_number(query.get("limit", str(PAGE))), PAGE), query.get("owner", "")
        found = list(islice(self._service.list(owner, query.get("from", "")), most + 1))
        units = [{**({"unit": each} if isinstance(each, str) else each), "owner": owner} for each in found[: most + 1]]
        return {"units": units[:most], "next": units[most]["unit"] if units[most:] else None}


def _number(text: str) -> int:
    """The number in a header; -1 if it is not a number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1


def _problem(code: str, detail: str) -> JsonObject:
    return {"type": "about:blank", "code": code, "detail": detail}


def _reply(status: int, content: JsonObject, later: int | None = None) -> Reply:
    body = json.dumps(content).encode()
    kind = "application/json" if status < 400 else "application/problem+json"
    again = {} if later is None else {"Retry-After": str(later)}
    return Reply(status, {"Content-Type": kind, "Content-Length": str(len(body)), **again}, body)


def _signed(reply: Reply, secret: str, request: str) -> Reply:
    signature = protocol.sign_answer(secret, reply.status, request, reply.body)
    return Reply(reply.status, {**reply.headers, SIGNATURE: signature}, reply.body)


class Handler(BaseHTTPRequestHandler):
    """Connects an Endpoint to Python's HTTP server."""

    endpoint: Endpoint
    timeout = 20

    def handle_request(self) -> None:
        """Read a request, and answer it."""
        length = _number(self.headers.get("Content-Length") or "0")
        if not 0 <= length <= BODY_BYTES:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        self.send(self.endpoint.answer(self.command, self.path, dict(self.headers.items()), body))

    do_GET = do_PUT = do_POST = do_DELETE = handle_request

    def send(self, reply: Reply) -> None:
        """Send a response."""
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)


def server(endpoint: Endpoint, port: int, host: str = "127.0.0.1") -> ThreadingHTTPServer:
    """An HTTP server, not started yet; on a free port if `port` is 0. Put a TLS proxy before it."""
    return ThreadingHTTPServer((host, port), type("Handler", (Handler,), {"endpoint": endpoint}))
