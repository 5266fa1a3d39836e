"""Tokens of users: their rows, and the form of their secrets, of which only hashes are stored. [SEC-2]

Each token is made from another one, its parent, except those that are made with AWS credentials. Its row names all its
ancestors, so one read shows whether any of them was revoked. A token never outlives its parent, and is good for nothing
that its parent is not.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, NamedTuple
from zlib import crc32

from penstock.domain.users.users import User, digest, is_name
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import ALPHABET, Key, Place, Row

DEFAULT_LIFE = timedelta(days=90)
"""How long a token lasts that is made without saying."""

LONGEST_LIFE = timedelta(days=10 * 366)
"""The longest life that can be given in seconds."""

ANCESTORS = 8
"""How many ancestors a token has at most: so many rows are read with the token's user."""

TOUCHED_EVERY = timedelta(hours=1)
"""How often the last use of a token is written at most."""

KEPT_FOR = timedelta(days=30)
"""How long a revoked token stays in lists."""

NAME_CHARS = 100
"""How long the name of a token may be."""


class TokenKind(StrEnum):
    """What a token is made for. Its secret says it, for those who find the secret somewhere."""

    USER = "user"
    OPERATOR = "operator"
    HOST = "host"


@dataclass(frozen=True)
class Revocation:
    """That a token was revoked: by whom, and when."""

    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Token(Row):
    """A user's token. `ancestors` are the ids of those that it comes from, its parent last.

    `used` is when it was last used, to the hour. `by` is the user who made it.
    """

    kind: ClassVar[str] = "token"
    id: str
    digest: str
    user: str
    name: str = ""
    sort: TokenKind = TokenKind.USER
    scopes: tuple[str, ...] = ()
    created: datetime
    by: str = ""
    expires: datetime | None = None
    used: datetime | None = None
    ancestors: tuple[str, ...] = ()
    revoked: Revocation | None = None

    @property
    def key(self) -> Key:
        return token_key(self.id)

    @property
    def place(self) -> Place:
        return Place(listing(self.user), self.id)

    @property
    def expiry(self) -> datetime | None:
        return self.revoked.at + KEPT_FOR if self.revoked else self.expires

    @property
    def parent(self) -> str | None:
        """The id of the token that made it; None for the first of a deployment."""
        return self.ancestors[-1] if self.ancestors else None

    def is_shown_by(self, secret: str) -> bool:
        """Whether a secret is this token's."""
        return hmac.compare_digest(self.digest, digest(secret))

    def has_expired(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.expires is not None and self.expires <= now

    def is_good(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired. Its ancestors must be good too. [SEC-2]"""
        return self.revoked is None and not self.has_expired(now)

    def is_stale(self, now: datetime) -> bool:
        """Whether its last use is to be written."""
        return self.used is None or now - self.used >= TOUCHED_EVERY

    def comes_from(self, token: str) -> bool:
        """Whether it is that token, or was made by it, or by one that was."""
        return token == self.id or token in self.ancestors


def token_key(id: str) -> Key:
    """Where the row of a token is."""
    return Key(f"token#{id}", "token")


def listing(user: str) -> str:
    """The listing of a user's tokens."""
    return f"tokens#{user}"


def is_any_gone(ancestors: Iterable[Token | None], now: datetime) -> bool:
    """Whether one of a token's ancestors is revoked, expired, or no longer there. [SEC-2]"""
    return any(each is None or not each.is_good(now) for each in ancestors)


_FORM = re.compile(
    r"pst_(?:user|operator|host)_([0-7][0-9A-HJKMNP-TV-Z]{25})_[A-Za-z0-9_-]{20,128}([0-9A-HJKMNP-TV-Z]{7})"
)

_OLD_FORM = re.compile(r"pst_[A-Za-z0-9_-]{43}")


def secret_of(sort: TokenKind, id: str, chance: str) -> str:
    """The secret of a new token: `pst_`, what it is for, its id, chance, and a checksum.

    Scanners for leaked secrets find it by its form, and are sure by its checksum, as with GitHub's tokens.
    """
    text = f"pst_{sort}_{id}_{chance}"
    return text + _checksum(text)


def _checksum(text: str) -> str:
    number = crc32(text.encode())
    return "".join(ALPHABET[number >> shift & 31] for shift in range(30, -1, -5))


def id_in(secret: str) -> str | None:
    """The id of the token that a secret is of; None if it is no whole secret."""
    found = _FORM.fullmatch(secret)
    return found[1] if found and _checksum(secret[: -len(found[2])]) == found[2] else None


def is_old(secret: str) -> bool:
    """Whether a secret has the form that tokens had before they had ids."""
    return _OLD_FORM.fullmatch(secret) is not None


MEANINGS: Mapping[str, str] = {
    "all": "everything that the user may do",
    "read": "see what the user may see; as an operator, also the site, workers and the audit log",
    "submit": "submit jobs, and deal with them and their files; with `submit:OWNER` only those of one owner",
    "operate": "control pools, workers, resources and probes; with `operate:POOL` only one pool and what is in it",
    "host": "speak as one host, `host:POOL/NAME`, and nothing else",
    "site": "check and apply the site's configuration",
    "users": "manage users, privileges and tokens",
}
"""Every scope, and what a token with it may do. The text after a colon narrows it."""

ALL = "all"

SCOPES = 20
"""How many scopes a token may have."""

_POOL = re.compile(r"(target|resource|quota)/[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Scope(NamedTuple):
    """A scope, and what it is narrowed to; "" if it is not."""

    name: str
    of: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.of}" if self.of else self.name

    def covers(self, other: Scope) -> bool:
        """Whether a token with this scope may do all that one with the other may."""
        return self.name == ALL or (self.name == other.name and self.of in ("", other.of))


class Need(NamedTuple):
    """The scope that a route needs, "" for any but a host's. A route that `narrows` also takes one with a colon."""

    scope: str
    narrows: bool = False


WHOLE = Need("all")
"""What a route needs that does not say."""

ANY = Need("")
READ = Need("read")
SUBMIT = Need("submit", narrows=True)
OPERATE = Need("operate")
OPERATE_POOL = Need("operate", narrows=True)
HOST = Need("host", narrows=True)
SITE = Need("site")
USERS = Need("users")


def parse(text: str) -> Scope | None:
    """The scope that a text names; None if it is none."""
    name, colon, of = text.partition(":")
    is_narrowed = {
        "submit": lambda: is_name(of),
        "operate": lambda: _POOL.fullmatch(of) is not None,
        "host": lambda: _POOL.fullmatch(of.rpartition("/")[0]) is not None and is_name(of.rpartition("/")[2]),
    }.get(name)
    if name not in MEANINGS or (name == "host" and not colon):
        return None
    return Scope(name, of) if not colon or (is_narrowed and is_narrowed()) else None


def parsed(texts: Iterable[str]) -> list[Scope]:
    """The scopes of a token. One that is not known any more allows nothing."""
    return [scope for scope in map(parse, texts) if scope]


def exceeding(wanted: Sequence[Scope], had: Sequence[Scope]) -> Scope | None:
    """The first scope that nobody may give who has these; None if there is none. [SEC-2]"""
    return next((each for each in wanted if not any(one.covers(each) for one in had)), None)


def kind_of(wanted: Sequence[Scope], user: User) -> TokenKind:
    """What a token with some scopes is made for."""
    if wanted and all(scope.name == "host" for scope in wanted):
        return TokenKind.HOST
    is_wide = any(scope.name in (ALL, "operate", "site", "users") for scope in wanted)
    return TokenKind.OPERATOR if is_wide and user.is_admin else TokenKind.USER


def granted(need: Need, had: Sequence[Scope]) -> frozenset[str] | None:
    """To what a token is narrowed on a route: `{""}` for nothing; None if it lacks the scope. [SEC-2]"""
    if not need.scope:
        return frozenset([""]) if any(scope.name != "host" for scope in had) else None
    found = {scope.of for scope in had if scope.name in (need.scope, ALL)}
    if "" in found:
        return frozenset([""])
    return frozenset(found) if found and need.narrows else None


@dataclass(frozen=True, kw_only=True)
class Bearer(User):
    """A user who shows a token, and what the token is good for on this route. [SEC-2]

    `within` is what the scope is narrowed to, `{""}` for nothing.
    """

    token: Token
    need: Need
    within: frozenset[str]

    @property
    def is_narrowed(self) -> bool:
        """Whether the token is for less than the route's whole scope."""
        return "" not in self.within

    def covers(self, scope: str, of: str) -> bool:
        return self.need.scope != scope or not self.is_narrowed or of in self.within

    def may_act_for(self, owner: str) -> bool:
        """Whether the user may submit jobs of an owner's, with this token."""
        return User.may_act_for(self, owner) and self.covers("submit", owner)

    def may_see(self, owner: str) -> bool:
        """Whether the user may deal with an owner's jobs and artifacts. Those of others are for tokens that operate."""
        is_own = self.need == SUBMIT and granted(OPERATE, parsed(self.token.scopes)) is None
        return self.may_act_for(owner) if is_own else User.may_see(self, owner) and self.covers("submit", owner)


def bearer(user: User, token: Token, need: Need) -> Bearer | None:
    """A user with a token, on a route; None if the token lacks the scope."""
    within = granted(need, parsed(token.scopes))
    return None if within is None else Bearer(**vars(user), token=token, need=need, within=within)
