"""Tokens of users: their rows, and the form of their secrets, of which only hashes are stored. [SEC-2]

Each token is made from another one, its parent, except those that are made with AWS credentials. Its row names all its
ancestors, so one read shows whether any of them was revoked. A token never outlives its parent, and is good for nothing
that its parent is not.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar
from zlib import crc32

from penstock.domain.users.users import digest
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
