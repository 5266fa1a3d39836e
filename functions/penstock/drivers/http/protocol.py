"""The protocol between an `http` factory or well and its service: headers, states, limits and signatures. [SEC-2]

Signatures are HMAC-SHA256 with the secret that the driver and its service share. A request's signature covers its
method, path, query, time, id and body. An answer's signature covers its status, the id of the request, and its body.
So the driver never accepts the answer to another request, or that of a gateway or cache: a 404 that frees a slot comes
from the service itself.
docs/decisions/0025-http-wells-sign-responses.md
"""

from __future__ import annotations

import hashlib
import hmac

VERSION = "penstock-v1"
RESOURCES, WORKERS, HOSTS = "/resources", "/workers", "/hosts"
"""The collections: what wells have at a service, what factories have, and machines that exist already."""

TIMESTAMP = "Penstock-Timestamp"
REQUEST_ID = "Penstock-Request"
SIGNATURE = "Penstock-Signature"

WINDOW = 300
"""Seconds by which a request's time may differ from the service's clock. The service remembers ids for that long."""

CREATING, READY, CLEANING, CLEAN, DESTROYING = "creating", "ready", "cleaning", "clean", "destroying"
STATES = (CREATING, READY, CLEANING, CLEAN, DESTROYING)

ON, OFF = "on", "off"
"""What the power of a host is, and the calls that switch it."""

GONE = "gone"
"""The code of a refusal, with 409, to make a worker that was destroyed: ids of workers are not used again."""

SECRET_LEAST = 32
"""The least characters of the shared secret."""

UNIT_CHARS = 64
TEXT_CHARS = 300
"""Characters of a text from the service that are kept."""

METADATA_BYTES = 16 * 1024
METADATA_DEPTH = 8
BODY_BYTES = 64 * 1024
HEADER_BYTES = 16 * 1024

PAGE = 500
PAGES = 40
LONGEST_WAIT = 900
"""The most seconds to wait, whatever Retry-After says. Source: Amazon SQS, DelaySeconds."""


def sign_request(secret: str, method: str, path: str, query: str, timestamp: str, request: str, body: bytes) -> str:
    """The signature of a request. Path and query are exactly as sent."""
    return _signature(secret, "request", method, path, query, timestamp, request, hashlib.sha256(body).hexdigest())


def sign_answer(secret: str, status: int, request: str, body: bytes) -> str:
    """The signature of the answer to a request."""
    return _signature(secret, "answer", str(status), request, hashlib.sha256(body).hexdigest())


def is_same(one: str, other: str) -> bool:
    """Whether two signatures are equal, compared in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def _signature(secret: str, *lines: str) -> str:
    text = "\n".join((VERSION, *lines))
    return "v1=" + hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
