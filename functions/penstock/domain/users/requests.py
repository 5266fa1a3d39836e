"""A request for a privilege: a user says why, and an operator grants it or says why not. [SEC-2]

A user asks once for each privilege: who asks again replaces what was said before.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.users.users import PRIORITY, User
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

LISTING = "privilegerequests"

KEPT = timedelta(days=30)
"""For how long a request is kept, from when it was made or decided."""

REASON_CHARS = 500


@dataclass(frozen=True, kw_only=True)
class PrivilegeRequest(Row):
    """That `user` wants a privilege, asked for by `by`. `decided_by` is the operator, `answer` what they said."""

    kind: ClassVar[str] = "privilegerequest"
    user: str
    privilege: str
    reason: str
    by: str
    since: datetime
    decided: datetime | None = None
    decided_by: str = ""
    is_granted: bool = False
    answer: str = ""

    @property
    def key(self) -> Key:
        return request_key(self.user, self.privilege)

    @property
    def place(self) -> Place:
        return Place(LISTING, f"{self.user}#{self.privilege}")

    @property
    def expiry(self) -> datetime:
        return (self.decided or self.since) + KEPT

    @property
    def is_open(self) -> bool:
        """Whether nobody has decided yet."""
        return self.decided is None


def request_key(user: str, privilege: str) -> Key:
    """Where the request of a user for a privilege is."""
    return Key(f"privilegerequest#{user}", privilege)


def decide(asked: PrivilegeRequest, by: str, now: datetime, *, grant: bool, answer: str = "") -> PrivilegeRequest:
    """A request that an operator granted or refused."""
    return replace(asked, decided=now, decided_by=by, is_granted=grant, answer=answer)


def wanted(guarded: set[str], user: User) -> set[str]:
    """The privileges that a user may ask for: those that something of the site needs, and `priority`; not what they
    have.
    """
    return {each for each in (guarded | {PRIORITY}) if not user.may(each)}
