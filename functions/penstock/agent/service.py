"""The agent's side of the agent API."""

from __future__ import annotations

import json
from typing import Any

from .clock import now
from .control import Abandon, Control
from .errors import Refused, Unreachable
from .exchange import exchange, persist, transient

CALL_SECONDS = 15.0
HELLO = "/v1/agent/hello"
HELLO_TRIES = 200  # about 50 minutes: whoever made this machine has given up on it by then


class Service:
    """Calls to the service as one worker. All of them may be repeated."""

    def __init__(self, url: str, token: str, control: Control) -> None:
        self._url, self._token, self._control = url, token, control

    def hello(self, body: dict[str, Any], tries: int = HELLO_TRIES) -> dict[str, Any]:
        """Show the bootstrap key, be given the lease and the job. Raises ServiceError."""
        return persist(self._control, HELLO, lambda: self._renew(HELLO, {**body, "token": self._token}), tries)

    def call(self, job: str, what: str, body: dict[str, Any], tries: int = 0) -> dict[str, Any]:
        """POST for a job until answered, or at most that many times. Raises ServiceError."""
        path = f"/v1/agent/jobs/{job}/{what}"
        return persist(self._control, path, lambda: self._post(path, body), tries)

    def renew(self, job: str, what: str, body: dict[str, Any]) -> None:
        """The same for calls that renew the lease."""
        path = f"/v1/agent/jobs/{job}/{what}"
        persist(self._control, path, lambda: self._renew(path, body))

    def _renew(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        asked = now()
        reply = self._post(path, body)
        self._control.hear(reply, asked)
        return reply

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if path != HELLO:
            headers["Authorization"] = f"Bearer {self._token}"
        status, answer = exchange("POST", self._url + path, json.dumps(body).encode(), headers, CALL_SECONDS)
        if transient(status):
            raise Unreachable(f"HTTP {status}")
        reply = _parse(answer)
        if status >= 300:
            self._refuse(status, str((reply or {}).get("detail", "")))
        if reply is None:  # something between us and the service speaks for it
            raise Unreachable(f"HTTP {status} with a body that is not JSON")
        if "held_seconds" in reply:
            self._control.held_until = now() + float(reply["held_seconds"])
        return reply

    def _refuse(self, status: int, detail: str) -> None:
        if status in (401, 403, 410):
            self._control.abandon(Abandon.GONE if status == 410 else Abandon.REFUSED)
        raise Refused(status, detail)


def _parse(answer: bytes) -> dict[str, Any] | None:
    """Return an answer's JSON object, empty for an empty answer; None, if it is none."""
    try:
        reply = json.loads(answer or b"{}")
    except ValueError:
        return None
    return reply if isinstance(reply, dict) else None
