"""GitHub's API over HTTP, and the queue of the front end for GitHub."""

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

DEFAULT_WAIT = 60
"""Seconds to wait if a rate limit does not say how long. Source: GitHub, "Rate limits for the REST API"."""

EXPIRY_MARGIN = 300
"""Seconds before its expiry from which a token is not used any more."""

Headers = Message


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Returns redirects as answers, so that tokens are never sent to another host."""

    def redirect_request(self, *args: Any) -> None:
        return None


class GitHub:
    """GitHub, for one deployment. Installation tokens are cached in memory until they expire."""

    def __init__(
        self,
        queues: SQSClient,
        queue: str,
        key: KmsAppKey,
        secret: Callable[[], str],
        now: Callable[[], datetime],
        client_secret: Callable[[], str] = str,
    ) -> None:
        self._queues = queues
        self._queue = queue
        self._key = key
        self._now = now
        self._tokens: dict[str, tuple[str, datetime]] = {}
        self._opener = urllib.request.build_opener(_NoRedirects)
        self.secret = secret
        self._client_secret = client_secret

    def enqueue(self, message: Mapping[str, Any], after: int = 0) -> None:
        """Send the front end a step."""
        delay = min(after, LONGEST_DELAY)
        self._queues.send_message(QueueUrl=self._queue, MessageBody=json.dumps(message), DelaySeconds=delay)

    def call(self, app: GitHubApp, ask: GitHubRequest) -> GitHubResponse:
        """One call, as the App, or with a token for the scope."""
        if ask.token:
            return self._send(app, ask, ask.token)
        credential = self._token(app, ask.scope) if ask.scope else self._key.proof(app.app, self._now())
        if isinstance(credential, GitHubResponse):
            return credential
        response = self._send(app, ask, credential)
        if response.status == 401:
            self._tokens.clear()
            raise Unknown("GitHub refuses the token that it issued", "401")
        return response

    def exchange(self, app: GitHubApp, code: str, verifier: str, redirect: str) -> str:
        """The token of who signed in, for their code; "" if GitHub refuses it. [SEC-1]

        GitHub answers a refusal with 200. Source: "Troubleshooting OAuth app access token request errors".
        """
        form = {
            "client_id": app.client_id,
            "client_secret": self._client_secret(),
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": redirect,
        }
        headers = {"accept": "application/json", "user-agent": "penstock"}
        url = f"{app.web}/login/oauth/access_token"
        request = urllib.request.Request(url, urlencode(form).encode(), headers, method="POST")
        found = self._open(request, GitHubRequest("POST", "/login/oauth/access_token")).body
        token = found.get("access_token") if isinstance(found, dict) else None
        return token if isinstance(token, str) else ""

    def _token(self, app: GitHubApp, scope: TokenScope) -> str | GitHubResponse:
        """A token for a scope; or GitHub's response if it issues none, as after the App was removed. [SEC-1]"""
        name = json.dumps([app.app, scope.installation, scope.asks], sort_keys=True)
        token, until = self._tokens.get(name, ("", self._now()))
        if (until - self._now()).total_seconds() > EXPIRY_MARGIN:
            return token
        response = self.call(app, token_request(scope))
        if response.status != 201:
            return response
        self._tokens[name] = response.body["token"], datetime.fromisoformat(response.body["expires_at"])
        return self._tokens[name][0]

    def _send(self, app: GitHubApp, ask: GitHubRequest, credential: str) -> GitHubResponse:
        query = f"?{urlencode(ask.query)}" if ask.query else ""
        body = None if ask.body is None else json.dumps(ask.body).encode()
        kind = "raw+json" if ask.raw else "json"
        headers = {
            "accept": f"application/vnd.github.{kind}",
            "authorization": f"Bearer {credential}",
            "user-agent": "penstock",
            "x-github-api-version": "2022-11-28",
            **({"content-type": "application/json"} if body else {}),
            **({"if-none-match": ask.etag} if ask.etag else {}),
        }
        return self._open(urllib.request.Request(f"{app.api}{ask.path}{query}", body, headers, method=ask.method), ask)

    def _open(self, request: urllib.request.Request, ask: GitHubRequest) -> GitHubResponse:
        """Send a request. Raises RateLimited or Unknown."""
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                return _response(answer.status, answer.headers, answer.read(ANSWER_BYTES + 1), ask)
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(error.code, error.headers, error.read(ANSWER_BYTES), ask)
        except (OSError, HTTPException) as error:
            raise Unknown(f"GitHub cannot be reached: {type(error).__name__}") from error

    def _refused(self, status: int, headers: Headers, raw: bytes, ask: GitHubRequest) -> GitHubResponse:
        """The response to a refused request. Raises RateLimited or Unknown."""
        seconds = wait_seconds(status, headers, raw, self._now())
        if seconds is not None:
            raise RateLimited(f"GitHub asks us to wait for {seconds} s", seconds, ask.method)
        if status >= 500:
            raise Unknown(f"GitHub answered {status}", str(status))
        return _response(status, headers, raw, ask)


def token_request(scope: TokenScope) -> GitHubRequest:
    """The request for a token that permits the scope and nothing else."""
    return GitHubRequest("POST", f"/app/installations/{scope.installation}/access_tokens", body=scope.asks)


def wait_seconds(status: int, headers: Headers, raw: bytes, now: datetime) -> int | None:
    """How many seconds a rate limit asks us to wait; None if the answer is not one."""
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
        seconds = DEFAULT_WAIT
    return None if seconds is None else max(1, min(seconds, LONGEST_LIMIT))


def _response(status: int, headers: Headers, raw: bytes, ask: GitHubRequest) -> GitHubResponse:
    """A response from an answer. Raises Unknown if it is too long, or not JSON as expected."""
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
    """The query of the next page in a Link header; None on the last page."""
    for part in link.split(","):
        url, _, attributes = part.strip().partition(">;")
        if 'rel="next"' in attributes:
            return dict(parse_qsl(urlsplit(url.lstrip("<")).query))
    return None
