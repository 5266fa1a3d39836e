"""GitHub accounts with which people sign in: which user each is, and how GitHub is asked who somebody is. [SEC-2]

An account is known by GitHub's number, which nobody else gets; a login may be given up and taken by another.
docs/decisions/0087-public-repositories.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import urlencode

from penstock.domain.github.names import LOGIN
from penstock.domain.site.site import GitHubApp
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

LASTS = timedelta(minutes=10)
"""How long somebody may take at GitHub: its codes last as long."""

MOST = 2**53
"""More accounts than GitHub has numbers for."""


@dataclass(frozen=True, kw_only=True)
class Account(Row):
    """That a GitHub account is a user's. Sessions come from `token`, whose secret nobody has."""

    kind: ClassVar[str] = "github-account"
    id: int
    login: str
    user: str
    token: str

    @property
    def key(self) -> Key:
        return account_key(self.id)


@dataclass(frozen=True)
class Person:
    """Whom GitHub knows by a token: the account's number, and its present login."""

    id: int
    login: str


def account_key(id: int) -> Key:
    """Where it stands whose an account is."""
    return Key(f"github-account#{id}", "account")


def is_login(text: str) -> bool:
    """Whether a text can be a login."""
    return re.fullmatch(LOGIN, text) is not None


def person_in(body: Any) -> Person | None:
    """Whom an answer of `GET /user` names; None if it is no such answer."""
    if not isinstance(body, Mapping):
        return None
    id, login = body.get("id"), body.get("login")
    if isinstance(id, bool) or not isinstance(id, int) or not 0 < id <= MOST:
        return None
    return Person(id, login) if isinstance(login, str) and is_login(login) else None


def authorize_url(app: GitHubApp, redirect: str, state: str, verifier: str) -> str:
    """Where a browser asks GitHub for a code that only who has the verifier can use. [SEC-2]

    Source: GitHub, "PKCE support for OAuth and GitHub App authentication" (changelog, 14 July 2025): only S256.
    """
    asked = {
        "client_id": app.client_id,
        "redirect_uri": redirect,
        "state": state,
        "code_challenge": challenge(verifier),
        "code_challenge_method": "S256",
        "allow_signup": "false",
    }
    return f"{app.web}/login/oauth/authorize?{urlencode(asked)}"


def challenge(verifier: str) -> str:
    """What is shown of a verifier before it is. Source: RFC 7636, section 4.2."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def verifier_in(kept: str, state: str) -> str:
    """The verifier that a browser kept, if it is the one that began a sign-in with this state; else "". [SEC-2]"""
    began, _, verifier = kept.partition(".")
    is_same = bool(began) and hmac.compare_digest(began.encode(), state.encode())
    return verifier if is_same else ""
