"""Error codes of a service of AWS: what each means for Penstock, in one table for each service.

Sources of COMMON: the AWS SDKs' list of throttling codes, and "Common Error Types" of the API references.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

from penstock.drivers.errors import report_unknown
from penstock.kernel.errors import DriverError, Misconfigured, RateLimited, Short, Unknown
from penstock.kernel.frozen import dataclass

PAUSE = 15
"""Seconds without calls of a kind that AWS throttled. EC2 allows two RunInstances calls a second."""


MESSAGE = 1000
"""Characters of an error message that are kept. EC2 may append an encoded message of several thousand."""


@dataclass(frozen=True)
class Meaning:
    """What an error code means. With a `reach`, alternatives outside of it are tried; without, all would fail alike.

    A shortage that `is_shared` affects every factory of the region. Others come from this factory's image or bid.
    """

    kind: type[DriverError]
    reach: StrEnum | None = None
    is_shared: bool = True
    is_known: bool = True

    @property
    def is_shortage(self) -> bool:
        """Whether other orders should avoid it."""
        return self.is_shared and issubclass(self.kind, Short)


THROTTLED = Meaning(RateLimited)
MISCONFIGURED = Meaning(Misconfigured)
PROVIDER_FAULT = Meaning(Unknown)
NOT_IN_TABLE = Meaning(Unknown, is_known=False)


def codes(meaning: Meaning, *names: str) -> dict[str, Meaning]:
    """Rows of a table: these codes have one meaning."""
    return dict.fromkeys(names, meaning)


COMMON: Mapping[str, Meaning] = {
    **codes(
        THROTTLED,
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    ),
    **codes(
        MISCONFIGURED,
        "AccessDenied",
        "AccessDeniedException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "MissingAuthenticationToken",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
        "ValidationError",
    ),
    **codes(
        PROVIDER_FAULT,
        "ExpiredToken",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "RequestExpired",
        "RequestTimeout",
        "ServiceUnavailable",
    ),
}
"""What any service of AWS may answer."""


@dataclass(frozen=True)
class Failure:
    """A failed call, with the meaning of its code."""

    call: str
    code: str
    message: str
    meaning: Meaning

    def __str__(self) -> str:
        return f"{self.call}: {self.code}: {self.message}"

    def error(self) -> DriverError:
        """The error that the driver raises. `launch` adds shortages, because it knows the alternatives."""
        kind = self.meaning.kind
        if issubclass(kind, RateLimited):
            return RateLimited(str(self), PAUSE, self.call)
        if issubclass(kind, Unknown):
            return Unknown(str(self), self.code)
        return kind(str(self)) if issubclass(kind, Short) else Misconfigured(str(self))


class CallFailed(Exception):
    """A call to AWS failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass(frozen=True)
class Codes:
    """The codes of one service, as a driver reads them.

    Keys of `table` are codes, or the part of a code before the first dot: InvalidAMIID includes InvalidAMIID.NotFound.
    `by_message` has codes whose meaning depends on the message: beginning of the code, pattern in the message. The
    first match counts.
    """

    driver: str
    table: Mapping[str, Meaning]
    by_message: Sequence[tuple[str, re.Pattern[str], Meaning]] = ()

    def classify(self, call: str, error: ClientError | BotoCoreError) -> Failure:
        """The failure that an error of boto3 stands for."""
        if not isinstance(error, ClientError):
            is_ours = isinstance(error, NoCredentialsError | ParamValidationError)
            return Failure(call, type(error).__name__, str(error), MISCONFIGURED if is_ours else PROVIDER_FAULT)
        answer = error.response.get("Error", {})
        code, message = answer.get("Code", ""), answer.get("Message", "")[:MESSAGE]
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
        return Failure(call, code, message, self.meaning(code, message, status))

    def meaning(self, code: str, message: str, status: int = 400) -> Meaning:
        """What a code means. An unknown code is never treated like a known one."""
        for start, words, special in self.by_message:
            if code.startswith(start) and words.search(message):
                return special
        found = self.table.get(code) or self.table.get(code.partition(".")[0])
        return found or (PROVIDER_FAULT if status >= 500 else NOT_IN_TABLE)

    @contextmanager
    def call_errors(self, call: str) -> Iterator[None]:
        """Around every call of the service. Raises CallFailed."""
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise CallFailed(self.classify(call, error)) from error

    @contextmanager
    def driver_errors(self) -> Iterator[None]:
        """Around every method of the driver: turns CallFailed into a DriverError."""
        try:
            yield
        except CallFailed as failed:
            raise self.error(failed.failure) from failed

    def error(self, failure: Failure) -> DriverError:
        """The DriverError of a failure. Reports codes that the table does not have."""
        if not failure.meaning.is_known:
            report_unknown(self.driver, failure.code, failure.call)
        return failure.error()
