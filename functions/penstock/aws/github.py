"""GitHub over HTTP, and the queue of whoever does what follows from what it says."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from datetime import datetime
from email.message import Message
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from penstock.aws.kms import KmsAppKey
from penstock.domain.site.site import GitHubApp
from penstock.kernel.errors import RateLimited, Unknown
from penstock.ports import GitHubRequest, GitHubResponse, TokenScope

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


SECONDS = 20


ANSWER_BYTES = 8 * 1024**2


LONGEST_DELAY = 900


LONGEST_LIMIT = 3600


UNSAID = 60
"""Seconds to wait when a limit says nothing of how long. Source: GitHub, "Rate limits for the REST API"."""

EARLY = 300
"""Seconds before its end that a token is not used any more."""

Headers = Message


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer: nobody is shown our tokens because another told us to."""

    def redirect_request(self, *args: Any) -> None:
        return None


class GitHub:
    """GitHub, for one deployment. Tokens of installations are kept while they are good, in memory only."""

    def __init__(
        self,
        queues: SQSClient,
        queue: str,
        key: KmsAppKey,
        secret: Callable[[], str],
        now: Callable[[], datetime],
    ) -> None:
        self._queues = queues
        self._queue = queue
        self._key = key
        self._now = now
        self._tokens: dict[str, tuple[str, datetime]] = {}
        self._opener = urllib.request.build_opener(_NoRedirects)
        self.secret = secret

    def enqueue(self, message: Mapping[str, Any], after: int = 0) -> None:
        """Send a hint."""
        delay = min(after, LONGEST_DELAY)
        self._queues.send_message(QueueUrl=self._queue, MessageBody=json.dumps(message), DelaySeconds=delay)

    def call(self, app: GitHubApp, ask: GitHubRequest) -> GitHubResponse:
        """One call, as the App or with a token of the scope's installation."""
        if ask.token:
            return self._send(app, ask, ask.token)
        shown = self._token(app, ask.scope) if ask.scope else self._key.proof(app.app, self._now())
        if isinstance(shown, GitHubResponse):
            return shown
        told = self._send(app, ask, shown)
        if told.status == 401:
            self._tokens.clear()
            raise Unknown("GitHub does not take our token", "401")
        return told

    def _token(self, app: GitHubApp, scope: TokenScope) -> str | GitHubResponse:
        """A token for a scope; or what GitHub said instead, as to an App that was taken away. [SEC-1]"""
        name = json.dumps([app.app, scope.installation, scope.asks], sort_keys=True)
        token, until = self._tokens.get(name, ("", self._now()))
        if (until - self._now()).total_seconds() > EARLY:
            return token
        told = self.call(app, minting(scope))
        if told.status != 201:
            return told
        self._tokens[name] = told.body["token"], datetime.fromisoformat(told.body["expires_at"])
        return self._tokens[name][0]

    def _send(self, app: GitHubApp, ask: GitHubRequest, shown: str) -> GitHubResponse:
        query = f"?{urlencode(ask.query)}" if ask.query else ""
        body = None if ask.body is None else json.dumps(ask.body).encode()
        kind = "raw+json" if ask.raw else "json"
        headers = {
            "accept": f"application/vnd.github.{kind}",
            "authorization": f"Bearer {shown}",
            "user-agent": "penstock",
            "x-github-api-version": "2022-11-28",
            **({"content-type": "application/json"} if body else {}),
            **({"if-none-match": ask.etag} if ask.etag else {}),
        }
        request = urllib.request.Request(f"{app.api}{ask.path}{query}", body, headers, method=ask.method)
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                return _told(answer.status, answer.headers, answer.read(ANSWER_BYTES + 1), ask)
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(error.code, error.headers, error.read(ANSWER_BYTES), ask)
        except (OSError, HTTPException) as error:
            raise Unknown(f"GitHub cannot be reached: {type(error).__name__}") from error

    def _refused(self, status: int, headers: Headers, raw: bytes, ask: GitHubRequest) -> GitHubResponse:
        """What GitHub did not do. Raises RateLimited or Unknown."""
        seconds = limited(status, headers, raw, self._now())
        if seconds is not None:
            raise RateLimited(f"GitHub asks us to wait for {seconds} s", seconds, ask.method)
        if status >= 500:
            raise Unknown(f"GitHub answered {status}", str(status))
        return _told(status, headers, raw, ask)


def minting(scope: TokenScope) -> GitHubRequest:
    """The call that makes a token: for what is said and nothing else."""
    return GitHubRequest("POST", f"/app/installations/{scope.installation}/access_tokens", body=scope.asks)


def limited(status: int, headers: Headers, raw: bytes, now: datetime) -> int | None:
    """For how many seconds an answer asks us to call no more; None when it does not."""
    if status not in (403, 429):
        return None
    after, left, reset = (
        headers.get(name, "") for name in ("retry-after", "x-ratelimit-remaining", "x-ratelimit-reset")
    )
    seconds = None
    if after.isdigit():
        seconds = int(after)
    elif left == "0" and reset.isdigit():
        seconds = int(reset) - int(now.timestamp()) + 1
    elif status == 429 or b"rate limit" in raw[:10_000].lower():
        seconds = UNSAID
    return None if seconds is None else max(1, min(seconds, LONGEST_LIMIT))


def _told(status: int, headers: Headers, raw: bytes, ask: GitHubRequest) -> GitHubResponse:
    """An answer, read. Raises Unknown for what is too long, or is not what was asked for."""
    if len(raw) > ANSWER_BYTES:
        raise Unknown("GitHub's answer is too long")
    body: Any = raw
    if not (ask.raw and status == 200):
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            if status < 300:
                raise Unknown("GitHub's answer is not JSON") from None
            body = None
    return GitHubResponse(status, body, headers.get("etag", ""), _next(headers.get("link", "")))


def _next(link: str) -> Mapping[str, str] | None:
    """The parameters of the page that a Link header calls the next; None on the last."""
    for part in link.split(","):
        url, _, said = part.strip().partition(">;")
        if 'rel="next"' in said:
            return dict(parse_qsl(urlsplit(url.lstrip("<")).query))
    return None
