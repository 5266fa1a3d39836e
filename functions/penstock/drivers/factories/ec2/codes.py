"""What EC2's error codes mean to us: one table.

Sources: "Error codes for the Amazon EC2 API" (EC2 Developer Guide), the AWS SDKs' list of throttling codes, and what
Karpenter, Taskcluster and Arvados were seen to meet in the field. Nothing of it was checked against AWS itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

from penstock.drivers.factories.ec2.alternatives import Reach
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Short, Unknown

PAUSE = 15
"""Seconds without calls of a kind that was throttled. RunInstances is given two tokens a second."""


MESSAGE = 1000
"""Characters of a message that are kept: EC2 may append an encoded one of several thousand."""


@dataclass(frozen=True)
class Meaning:
    """What follows from a code. With a reach, other alternatives are tried; without one, all would meet the same.

    What is `shared` holds for every factory of the region; the rest comes of this one's own image or bid.
    """

    kind: type[DriverError]
    reach: Reach | None = None
    is_shared: bool = True
    is_known: bool = True

    @property
    def is_shortage(self) -> bool:
        """Whether it is worth remembering for others."""
        return self.is_shared and issubclass(self.kind, Short)


THROTTLED = Meaning(RateLimited)
WRONG = Meaning(Misconfigured)
THEIRS = Meaning(Unknown)
WHAT = Meaning(Unknown, is_known=False)


def _all(meaning: Meaning, *codes: str) -> dict[str, Meaning]:
    return dict.fromkeys(codes, meaning)


TABLE: Mapping[str, Meaning] = {
    **_all(
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
    **_all(
        Meaning(QuotaReached, Reach.GROUP),
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "SpotInstanceCountLimitExceeded",
        "VcpuLimitExceeded",
    ),
    **_all(
        Meaning(QuotaReached, Reach.ALL),
        "MaxIOPSLimitExceeded",
        "NetworkInterfaceLimitExceeded",
        "ResourceLimitExceeded",
        "VolumeLimitExceeded",
    ),
    **_all(
        Meaning(NoCapacity, Reach.OFFER),
        "InsufficientCapacity",
        "InsufficientCapacityOnHost",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "ReservationCapacityExceeded",
        "UnfulfillableCapacity",
    ),
    **_all(Meaning(NoCapacity, Reach.OFFER, is_shared=False), "SpotMaxPriceTooLow"),
    **_all(Meaning(NoCapacity, Reach.PLACE), "InsufficientAddressCapacity", "InsufficientVolumeCapacity"),
    **_all(Meaning(NoCapacity, Reach.SUBNET), "InsufficientFreeAddressesInSubnet"),
    **_all(Meaning(Misconfigured, Reach.OFFER), "Unsupported", "UnsupportedHostConfiguration"),
    **_all(Meaning(Misconfigured, Reach.SUBNET), "InvalidSubnet", "InvalidSubnetID"),
    **_all(
        WRONG,
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
    **_all(
        THEIRS,
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
"""By the code, or by what of it stands before the first dot: InvalidAMIID is also InvalidAMIID.NotFound."""

BY_MESSAGE: Sequence[tuple[str, re.Pattern[str], Meaning]] = (
    ("InvalidParameter", re.compile(r"free ipv[46] addresses", re.I), Meaning(NoCapacity, Reach.SUBNET)),
    ("InvalidParameter", re.compile(r"instance ?type|architecture", re.I), Meaning(Misconfigured, Reach.TYPE)),
    ("InvalidParameter", re.compile(r"\bsubnet\b", re.I), Meaning(Misconfigured, Reach.SUBNET)),
)
"""Codes that say nothing by themselves: by their beginning and a word of the message. The first that fits."""


@dataclass(frozen=True)
class Failure:
    """A call that failed."""

    call: str
    code: str
    message: str
    meaning: Meaning

    def __str__(self) -> str:
        return f"{self.call}: {self.code}: {self.message}"

    def error(self) -> DriverError:
        """The error that the core knows. Shortages are put together by whoever knows the alternatives."""
        kind = self.meaning.kind
        if issubclass(kind, RateLimited):
            return RateLimited(str(self), PAUSE, self.call)
        if issubclass(kind, Unknown):
            return Unknown(str(self), self.code)
        return kind(str(self)) if issubclass(kind, Short) else Misconfigured(str(self))


def understood(call: str, error: ClientError | BotoCoreError) -> Failure:
    """What an error of boto3 means."""
    if not isinstance(error, ClientError):
        ours = isinstance(error, NoCredentialsError | ParamValidationError)
        return Failure(call, type(error).__name__, str(error), WRONG if ours else THEIRS)
    said = error.response.get("Error", {})
    code, message = said.get("Code", ""), said.get("Message", "")[:MESSAGE]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    return Failure(call, code, message, meaning(code, message, status))


def meaning(code: str, message: str, status: int = 400) -> Meaning:
    """What a code means. One that is in no table is not taken for any other."""
    for start, words, special in BY_MESSAGE:
        if code.startswith(start) and words.search(message):
            return special
    found = TABLE.get(code) or TABLE.get(code.partition(".")[0])
    return found or (THEIRS if status >= 500 else WHAT)
