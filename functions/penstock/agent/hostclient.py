"""What a host's agent says to the service, and with which token."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from . import VERSION
from .client import Refused, Unreachable, http_request, is_transient

CALL_SECONDS = 15.0
TEXT_CHARS = 300


class HostToken:
    """The token of the host's user. Its file is read for each call, so that it can be replaced."""

    def __init__(self, path: Path | None, given: str) -> None:
        self._path, self._given = path, given

    def read(self) -> str:
        """Return the token. Raises OSError when there is none."""
        found = self._path.read_text(encoding="ascii").strip() if self._path else self._given
        if not found:
            raise OSError("it has no token: give --token-file, or PENSTOCK_TOKEN")
        return found


class HostClient:
    """Calls to the host API."""

    def __init__(self, url: str, host: str, token: HostToken, session: str) -> None:
        self.url, self.host = url, host
        self._token, self._session = token, session

    def ask(
        self, worker: str, stage: str, cleaned: str, trouble: str = "", leaving: bool = False, part: int = 0
    ) -> dict[str, Any]:
        """Report the state of this host, or of a part of it, from 1; return what to do.

        Raises Unreachable, Refused, or OSError without a token.
        """
        body: dict[str, Any] = {
            "session": self._session,
            "machine": socket.gethostname()[:255],
            "version": VERSION,
            "worker": worker,
            "stage": stage,
            "cleaned": cleaned[:TEXT_CHARS],
            "trouble": trouble[:TEXT_CHARS],
            "leaving": leaving,
            **({"part": part} if part else {}),
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
