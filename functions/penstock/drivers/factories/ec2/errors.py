"""EC2's error codes: what each means for Penstock, in one table.

Sources: "Error codes for the Amazon EC2 API" (EC2 Developer Guide), the AWS SDKs' list of throttling codes, and codes
that Karpenter, Taskcluster and Arvados report from production. The table was not verified against AWS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from penstock.drivers.factories.aws.errors import COMMON, MISCONFIGURED, PROVIDER_FAULT, Codes, Meaning, codes
from penstock.drivers.factories.ec2.alternatives import Reach
from penstock.kernel.errors import Misconfigured, NoCapacity, QuotaReached

TABLE: Mapping[str, Meaning] = {
    **COMMON,
    **codes(
        Meaning(QuotaReached, Reach.GROUP),
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "SpotInstanceCountLimitExceeded",
        "VcpuLimitExceeded",
    ),
    **codes(
        Meaning(QuotaReached, Reach.ALL),
        "MaxIOPSLimitExceeded",
        "NetworkInterfaceLimitExceeded",
        "ResourceLimitExceeded",
        "VolumeLimitExceeded",
    ),
    **codes(
        Meaning(NoCapacity, Reach.OFFER),
        "InsufficientCapacity",
        "InsufficientCapacityOnHost",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "ReservationCapacityExceeded",
        "UnfulfillableCapacity",
    ),
    **codes(Meaning(NoCapacity, Reach.OFFER, is_shared=False), "SpotMaxPriceTooLow"),
    **codes(Meaning(NoCapacity, Reach.PLACE), "InsufficientAddressCapacity", "InsufficientVolumeCapacity"),
    **codes(Meaning(NoCapacity, Reach.SUBNET), "InsufficientFreeAddressesInSubnet"),
    **codes(Meaning(Misconfigured, Reach.OFFER), "Unsupported", "UnsupportedHostConfiguration"),
    **codes(Meaning(Misconfigured, Reach.SUBNET), "InvalidSubnet", "InvalidSubnetID"),
    # The account has no role for spot yet: docs/operators/ec2.md. On demand, machines can be made.
    **codes(Meaning(Misconfigured, Reach.MARKET), "AuthFailure.ServiceLinkedRoleCreationNotPermitted"),
    **codes(
        MISCONFIGURED,
        "AuthFailure",
        "Blocked",
        "InvalidAMIID",
        "InvalidBlockDeviceMapping",
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
        "MissingInput",
        "MissingParameter",
        "OperationNotPermitted",
        "PendingVerification",
        "SecurityGroupsPerInstanceLimitExceeded",
        "SecurityGroupsPerInterfaceLimitExceeded",
        "TagLimitExceeded",
        "TagPolicyViolation",
        "UnauthorizedOperation",
        "UnknownParameter",
        "UnsupportedOperation",
        "VPCIdNotSpecified",
        "VPCResourceNotSpecified",
    ),
    **codes(
        PROVIDER_FAULT,
        "IdempotentParameterMismatch",
        "IncorrectInstanceState",
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

CODES = Codes("ec2", TABLE, BY_MESSAGE)
classify, meaning = CODES.classify, CODES.meaning
call_errors, driver_errors = CODES.call_errors, CODES.driver_errors
