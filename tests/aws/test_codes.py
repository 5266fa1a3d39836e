"""What every code of STS, IAM and S3 comes to."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from penstock.drivers.wells.aws.calls import MESSAGE, PAUSE, TABLE, classify, is_known
from penstock.kernel.errors import DriverError, Misconfigured, QuotaReached, RateLimited, Unknown

CODES: dict[type[DriverError], str] = {
    RateLimited: """
        Throttling ThrottlingException ThrottledException RequestThrottled RequestThrottledException SlowDown
        RequestLimitExceeded BandwidthLimitExceeded PriorRequestNotComplete TooManyRequestsException""",
    QuotaReached: "LimitExceeded LimitExceededException TooManyBuckets",
    Misconfigured: """
        AccessDenied AccessDeniedException AccountProblem AllAccessDisabled AuthFailure AuthorizationHeaderMalformed
        IllegalLocationConstraintException IncompleteSignature InvalidAccessKeyId InvalidBucketName InvalidBucketState
        InvalidClientTokenId InvalidInput InvalidObjectState InvalidParameterCombination InvalidParameterValue
        InvalidRequest MalformedPolicyDocument MalformedPolicyDocumentException MethodNotAllowed
        MissingAuthenticationToken NoSuchBucket NoSuchEntity NotSignedUp OptInRequired PackedPolicyTooLarge
        PackedPolicyTooLargeException PermanentRedirect RegionDisabled RegionDisabledException SignatureDoesNotMatch
        UnmodifiableEntity UnrecognizedClientException ValidationError KMS.DisabledException
        KMS.KMSInvalidStateException""",
    Unknown: """
        ConcurrentModification EntityTemporarilyUnmodifiable ExpiredToken ExpiredTokenException InternalError
        InternalFailure OperationAborted RequestExpired RequestTimeout RequestTimeTooSkewed ServiceFailure
        ServiceFailureException ServiceUnavailable TemporaryRedirect""",
}
EACH = [(code, kind) for kind, codes in CODES.items() for code in codes.split()]


def told(code: str, message: str = "in words") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "PutRolePolicy")  # type: ignore[typeddict-item]


@pytest.mark.parametrize(("code", "kind"), EACH)
def test_what_a_code_comes_to(code: str, kind: type[DriverError]) -> None:
    error = classify("PutRolePolicy", told(code))
    assert type(error) is kind
    assert str(error) == f"PutRolePolicy: {code}: in words"
    assert is_known(code, 400)


def test_every_code_of_the_table_is_tested() -> None:
    assert set(TABLE) <= {code for code, _ in EACH}


def test_who_is_throttled_is_told_for_how_long_and_of_which_call() -> None:
    error = classify("PutRolePolicy", told("Throttling"))
    assert isinstance(error, RateLimited)
    assert (error.seconds, error.calls) == (PAUSE, "PutRolePolicy")


@pytest.mark.parametrize(("status", "known"), [(400, False), (403, False), (500, True), (503, True)])
def test_what_is_in_no_table_is_not_known_except_as_a_fault_of_theirs(status: int, known: bool) -> None:
    error = classify("PutRolePolicy", told("NeverHeardOf"))
    assert isinstance(error, Unknown)
    assert error.code == "NeverHeardOf"
    assert is_known("NeverHeardOf", status) is known


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NoCredentialsError(), Misconfigured),
        (ParamValidationError(report="RoleArn"), Misconfigured),
        (EndpointConnectionError(endpoint_url="https://sts"), Unknown),
        (ReadTimeoutError(endpoint_url="https://sts"), Unknown),
    ],
)
def test_what_never_reached_aws(error: Exception, kind: type[DriverError]) -> None:
    assert type(classify("AssumeRole", error)) is kind  # type: ignore[arg-type]


def test_a_message_without_end_is_cut() -> None:
    assert len(str(classify("PutRolePolicy", told("AccessDenied", "x" * 9000)))) < MESSAGE + 100


def test_an_answer_without_a_code_is_not_known() -> None:
    assert isinstance(classify("AssumeRole", ClientError({}, "AssumeRole")), Unknown)
