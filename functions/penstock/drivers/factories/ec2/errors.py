"""EC2's error codes: what each means for Penstock, in one table.

Sources: "Error codes for the Amazon EC2 API" (EC2 Developer Guide), the AWS SDKs' list of throttling codes, and codes
that Karpenter, Taskcluster and Arvados report from production. The table was not verified against AWS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

from penstock.drivers.errors import report_unknown
from penstock.drivers.factories.ec2.alternatives import Reach
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Short, Unknown
from penstock.kernel.frozen import dataclass

PAUSE = 15
"""Seconds without calls of a kind that EC2 throttled. EC2 allows two RunInstances calls a second."""


MESSAGE = 1000
"""Characters of an error message that are kept. EC2 may append an encoded message of several thousand."""


@dataclass(frozen=True)
class Meaning:
    """What an error code means. With a `reach`, alternatives outside of it are tried; without, all would fail alike.

    A shortage that `is_shared` affects every factory of the region. Others come from this factory's image or bid.
    """

    kind: type[DriverError]
    reach: Reach | None = None
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


def _codes(meaning: Meaning, *codes: str) -> dict[str, Meaning]:
    return dict.fromkeys(codes, meaning)


TABLE: Mapping[str, Meaning] = {
    **_codes(
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
    **_codes(
        Meaning(QuotaReached, Reach.GROUP),
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "SpotInstanceCountLimitExceeded",
        "VcpuLimitExceeded",
    ),
    **_codes(
        Meaning(QuotaReached, Reach.ALL),
        "MaxIOPSLimitExceeded",
        "NetworkInterfaceLimitExceeded",
        "ResourceLimitExceeded",
        "VolumeLimitExceeded",
    ),
    **_codes(
        Meaning(NoCapacity, Reach.OFFER),
        "InsufficientCapacity",
        "InsufficientCapacityOnHost",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "ReservationCapacityExceeded",
        "UnfulfillableCapacity",
    ),
    **_codes(Meaning(NoCapacity, Reach.OFFER, is_shared=False), "SpotMaxPriceTooLow"),
    **_codes(Meaning(NoCapacity, Reach.PLACE), "InsufficientAddressCapacity", "InsufficientVolumeCapacity"),
    **_codes(Meaning(NoCapacity, Reach.SUBNET), "InsufficientFreeAddressesInSubnet"),
    **_codes(Meaning(Misconfigured, Reach.OFFER), "Unsupported", "UnsupportedHostConfiguration"),
    **_codes(Meaning(Misconfigured, Reach.SUBNET), "InvalidSubnet", "InvalidSubnetID"),
    **_codes(
        MISCONFIGURED,
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "Blocked",
        "IncompleteSignature",
        "InvalidAMIID",
        "InvalidBlockDeviceMapping",
        "InvalidClientTokenId",
        "InvalidGroup",
        "InvalidGroupId",
        "InvalidIamInstanceProfileArn",
        "InvalidInput",
        "InvalidKeyPair",
        "InvalidLaunchTemplateId",
        "InvalidLaunchTemplateName",
        "InvalidParameter",
        "InvalidParameterCombination",
        "InvalidParameterDependency",
        "InvalidParameterValue",
        "InvalidSecurity",
        "InvalidSecurityGroupID",
        "InvalidSnapshot",
        "InvalidUserData",
        "InvalidVolume",
        "InvalidVpcID",
        "MissingAuthenticationToken",
        "MissingInput",
        "MissingParameter",
        "OperationNotPermitted",
        "OptInRequired",
        "PendingVerification",
        "SecurityGroupsPerInstanceLimitExceeded",
        "SecurityGroupsPerInterfaceLimitExceeded",
        "SignatureDoesNotMatch",
        "TagLimitExceeded",
        "TagPolicyViolation",
        "UnauthorizedOperation",
        "UnknownParameter",
        "UnrecognizedClientException",
        "UnsupportedOperation",
        "ValidationError",
        "VPCIdNotSpecified",
        "VPCResourceNotSpecified",
    ),
    **_codes(
        PROVIDER_FAULT,
        "ExpiredToken",
        "IdempotentParameterMismatch",
        "IncorrectInstanceState",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "RequestExpired",
        "RequestTimeout",
        "ServiceUnavailable",
        "Unavailable",
    ),
}
"""Keys are codes, or the part of a code before the first dot: InvalidAMIID includes InvalidAMIID.NotFound."""

BY_MESSAGE: Sequence[tuple[str, re.Pattern[str], Meaning]] = (
    ("InvalidParameter", re.compile(r"free ipv[46] addresses", re.I), Meaning(NoCapacity, Reach.SUBNET)),
    ("InvalidParameter", re.compile(r"instance ?type|architecture", re.I), Meaning(Misconfigured, Reach.TYPE)),
    ("InvalidParameter", re.compile(r"\bsubnet\b", re.I), Meaning(Misconfigured, Reach.SUBNET)),
)
"""Codes whose meaning depends on the message: beginning of the code, pattern in the message. The first match counts."""


@dataclass(frozen=True)
class Failure:
    """A failed call of EC2, with the meaning of its code."""

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


def classify(call: str, error: ClientError | BotoCoreError) -> Failure:
    """The failure that an error of boto3 stands for."""
    if not isinstance(error, ClientError):
        is_ours = isinstance(error, NoCredentialsError | ParamValidationError)
        return Failure(call, type(error).__name__, str(error), MISCONFIGURED if is_ours else PROVIDER_FAULT)
    answer = error.response.get("Error", {})
    code, message = answer.get("Code", ""), answer.get("Message", "")[:MESSAGE]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    return Failure(call, code, message, meaning(code, message, status))


def meaning(code: str, message: str, status: int = 400) -> Meaning:
    """What a code means. An unknown code is never treated like a known one."""
    for start, words, special in BY_MESSAGE:
        if code.startswith(start) and words.search(message):
            return special
    found = TABLE.get(code) or TABLE.get(code.partition(".")[0])
    return found or (PROVIDER_FAULT if status >= 500 else NOT_IN_TABLE)


log = Logger(child=True)


@contextmanager
def driver_errors() -> Iterator[None]:
    """Around every method of the driver: turns CallFailed into a DriverError."""
    try:
        yield
    except CallFailed as failed:
        raise _driver_error(failed.failure) from failed


def _driver_error(failure: Failure) -> DriverError:
    """The DriverError of a failure. Reports codes that the table does not have."""
    if not failure.meaning.is_known:
        report_unknown("ec2", failure.code, failure.call)
    return failure.error()


class CallFailed(Exception):
    """A call to EC2 failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@contextmanager
def call_errors(call: str) -> Iterator[None]:
    """Around every call of EC2. Raises CallFailed."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise CallFailed(classify(call, error)) from error
