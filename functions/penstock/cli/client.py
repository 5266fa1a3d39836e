"""The service's HTTP API: a method per request; retries, timeouts, and HTTP problems as errors."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from penstock.cli.errors import Broken, CliError, Refused, Unreachable

Object = dict[str, Any]


PAGE = 100


class Api:
    """What users and operators may ask for. Every method raises Refused, Broken or Unreachable."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def get(self, *path: str, **query: str) -> Any:
        """Any document by its path."""
        return self.transport.send("GET", at(*path), params=list(query.items()))

    def put(self, *path: str, body: object = None, headers: dict[str, str] | None = None, **query: str) -> Any:
        """An idempotent PUT."""
        return self.transport.send("PUT", at(*path), body=body, headers=headers, params=list(query.items()))

    def act(self, *path: str, body: object = None) -> Any:
        """A POST that may be repeated: the second one finds the work done."""
        return self.transport.send("POST", at(*path), body=body if body is not None else {})

    def make(self, *path: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
        """A POST that makes something. Only with an Idempotency-Key among its headers may it be repeated."""
        sent = {} if body is None else body
        return self.transport.send("POST", at(*path), body=sent, headers=headers, repeatable=bool(headers))

    def delete(self, *path: str, **query: str) -> Any:
        """An idempotent DELETE."""
        return self.transport.send("DELETE", at(*path), params=list(query.items()))

    def items(self, *path: str, query: list[tuple[str, str]] | None = None, most: int | None = None) -> Pages:
        """The entries of a list, of as many pages as it takes for `most` of them (None: all)."""
        return Pages(self, path, query or [], most)

    def submit(self, body: Mapping[str, object], key_: str | None = None) -> str:
        """Submit a job and return its id. The key makes retries return the same job, not a second one."""
        key = {"Idempotency-Key": key_ or str(uuid.uuid4())}
        return str(self.make("jobs", body=body, headers=key)["id"])

    def plan(self, body: Mapping[str, object]) -> Object:
        """What would become of a job if it were submitted now."""
        return _object(self.transport.send("POST", at("jobs"), body=body, params=[("plan", "true")]))

    def job(self, job: str) -> Object:
        """A job as it is now."""
        return _object(self.get("jobs", job))

    def events(self, job: str, after: int, last: int = 0, limit: int = 0) -> Object:
        """The part of a job's log that follows number `after`, of its `last` events (0: all); and the job's state.

        It has at most `limit` events (0: as many as the service likes).
        """
        bounds = {name: str(value) for name, value in (("last", last), ("limit", limit)) if value}
        return _object(self.get("jobs", job, "events", after=str(after), **bounds))

    def why(self, job: str) -> Object:
        """What a job waits for."""
        return _object(self.get("jobs", job, "why"))

    def output(self, job: str, wanted: str) -> Object:
        """A job's output by its path or id. Raises Refused, with the known paths."""
        found = list(self.items("jobs", job, "outputs"))
        for output in found:
            if wanted in (output["path"], output["id"]):
                return output
        known = [f"  {output['path']}" for output in found] or ["  (none)"]
        raise Refused(f"job {job} has no output `{wanted}`", "give one of these paths as it is", known)

    def sign(self, job: str, output: str, seconds: int | None = None) -> Object:
        """A temporary URL that downloads an output without a token."""
        body = {} if seconds is None else {"expires_in": seconds}
        return _object(self.act("jobs", job, "outputs", output, "sign", body=body))


class Pages:
    """Iterates over a paged list. `more` tells afterwards whether there is more than was taken."""

    def __init__(self, api: Api, path: tuple[str, ...], query: list[tuple[str, str]], most: int | None) -> None:
        self._api, self._path, self._query, self._most = api, path, query, most
        self.more = False

    def __iter__(self) -> Iterator[Object]:
        left = self._most
        page: str | None = None
        while True:
            size = PAGE if left is None else min(left, PAGE)
            query = [*self._query, ("limit", str(size)), *([("page", page)] if page else [])]
            answer = self._api.transport.send("GET", at(*self._path), params=query)
            yield from answer["items"]
            page = answer.get("next")
            left = None if left is None else left - len(answer["items"])
            if not page or (left is not None and left <= 0):
                self.more = bool(page)
                return


def at(*path: str) -> str:
    """The path of a request. Raises Refused for names that can't be part of one."""
    for part in path:
        if not part or any(step in ("", ".", "..") for step in part.split("/")):
            raise Refused(f"`{part}` is not a name", "give the name or id as the list command shows it")
    return "/v1/" + "/".join(quote(part, safe="/@:") for part in path)


def _object(answer: Any) -> Object:
    return dict(answer)


LOOPBACK = ("localhost", "127.0.0.1", "::1")


NEVER_REACHED = (httpx.ConnectError, httpx.ConnectTimeout)


AWAY = (502, 503, 504)


TIMEOUT_SECONDS = 60.0


FIRST_PAUSE, LONGEST_PAUSE = 0.2, 4.0


@dataclass(frozen=True)
class Patience:
    """Seconds of retries: without a connection, after a lost reply, and after 429."""

    connect: float = 2.0
    reply: float = 30.0
    limited: float = 60.0


def open_client(url: str) -> httpx.Client:
    """A client for one service. Requests to this machine use no proxy.

    http needs no TLS context, which takes some 20 ms to make.
    """
    parts = urlsplit(url)
    timeout = httpx.Timeout(TIMEOUT_SECONDS, connect=10.0)
    return httpx.Client(timeout=timeout, trust_env=parts.hostname not in LOOPBACK, verify=parts.scheme != "http")


class Transport:
    """Sends requests to one service. Calls `notice` before each pause with the reason and the retry time."""

    def __init__(self, url: str, token: str | None, notice: Callable[[str], None]) -> None:
        self.url = url
        self.patience = Patience()
        self.notice = notice
        self._client = open_client(url)
        self._token = token

    def send(
        self,
        method: str,
        path: str,
        *,
        params: Sequence[tuple[str, str]] = (),
        body: object = None,
        headers: dict[str, str] | None = None,
        repeatable: bool = True,
    ) -> Any:
        """The answer's JSON. Raises Refused, Broken or Unreachable."""
        request = self._client.build_request(
            method, self.url + path, params=[*params], json=body, headers={**self._headers(), **(headers or {})}
        )
        started = time.monotonic()
        pause = FIRST_PAUSE
        while True:
            answer, trouble, budget = self._try(request, repeatable)
            if trouble is None:
                return answer
            wait = max(pause, _retry_after(answer))
            if time.monotonic() - started + wait > budget:
                raise trouble
            self.notice(f"{trouble.what}: trying again for up to {budget:.0f} s")
            time.sleep(wait)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _headers(self) -> dict[str, str]:
        return {"Accept": "application/json"} | ({"Authorization": f"Bearer {self._token}"} if self._token else {})

    def _try(self, request: httpx.Request, repeatable: bool) -> tuple[Any, CliError | None, float]:
        """One try: the answer, or the error and how many seconds to retry."""
        try:
            response = self._client.send(request)
        except httpx.HTTPError as error:
            reached = not isinstance(error, NEVER_REACHED)
            budget = (self.patience.reply if repeatable else 0.0) if reached else self.patience.connect
            return None, self._unreachable(error, reached), budget
        if response.is_success:
            return self._read(response), None, 0.0
        trouble = refusal(response, self._token is not None)
        if response.status_code == 429:
            return response, trouble, self.patience.limited
        if response.status_code in AWAY and repeatable:
            return response, trouble, self.patience.reply
        raise trouble

    def _read(self, response: httpx.Response) -> Any:
        if response.status_code == 204 or not response.content:
            return {}
        try:
            return response.json()
        except ValueError as error:
            what = f"{self.url} answered with something that is not JSON"
            raise Refused(what, "is this the URL of a Penstock service? see `penstock profile list`") from error

    def _unreachable(self, error: httpx.HTTPError, reached: bool) -> Unreachable:
        why = "lost the connection to" if reached else "cannot reach"
        hint = "is it running? see `penstock local status` and `penstock profile list`"
        return Unreachable(f"{why} {self.url} ({_plain(error)})", hint)


def _plain(error: httpx.HTTPError) -> str:
    text = str(error) or type(error).__name__
    return text.partition("] ")[2].lower() if text.startswith("[Errno") else text


def _retry_after(response: httpx.Response | None) -> float:
    """Seconds that the service asks to wait; 0 when it doesn't."""
    said = response.headers.get("Retry-After", "") if response is not None else ""
    return float(said) if said.isdigit() else 0.0


HINTS = {
    401: "the token is wrong, expired or revoked: `penstock login` gets another, --profile chooses another service",
    403: "`penstock whoami` shows your privileges and your token's scopes; an operator grants more",
    429: "wait a little, then try again",
}
HINTS_BY_CODE = {
    "environment-not-allowed": "the site's `[environments]` say whose jobs may ask, and from which branches",
    "login-not-found": "`penstock login` on the machine that asks shows the code; it is good for ten minutes",
    "login-over": "`penstock login` begins another",
    "login-taken": "`penstock login` begins another; `penstock token list` shows the token that was taken",
    "not-a-reviewer": "ask one of them, or an operator to make you one",
    "own-job": "ask another of them",
}
"""For the code of a problem, where the hint for its status does not help."""


NO_TOKEN = "`penstock login` gets a token; or give one with --token or PENSTOCK_TOKEN, or choose a --profile"
OURS = "this is the service's fault, not yours; try again, and tell its operator if it stays"


def refusal(response: httpx.Response, has_token: bool) -> CliError:
    """The error for an answer that is no success."""
    status = response.status_code
    problem = _document(response)
    if problem is None:
        what = f"{response.request.url} answered {status} {response.reason_phrase}, not as Penstock does"
        if status >= 500:
            return Broken(what, OURS)
        where = "is this the URL of a Penstock service? see `penstock profile list`"
        return Refused(what, where, status=status, code="not-penstock")
    what = str(problem.get("detail") or problem.get("title") or f"refused with status {status}")
    lines = [_line(item) for item in problem.get("errors") or () if isinstance(item, Mapping)]
    code = str(problem.get("code") or "")
    hint = NO_TOKEN if status == 401 and not has_token else HINTS_BY_CODE.get(code) or HINTS.get(status)
    error: CliError = Refused(what, hint, lines, status=status, code=code)
    if status >= 500:
        error = Broken(what, OURS, lines)
        error.code = code or error.code
    error.members = problem
    return error


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
