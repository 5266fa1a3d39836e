"""Logins by code: a machine asks for a token, and a user who is signed in elsewhere approves."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from penstock.api.app import Caller, Router, Stranger
from penstock.api.shapes import view
from penstock.domain.users import logins as rules
from penstock.domain.users.logins import Login
from penstock.domain.users.users import ANY, Token
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.users import logins
from penstock.usecases.users.tokens import Wish

router = Router("logins")

LoginStateName = Literal["waiting", "approved", "taken"]


@dataclass(frozen=True)
class BeginLogin:
    """A machine that asks for a token."""

    host: Annotated[str, Bound(most=255), "What the machine calls itself. Whoever approves sees it."] = ""


@dataclass(frozen=True)
class LoginBegun:
    """A login that waits for approval."""

    code: Annotated[str, "The code to show. Somebody who is signed in gives it to `penstock login approve`."]
    secret: Annotated[str, "The secret with which the machine takes the token. It is shown this once."]
    expires_in: Annotated[int, "After how many seconds the login is over."]
    interval: Annotated[int, "How many seconds to wait between two looks."]


@dataclass(frozen=True)
class LoginView:
    """A login, as whoever approves it sees it."""

    host: Annotated[str, "What the machine calls itself, in printable ASCII. Anybody can call a machine anything."]
    address: Annotated[str, "The address that the request came from."]
    created: Annotated[str, "When it began, as RFC 3339."]
    ends: Annotated[str, "When it is over, as RFC 3339."]
    state: Annotated[LoginStateName, "Whether it waits, was approved, or its token was taken."]


@dataclass(frozen=True)
class ApproveLogin:
    """What the new token will be good for."""

    scopes: Annotated[list[str], "Its scopes. By default, and at most, those of the token that approves."] = field(
        default_factory=list
    )
    expires_in: Annotated[
        int | Literal["never"] | None,
        "After how many seconds it expires, or `never`. By default after 90 days, or when the token that approves "
        "does, if that is earlier. It never outlives that token.",
    ] = None


@dataclass(frozen=True)
class LoginApproved(LoginView):
    """A login that was approved."""

    scopes: Annotated[list[str], "What the new token is good for."]
    expires: Annotated[str | None, "When it expires, as RFC 3339; null for never."]


@dataclass(frozen=True)
class TakeLogin:
    """The machine that waits looks whether its login was approved."""

    secret: Annotated[str, Bound(most=200), "The secret of the login."]


@dataclass(frozen=True)
class LoginTaken:
    """How far a login is and, once, its token."""

    state: Annotated[Literal["waiting", "approved"], "Whether it still waits. If not, the token follows."]
    token: Annotated[str | None, "The token. It is shown this once; null while the login waits."] = None
    id: Annotated[str | None, "The token's id."] = None
    user: Annotated[str | None, "The user whose token it is."] = None
    scopes: Annotated[list[str], "What the token is good for."] = field(default_factory=list)
    expires: Annotated[str | None, "When the token expires, as RFC 3339; null for never."] = None


APPROVE = ApproveLogin()


@router.post("/v1/logins", "Ask for a token that somebody approves by a code", status=201)
def begin_login(on: System, address: Stranger, ask: BeginLogin) -> LoginBegun:
    code, secret = logins.begin(on, ask.host, address)
    return LoginBegun(code, secret, int(rules.LASTS.total_seconds()), rules.INTERVAL)


@router.get("/v1/logins/{code}", "Show who asks for a token", ANY)
def get_login(on: System, user: Caller, code: str) -> LoginView:
    found = logins.find(on, user, code)
    return view(LoginView, found, state=_state(found))


@router.post("/v1/logins/{code}/approve", "Let a machine take a token made from yours", ANY)
def approve_login(on: System, user: Caller, code: str, ask: ApproveLogin = APPROVE) -> LoginApproved:
    found = logins.approve(on, user, code, Wish("", ask.scopes, ask.expires_in))
    return view(LoginApproved, found, found.approval, state=_state(found))


@router.post("/v1/logins/{code}/token", "Take the token of a login that was approved")
def take_login(on: System, code: str, ask: TakeLogin) -> LoginTaken:
    got = logins.take(on, code, ask.secret)
    if got is None:
        return LoginTaken("waiting")
    return show(got[1], got[0])


def show(row: Token, secret: str) -> LoginTaken:
    """A token that was just made, with its secret."""
    return view(LoginTaken, row, state="approved", token=secret)


def _state(row: Login) -> LoginStateName:
    return "taken" if row.taken else "approved" if row.approval else "waiting"
