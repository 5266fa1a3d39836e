"""What answers mean that are not what was hoped for, in the words of the core's closed set."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.drivers.wells.http.protocol import LATER_MOST, TEXT_CHARS
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
"""The codes that a service may give with 409 and 422, as application/problem+json."""

REFUSED = (400, 401, 403, 405, 406, 411, 413, 414, 415, 431)
"""Statuses that say that well and service do not agree: an operator must act."""

SLOW = (429, 503)
AGAIN = 30


def refusal(status: int, code: str, detail: str, later: int | None, calls: str = "") -> DriverError:
    """The error for an answer of the service itself."""
    said = f"{status} {code}".strip() + (f": {clip(detail, TEXT_CHARS)}" if detail else "")
    if status == 429 or (status in SLOW and later is not None):
        return RateLimited(said, later or AGAIN, calls)
    if status in (409, 422) and code in CODES:
        return CODES[code](said)
    if status == 422:
        return Unsatisfiable(said)
    if status in REFUSED or 300 <= status < 400:
        return Misconfigured(said)
    return Unknown(said, code or str(status))


def unsigned(status: int, host: str, later: int | None) -> DriverError:
    """The error for an answer that does not carry the service's signature: who knows who gave it."""
    if status in SLOW and later is not None:
        return RateLimited(f"{host} answered {status}", later)
    if status in REFUSED or 300 <= status < 400:
        why = "it refuses our signature, or another service is there; redirects are not followed"
        return Misconfigured(f"{host} answered {status}, not signed: {why}")
    return Unknown(f"{host} answered {status}, and the answer is not signed by the service", "not-signed")


def seconds(text: str | None) -> int | None:
    """What Retry-After says, within bounds; None when it says no number of seconds."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 9:
        return None
    return max(1, min(int(text), LATER_MOST))
