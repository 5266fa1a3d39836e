"""Denials revoke all sessions of one lease: inline policies on the role that deny everything to sessions with its name.

Each unit has its own policy, named after it, so concurrent revocations do not conflict, and repeated ones change
nothing. A denial matches the session's name, not its time of issue, so it also covers a session that a concurrent call
begins later. Unit ids are never reused. The policy's Sid says from when to when it is needed; it is removed when no
session with that name can exist any more. docs/decisions/0026-sts-sessions-revoked-by-name.md [SEC-1]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.domain.account import Thing
from penstock.drivers.wells.aws.calls import Absent, call_errors
from penstock.kernel.errors import QuotaReached
from penstock.kernel.frozen import dataclass

SLACK = timedelta(minutes=5)
"""How much longer than a session its denial lasts, for concurrent calls and differences between clocks."""

NO_SUCH_ENTITY = "NoSuchEntity"
_SPAN = re.compile(r"Since(\d+)Until(\d+)")


@dataclass(frozen=True)
class Denial:
    """The denial for one unit, and from when to when it is needed."""

    unit: str
    since: datetime
    until: datetime

    @property
    def document(self) -> dict[str, Any]:
        """The policy document. It has 196 characters; all inline policies of a role together may have 10,240."""
        return {
            "Version": "2012-10-17",
            "Statement": {
                "Sid": f"Since{int(self.since.timestamp())}Until{int(self.until.timestamp())}",
                "Effect": "Deny",
                "Action": "*",
                "Resource": "*",
                "Condition": {"StringLike": {"aws:userid": f"*:{self.unit}"}},
            },
        }

    @staticmethod
    def read(unit: str, document: Mapping[str, Any]) -> Denial | None:
        """A denial from a policy document; None if Penstock did not write it."""
        statement = document.get("Statement", {})
        span = _SPAN.fullmatch(str(statement.get("Sid"))) if isinstance(statement, Mapping) else None
        if span is None:
            return None
        found = Denial(unit, *(datetime.fromtimestamp(int(each), UTC) for each in span.groups()))
        return found if found.document == document else None


class NoRoom(Exception):
    """The role's inline policies have reached AWS's size limit."""


class RoleGone(Exception):
    """The role does not exist any more, so its sessions may do nothing."""


class Denials:
    """The denials of a site on one role."""

    def __init__(self, iam: Any, role: str, site: str) -> None:
        self._iam, self._role, self._start = iam, role, f"penstock-{site}-"

    def deny(self, unit: str, now: datetime, duration: timedelta) -> Denial | None:
        """Deny all to a unit's sessions; None until IAM shows it. Raises NoRoom, RoleGone, DriverError."""
        existing = self.find(unit)
        if existing:
            return existing
        wanted = Denial(unit, now, now + duration + SLACK)
        if not self._put(wanted) and not (self.tidy(now) and self._put(wanted)):
            raise NoRoom
        return self.find(unit)

    def find(self, unit: str) -> Denial | None:
        """A unit's denial, as IAM shows it now. Raises DriverError."""
        try:
            with call_errors("GetRolePolicy", NO_SUCH_ENTITY):
                found = self._iam.get_role_policy(RoleName=self._role, PolicyName=self._start + unit)
        except Absent:
            return None
        return Denial.read(unit, found["PolicyDocument"])

    def tidy(self, now: datetime) -> int:
        """Remove the denials that are not needed any more; how many there were. Raises DriverError."""
        count = 0
        for unit in self._units():
            found = self.find(unit)
            if found and found.until <= now:
                self._remove(unit)
                count += 1
        return count

    def things(self) -> Iterator[Thing]:
        """The denials. Each outlives its unit until no session of it can exist any more. Raises DriverError."""
        for unit in self._units():
            found = self.find(unit)
            if found:
                name = f"{self._role}/{self._start}{unit}"
                yield Thing("role policy", name, unit, found.since, found.until)

    def _units(self) -> list[str]:
        """The units that have a denial; none if the role does not exist any more."""
        try:
            with call_errors("ListRolePolicies", NO_SUCH_ENTITY):
                return [name[len(self._start) :] for name in self._names() if name.startswith(self._start)]
        except Absent:
            return []

    def _names(self) -> Iterator[str]:
        for page in self._iam.get_paginator("list_role_policies").paginate(RoleName=self._role):
            yield from page["PolicyNames"]

    def _put(self, denial: Denial) -> bool:
        """Write a denial; False if the role's policies have reached AWS's size limit."""
        text = json.dumps(denial.document, separators=(",", ":"))
        try:
            with call_errors("PutRolePolicy", NO_SUCH_ENTITY):
                self._iam.put_role_policy(
                    RoleName=self._role, PolicyName=self._start + denial.unit, PolicyDocument=text
                )
        except Absent as error:
            raise RoleGone from error
        except QuotaReached:
            return False
        return True

    def _remove(self, unit: str) -> None:
        try:
            with call_errors("DeleteRolePolicy", NO_SUCH_ENTITY):
                self._iam.delete_role_policy(RoleName=self._role, PolicyName=self._start + unit)
        except Absent:
            return
