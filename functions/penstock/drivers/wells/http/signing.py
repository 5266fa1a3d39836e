"""What is signed, both ways: HMAC-SHA256 with the secret that the well and its service share. [SEC-2]

A request's signature is over its method, path, query, time, id and body; an answer's over its status, the id of the
request that it answers, and its body. So no answer is another's, nor is it that of a gateway, a cache or whoever else
happens to be found at the address: a 404 that frees a slot is the service's own.
docs/decisions/0025-http-wells-sign-responses.md
"""

from __future__ import annotations

import hashlib
import hmac

from penstock.drivers.wells.http.protocol import VERSION


def of_request(secret: str, method: str, path: str, query: str, timestamp: str, request: str, body: bytes) -> str:
    """The signature of a request. Path and query are as they are sent."""
    return _signed(secret, "request", method, path, query, timestamp, request, hashlib.sha256(body).hexdigest())


def of_answer(secret: str, status: int, request: str, body: bytes) -> str:
    """The signature of the answer to a request."""
    return _signed(secret, "answer", str(status), request, hashlib.sha256(body).hexdigest())


def is_same(one: str, other: str) -> bool:
    """Compare two signatures in a time that tells nothing."""
    return hmac.compare_digest(one.encode(), other.encode())


def _signed(secret: str, *lines: str) -> str:
    text = "\n".join((VERSION, *lines))
    return "v1=" + hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
