"""The host's side of the host API."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from . import VERSION
from .client import http_request, is_transient
from .control import Refused, Unreachable

CALL_SECONDS = 15.0
TEXT_CHARS = 300


class Token:
    """The token of the host's user: in a file, which is read anew for each call, so that it can be replaced."""

    def __init__(self, path: Path | None, given: str) -> None:
        self._path, self._given = path, given

    def read(self) -> str:
        """Return the token. Raises OSError when there is none."""
        found = self._path.read_text(encoding="ascii").strip() if self._path else self._given
        if not found:
            raise OSError("it has no token: give --token-file, or PENSTOCK_TOKEN")
        return found


class Office:
    """Asks the service what to do next."""

    def __init__(self, url: str, host: str, token: Token, session: str) -> None:
        self.url, self.host = url, host
        self._token, self._session = token, session

    def ask(self, worker: str, stage: str, cleaned: str, trouble: str = "", leaving: bool = False) -> dict[str, Any]:
        """Say where this host is; return what it is to do. Raises Unreachable, Refused, or OSError for no token."""
        body = {
            "session": self._session,
            "machine": socket.gethostname()[:255],
            "version": VERSION,
            "worker": worker,
            "stage": stage,
            "cleaned": cleaned[:TEXT_CHARS],
            "trouble": trouble[:TEXT_CHARS],
            "leaving": leaving,
        }
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token.read()}"}
        url = f"{self.url}/v1/agent/hosts/{self.host}"
        status, answer = http_request("POST", url, json.dumps(body).encode(), headers, CALL_SECONDS)
        if is_transient(status):
            raise Unreachable(f"HTTP {status}")
        try:
            reply = json.loads(answer)
        except ValueError:
            raise Unreachable(f"HTTP {status} with a body that is not JSON") from None
        if status >= 300:
            raise Refused(status, str(reply.get("detail", "")))
        return dict(reply)
