"""What one lease has of a role: its sessions, and their end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from penstock.drivers import MAKER
from penstock.drivers.wells.aws import sessions
from penstock.drivers.wells.aws.calls import Connect
from penstock.drivers.wells.aws.denials import Denial, Denials, NoRoom, RoleGone
from penstock.drivers.wells.aws.keys import Lending
from penstock.drivers.wells.aws.sessions import Session
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet, Order

SITE = "PENSTOCK_SITE"
"""The function's environment names the deployment: infra/stack.py."""

EVER = datetime(1970, 1, 1, tzinfo=UTC)
NO_ROOM = 60
LOOK_AGAIN = 2


@dataclass(frozen=True)
class Revoked:
    """That no session of a unit may do anything: what was looked at, and since when it is so."""

    checked: str
    since: datetime


class Lent:
    """A role, as a well lends it."""

    def __init__(self, lending: Lending, surroundings: Mapping[str, str], client: Connect) -> None:
        if not surroundings.get(SITE) or not surroundings.get(MAKER):
            raise Misconfigured("the well must know its site and its own name, to tag what it makes")
        self.site, self.well, self.lending, self._client = surroundings[SITE], surroundings[MAKER], lending, client

    @property
    def denials(self) -> Denials:
        """The denials on the role."""
        return Denials(self._client("iam", self.lending.region), self.lending.role_name, self.site)

    def session(self, order: Order, policy: str | None = None) -> Session:
        """Credentials for a lease. Raises DriverError."""
        lending = self.lending if policy is None else replace(self.lending, policy=policy)
        return sessions.begin(self._client("sts", lending.region), lending, order, self.site, self.well)

    def revoke(self, unit: str, now: datetime) -> Revoked | NotYet:
        """End every session of a unit, and those that a call under way may still begin. Raises DriverError. [SEC-1]"""
        role = self.lending.role_name
        try:
            found = self.denials.deny(unit, now, timedelta(seconds=self.lending.duration))
        except RoleGone:
            return Revoked(f"role {role} is no more, and no session of it may do anything", EVER)
        except NoRoom:
            return NotYet(NO_ROOM, f"role {role} has no room for one more denial until an earlier one is over")
        if found is None:
            return NotYet(LOOK_AGAIN, f"IAM does not show yet that role {role} denies the unit's sessions everything")
        return Revoked(_said(found, role), found.since)


def _said(denial: Denial, role: str) -> str:
    return (
        f"role {role} denies everything to sessions named {denial.unit} since {denial.since:%Y-%m-%dT%H:%M:%SZ}; "
        f"the last of them has ended by {denial.until:%Y-%m-%dT%H:%M:%SZ}, and the denial goes after that"
    )
