"""Requests to the service: what is tried again, and what answers mean.

A request that can be repeated safely is repeated when its answer may have been lost. One that never reached the
service is repeated always. 429 is obeyed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from penstock.cli.errors import CliError, Refused, Unreachable
from penstock.cli.problems import refusal

LOOPBACK = ("localhost", "127.0.0.1", "::1")
NEVER_REACHED = (httpx.ConnectError, httpx.ConnectTimeout)
AWAY = (502, 503, 504)
TIMEOUT_SECONDS = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 4.0


@dataclass(frozen=True)
class Patience:
    """For how many seconds a request is tried again when nobody answers, the answer is lost, or it says to wait."""

    connect: float = 2.0
    reply: float = 30.0
    limited: float = 60.0


def open_client(url: str) -> httpx.Client:
    """A client for one service. Proxies of the environment are not asked for this very machine."""
    local = (urlsplit(url).hostname or "") in LOOPBACK
    return httpx.Client(timeout=httpx.Timeout(TIMEOUT_SECONDS, connect=10.0), trust_env=not local)


class Transport:
    """Sends requests to one service. `notice` is told of every pause: why, and for how many seconds in total."""

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
        """One go: the answer, or what is wrong and for how long to try again."""
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
