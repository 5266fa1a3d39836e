"""The sessions of a role that one lease gets, and their revocation.

A session's name is the unit's id, and its source identity is the job's. Denials revoke sessions by name (denials.py).
CloudTrail shows both with each call that the session makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.drivers import MAKER
from penstock.drivers.wells.aws.calls import Connect, call_errors
from penstock.drivers.wells.aws.denials import Denial, Denials, NoRoom, RoleGone
from penstock.drivers.wells.aws.policies import filled
from penstock.drivers.wells.aws.settings import LEAST, RoleSettings
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass
from penstock.ports import NotYet, Order

SITE_TAG, WELL_TAG, JOB_TAG = "penstock:site", "penstock:well", "penstock:job"
"""The session's tags. The role's policies can have conditions on them."""

PUBLIC = ("expiration", "region", "role")
"""The metadata of a session that may appear in a log. [SEC-1]"""


@dataclass(frozen=True)
class Session:
    """Credentials of a session, as metadata for the job, and when they expire."""

    metadata: Mapping[str, Any]
    expires: datetime


def seconds(settings: RoleSettings, order: Order) -> int:
    """How long a session lasts: not longer than its lease can, but at least STS's minimum."""
    return settings.duration if order.lasts is None else min(settings.duration, max(LEAST, order.lasts))


def begin(sts: Any, settings: RoleSettings, order: Order, site: str, well: str) -> Session:
    """Credentials for a lease. Repeated, it returns new ones, which the same denial revokes. Raises DriverError."""
    with call_errors("AssumeRole"):
        credentials = sts.assume_role(**_request(settings, order, site, well))["Credentials"]
    metadata = {
        "access_key_id": credentials["AccessKeyId"],
        "secret_access_key": credentials["SecretAccessKey"],
        "session_token": credentials["SessionToken"],
        "expiration": credentials["Expiration"].isoformat(),
        "region": settings.region,
        "role": settings.role,
    }
    return Session(metadata, credentials["Expiration"])


def _request(settings: RoleSettings, order: Order, site: str, well: str) -> dict[str, Any]:
    tags = {SITE_TAG: site, WELL_TAG: well, **({JOB_TAG: order.job} if order.job else {})}
    names = {"job": order.job, "unit": order.id, "site": site}
    found = {
        "RoleArn": settings.role,
        "RoleSessionName": order.id,
        "DurationSeconds": seconds(settings, order),
        "Policy": filled(settings.policy, names),
        "PolicyArns": [{"arn": arn} for arn in settings.policies],
        "SourceIdentity": order.job,
        "ExternalId": settings.external_id,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    return {key: value for key, value in found.items() if value}


SITE_VARIABLE = "PENSTOCK_SITE"
"""The environment variable with the deployment's name, which infra/stack.py sets."""

ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
NO_ROOM_SECONDS = 60
RECHECK_SECONDS = 2


@dataclass(frozen=True)
class Revoked:
    """Proof that no session of a unit may do anything: what was checked, and since when it holds."""

    checked: str
    since: datetime


class LentRole:
    """A role of which a well lends sessions."""

    def __init__(self, settings: RoleSettings, environment: Mapping[str, str], client: Connect) -> None:
        if not environment.get(SITE_VARIABLE) or not environment.get(MAKER):
            raise Misconfigured(
                f"the driver needs {SITE_VARIABLE} and {MAKER} in its environment, to tag what it makes"
            )
        self.site, self.well, self.settings, self._client = (
            environment[SITE_VARIABLE],
            environment[MAKER],
            settings,
            client,
        )

    @property
    def denials(self) -> Denials:
        """The denials on the role."""
        return Denials(self._client("iam", self.settings.region), self.settings.role_name, self.site)

    def session(self, order: Order, policy: str | None = None) -> Session:
        """Credentials for a lease. Raises DriverError."""
        settings = self.settings if policy is None else replace(self.settings, policy=policy)
        return begin(self._client("sts", settings.region), settings, order, self.site, self.well)

    def revoke(self, unit: str, now: datetime) -> Revoked | NotYet:
        """Revoke every session of a unit, also one that a concurrent call begins. Raises DriverError. [SEC-1]"""
        role = self.settings.role_name
        try:
            found = self.denials.deny(unit, now, timedelta(seconds=self.settings.duration))
        except RoleGone:
            return Revoked(f"role {role} does not exist any more, so its sessions may do nothing", ALWAYS)
        except NoRoom:
            return NotYet(NO_ROOM_SECONDS, f"role {role} has no space for another denial until an earlier one expires")
        if found is None:
            return NotYet(RECHECK_SECONDS, f"IAM does not show the denial on role {role} yet")
        return Revoked(_checked(found, role), found.since)


def _checked(denial: Denial, role: str) -> str:
    return (
        f"role {role} denies everything to sessions named {denial.unit} since {denial.since:%Y-%m-%dT%H:%M:%SZ}; "
        f"the last session expires by {denial.until:%Y-%m-%dT%H:%M:%SZ}, and then the denial is removed"
    )
