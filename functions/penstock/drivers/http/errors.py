"""What the service's errors mean: from status and problem code to a DriverError."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.drivers.http.protocol import LONGEST_WAIT, TEXT_CHARS
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Unknown,
    Unsatisfiable,
)
from penstock.toml.checks import clip

CODES: Mapping[str, Callable[[str], DriverError]] = {
    "quota-reached": QuotaReached,
    "no-capacity": NoCapacity,
    "unsatisfiable": Unsatisfiable,
    "misconfigured": Misconfigured,
}
"""The codes that a service may send with 409 and 422, as application/problem+json."""

REFUSED = (400, 401, 403, 405, 406, 411, 413, 414, 415, 431)
"""Statuses that mean that the driver and the service do not fit together: an operator must act."""

SLOW = (429, 503)
DEFAULT_WAIT = 30


def error_of_answer(status: int, code: str, detail: str, later: int | None, calls: str = "") -> DriverError:
    """The error for a signed answer of the service."""
    text = f"{status} {code}".strip() + (f": {clip(detail, TEXT_CHARS)}" if detail else "")
    if status == 429 or (status in SLOW and later is not None):
        return RateLimited(text, later or DEFAULT_WAIT, calls)
    if status in (409, 422) and code in CODES:
        return CODES[code](text)
    if status == 422:
        return Unsatisfiable(text)
    if status in REFUSED or 300 <= status < 400:
        return Misconfigured(text)
    return Unknown(text, code or str(status))


def error_of_unsigned(status: int, host: str, later: int | None) -> DriverError:
    """The error for an answer without the service's signature, which may come from anybody."""
    if status in SLOW and later is not None:
        return RateLimited(f"{host} answered {status}", later)
    if status in REFUSED or 300 <= status < 400:
        why = "it refuses the signature, or the URL belongs to another server; redirects are not followed"
        return Misconfigured(f"{host} answered {status}, not signed: {why}")
    return Unknown(f"{host} answered {status}, and the answer is not signed by the service", "not-signed")


def seconds(text: str | None) -> int | None:
    """The seconds in a Retry-After header, within limits; None if it has none."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 9:
        return None
    return max(1, min(int(text), LONGEST_WAIT))
