"""Calls of STS, IAM and S3: clients, and what each error code means for Penstock, in one table.

Sources: the API references of the three ("Errors" of each operation, "Common Errors", S3's "Error responses") and the
AWS SDKs' list of throttling codes. The table was not verified against AWS.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

from penstock.drivers.errors import report_unknown
from penstock.kernel.errors import DriverError, Misconfigured, QuotaReached, RateLimited, Unknown

PAUSE = 15
"""Seconds without calls of a kind that was throttled. IAM does not document its limits."""

MESSAGE = 1000
"""Characters of an error message that are kept."""


def _codes(kind: type[DriverError], codes: str) -> dict[str, type[DriverError]]:
    return dict.fromkeys(codes.split(), kind)


TABLE: Mapping[str, type[DriverError]] = {
    **_codes(
        RateLimited,
        """
        BandwidthLimitExceeded PriorRequestNotComplete RequestLimitExceeded RequestThrottled RequestThrottledException
        SlowDown Throttling ThrottlingException ThrottledException TooManyRequestsException""",
    ),
    **_codes(QuotaReached, "LimitExceeded LimitExceededException TooManyBuckets"),
    **_codes(
        Misconfigured,
        """
        AccessDenied AccessDeniedException AccountProblem AllAccessDisabled AuthFailure AuthorizationHeaderMalformed
        IllegalLocationConstraintException IncompleteSignature InvalidAccessKeyId InvalidBucketName InvalidBucketState
        InvalidClientTokenId InvalidInput InvalidObjectState InvalidParameterCombination InvalidParameterValue
        InvalidRequest MalformedPolicyDocument MalformedPolicyDocumentException MethodNotAllowed
        MissingAuthenticationToken NoSuchBucket NoSuchEntity NotSignedUp OptInRequired PackedPolicyTooLarge
        PackedPolicyTooLargeException PermanentRedirect RegionDisabled RegionDisabledException SignatureDoesNotMatch
        UnmodifiableEntity UnrecognizedClientException ValidationError""",
    ),
    **_codes(
        Unknown,
        """
        ConcurrentModification EntityTemporarilyUnmodifiable ExpiredToken ExpiredTokenException InternalError
        InternalFailure OperationAborted RequestExpired RequestTimeout RequestTimeTooSkewed ServiceFailure
        ServiceFailureException ServiceUnavailable TemporaryRedirect""",
    ),
}
"""What each code means."""

KMS = "KMS"
"""The beginning (before the dot) of codes about a bucket's KMS key that cannot be used."""


def code_of(error: Exception) -> str:
    """AWS's code of an error; the name of the exception class if AWS did not answer."""
    return error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else type(error).__name__


def classify(call: str, error: ClientError | BotoCoreError) -> DriverError:
    """The error that the driver raises. An unknown code becomes Unknown."""
    code, message = code_of(error), str(error)
    if not isinstance(error, ClientError):
        is_ours = isinstance(error, NoCredentialsError | ParamValidationError)
        return _error(Misconfigured if is_ours else Unknown, call, code, message)
    return _error(meaning(code), call, code, error.response.get("Error", {}).get("Message", ""))


def meaning(code: str) -> type[DriverError]:
    """What a code means. An unknown code is never treated like a known one."""
    return Misconfigured if code.partition(".")[0] == KMS else TABLE.get(code, Unknown)


def is_known(code: str, status: int) -> bool:
    """Whether a code is in the table, or the status alone says that AWS failed."""
    return code in TABLE or code.partition(".")[0] == KMS or status >= 500


def _error(kind: type[DriverError], call: str, code: str, message: str) -> DriverError:
    text = f"{call}: {code}: {message[:MESSAGE]}"
    if kind is RateLimited:
        return RateLimited(text, PAUSE, call)
    return Unknown(text, code) if kind is Unknown else kind(text)


CALL = Config(
    retries={"mode": "standard", "total_max_attempts": 2},
    connect_timeout=5,
    read_timeout=20,
    s3={"addressing_style": "path" if os.environ.get("AWS_ENDPOINT_URL") else "virtual"},
)
"""One immediate retry; further ones are the use case's. A local endpoint has no host name for each bucket."""


class Connect(Protocol):
    """Makes the client of a service in a region. Tests replace it."""

    def __call__(self, service: str, region: str) -> Any:
        """The client."""


@cache
def connect(service: str, region: str) -> Any:
    """The client of a service in a region. Cached, because making one takes a tenth of a second."""
    import boto3

    client: Any = boto3.client  # the type stubs accept only literal names of services
    return client(service, region_name=region, config=CALL)


@contextmanager
def call_errors(call: str, *absent: str) -> Iterator[None]:
    """Around every call. Raises DriverError, or Absent for a code in `absent`: the thing does not exist."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        if code_of(error) in absent:
            raise Absent(code_of(error)) from error
        _report_if_unknown(call, error)
        raise classify(call, error) from error


class Absent(Exception):
    """What a call names does not exist."""


def _report_if_unknown(call: str, error: ClientError | BotoCoreError) -> None:
    """Report a code that the table does not have."""
    if not isinstance(error, ClientError):
        return
    code, status = code_of(error), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    if not is_known(code, status):
        report_unknown("aws", code, call)


def check_each(call: str, answer: Mapping[str, Any]) -> None:
    """Raise the first error in the answer to a batch call."""
    for failed in answer.get("Errors", ()):
        error = {"Code": failed.get("Code", ""), "Message": f"{failed.get('Key')}: {failed.get('Message', '')}"}
        raise classify(call, ClientError({"Error": error}, call))  # type: ignore[typeddict-item]
