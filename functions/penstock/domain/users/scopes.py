"""Scopes: what of its user's rights a token is good for. [SEC-2]

They only narrow: the user needs the privilege as well.

Every route names the scope that it needs where it is declared. docs/operators/permissions.md lists them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.domain.users.tokens import Token, TokenKind
from penstock.domain.users.users import User, is_name
from penstock.kernel.frozen import dataclass

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
