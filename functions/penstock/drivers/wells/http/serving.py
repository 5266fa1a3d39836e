"""The other side of the protocol: what whoever writes a service in Python need not write again.

A Door refuses what is not signed, too old or was here before, finds out what is asked, and signs what a Service says.
It imports Python's own library alone, and is never imported by a function. See docs/operators/wells/http.md. [SEC-2]
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from threading import Lock
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

from penstock.drivers.wells.http import signing
from penstock.drivers.wells.http.protocol import (
    BODY_BYTES,
    PAGE,
    REQUEST,
    RESOURCES,
    SECRET_LEAST,
    SIGNATURE,
    TIMESTAMP,
    WINDOW,
)

Said = Mapping[str, Any]
log = logging.getLogger(__name__)


class Service(Protocol):
    """What there is, and what can be done to it: as http.openapi.json says, or by raising Refused or Later."""

    def create(self, unit: str, order: Said) -> Said:
        """Make it, or make what was cleaned ready for the next lease."""

    def status(self, unit: str) -> Said:
        """What it is now."""

    def clean(self, unit: str, lease: Said) -> Said:
        """Make it as new."""

    def destroy(self, unit: str, lease: Said) -> Said:
        """Remove it with every trace."""

    def list(self, owner: str, start: str) -> Iterable[str]:
        """The ids of what this owner has, in their order, from `start` on."""


class Refused(Exception):
    """What a service answers instead: a status, and the code and detail of a problem. `later` is Retry-After."""

    def __init__(self, status: int, code: str, detail: str = "", later: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.later = status, code, detail, later


class Later(Exception):
    """Not yet: ask again in so many seconds."""

    def __init__(self, seconds: int, reason: str = "") -> None:
        super().__init__(reason)
        self.seconds, self.reason = seconds, reason


@dataclass(frozen=True)
class Reply:
    """What is sent back, to the byte."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Seen:
    """The ids of requests, for as long as one could come again. Of one process: several share theirs elsewhere."""

    def __init__(self) -> None:
        self._when: dict[str, float] = {}
        self._lock = Lock()

    def is_new(self, request: str, now: float) -> bool:
        """Whether it was not here before; from now on it was."""
        with self._lock:
            for old in [each for each, when in self._when.items() if when < now - 2 * WINDOW]:
                del self._when[old]
            is_new = request not in self._when
            self._when.setdefault(request, now)
            return is_new


class Door:
    """What comes from outside to a service. Of several secrets each is good: old and new, while one replaces the other.

    The service is asked one thing at a time.
    """

    def __init__(
        self,
        service: Service,
        *secrets: str,
        is_new: Callable[[str, float], bool] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not secrets or any(len(secret) < SECRET_LEAST for secret in secrets):
            raise ValueError(f"a service needs a secret of at least {SECRET_LEAST} characters")
        self._service, self._secrets, self._clock = service, secrets, clock
        self._is_new = is_new or Seen().is_new
        self._lock = Lock()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """What is said to a request. `target` is its path and query as they stand in the request line."""
        given = {name.lower(): value for name, value in headers.items()}
        path, _, query = target.partition("?")
        at, request = given.get(TIMESTAMP.lower(), ""), given.get(REQUEST.lower(), "")
        signature = given.get(SIGNATURE.lower(), "")
        for secret in self._secrets:  # the first that it was signed with; its answer is signed with the same
            wanted = signing.of_request(secret, method, path, query, at, request, body)
            if signing.is_same(signature, wanted):
                return _signed(self._told(method, path, query, at, request, body), secret, request)
        return _reply(401, _problem("unknown", "it is not signed with a secret of ours"))  # nor is this, for a stranger

    def _told(self, method: str, path: str, query: str, at: str, request: str, body: bytes) -> Reply:
        now = self._clock()
        if abs(now - _number(at)) > WINDOW or not self._is_new(request, now):
            return _reply(401, _problem("unknown-request", "it is too old, too new, or was here before"))
        try:
            with self._lock:
                return _reply(200, self._asked(method, path, dict(parse_qsl(query)), json.loads(body or b"{}")))
        except Later as not_yet:
            return _reply(202, {"reason": not_yet.reason}, not_yet.seconds)
        except Refused as refused:
            return _reply(refused.status, _problem(refused.code, refused.detail), refused.later)
        except Exception:
            log.exception("%s %s could not be answered", method, path)
            return _reply(500, _problem("trouble", "see the service's own log"))

    def _asked(self, method: str, path: str, query: Mapping[str, str], body: Said) -> Said:
        unit, _, do = path.rpartition(RESOURCES)[2].strip("/").partition("/")
        unit = unquote(unit)
        if (method, do, bool(unit)) == ("GET", "", False):
            return self._page(query)
        calls: Mapping[tuple[str, str], Callable[[], Said]] = {
            ("PUT", ""): lambda: self._service.create(unit, body),
            ("GET", ""): lambda: self._service.status(unit),
            ("POST", "clean"): lambda: self._service.clean(unit, body),
            ("DELETE", ""): lambda: self._service.destroy(unit, {**query, "fence": _number(query.get("fence", "0"))}),
        }
        if not unit or (method, do) not in calls:
            raise Refused(405, "unknown-call", f"there is no {method} of {path}")
        return calls[method, do]()

    def _page(self, query: Mapping[str, str]) -> Said:
        most, owner = min(_number(query.get("limit", str(PAGE))), PAGE), query.get("owner", "")
        found = list(islice(self._service.list(owner, query.get("from", "")), most + 1))
        units = [{"unit": unit, "owner": owner} for unit in found[:most]]
        return {"units": units, "next": found[most] if found[most:] else None}


def _number(text: str) -> int:
    """What a header says; -1 when it says no number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1


def _problem(code: str, detail: str) -> Said:
    return {"type": "about:blank", "code": code, "detail": detail}


def _reply(status: int, said: Said, later: int | None = None) -> Reply:
    body = json.dumps(said).encode()
    kind = "application/json" if status < 400 else "application/problem+json"
    again = {} if later is None else {"Retry-After": str(later)}
    return Reply(status, {"Content-Type": kind, "Content-Length": str(len(body)), **again}, body)


def _signed(reply: Reply, secret: str, request: str) -> Reply:
    signature = signing.of_answer(secret, reply.status, request, reply.body)
    return Reply(reply.status, {**reply.headers, SIGNATURE: signature}, reply.body)


class Handler(BaseHTTPRequestHandler):
    """A door for Python's own server. Give it one as `door`."""

    door: Door
    timeout = 20

    def handle_request(self) -> None:
        """Read a request, and answer it."""
        length = _number(self.headers.get("Content-Length") or "0")
        if not 0 <= length <= BODY_BYTES:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        self.say(self.door.answer(self.command, self.path, dict(self.headers.items()), body))

    do_GET = do_PUT = do_POST = do_DELETE = handle_request

    def say(self, reply: Reply) -> None:
        """Send what was answered."""
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)


def server(door: Door, port: int, host: str = "127.0.0.1") -> ThreadingHTTPServer:
    """A server with this door, yet to serve; on a free port if it is 0. TLS ends before it."""
    return ThreadingHTTPServer((host, port), type("Handler", (Handler,), {"door": door}))
