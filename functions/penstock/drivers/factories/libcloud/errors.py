"""Errors of clouds: what each means for Penstock, by words of the message, then by HTTP status.

libcloud passes most errors on as an HTTP status and the cloud's own message, so the words differ between clouds. The
tables were not verified against any cloud.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from aws_lambda_powertools import Logger

from penstock.drivers.errors import report_unknown
from penstock.drivers.factories.libcloud.alternatives import Reach
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Short, Unknown
from penstock.kernel.frozen import dataclass

PAUSE = 30
"""Seconds without calls of a kind that was throttled, if the cloud does not say how many."""

LONGEST_PAUSE = 3600
MESSAGE = 500
"""Characters of an error message that are kept."""

BLOB = re.compile(r"[A-Za-z0-9+/=_-]{60,}")
"""Possible user data or keys. Some clouds repeat a refused request, which contains the worker's bootstrap key."""


@dataclass(frozen=True)
class Meaning:
    """What an error means. With a `reach`, alternatives outside of it are tried; without, all would fail alike."""

    kind: type[DriverError]
    reach: Reach | None = None
    is_known: bool = True

    @property
    def is_shortage(self) -> bool:
        """Whether other orders should avoid it."""
        return issubclass(self.kind, Short)


@dataclass(frozen=True)
class Row:
    """A pattern of messages, what it means, and the document that it is from."""

    words: str
    meaning: Meaning
    source: str


THROTTLED = Meaning(RateLimited)
MISCONFIGURED = Meaning(Misconfigured)
PROVIDER_FAULT = Meaning(Unknown)
NOT_IN_TABLE = Meaning(Unknown, is_known=False)
FULL = Meaning(NoCapacity, Reach.OFFER)

GCE = "Compute Engine: Troubleshooting resource availability errors; Troubleshooting VM creation"
CONFIGURATION_ERRORS = ("GoogleAuthError",)
"""Exception classes of libcloud that mean wrong settings."""

AZURE = "Azure Resource Manager: Troubleshoot common deployment errors"
NOVA = "OpenStack Nova: nova/exception.py"

BY_WORDS: Sequence[Row] = (
    Row(r"\b(user)?RateLimitExceeded|RATE_LIMIT_EXCEEDED", THROTTLED, "Compute Engine: API rate limits"),
    Row(r"TooManyRequests|RequestsThrottled", THROTTLED, "Azure: Troubleshooting API throttling errors"),
    Row(r"ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available|STOCKOUT", FULL, GCE),
    Row(r"SkuNotAvailable", FULL, AZURE),
    Row(r"(Zonal)?AllocationFailed|Overconstrained(Zonal)?AllocationRequest", FULL, "Azure: Allocation failures"),
    Row(r"No ?Valid ?Host( was found)?", FULL, NOVA),
    Row(r"out of (capacity|stock)|insufficient capacity", FULL, "common to several clouds"),
    Row(r"Quota exceeded for [^:]*\binstances\b", Meaning(QuotaReached, Reach.ALL), f"{NOVA}, TooManyInstances"),
    Row(r"Quota exceeded for", Meaning(QuotaReached, Reach.SIZE), f"{NOVA}, TooManyInstances"),
    Row(r"droplet limit", Meaning(QuotaReached, Reach.ALL), "DigitalOcean: Droplet limits"),
    Row(r"QUOTA_EXCEEDED|quotaExceeded|QuotaExceeded", Meaning(QuotaReached, Reach.OFFER), f"{GCE}; {AZURE}"),
    Row(r"exceeding (approved|quota)", Meaning(QuotaReached, Reach.OFFER), f"{AZURE}, OperationNotAllowed"),
    Row(r"\bquota\b.*\b(exceed|reach)|\b(exceed|reach)\w* .*\bquota\b", Meaning(QuotaReached, Reach.ALL), "any cloud"),
    Row(
        r"SubnetIsFull|No more IP addresses available", Meaning(NoCapacity, Reach.PLACE), f"{AZURE}; OpenStack Neutron"
    ),
    Row(
        r"not find specified endpoint|more than 1 matching endpoint", MISCONFIGURED, "libcloud: OpenStackServiceCatalog"
    ),
    Row(
        r"\balreadyExists|RESOURCE_ALREADY_EXISTS|already exists",
        PROVIDER_FAULT,
        f"{GCE}: our own earlier call made it",
    ),
)
"""The first match counts."""

BY_STATUS: Mapping[int, Meaning] = {
    **dict.fromkeys((400, 401, 402, 403, 404, 405, 406, 410, 411, 415, 422), MISCONFIGURED),
    **dict.fromkeys((408, 409, 423, 425), PROVIDER_FAULT),
    413: Meaning(QuotaReached, Reach.ALL),  # OpenStack's overLimit; with Retry-After it is throttling
    429: THROTTLED,
}


@dataclass(frozen=True)
class Failure:
    """A failed call of a cloud, with its meaning."""

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
        """Whether the call may have made a machine although it failed."""
        return self.call == CREATE and self.meaning.kind is Unknown

    def error(self) -> DriverError:
        """The error that the driver raises. `launch` adds shortages, because it knows the alternatives."""
        kind = self.meaning.kind
        if issubclass(kind, RateLimited):
            return RateLimited(str(self), self.seconds, self.call)
        if issubclass(kind, Unknown):
            return Unknown(str(self), self.code)
        return kind(str(self)) if issubclass(kind, Short) else Misconfigured(str(self))


CREATE = "create_node"


def classify(call: str, error: Exception, hide: Iterable[str] = ()) -> Failure:
    """The failure that an error of libcloud stands for. The strings in `hide` are removed from its message."""
    status, code, message, headers = _error_parts(error)
    found = meaning(error, status, f"{code} {message}", headers)
    return Failure(call, code, scrubbed(message, hide), found, status, _pause(error, headers))


def scrubbed(message: str, hide: Iterable[str] = ()) -> str:
    """A message without possible secrets, cut to MESSAGE characters."""
    for secret in hide:
        message = message.replace(secret, "…") if len(secret) > 3 else message
    return BLOB.sub("…", " ".join(message.split()))[:MESSAGE]


def meaning(error: Exception, status: int, text: str, headers: Mapping[str, str]) -> Meaning:
    """What an error means. An unknown error is never treated like a known one."""
    if isinstance(error, OSError):  # no answer, or an incomplete one; errors of requests are OSErrors too
        return PROVIDER_FAULT
    by_words = meaning_of_words(text)
    if by_words:
        return by_words
    if status == 413 and "retry-after" in headers:
        return THROTTLED
    if status in BY_STATUS:
        return BY_STATUS[status]
    if status >= 500 or type(error).__name__ in ("MalformedResponseError", "JSONDecodeError"):
        return PROVIDER_FAULT
    is_settings = (
        isinstance(error, ValueError | TypeError | NotImplementedError) or type(error).__name__ in CONFIGURATION_ERRORS
    )
    return MISCONFIGURED if is_settings else NOT_IN_TABLE


def meaning_of_words(text: str) -> Meaning | None:
    """What a message means by its words; None if no pattern matches."""
    return next((row.meaning for row in BY_WORDS if re.search(row.words, text, re.I)), None)


def _error_parts(error: Exception) -> tuple[int, str, str, Mapping[str, str]]:
    """Status, code, message and headers of an error of libcloud. Its errors have three shapes."""
    code = getattr(error, "code", None)
    status = getattr(error, "http_code", None) or (code if isinstance(code, int) else 0)
    word = code if isinstance(code, str) else str(status or type(error).__name__)
    message = getattr(error, "message", None) or getattr(error, "value", None) or str(error)
    if isinstance(message, Mapping):
        message = message.get("message", "")
    headers = {str(key).lower(): str(value) for key, value in (getattr(error, "headers", None) or {}).items()}
    return int(status), word, str(message), headers


def _pause(error: Exception, headers: Mapping[str, str]) -> int:
    """How many seconds the cloud wants no calls. libcloud has already converted dates to seconds."""
    try:
        seconds = float(getattr(error, "retry_after", 0) or headers.get("retry-after", 0))
    except ValueError:
        seconds = 0
    return min(LONGEST_PAUSE, int(seconds)) or PAUSE


log = Logger(child=True)


@contextmanager
def driver_errors() -> Iterator[None]:
    """Around every method of the driver: turns CallFailed into a DriverError."""
    try:
        yield
    except CallFailed as failed:
        report_if_unknown(failed.failure)
        raise failed.failure.error() from failed


def report_if_unknown(failure: Failure) -> None:
    """Report a code that the tables do not have."""
    if not failure.meaning.is_known:
        report_unknown("libcloud", failure.code, failure.call)


class CallFailed(Exception):
    """A call to a cloud failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@contextmanager
def call_errors(call: str, hide: Sequence[str] = ()) -> Iterator[None]:
    """Around every call of a cloud. Raises CallFailed for any exception, because libcloud's have no common class."""
    try:
        yield
    except (CallFailed, DriverError):
        raise
    except Exception as error:
        raise CallFailed(classify(call, error, hide)) from error
