"""What errors of clouds mean to us: one table, by words of the message first, then by HTTP status.

libcloud hands most errors through as an HTTP status and the cloud's own message, so the words are each cloud's own.
Nothing of it was checked against a cloud.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.drivers.factories.libcloud.alternatives import Reach
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Short, Unknown

PAUSE = 30
"""Seconds without calls of a kind that was throttled, where the cloud does not say how many."""

LONGEST_PAUSE = 3600
MESSAGE = 500
"""Characters of a message that are kept."""

BLOB = re.compile(r"[A-Za-z0-9+/=_-]{60,}")
"""What may be user data or a key. Some clouds repeat what they refuse, and ours holds the worker's bootstrap key."""


@dataclass(frozen=True)
class Meaning:
    """What follows from an error. With a reach, other alternatives are tried; without one, all would meet the same."""

    kind: type[DriverError]
    reach: Reach | None = None
    is_known: bool = True

    @property
    def is_shortage(self) -> bool:
        """Whether it is worth remembering for others."""
        return issubclass(self.kind, Short)


@dataclass(frozen=True)
class Row:
    """Words of a message, what they mean, and who says them."""

    words: str
    meaning: Meaning
    source: str


THROTTLED = Meaning(RateLimited)
WRONG = Meaning(Misconfigured)
THEIRS = Meaning(Unknown)
WHAT = Meaning(Unknown, is_known=False)
FULL = Meaning(NoCapacity, Reach.OFFER)

GCE = "Compute Engine: Troubleshooting resource availability errors; Troubleshooting VM creation"
OURS = ("GoogleAuthError",)
"""Classes of libcloud's own for what only whoever runs the site can mend."""

AZURE = "Azure Resource Manager: Troubleshoot common deployment errors"
NOVA = "OpenStack Nova: nova/exception.py"

BY_WORDS: Sequence[Row] = (
    Row(r"\b(user)?RateLimitExceeded|RATE_LIMIT_EXCEEDED", THROTTLED, "Compute Engine: API rate limits"),
    Row(r"TooManyRequests|RequestsThrottled", THROTTLED, "Azure: Troubleshooting API throttling errors"),
    Row(r"ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available|STOCKOUT", FULL, GCE),
    Row(r"SkuNotAvailable", FULL, AZURE),
    Row(r"(Zonal)?AllocationFailed|Overconstrained(Zonal)?AllocationRequest", FULL, "Azure: Allocation failures"),
    Row(r"No ?Valid ?Host( was found)?", FULL, NOVA),
    Row(r"out of (capacity|stock)|insufficient capacity", FULL, "words that clouds have in common"),
    Row(r"Quota exceeded for [^:]*\binstances\b", Meaning(QuotaReached, Reach.ALL), f"{NOVA}, TooManyInstances"),
    Row(r"Quota exceeded for", Meaning(QuotaReached, Reach.SIZE), f"{NOVA}, TooManyInstances"),
    Row(r"droplet limit", Meaning(QuotaReached, Reach.ALL), "DigitalOcean: Droplet limits"),
    Row(r"QUOTA_EXCEEDED|quotaExceeded|QuotaExceeded", Meaning(QuotaReached, Reach.OFFER), f"{GCE}; {AZURE}"),
    Row(r"exceeding (approved|quota)", Meaning(QuotaReached, Reach.OFFER), f"{AZURE}, OperationNotAllowed"),
    Row(r"\bquota\b.*\b(exceed|reach)|\b(exceed|reach)\w* .*\bquota\b", Meaning(QuotaReached, Reach.ALL), "any cloud"),
    Row(
        r"SubnetIsFull|No more IP addresses available", Meaning(NoCapacity, Reach.PLACE), f"{AZURE}; OpenStack Neutron"
    ),
    Row(r"not find specified endpoint|more than 1 matching endpoint", WRONG, "libcloud: OpenStackServiceCatalog"),
    Row(r"\balreadyExists|RESOURCE_ALREADY_EXISTS|already exists", THEIRS, f"{GCE}: our own earlier call made it"),
)
"""The first that fits."""

BY_STATUS: Mapping[int, Meaning] = {
    **dict.fromkeys((400, 401, 402, 403, 404, 405, 406, 410, 411, 415, 422), WRONG),
    **dict.fromkeys((408, 409, 423, 425), THEIRS),
    413: Meaning(QuotaReached, Reach.ALL),  # OpenStack's overLimit; with Retry-After it is throttling
    429: THROTTLED,
}


@dataclass(frozen=True)
class Failure:
    """A call that failed."""

    call: str
    code: str
    message: str
    meaning: Meaning
    status: int = 0
    seconds: int = PAUSE

    def __str__(self) -> str:
        return f"{self.call}: {self.code}: {self.message}"

    @property
    def is_unclear(self) -> bool:
        """Whether it may have made a machine all the same."""
        return self.call == CREATE and self.meaning.kind is Unknown

    def error(self) -> DriverError:
        """The error that the core knows. Shortages are put together by whoever knows the alternatives."""
        kind = self.meaning.kind
        if issubclass(kind, RateLimited):
            return RateLimited(str(self), self.seconds, self.call)
        if issubclass(kind, Unknown):
            return Unknown(str(self), self.code)
        return kind(str(self)) if issubclass(kind, Short) else Misconfigured(str(self))


CREATE = "create_node"


def understood(call: str, error: Exception, hide: Iterable[str] = ()) -> Failure:
    """What an error that came out of libcloud means. What is to `hide` is in no message after it."""
    status, code, message, headers = _said(error)
    found = meaning(error, status, f"{code} {message}", headers)
    return Failure(call, code, scrubbed(message, hide), found, status, _pause(error, headers))


def scrubbed(message: str, hide: Iterable[str] = ()) -> str:
    """A message without what may be secret, and not too long."""
    for secret in hide:
        message = message.replace(secret, "…") if len(secret) > 3 else message
    return BLOB.sub("…", " ".join(message.split()))[:MESSAGE]


def meaning(error: Exception, status: int, said: str, headers: Mapping[str, str]) -> Meaning:
    """What it means. What is in no table is not taken for anything else."""
    if isinstance(error, OSError):  # requests' errors are, too: nobody answered, or not to the end
        return THEIRS
    by_words = of_words(said)
    if by_words:
        return by_words
    if status == 413 and "retry-after" in headers:
        return THROTTLED
    if status in BY_STATUS:
        return BY_STATUS[status]
    if status >= 500 or type(error).__name__ in ("MalformedResponseError", "JSONDecodeError"):
        return THEIRS
    is_ours = isinstance(error, ValueError | TypeError | NotImplementedError) or type(error).__name__ in OURS
    return WRONG if is_ours else WHAT


def of_words(said: str) -> Meaning | None:
    """What words mean, whoever said them."""
    return next((row.meaning for row in BY_WORDS if re.search(row.words, said, re.I)), None)


def _said(error: Exception) -> tuple[int, str, str, Mapping[str, str]]:
    """Status, code, message and headers of whatever libcloud raised: its errors have three shapes."""
    code = getattr(error, "code", None)
    status = getattr(error, "http_code", None) or (code if isinstance(code, int) else 0)
    word = code if isinstance(code, str) else str(status or type(error).__name__)
    message = getattr(error, "message", None) or getattr(error, "value", None) or str(error)
    if isinstance(message, Mapping):
        message = message.get("message", "")
    headers = {str(key).lower(): str(value) for key, value in (getattr(error, "headers", None) or {}).items()}
    return int(status), word, str(message), headers


def _pause(error: Exception, headers: Mapping[str, str]) -> int:
    """How long the cloud wants to be left alone. libcloud has made seconds of a date."""
    try:
        told = float(getattr(error, "retry_after", 0) or headers.get("retry-after", 0))
    except ValueError:
        told = 0
    return min(LONGEST_PAUSE, int(told)) or PAUSE
