"""Users, their privileges, and their tokens, of which only hashes are stored. [SEC-2]"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
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


@dataclass(frozen=True, kw_only=True)
class User(Row):
    """Somebody who submits jobs, or a repository for which somebody does.

    `revoked` says of what they may not any more since when that is, and by whom. `repository_id` is what GitHub calls
    a repository whatever its name is; 0 until it is known.
    """

    kind: ClassVar[str] = "user"
    name: str
    privileges: tuple[str, ...] = ()
    revoked: tuple[Revoked, ...] = ()
    created: datetime
    repository_id: int = 0

    @property
    def key(self) -> Key:
        return user_key(self.name)

    @property
    def place(self) -> Place:
        return Place("users", self.name)

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

    def may_act_for(self, owner: str) -> bool:
        """Whether the user may submit jobs of an owner's: their own, and those of repositories that they were given."""
        return owner == self.name or (is_repository(owner) and (self.may(ACT_AS) or self.may(f"{ACT_AS}.{owner}")))

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
    lacking = next((each for each in sorted(privileges) if not user.may(each)), None)
    if lacking is None:
        return None
    for each in reversed(user.revoked):
        if each.privilege in (lacking, ADMIN):
            when = f"{each.at:%Y-%m-%d %H:%M:%SZ}"
            return f"{user.name} may not have this any more: {each.by} revoked {each.privilege!r} at {when}"
    return f"{user.name} may not have this: it needs the privilege {lacking!r}"


@dataclass(frozen=True, kw_only=True)
class Token(Row):
    """A user's token, known by its hash only."""

    kind: ClassVar[str] = "token"
    digest: str
    user: str
    created: datetime
    expires: datetime | None = None

    @property
    def key(self) -> Key:
        return token_key(self.digest)

    @property
    def expiry(self) -> datetime | None:
        return self.expires


def user_key(name: str) -> Key:
    """Where a user's row is."""
    return Key(f"user#{name}", "user")


def token_key(digest: str) -> Key:
    """Where the row of a token with this digest is."""
    return Key(f"token#{digest}", "token")


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
