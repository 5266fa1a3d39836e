"""Credentials for one lease: a session of a role, which carries the unit's id as its name and the job's as its source.

The name is what ends it: denials.py. CloudTrail has both in each entry of what was done with the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.drivers.wells.aws.calls import calling
from penstock.drivers.wells.aws.keys import LEAST, Lending
from penstock.drivers.wells.aws.policies import filled
from penstock.ports import Order

SITE, WELL, JOB = "penstock:site", "penstock:well", "penstock:job"
"""The session's tags, for conditions in the role's own policies."""

PUBLIC = ("expiration", "region", "role")
"""What of a session may stand in a log. [SEC-1]"""


@dataclass(frozen=True)
class Session:
    """What STS gave out, in the words that a job reads, and when it ends."""

    metadata: Mapping[str, Any]
    expires: datetime


def seconds(lending: Lending, order: Order) -> int:
    """How long a session is to last: no longer than its lease may, as far as STS gives so little."""
    return lending.duration if order.lasts is None else min(lending.duration, max(LEAST, order.lasts))


def begin(sts: Any, lending: Lending, order: Order, site: str, well: str) -> Session:
    """Credentials for a lease. Asked again, it gives others, which end with the same denial. Raises DriverError."""
    with calling("AssumeRole"):
        given = sts.assume_role(**_request(lending, order, site, well))["Credentials"]
    metadata = {
        "access_key_id": given["AccessKeyId"],
        "secret_access_key": given["SecretAccessKey"],
        "session_token": given["SessionToken"],
        "expiration": given["Expiration"].isoformat(),
        "region": lending.region,
        "role": lending.role,
    }
    return Session(metadata, given["Expiration"])


def _request(lending: Lending, order: Order, site: str, well: str) -> dict[str, Any]:
    tags = {SITE: site, WELL: well, **({JOB: order.job} if order.job else {})}
    names = {"job": order.job, "unit": order.id, "site": site}
    found = {
        "RoleArn": lending.role,
        "RoleSessionName": order.id,
        "DurationSeconds": seconds(lending, order),
        "Policy": filled(lending.policy, names),
        "PolicyArns": [{"arn": arn} for arn in lending.policies],
        "SourceIdentity": order.job,
        "ExternalId": lending.external_id,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    return {key: value for key, value in found.items() if value}
