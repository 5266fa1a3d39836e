"""HTTP: the agent's calls to the service, when a call is tried again, and the machine's identity document in EC2."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urlsplit

from . import VERSION
from .control import Abandon, Control, Refused, ServiceError, Unreachable
from .log import log, now

T = TypeVar("T")
BACKOFF_CAP_SECONDS = 15.0
ANSWER_BYTES = 16 << 20
CALL_SECONDS = 15.0
HELLO = "/v1/agent/hello"
HELLO_TRIES = 200  # about 50 minutes: whoever made this machine has given up on it by then
IDENTITY_TRIES = 6  # about ten seconds: a machine that has just booted may have to wait for its metadata
METADATA_SECONDS = 5.0
METADATA_TOKEN = "/latest/api/token"
METADATA_IDENTITY = "/latest/dynamic/instance-identity/"


def http_request(method: str, url: str, body: Any, headers: dict[str, str], timeout: float) -> tuple[int, bytes]:
    """Send one HTTP request; the body is bytes or a readable. Return status and body. Raises Unreachable.

    `timeout` is in seconds, for connecting and for each wait for bytes.
    """
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout, blocksize=1 << 16)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.connect()
        # Whoever refuses a big body may answer and close before having read it all.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, target, body, {"User-Agent": f"penstock-agent/{VERSION}", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(ANSWER_BYTES)
    except (OSError, http.client.HTTPException) as why:
        raise Unreachable(f"{parts.hostname}: {type(why).__name__}: {why}") from why
    finally:
        connection.close()


def is_transient(status: int) -> bool:
    """Return whether an HTTP status means: try again later."""
    return status >= 500 or status in (408, 429)


def backoffs() -> Iterator[float]:
    """Yield seconds to wait between tries: exponential with jitter, capped."""
    delay = 0.25
    while True:
        yield delay * random.uniform(0.5, 1.0)
        delay = min(delay * 2, BACKOFF_CAP_SECONDS)


def retry(control: Control, what: str, work: Callable[[], T], tries: int = 0) -> T:
    """Call `work` until it does not raise Unreachable, at most `tries` times (0: no limit). Raises what `work` raises.

    When the lease is lost, there is one try. When the work is abandoned otherwise, Abandoned is raised at once.
    """
    tried, delays = 0, backoffs()
    while True:
        control.check()
        try:
            return work()
        except Unreachable as why:
            tried += 1
            log(f"{what}: try {tried}: {why}")
            if tried == tries or not control.sleep(next(delays)):
                raise


class Client:
    """Calls to the service as one worker. Each of them may be repeated."""

    def __init__(self, url: str, token: str, control: Control) -> None:
        self._url, self._token, self._control = url, token, control

    def hello(self, body: dict[str, Any], tries: int = HELLO_TRIES) -> dict[str, Any]:
        """Exchange the bootstrap key for the lease and the job. Raises ServiceError."""
        return retry(self._control, HELLO, lambda: self._renew(HELLO, {**body, "token": self._token}), tries)

    def call(self, job: str, what: str, body: dict[str, Any], tries: int = 0) -> dict[str, Any]:
        """POST for a job until there is an answer, at most `tries` times (0: no limit). Raises ServiceError."""
        path = f"/v1/agent/jobs/{job}/{what}"
        return retry(self._control, path, lambda: self._post(path, body), tries)

    def renew(self, job: str, what: str, body: dict[str, Any]) -> None:
        """POST for a job, and renew the lease with the answer."""
        path = f"/v1/agent/jobs/{job}/{what}"
        retry(self._control, path, lambda: self._renew(path, body))

    def _renew(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        asked = now()
        reply = self._post(path, body)
        self._control.renew_lease(reply, asked)
        return reply

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if path != HELLO:
            headers["Authorization"] = f"Bearer {self._token}"
        status, answer = http_request("POST", self._url + path, json.dumps(body).encode(), headers, CALL_SECONDS)
        if is_transient(status):
            raise Unreachable(f"HTTP {status}")
        reply = _parse_object(answer)
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


def _parse_object(answer: bytes) -> dict[str, Any] | None:
    """Return an answer's JSON object, empty for an empty answer; None for anything else."""
    try:
        reply = json.loads(answer or b"{}")
    except ValueError:
        return None
    return reply if isinstance(reply, dict) else None


def identity_document(metadata: str, control: Control) -> dict[str, str]:
    """Fetch the signed identity document from EC2's metadata service; empty if that fails: the service decides then."""
    try:
        return retry(control, "identity", lambda: _fetch_identity(metadata), IDENTITY_TRIES)
    except ServiceError as why:
        log(f"this machine cannot show what it is: {why}")
        return {}


def _fetch_identity(metadata: str) -> dict[str, str]:
    token = _ask_metadata("PUT", metadata + METADATA_TOKEN, {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
    shown = {"X-aws-ec2-metadata-token": token}
    return {
        name: _ask_metadata("GET", metadata + METADATA_IDENTITY + name, shown) for name in ("document", "signature")
    }


def _ask_metadata(method: str, url: str, headers: dict[str, str]) -> str:
    status, answer = http_request(method, url, b"" if method == "PUT" else None, headers, METADATA_SECONDS)
    if status != 200:
        raise Unreachable(f"HTTP {status}")
    return answer.decode()
