"""What ECS's error codes, and the reasons of its failures, mean for Penstock, in one table.

Sources: "Errors" of each operation in the ECS API Reference; "API failure reasons" and "Service event messages" in the
ECS Developer Guide; the AWS re:Post article on "Capacity is unavailable". The table was not verified against AWS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from penstock.drivers.factories.aws.errors import (
    COMMON,
    MISCONFIGURED,
    PROVIDER_FAULT,
    THROTTLED,
    Codes,
    Failure,
    codes,
)
from penstock.drivers.factories.aws.errors import Meaning as Meaning
from penstock.drivers.factories.fargate.alternatives import Reach
from penstock.kernel.errors import Misconfigured, NoCapacity, QuotaReached

TABLE: Mapping[str, Meaning] = {
    **COMMON,
    **codes(Meaning(QuotaReached, Reach.ALL), "LimitExceededException"),
    **codes(Meaning(Misconfigured, Reach.MARKET), "UnsupportedFeatureException"),
    **codes(
        MISCONFIGURED,
        "BlockedException",
        "ClientException",
        "ClusterNotFoundException",
        "InvalidParameterException",
        "PlatformTaskDefinitionIncompatibilityException",
        "PlatformUnknownException",
        "ResourceNotFoundException",
    ),
    **codes(PROVIDER_FAULT, "ConflictException", "ServerException"),
}

BY_MESSAGE: Sequence[tuple[str, re.Pattern[str], Meaning]] = (
    ("", re.compile(r"capacity is unavailable|RESOURCE:", re.I), Meaning(NoCapacity, Reach.OFFER)),
    ("", re.compile(r"limit on the number of (vcpus|tasks)", re.I), Meaning(QuotaReached, Reach.MARKET)),
    ("", re.compile(r"configuration is above your limit", re.I), Meaning(QuotaReached, Reach.ALL)),
    ("", re.compile(r"free (ip )?addresses", re.I), Meaning(NoCapacity, Reach.SUBNET)),
    ("ClientException", re.compile(r"\bPROVISIONING\b"), Meaning(QuotaReached, Reach.ALL)),
    ("ClientException", re.compile(r"rate exceeded|throttl", re.I), THROTTLED),
    ("ClientException", re.compile(r"too many concurrent attempts", re.I), PROVIDER_FAULT),
    ("ClientException", re.compile(r"task ?definition.*(inactive|not found)|unable to describe", re.I), PROVIDER_FAULT),
    ("InvalidParameterException", re.compile(r"\bsubnet\b", re.I), Meaning(Misconfigured, Reach.SUBNET)),
    ("InvalidParameterException", re.compile(r"capacity ?provider", re.I), Meaning(Misconfigured, Reach.MARKET)),
)
"""Codes whose meaning depends on the message, and reasons of failures, which have no code. A task definition that is
inactive was deregistered between two calls, and is registered again. Of two creates that register one family at once,
ECS refuses one: its next try finds what the other registered.
"""

CODES = Codes("fargate", TABLE, BY_MESSAGE)

REASON = 60
"""Characters of a reason that stand for its code."""


def failure_of(call: str, told: Mapping[str, str]) -> Failure:
    """A failure that ECS tells in a successful answer: it has a reason, and perhaps details."""
    reason = told.get("reason") or "no reason"
    message = f"{reason}: {told['detail']}" if told.get("detail") else reason
    return Failure(call, reason[:REASON], message, CODES.meaning(reason, message))
