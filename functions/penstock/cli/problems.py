"""What the service's refusals (RFC 9457 problems) mean for a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from penstock.cli.errors import Broken, CliError, Refused

HINTS = {
    401: "the token is wrong or has expired: give another with --token or PENSTOCK_TOKEN, or choose a --profile",
    403: "`penstock whoami` shows your privileges; an operator grants more with `penstock user grant`",
    429: "wait a little, then try again",
}
NO_TOKEN = "give a token with --token or PENSTOCK_TOKEN, or choose a --profile"
OURS = "this is the service's fault, not yours; try again, and tell its operator if it stays"


def refusal(response: httpx.Response, has_token: bool) -> CliError:
    """The error for an answer that is no success."""
    status = response.status_code
    problem = _document(response)
    if problem is None:
        what = f"{response.request.url} answered {status} {response.reason_phrase}, not as Penstock does"
        if status >= 500:
            return Broken(what, OURS)
        return Refused(what, "is this the URL of a Penstock service? see `penstock profile list`", status=status)
    what = str(problem.get("detail") or problem.get("title") or f"refused with status {status}")
    lines = [_line(item) for item in problem.get("errors") or () if isinstance(item, Mapping)]
    if status >= 500:
        return Broken(what, OURS, lines)
    hint = NO_TOKEN if status == 401 and not has_token else HINTS.get(status)
    return Refused(what, hint, lines, status=status, code=str(problem.get("code") or ""))


def _document(response: httpx.Response) -> dict[str, Any] | None:
    try:
        found = response.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) and ("detail" in found or "title" in found) else None


def _line(item: Mapping[str, Any]) -> str:
    """file:line:column: message (hint); or where: message (hint)."""
    place = item.get("where")
    if item.get("file") and item.get("line"):
        place = f"{item['file']}:{item['line']}:{item.get('column') or 1}"
    hint = f" ({item['hint']})" if item.get("hint") else ""
    return f"{place}: {item.get('message')}{hint}" if place else f"{item.get('message')}{hint}"
