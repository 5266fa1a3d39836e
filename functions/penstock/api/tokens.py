"""Tokens of users: made from other tokens, listed, and revoked."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal

from penstock.api.app import Caller, Router, UlidPage
from penstock.api.shapes import NextPage, view
from penstock.domain.users import users as rules
from penstock.domain.users.users import ANY, READ, Token
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.users import tokens
from penstock.usecases.users.tokens import Wish

router = Router("tokens")

PAGE = 100

TokenState = Literal["good", "expired", "revoked"]


@dataclass(frozen=True)
class NewToken:
    """A token to create."""

    name: Annotated[str, Bound(most=rules.NAME_CHARS), "What it is called in lists."] = ""
    scopes: Annotated[
        list[str],
        "What it is good for, such as `read` or `operate:target/lab`. By default, and at most, the scopes of the token "
        "that makes it.",
    ] = field(default_factory=list)
    expires_in: Annotated[
        int | Literal["never"] | None,
        "After how many seconds it expires, or `never`. By default after 90 days, or when the token that makes it "
        "does, if that is earlier. It never outlives that token.",
    ] = None


@dataclass(frozen=True)
class TokenView:
    """A token, without its secret."""

    id: Annotated[str, "Its id, which is also a part of its secret."]
    user: Annotated[str, "The user whose token it is."]
    name: Annotated[str, "What it is called."]
    kind: Annotated[
        Literal["user", "operator", "host", "session"],
        "What it is for. The secret of a token begins with `pst_` and this word; a session is in a browser's cookie.",
    ]
    scopes: Annotated[list[str], "What it is good for."]
    state: Annotated[
        TokenState, "Whether it is good by itself. It is refused as well if a token that it comes from is."
    ]
    created: Annotated[str, "When it was created, as RFC 3339."]
    by: Annotated[str, "The user who created it."]
    parent: Annotated[str | None, "The id of the token that it was made from; null if it was made from none."]
    expires: Annotated[str | None, "When it expires, as RFC 3339; null for never."]
    used: Annotated[str | None, "When it was last used, to the hour, as RFC 3339; null if it never was."]
    revoked: Annotated[str | None, "When it was revoked, as RFC 3339; null if it was not."]


@dataclass(frozen=True)
class TokenCreated(TokenView):
    """A new token, with its secret."""

    token: Annotated[str, "The secret. It is shown this once."]


@dataclass(frozen=True)
class TokenPage:
    """Some tokens, oldest first."""

    items: Annotated[list[TokenView], "The tokens."]
    next: NextPage


NO_WISH = NewToken()


@router.get("/v1/users/{name}/tokens", "List your own tokens, or as an operator those of any user", READ)
def list_tokens(on: System, user: Caller, name: str, *, page: UlidPage = "") -> TokenPage:
    found = tokens.list_tokens(on, user, name, PAGE, page)
    now = on.world.now()
    return TokenPage([show(each, now) for each in found], found[-1].id if len(found) == PAGE else None)


@router.post("/v1/users/{name}/tokens", "Create a token for yourself, or as an operator for any user", ANY, status=201)
def create_token(on: System, user: Caller, name: str, ask: NewToken = NO_WISH) -> TokenCreated:
    secret, token = tokens.mint(on, user, name, Wish(ask.name, ask.scopes, ask.expires_in))
    return view(TokenCreated, token, token=secret, **_shown(token, on.world.now()))


@router.delete("/v1/tokens/{token}", "Revoke a token, and all that were made from it", ANY)
def revoke_token(on: System, user: Caller, token: str) -> TokenView:
    return show(tokens.revoke(on, user, token), on.world.now())


def show(row: Token, now: datetime) -> TokenView:
    """A token, without its secret. [SEC-1]"""
    return view(TokenView, row, **_shown(row, now))


def _shown(row: Token, now: datetime) -> dict[str, object]:
    state: TokenState = "revoked" if row.revoked else "expired" if row.has_expired(now) else "good"
    return {
        "kind": "session" if row.session else row.sort,
        "state": state,
        "revoked": row.revoked.at if row.revoked else None,
    }
