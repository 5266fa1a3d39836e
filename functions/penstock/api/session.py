"""Signing in to the console and out of it, and how one may sign in here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.shared.cookies import Cookie
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2 as Event

from penstock.api import cookies
from penstock.api.app import Authenticated, Pattern, Reply, Router
from penstock.api.document import document
from penstock.api.shapes import view
from penstock.domain.github.accounts import LASTS
from penstock.domain.users.users import Bearer, Need
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System, current_site
from penstock.usecases.github import accounts
from penstock.usecases.users import sessions

router = Router("session")


@dataclass(frozen=True)
class Visit:
    """A browser that signs in or out: the session that it has, "" if none, and what it calls itself."""

    session: str
    agent: str


def _visit(on: System, event: Event, path: Mapping[str, str], need: Need) -> Visit:
    """The browser that asks. Raises Refused 403 for what another site's page may have sent. [SEC-2]"""
    del on, path, need
    cookies.require_ours(event)
    return Visit(cookies.session(event), event.headers.get("user-agent", ""))


def _return(on: System, event: Event, path: Mapping[str, str], need: Need) -> Visit:
    """The browser that comes back from GitHub, with what it kept when it went there. [SEC-2]"""
    del on, path, need
    return Visit(cookies.value(event, cookies.GITHUB), event.headers.get("user-agent", ""))


FromGitHub = Annotated[Visit, Authenticated(_return, "", must=False, has_scopes=False)]
"""A browser that GitHub sent here. `session` is that of the sign-in."""

_WORD = "[A-Za-z0-9_.-]{0,200}"

HOW = f"Only with the header `{cookies.HEADER}: 1`."

Browser = Annotated[Visit, Authenticated(_visit, HOW, must=False, has_scopes=False)]
"""A page of the console, whoever is signed in there."""


@dataclass(frozen=True)
class BeginSession:
    """What somebody signs in with: either a token, or a login that was approved."""

    token: Annotated[str, Bound(most=200), "A token of the user's."] = ""
    code: Annotated[str, Bound(most=40), "The code of a login that was approved."] = ""
    secret: Annotated[str, Bound(most=200), "The secret of that login."] = ""


@dataclass(frozen=True)
class SessionView:
    """Who is signed in."""

    id: Annotated[str, "The session's id. It is among the user's tokens."]
    user: Annotated[str, "The user."]
    privileges: Annotated[list[str], "What the user may do."]
    is_operator: Annotated[bool, "Whether the user is an operator."]
    scopes: Annotated[list[str], "What the session is good for."]
    expires: Annotated[str, "When it ends, as RFC 3339."]


@dataclass(frozen=True)
class SessionEnded:
    """That nobody is signed in any more."""

    ended: Annotated[bool, "Whether somebody was signed in."]


@dataclass(frozen=True)
class ConsoleView:
    """Where the console is, how one may sign in there, and what one sees without that."""

    url: Annotated[str | None, "The address of its pages, without a slash at the end; null where there are none."]
    github: Annotated[bool, "Whether one may sign in with GitHub."]
    public: Annotated[bool, "Whether there are repositories whose jobs everybody may read."]
    version: Annotated[str, "What changes with every change of the API's operations."]


@router.post("/v1/session", "Sign in to the console", status=201)
def begin_session(on: System, visit: Browser, ask: BeginSession) -> SessionView | Reply:
    if bool(ask.token) == bool(ask.code or ask.secret):
        raise Refused(400, "bad-request", "give either a token, or the code and the secret of a login")
    if ask.token:
        return _begun(*sessions.begin(on, ask.token, visit.agent))
    return _begun(*sessions.begin_by_code(on, ask.code, ask.secret, visit.agent))


@router.delete("/v1/session", "Sign out of the console")
def end_session(on: System, visit: Browser) -> SessionEnded | Reply:
    return Reply(200, SessionEnded(sessions.end(on, visit.session)), [cookies.without_session()])


@router.get("/v1/session/github", "Sign in to the console with GitHub, by a redirect", status=302)
def begin_github(on: System) -> Response[Any]:
    address, kept = accounts.begin(on)
    return _redirect(address, cookies.of_github(kept, LASTS))


@router.get("/v1/session/github/callback", "Come back from GitHub, signed in, by a redirect", status=302)
def finish_github(
    on: System,
    visit: FromGitHub,
    *,
    code: Annotated[str, Pattern(_WORD, "code is GitHub's"), "What GitHub gives who signed in there."] = "",
    state: Annotated[str, Pattern(_WORD, "state is ours"), "What was given to GitHub."] = "",
) -> Response[Any]:
    try:
        secret, user = accounts.finish(on, code, state, visit.session, visit.agent)
    except Refused as refused:
        if not on.console_url:
            raise
        return _redirect(f"/sign-in?refused={refused.code}", cookies.without_github())
    return _redirect("/", _cookie_of(secret, user), cookies.without_github())


def _redirect(to: str, *set_: Cookie) -> Response[Any]:
    return Response(302, "text/plain", "", {"location": to, "cache-control": "no-store"}, cookies=list(set_))


@router.get("/v1/console", "Show where the console is, and how one may sign in there")
def get_console(on: System) -> ConsoleView:
    return ConsoleView(
        url=on.console_url or None,
        github=accounts.is_offered(on),
        public=bool(current_site(on).console.public),
        version=_version(),
    )


def _begun(secret: str, user: Bearer) -> Reply:
    """The session that was begun, whose secret is in its cookie and nowhere else. [SEC-1]"""
    shown = view(SessionView, user.token, user=user.name, privileges=user.privileges, is_operator=user.is_admin)
    return Reply(201, shown, [_cookie_of(secret, user)])


def _cookie_of(secret: str, user: Bearer) -> Cookie:
    assert user.token.expires
    return cookies.of_session(secret, user.token.created, user.token.expires)


@cache
def _version() -> str:
    return hashlib.sha256(document().encode()).hexdigest()[:12]
