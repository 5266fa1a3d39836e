"""What the error codes of STS, IAM and S3 mean to us: one table.

Sources: the API references of the three ("Errors" of each operation, "Common Errors", S3's "Error responses") and the
AWS SDKs' list of throttling codes. Nothing of it was checked against AWS itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

from penstock.kernel.errors import DriverError, Misconfigured, QuotaReached, RateLimited, Unknown

PAUSE = 15
"""Seconds without calls of a kind that was throttled. IAM's own limits are in no document."""

MESSAGE = 1000
"""Characters of a message that are kept."""


def _all(kind: type[DriverError], codes: str) -> dict[str, type[DriverError]]:
    return dict.fromkeys(codes.split(), kind)


TABLE: Mapping[str, type[DriverError]] = {
    **_all(
        RateLimited,
        """
        BandwidthLimitExceeded PriorRequestNotComplete RequestLimitExceeded RequestThrottled RequestThrottledException
        SlowDown Throttling ThrottlingException ThrottledException TooManyRequestsException""",
    ),
    **_all(QuotaReached, "LimitExceeded LimitExceededException TooManyBuckets"),
    **_all(
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
    **_all(
        Unknown,
        """
        ConcurrentModification EntityTemporarilyUnmodifiable ExpiredToken ExpiredTokenException InternalError
        InternalFailure OperationAborted RequestExpired RequestTimeout RequestTimeTooSkewed ServiceFailure
        ServiceFailureException ServiceUnavailable TemporaryRedirect""",
    ),
}
"""By the code, or by what of it stands before the first dot: KMS.DisabledException is of KMS."""

KMS = "KMS"
"""What the codes begin with that say that a bucket's key cannot be used."""


def code_of(error: Exception) -> str:
    """AWS's code of an error; the error's class where none came from AWS."""
    return error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else type(error).__name__


def understood(call: str, error: ClientError | BotoCoreError) -> DriverError:
    """The error that the core knows. What is in no table, and no fault of theirs, is Unknown with its code."""
    code, message = code_of(error), str(error)
    if not isinstance(error, ClientError):
        ours = isinstance(error, NoCredentialsError | ParamValidationError)
        return _error(Misconfigured if ours else Unknown, call, code, message)
    return _error(meaning(code), call, code, error.response.get("Error", {}).get("Message", ""))


def meaning(code: str) -> type[DriverError]:
    """What a code means. One that is in no table is not taken for any other."""
    return Misconfigured if code.partition(".")[0] == KMS else TABLE.get(code, Unknown)


def is_known(code: str, status: int) -> bool:
    """Whether a code is in the table, or a fault of theirs without need of one."""
    return code in TABLE or code.partition(".")[0] == KMS or status >= 500


def _error(kind: type[DriverError], call: str, code: str, message: str) -> DriverError:
    said = f"{call}: {code}: {message[:MESSAGE]}"
    if kind is RateLimited:
        return RateLimited(said, PAUSE, call)
    return Unknown(said, code) if kind is Unknown else kind(said)
