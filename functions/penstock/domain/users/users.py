"""Users: their names, their privileges, and whether they may act. [SEC-2]"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

ADMIN = "admin"
"""The privilege of operators: everything."""

ACT_AS = "as"
"""The privilege to submit for every repository; `as.oxide:hubris` is the one for that repository."""

VOUCH = "identity.vouch"
"""The privilege of front ends for forges: a job's identity tokens repeat what they say of its source. Operators do not
have it unless it is granted to them: a tag in a file that they run proves nothing.
"""

LISTING = "users"

MAX_REVOCATIONS = 100
"""How many revocations are remembered of one user."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}(:[a-z0-9._-]{1,100})?")


_PRIVILEGE = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,191}")


_TOKEN = re.compile(r"[A-Za-z0-9_-]{43,128}")


@dataclass(frozen=True)
class Revoked:
    """That a privilege was taken away: by whom, and when."""

    privilege: str
    by: str
    at: datetime


class Standing(StrEnum):
    """Why a user may not act."""

    DISABLED = "disabled"
    RENAMED = "renamed"  # the row is a former name, which is not given to anybody else
    REMOVED = "removed"  # neither is the name of a user who was removed


@dataclass(frozen=True)
class Status:
    """That a user may not act: since when, and who decided it. `to` is the user's present name, if it is another."""

    standing: Standing
    by: str
    at: datetime
    to: str = ""


@dataclass(frozen=True)
class Withdrawal:
    """How far the jobs of a disabled user have been ended: `names` are left, of the first those before `before`.

    `live` are jobs that were left running, `is_cut` says that there are more. `is_last` is the pass that looks for jobs
    that were being submitted when the user was disabled.
    """

    names: tuple[str, ...]
    ends_live: bool
    before: str = ""
    is_last: bool = False
    live: tuple[str, ...] = ()
    is_cut: bool = False


@dataclass(frozen=True, kw_only=True)
class User(Row):
    """Somebody who submits jobs, or a repository for which somebody does.

    `revoked` says of what they may not any more since when that is, and by whom. `repository_id` is what GitHub calls
    a repository whatever its name is; 0 until it is known. `former` are earlier names. `due` is when the sweep goes on
    with what follows from `status`.
    """

    kind: ClassVar[str] = "user"
    name: str
    privileges: tuple[str, ...] = ()
    revoked: tuple[Revoked, ...] = ()
    created: datetime
    repository_id: int = 0
    former: tuple[str, ...] = ()
    status: Status | None = None
    withdrawal: Withdrawal | None = None
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return user_key(self.name)

    @property
    def place(self) -> Place | None:
        return None if self.is_a(Standing.RENAMED) or self.is_a(Standing.REMOVED) else Place(LISTING, self.name)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def names(self) -> tuple[str, ...]:
        """The user's name, and the former ones: jobs and files keep the name that their owner had."""
        return (self.name, *self.former)

    def is_a(self, standing: Standing) -> bool:
        """Whether the row is of a user with this standing."""
        return self.status is not None and self.status.standing is standing

    @property
    def is_admin(self) -> bool:
        """Whether the user is an operator."""
        return ADMIN in self.privileges

    @property
    def may_vouch(self) -> bool:
        """Whether the user's word on a job's source is believed. [SEC-2]"""
        return VOUCH in self.privileges

    def is_of(self, repository_id: int) -> bool:
        """Whether the user is a repository of GitHub's, or may become it. [SEC-2]"""
        return self.repository_id in (0, repository_id)

    def may(self, privilege: str | None) -> bool:
        """Whether the user has a privilege; nobody lacks the privilege that isn't asked for."""
        return privilege is None or self.is_admin or privilege in self.privileges

    def covers(self, scope: str, of: str) -> bool:
        """Whether the token that the user showed is not narrowed to something else. A row as such has no token."""
        del scope, of
        return True

    def may_act_for(self, owner: str) -> bool:
        """Whether the user may submit jobs of an owner's: their own, and those of repositories that they were given."""
        return owner in self.names or (is_repository(owner) and (self.may(ACT_AS) or self.may(f"{ACT_AS}.{owner}")))

    def may_see(self, owner: str) -> bool:
        """Whether the user may see, and deal with, an owner's jobs and artifacts. [SEC-2]"""
        return self.is_admin or self.may_act_for(owner)


def with_privileges(user: User, privileges: Sequence[str], by: str, now: datetime) -> User:
    """A user with these privileges. A privilege that was taken away is remembered until it is granted again."""
    taken = [Revoked(each, by, now) for each in user.privileges if each not in privileges]
    before = [each for each in user.revoked if each.privilege not in privileges]
    return replace(user, privileges=tuple(privileges), revoked=tuple([*before, *taken][-MAX_REVOCATIONS:]))


def explain_denial(user: User, privileges: Iterable[str]) -> str | None:
    """Why a user may not have something that needs privileges, as a sentence; None if they may."""
    if user.status:
        return explain_status(user)
    lacking = next((each for each in sorted(privileges) if not user.may(each)), None)
    if lacking is None:
        return None
    for each in reversed(user.revoked):
        if each.privilege in (lacking, ADMIN):
            when = f"{each.at:%Y-%m-%d %H:%M:%SZ}"
            return f"{user.name} may not have this any more: {each.by} revoked {each.privilege!r} at {when}"
    return f"{user.name} may not have this: it needs the privilege {lacking!r}"


def explain_status(user: User) -> str | None:
    """Why a user may do nothing, as a sentence; None for one who may act."""
    if user.status is None:
        return None
    return f"{user.name} was {user.status.standing} by {user.status.by} at {user.status.at:%Y-%m-%d %H:%M:%SZ}"


def user_key(name: str) -> Key:
    """Where a user's row is."""
    return Key(f"user#{name}", "user")


def digest(secret: str) -> str:
    """The stored hash of a secret. Tokens are long and random, so one round of SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_name(text: str) -> bool:
    """Whether a text can name a user, or a repository."""
    return _NAME.fullmatch(text) is not None


def is_repository(name: str) -> bool:
    """Whether a user's name is a repository's: that of its owner, a colon, and its own."""
    return ":" in name


def is_privilege(text: str) -> bool:
    """Whether a text can name a privilege."""
    return _PRIVILEGE.fullmatch(text) is not None


def is_strong(token: str) -> bool:
    """Whether a token chosen by somebody else is long and random enough in shape to be accepted."""
    return _TOKEN.fullmatch(token) is not None
