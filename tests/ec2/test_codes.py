"""What every code of EC2 comes to."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from penstock.drivers.factories.ec2.alternatives import Reach
from penstock.drivers.factories.ec2.errors import TABLE, classify, meaning
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Unknown

CODES: dict[tuple[type[DriverError], Reach | None], str] = {
    (RateLimited, None): """
        Throttling ThrottlingException ThrottledException RequestThrottledException TooManyRequestsException
        ProvisionedThroughputExceededException TransactionInProgressException RequestLimitExceeded
        BandwidthLimitExceeded LimitExceededException RequestThrottled SlowDown PriorRequestNotComplete
        EC2ThrottledException""",
    (QuotaReached, Reach.GROUP): """
        InstanceLimitExceeded VcpuLimitExceeded MaxSpotInstanceCountExceeded SpotInstanceCountLimitExceeded""",
    (QuotaReached, Reach.ALL): """
        VolumeLimitExceeded MaxIOPSLimitExceeded NetworkInterfaceLimitExceeded ResourceLimitExceeded""",
    (NoCapacity, Reach.OFFER): """
        InsufficientInstanceCapacity InsufficientCapacity InsufficientHostCapacity InsufficientCapacityOnHost
        InsufficientReservedInstanceCapacity ReservationCapacityExceeded UnfulfillableCapacity SpotMaxPriceTooLow""",
    (NoCapacity, Reach.PLACE): "InsufficientVolumeCapacity InsufficientAddressCapacity",
    (NoCapacity, Reach.SUBNET): "InsufficientFreeAddressesInSubnet",
    (Misconfigured, Reach.OFFER): "Unsupported UnsupportedHostConfiguration",
    (Misconfigured, Reach.SUBNET): "InvalidSubnet InvalidSubnetID.NotFound InvalidSubnetID.Malformed",
    (Misconfigured, Reach.MARKET): "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
    (Misconfigured, None): """
        UnauthorizedOperation AuthFailure AuthFailure.Another AccessDenied
        AccessDeniedException Blocked OptInRequired PendingVerification InvalidClientTokenId SignatureDoesNotMatch
        IncompleteSignature MissingAuthenticationToken UnrecognizedClientException
        InvalidAMIID.NotFound InvalidAMIID.Malformed InvalidAMIID.Unavailable InvalidBlockDeviceMapping
        InvalidGroup.NotFound InvalidGroupId.Malformed InvalidSecurityGroupID.NotFound InvalidSecurity.RequestHasExpired
        InvalidKeyPair.NotFound InvalidLaunchTemplateId.NotFound InvalidLaunchTemplateId.VersionNotFound
        InvalidLaunchTemplateName.NotFoundException InvalidIamInstanceProfileArn.Malformed InvalidInput
        InvalidParameter InvalidParameterCombination InvalidParameterDependency InvalidParameterValue
        InvalidSnapshot.NotFound InvalidUserData.Malformed InvalidVolume.NotFound InvalidVpcID.NotFound MissingInput
        MissingParameter OperationNotPermitted SecurityGroupsPerInstanceLimitExceeded
        SecurityGroupsPerInterfaceLimitExceeded TagLimitExceeded TagPolicyViolation UnknownParameter
        UnsupportedOperation ValidationError VPCIdNotSpecified VPCResourceNotSpecified""",
    (Unknown, None): """
        InternalError InternalFailure InternalServerError Unavailable ServiceUnavailable RequestExpired RequestTimeout
        ExpiredToken IdempotentParameterMismatch IncorrectInstanceState""",
}
EACH = [(code, kind, reach) for (kind, reach), codes in CODES.items() for code in codes.split()]


def said(code: str, message: str = "in words", status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "RunInstances")  # type: ignore[arg-type]


@pytest.mark.parametrize(("code", "kind", "reach"), EACH)
def test_what_a_code_comes_to(code: str, kind: type[DriverError], reach: Reach | None) -> None:
    failure = classify("RunInstances", said(code))
    assert failure.meaning.is_known
    assert failure.meaning.reach is reach
    error = failure.error()
    assert type(error) is kind
    assert code in str(error)
    assert "in words" in str(error)
    assert "RunInstances" in str(error)


def test_every_code_of_the_table_is_tested() -> None:
    tested = {code for code, _, _ in EACH} | {code.partition(".")[0] for code, _, _ in EACH}
    assert set(TABLE) <= tested


@pytest.mark.parametrize(
    ("message", "kind", "reach"),
    [
        ("There aren't sufficient free Ipv4 addresses in subnet-1", NoCapacity, Reach.SUBNET),
        ("Not enough free ipv6 addresses", NoCapacity, Reach.SUBNET),
        ("Security group sg-1 and subnet subnet-1 belong to different networks", Misconfigured, Reach.SUBNET),
        ("The architecture 'arm64' of the specified instance type does not match", Misconfigured, Reach.TYPE),
        ("Invalid value 'm99.large' for InstanceType.", Misconfigured, Reach.TYPE),
        ("Value (x) for parameter iamInstanceProfile.name is invalid", Misconfigured, None),
    ],
)
@pytest.mark.parametrize("code", ["InvalidParameterValue", "InvalidParameter", "InvalidParameterCombination"])
def test_codes_that_say_nothing_without_their_message(
    code: str, message: str, kind: type[DriverError], reach: Reach | None
) -> None:
    found = meaning(code, message)
    assert (found.kind, found.reach) == (kind, reach)


@pytest.mark.parametrize(("status", "is_known"), [(400, False), (403, False), (500, True), (503, True)])
def test_what_is_in_no_table_is_not_known_except_as_a_fault_of_theirs(status: int, is_known: bool) -> None:
    failure = classify("RunInstances", said("NeverHeardOf", status=status))
    assert failure.meaning.is_known is is_known
    assert failure.meaning.reach is None
    error = failure.error()
    assert isinstance(error, Unknown)
    assert error.code == "NeverHeardOf"


def test_a_message_without_end_is_cut() -> None:
    assert len(str(classify("RunInstances", said("UnauthorizedOperation", "x" * 9000)).error())) < 1100


def test_an_answer_without_a_code_is_not_known() -> None:
    failure = classify("RunInstances", ClientError({}, "RunInstances"))
    assert isinstance(failure.error(), Unknown)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NoCredentialsError(), Misconfigured),
        (ParamValidationError(report="KeyName"), Misconfigured),
        (EndpointConnectionError(endpoint_url="https://ec2"), Unknown),
        (ConnectTimeoutError(endpoint_url="https://ec2"), Unknown),
        (ReadTimeoutError(endpoint_url="https://ec2"), Unknown),
    ],
)
def test_what_never_reached_ec2(error: Exception, kind: type[DriverError]) -> None:
    assert type(classify("RunInstances", error).error()) is kind  # type: ignore[arg-type]


def test_what_comes_of_one_factorys_own_bid_or_image_is_no_shortage_of_the_region() -> None:
    assert not meaning("SpotMaxPriceTooLow", "").is_shortage
    assert not meaning("Unsupported", "").is_shortage
    assert meaning("InsufficientInstanceCapacity", "").is_shortage
    assert meaning("VcpuLimitExceeded", "").is_shortage
