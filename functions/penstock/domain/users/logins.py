"""Logins by code: a machine without a browser asks for a token, and a user who is signed in elsewhere approves. [SEC-2]

The machine shows a short code, which the user types, and keeps a long secret, with which it takes the token. Of both
only hashes are stored. The code alone gives nothing to anybody: who knows it can only approve, with a token of theirs.
docs/decisions/0080-a-login-is-approved-by-code.md
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.users.users import digest
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

LASTS = timedelta(minutes=10)
"""How long a login waits to be approved, and then to be taken."""

INTERVAL = 5
"""Seconds between two looks of the machine that waits."""

LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""What codes consist of: no vowels, so they form no words, and no digits that look like letters. Source: RFC 8628."""

CODE_CHARS = 8
"""How long a code is: there are 20^8, 26 thousand million."""

HOST_CHARS = 64
"""How much is kept of what a machine calls itself."""

PER_ADDRESS = 10
"""How many logins may begin from one address in LASTS."""

PER_SITE = 100
"""How many logins may begin in LASTS at all. So at most twice as many wait."""

WRONG_CODES = 10
"""How many wrong codes a user may give in LASTS. A guess is right once in 10^8, if 200 logins wait."""


@dataclass(frozen=True)
class Approval:
    """Who approved a login: with which token, and what the new token will be good for, and until when."""

    by: str
    token: str
    at: datetime
    scopes: tuple[str, ...]
    expires: datetime | None


@dataclass(frozen=True, kw_only=True)
class Login(Row):
    """A machine that asks for a token. `host` is what it calls itself, `address` where its request came from.

    `taken` is the id of the token that it got; "" until then.
    """

    kind: ClassVar[str] = "login"
    is_recreated: ClassVar[bool] = True
    code: str
    secret: str
    host: str
    address: str
    created: datetime
    approval: Approval | None = None
    taken: str = ""

    @property
    def key(self) -> Key:
        return Key(f"login#{self.code}", "login")

    @property
    def ends(self) -> datetime:
        """When it is over."""
        return self.created + LASTS

    @property
    def expiry(self) -> datetime:
        return self.ends

    def is_of(self, secret: str) -> bool:
        """Whether a secret is that of the machine that asks."""
        return hmac.compare_digest(self.secret, digest(secret))


def login_key(code: str) -> Key:
    """Where the login with a code is, however a person writes the code."""
    return Key(f"login#{digest(plain(code))}", "login")


def new_login(code: str, secret: str, host: str, address: str, now: datetime) -> Login:
    """A login that nobody approved yet."""
    return Login(
        code=digest(plain(code)), secret=digest(secret), host=clean(host), address=plain_address(address), created=now
    )


def code_from(chance: str) -> str:
    """A code to show, made of a secret text by chance, such as BCDF-GHJK."""
    number = int.from_bytes(hashlib.sha256(chance.encode()).digest(), "big")
    letters = [LETTERS[number // len(LETTERS) ** place % len(LETTERS)] for place in range(CODE_CHARS)]
    return "".join(letters[: CODE_CHARS // 2]) + "-" + "".join(letters[CODE_CHARS // 2 :])


def plain(code: str) -> str:
    """A code without what people add to it, or change: hyphens, blanks, small letters."""
    return "".join(letter for letter in code.upper() if letter in LETTERS)[: CODE_CHARS + 1]


def clean(host: str) -> str:
    """What a machine calls itself, in printable ASCII: it is shown on the terminals of others. [SEC-1]"""
    return "".join(each if each.isascii() and each.isprintable() else "?" for each in host.strip())[:HOST_CHARS]


def plain_address(address: str) -> str:
    """An address in its usual form; "unknown" for what is none."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return "unknown"


def network(address: str) -> str:
    """Whose logins are counted together: those of an IPv4 address, or of an IPv6 network of 64 bits, which one has."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    return str(found if found.version == 4 else ipaddress.ip_network((found, 64), strict=False))


@dataclass(frozen=True, kw_only=True)
class LoginPace(Row):
    """How many logins began, or wrong codes were given, as that was `at` a time; all are forgotten within LASTS."""

    kind: ClassVar[str] = "login-pace"
    is_recreated: ClassVar[bool] = True
    of: str
    level: float = 0.0
    at: datetime

    @property
    def key(self) -> Key:
        return pace_key(self.of)

    @property
    def expiry(self) -> datetime:
        return self.at + LASTS


def pace_key(of: str) -> Key:
    """Where it is counted."""
    return Key(f"login-pace#{of}", "login-pace")


def level(pace: LoginPace, most: int, now: datetime) -> float:
    """How many of `most` are not forgotten yet: a bucket that leaks, all of it in LASTS."""
    return max(0.0, pace.level - (now - pace.at) / LASTS * most)


def with_one_more(pace: LoginPace, most: int, now: datetime, why: str) -> LoginPace:
    """One more is counted. Raises Refused 429 with `why` if there are `most` already. [SEC-2]"""
    now_at = level(pace, most, now)
    if now_at + 1 > most:
        raise Refused(429, "too-many-logins", f"{why}; at most {most} in {LASTS.seconds // 60} minutes: wait a minute")
    return replace(pace, level=now_at + 1, at=now)
