"""Calls to the service, and the lease that its answers renew.

All threads share a `Control`, which says whether the work goes on: cancellation, timeout and the lease decide.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import threading
import traceback
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import urlsplit

from . import VERSION
from .machine import log, now

T = TypeVar("T")
BACKOFF_CAP_SECONDS = 15.0
ANSWER_BYTES = 16 << 20
CALL_SECONDS = 15.0
BELL_SECONDS = 5.0
HELLO = "/v1/agent/hello"
HELLO_TRIES = 200  # about 50 minutes: then the service has given this machine up
IDENTITY_TRIES = 6  # about ten seconds: just after boot there may be no metadata yet
METADATA_SECONDS = 5.0
METADATA_TOKEN = "/latest/api/token"
METADATA_IDENTITY = "/latest/dynamic/instance-identity/"
WATCHED_BEAT_SECONDS = 10.0  # a cancelled job whose log somebody follows ends within these, and TERM's grace
DANGER_ZONE = 0.2  # the last part of a lease, reserved for stopping the work


class ServiceError(Exception):
    """A call to the service did not succeed."""


class Unreachable(ServiceError):
    """The service gave no answer, or one that means: try again. Only this error is retried."""


class Refused(ServiceError):
    """The service refused the call: a retry would not help."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"HTTP {status}: {detail}" if detail else f"HTTP {status}")
        self.status = status


class Abandoned(ServiceError):
    """The work is abandoned, so nothing more is sent for it."""


class Stop(Enum):
    """Why the work is stopped. Outputs and a report with this result follow."""

    CANCELLED, TIMED_OUT = "cancelled", "timed_out"


class Abandon(Enum):
    """Why the work is abandoned. No report follows."""

    LOST = "the lease could not be renewed"
    GONE = "the service says that this worker is no longer wanted"
    REFUSED = "the service refused this worker"
    TERMINATED = "the agent got a signal to terminate"
    BROKEN = "the agent has a bug (see above)"
    DONE = "the job is reported"


class Control:
    """Whether the work goes on. The first reason to stop counts, and the first to abandon.

    But a report that was accepted is no loss: a heartbeat that comes between it and its answer is told that the worker
    is no longer wanted for this job. A warm worker then cleans and goes on.
    """

    def __init__(self) -> None:
        self.stopped: Stop | None = None
        self.abandoned: Abandon | None = None
        self.watched = True  # whether somebody follows the job's log
        self.full: dict[str, int] | None = None  # if the log is full: how much output the service has dropped
        self.timeout = 0.0  # how many seconds the tasks may take
        self._begun: float | None = None
        self._is_bounded = False
        self.held_until = 0.0  # when an operator's hold on the worker ends
        self._lease, self._grace = 0.0, 0.0
        self._renewed: float | None = None
        self._changed = threading.Condition()

    def renew_lease(self, reply: dict[str, Any], requested: float) -> None:
        """Take in an answer of the service, which renews the lease if it says for how long. [JOB-2]

        The lease counts from the request, not from the answer.
        """
        if "lease_seconds" in reply:
            self._lease = float(reply["lease_seconds"])
            self._renewed = max(requested, self._renewed or requested)
        self._grace = float(reply.get("grace_seconds", self._grace))
        self.watched = bool(reply.get("watched", self.watched))
        self.full = reply.get("full") or self.full
        self.timeout = max(self.timeout, float(reply.get("timeout_seconds", 0.0)))  # more time is never less
        if reply.get("cancel"):
            self.stop(Stop.CANCELLED)

    def start_clock(self, timeout: float) -> None:
        """Stop the work in so many seconds, unless the service gives it more time."""
        self.timeout = max(self.timeout, timeout)
        self._begun, self._is_bounded = now(), True

    def stop_clock(self) -> None:
        """Let what follows take its time."""
        self._is_bounded = False

    @property
    def is_late(self) -> bool:
        """Whether the time is over, also for what follows the work."""
        return self._begun is not None and now() >= self._begun + self.timeout

    def until_beat(self, heartbeat: float) -> float:
        """Return in how many seconds the lease has to be renewed; earlier while somebody waits for the job's log."""
        seconds = min(heartbeat, WATCHED_BEAT_SECONDS) if self.watched else heartbeat
        return max(0.0, (self._renewed or 0.0) + seconds - now())

    def stop(self, why: Stop) -> None:
        with self._changed:
            self.stopped = self.stopped or why
            self._changed.notify_all()

    def abandon(self, why: Abandon) -> None:
        with self._changed:
            if not self.abandoned and why is not Abandon.DONE:
                log(f"abandoning the work: {why.value}")
            is_reported = why is Abandon.DONE and self.abandoned is Abandon.GONE
            self.abandoned = why if is_reported else self.abandoned or why
            self._changed.notify_all()

    @property
    def stopping(self) -> bool:
        return bool(self.stopped or self.abandoned)

    def check(self) -> None:
        """Raise Abandoned if nothing may be sent any more. A lost lease still allows one try."""
        if self.abandoned and self.abandoned is not Abandon.LOST:
            raise Abandoned(self.abandoned.value)

    def grace(self) -> float:
        """Return how many seconds processes have between TERM and KILL."""
        if self.abandoned is Abandon.LOST:  # all must be dead before the lease is over
            return min(self._grace, self._lease * DANGER_ZONE * 0.75)
        return min(self._grace, 2.0) if self.abandoned else self._grace

    def short_grace(self) -> float:
        """Return the grace for processes that a task left running."""
        return min(self.grace(), 2.0)

    def sleep(self, seconds: float) -> bool:
        """Sleep until the time is over or the work is abandoned. Return whether it goes on."""
        until = now() + seconds
        with self._changed:
            while not self.abandoned and now() < until:
                self._changed.wait(min(until - now(), 1.0))
        return not self.abandoned

    def watch_clock(self) -> None:
        """Stop the work at its timeout, abandon it when the lease can't be renewed. Runs as a thread.

        The work ends before the lease does: after that another worker may have the job. [JOB-2]
        """
        while self.sleep(0.2):
            renewed = self._renewed
            if self._is_bounded and self.is_late:
                self.stop(Stop.TIMED_OUT)
            if renewed is not None and now() >= renewed + self._lease * (1 - DANGER_ZONE):
                self.abandon(Abandon.LOST)


def start_thread(control: Control, name: str, work: Callable[[], None]) -> threading.Thread:
    """Start a helper thread. An unexpected exception in it abandons the work: better lost than hanging."""

    def guarded() -> None:
        try:
            work()
        except ServiceError as why:
            log(f"{name} ends: {why}")
        except Exception:
            log(f"{name} failed:\n{traceback.format_exc()}")
            control.abandon(Abandon.BROKEN)

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    return thread


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
        # A server that refuses a big body may answer and close before it has read everything.
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


def looks() -> Iterator[float]:
    """Yield seconds between two looks at a bell: few at first, because jobs come in bursts; after 95 s, one."""
    delay = 0.05
    while True:
        yield delay
        delay = min(delay * 1.01, 1.0)


def wait_for_bell(bell: str | None, seconds: float, waits: Iterator[float], pause: Callable[[float], Any]) -> None:
    """Pause for some seconds, in parts: less if the bell rings, or if `pause` returns that there is something to do.

    A bell rings from the moment when its object exists: then there is a job. docs/internals/agent.md
    """
    until = now() + seconds
    while now() < until and not pause(min(next(waits), until - now())):
        if bell and _has_rung(bell):
            return


def _has_rung(bell: str) -> bool:
    try:
        return http_request("GET", bell, None, {}, BELL_SECONDS)[0] == 200
    except Unreachable:
        return False


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

    def send_last(self, job: str, what: str, body: dict[str, Any], seconds: float) -> None:
        """POST for a job once, in so many seconds, also if the work is abandoned. Raises ServiceError."""
        self._renew(f"/v1/agent/jobs/{job}/{what}", body, seconds)

    def _renew(self, path: str, body: dict[str, Any], seconds: float = CALL_SECONDS) -> dict[str, Any]:
        requested = now()
        reply = self._post(path, body, seconds)
        self._control.renew_lease(reply, requested)
        return reply

    def _post(self, path: str, body: dict[str, Any], seconds: float = CALL_SECONDS) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if path != HELLO:
            headers["Authorization"] = f"Bearer {self._token}"
        status, answer = http_request("POST", self._url + path, json.dumps(body).encode(), headers, seconds)
        if is_transient(status):
            raise Unreachable(f"HTTP {status}")
        reply = _parse_object(answer)
        if status >= 300:
            self._refuse(status, str((reply or {}).get("detail", "")))
        if reply is None:  # a proxy answered, not the service
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
        log(f"this machine has no identity document: {why}")
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
