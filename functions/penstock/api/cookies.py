"""The console's cookies: read only from requests that its own pages make, and set with fixed attributes. [SEC-2]

A page of another origin cannot send the header that is asked for: a browser asks before whether it may, and no route
answers that it may. docs/decisions/0086-a-session-is-a-token.md
"""

from __future__ import annotations

from datetime import datetime, timedelta

from aws_lambda_powertools.shared.cookies import Cookie, SameSite
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2 as Event

from penstock.kernel.errors import Refused

SESSION = "__Host-penstock-session"
"""The cookie with a session's secret. With this prefix, browsers take it only from this very host, over https."""

GITHUB = "__Host-penstock-github"
"""The cookie that binds a sign-in with GitHub to the browser that began it."""

HEADER = "penstock-console"
"""The header that every request of the console has."""


def is_ours(event: Event) -> bool:
    """Whether a request comes from a page of our own, or from a program that says so. [SEC-2]"""
    return event.headers.get(HEADER) == "1" and event.headers.get("sec-fetch-site", "same-origin") == "same-origin"


def require_ours(event: Event) -> None:
    """Raises Refused 403 for a request that a page of another origin may have made. [SEC-2]"""
    if not is_ours(event):
        raise Refused(403, "cross-site", f"only the console's own pages may ask for this, with the header {HEADER}: 1")


def value(event: Event, name: str) -> str:
    """The value of a cookie; "" if there is none. API Gateway hands cookies apart from other headers."""
    found = (each.strip().partition("=") for each in event.cookies)
    return next((text for key, _, text in found if key == name), "")


def session(event: Event) -> str:
    """The secret of the session that a request of our own pages shows; "" if none is shown so. [SEC-2]"""
    return value(event, SESSION) if is_ours(event) else ""


def of_session(secret: str, created: datetime, expires: datetime) -> Cookie:
    """The cookie of a session: no script reads it, no other site sends it, and it ends with the session. [SEC-1]"""
    seconds = round((expires - created).total_seconds())
    return _cookie(SESSION, secret, seconds, SameSite.STRICT_MODE)


def without_session() -> Cookie:
    """The cookie that removes a session's."""
    return _cookie(SESSION, "", 0, SameSite.STRICT_MODE)


def of_github(kept: str, lasts: timedelta) -> Cookie:
    """The cookie of a sign-in that began. It must come back with a browser that GitHub sends, so it is Lax."""
    return _cookie(GITHUB, kept, int(lasts.total_seconds()), SameSite.LAX_MODE)


def without_github() -> Cookie:
    """The cookie that removes that of a sign-in."""
    return _cookie(GITHUB, "", 0, SameSite.LAX_MODE)


def _cookie(name: str, text: str, seconds: int, same_site: SameSite) -> Cookie:
    return Cookie(name, text, path="/", max_age=seconds, http_only=True, secure=True, same_site=same_site)
