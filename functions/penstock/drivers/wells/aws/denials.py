"""The end of all sessions of one lease: an inline policy on their role that denies everything to sessions so named.

One policy per unit, named after it: two that end two leases at once do not meet, and twice is the same as once. It
denies by name and not by the time of issue, so that it holds for what a call under way gives out after it, too: the id
of a unit is never used again. It says itself from when to when it is needed, and is taken away when no session of that
name can be left. docs/decisions/0026-sts-sessions-revoked-by-name.md [SEC-1]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.drivers.wells.aws.calls import Absent, calling
from penstock.kernel.errors import QuotaReached

SLACK = timedelta(minutes=5)
"""How much longer than a session a denial lasts: a call that was under way is over by then, and clocks differ."""

GONE = "NoSuchEntity"
_SPAN = re.compile(r"Since(\d+)Until(\d+)")


@dataclass(frozen=True)
class Denial:
    """A denial, and how long it is needed."""

    unit: str
    since: datetime
    until: datetime

    @property
    def document(self) -> dict[str, Any]:
        """The policy. All inline policies of a role share 10,240 characters: this one has 196."""
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
        """A denial from a policy; None for what we did not write."""
        statement = document.get("Statement", {})
        span = _SPAN.fullmatch(str(statement.get("Sid"))) if isinstance(statement, Mapping) else None
        if span is None:
            return None
        found = Denial(unit, *(datetime.fromtimestamp(int(each), UTC) for each in span.groups()))
        return found if found.document == document else None


class NoRoom(Exception):
    """The role's inline policies have all the characters that they may."""


class RoleGone(Exception):
    """The role is no more, and with it none of its sessions may do anything."""


class Denials:
    """The denials of a site on one role."""

    def __init__(self, iam: Any, role: str, site: str) -> None:
        self._iam, self._role, self._start = iam, role, f"penstock-{site}-"

    def deny(self, unit: str, now: datetime, lasting: timedelta) -> Denial | None:
        """End every session of a unit; None while IAM does not show it. Raises NoRoom, RoleGone, DriverError."""
        standing = self.find(unit)
        if standing:
            return standing
        wanted = Denial(unit, now, now + lasting + SLACK)
        if not self._put(wanted) and not (self.tidy(now) and self._put(wanted)):
            raise NoRoom
        return self.find(unit)

    def find(self, unit: str) -> Denial | None:
        """A unit's denial as IAM has it now. Raises DriverError."""
        try:
            with calling("GetRolePolicy", GONE):
                found = self._iam.get_role_policy(RoleName=self._role, PolicyName=self._start + unit)
        except Absent:
            return None
        return Denial.read(unit, found["PolicyDocument"])

    def tidy(self, now: datetime) -> int:
        """Take away the denials that are needed no longer; how many. Raises DriverError."""
        count = 0
        for unit in self._units():
            found = self.find(unit)
            if found and found.until <= now:
                self._remove(unit)
                count += 1
        return count

    def _units(self) -> list[str]:
        """The units that are denied something, page by page; none where the role is no more."""
        try:
            with calling("ListRolePolicies", GONE):
                return [name[len(self._start) :] for name in self._names() if name.startswith(self._start)]
        except Absent:
            return []

    def _names(self) -> Iterator[str]:
        for page in self._iam.get_paginator("list_role_policies").paginate(RoleName=self._role):
            yield from page["PolicyNames"]

    def _put(self, denial: Denial) -> bool:
        """Write a denial; False when there is no room."""
        text = json.dumps(denial.document, separators=(",", ":"))
        try:
            with calling("PutRolePolicy", GONE):
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
            with calling("DeleteRolePolicy", GONE):
                self._iam.delete_role_policy(RoleName=self._role, PolicyName=self._start + unit)
        except Absent:
            return
