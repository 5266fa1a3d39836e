"""Sends signed requests to the service, and verifies its signed answers."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

from penstock.drivers.http import errors, protocol, transport
from penstock.drivers.http.protocol import (
    BODY_BYTES,
    METADATA_DEPTH,
    REQUEST_ID,
    RESOURCES,
    SECRET_LEAST,
    SIGNATURE,
    TIMESTAMP,
)
from penstock.drivers.http.settings import ServiceSettings, is_loopback
from penstock.drivers.http.transport import Reply, Service
from penstock.kernel.errors import Misconfigured, Unknown
from penstock.kernel.frozen import dataclass

BUDGET = 20.0
"""Seconds for all requests of one call of the driver."""


@dataclass(frozen=True)
class Answer:
    """A verified answer of the service. `later` is the value of Retry-After, if it has one."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    later: int | None = None


class Client:
    """A client of one collection of a service, for one call of the driver."""

    def __init__(
        self,
        settings: ServiceSettings,
        secret: Callable[[], str],
        *,
        is_local: bool,
        collection: str = RESOURCES,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._secret, self._is_local = settings, secret, is_local
        self._collection, self._clock, self._monotonic = collection, clock, monotonic
        self._until = monotonic() + BUDGET
        self.host = settings.parts.hostname or ""

    def call(
        self,
        method: str,
        unit: str = "",
        do: str = "",
        *,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        calls: str = "",
    ) -> Answer:
        """Send a request; the answer if it is 2xx or 404. Raises DriverError for other statuses."""
        parts = self._settings.parts
        path = parts.path + self._collection + (f"/{quote(unit, safe='')}" if unit else "") + (f"/{do}" if do else "")
        return self._send(method, path, urlencode(query or {}), _json(body), calls)

    def _send(self, method: str, path: str, query: str, body: bytes, calls: str) -> Answer:
        secret, request, timestamp = self._read_secret(), secrets.token_hex(16), str(int(self._clock()))
        headers = {
            TIMESTAMP: timestamp,
            REQUEST_ID: request,
            SIGNATURE: protocol.sign_request(secret, method, path, query, timestamp, request, body),
            "Content-Type": "application/json",
            "Accept": "application/json, application/problem+json",
            "User-Agent": "penstock",
            "Connection": "close",
        }
        target = path + (f"?{query}" if query else "")
        reply = transport.send(self._service(), method, target, headers, body, self._seconds(), BODY_BYTES)
        return self._answer(reply, secret, request, calls)

    def _answer(self, reply: Reply, secret: str, request: str, calls: str) -> Answer:
        later = errors.seconds(reply.headers.get("retry-after"))
        signature = protocol.sign_answer(secret, reply.status, request, reply.body)
        if not protocol.is_same(reply.headers.get(SIGNATURE.lower(), ""), signature):
            raise errors.error_of_unsigned(reply.status, self.host, later)
        body = _table(reply.body, self.host)
        if reply.status in (200, 202, 204, 404):
            return Answer(reply.status, body, later)
        code, detail = (str(body.get(key) or "")[:1000] for key in ("code", "detail"))
        raise errors.error_of_answer(reply.status, code, detail or str(body.get("title") or "")[:1000], later, calls)

    def _service(self) -> Service:
        parts = self._settings.parts
        is_tls = parts.scheme == "https"
        if is_loopback(self.host) and not self._is_local:
            raise Misconfigured(f"`url` names {self.host}, which works only with the local cloud")
        return Service(self.host, parts.port or (443 if is_tls else 80), is_tls, is_loopback(self.host))

    def _seconds(self) -> float:
        left = self._until - self._monotonic()
        if left < 1:
            raise Unknown(f"{self.host} took more than {BUDGET:.0f} s for the requests of one step", "too-slow")
        return min(float(self._settings.timeout), left)

    def _read_secret(self) -> str:
        secret = self._secret()
        if len(secret) < SECRET_LEAST:
            raise Misconfigured(f"the secret {self._settings.secret} has fewer than {SECRET_LEAST} characters")
        return secret


def _json(body: Mapping[str, Any] | None) -> bytes:
    return b"" if body is None else json.dumps(body, separators=(",", ":")).encode()


def _table(body: bytes, host: str) -> dict[str, Any]:
    """A JSON object of limited depth; empty without a body. Raises Misconfigured for other content."""
    if not body:
        return {}
    try:
        found = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Misconfigured(f"{host} answered with invalid JSON") from error
    if not isinstance(found, dict) or _is_deep(found, METADATA_DEPTH + 2):
        raise Misconfigured(f"{host} answered with JSON that is not an object, or is nested too deep")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _is_deep(value: object, left: int) -> bool:
    if isinstance(value, dict):
        return left == 0 or any(_is_deep(each, left - 1) for each in value.values())
    if isinstance(value, list):
        return left == 0 or any(_is_deep(each, left - 1) for each in value)
    return False
