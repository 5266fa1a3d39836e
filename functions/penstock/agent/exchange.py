"""One HTTP request, and when to try it again."""

from __future__ import annotations

import contextlib
import http.client
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urlsplit

from . import VERSION
from .control import Control
from .errors import Unreachable
from .log import log

T = TypeVar("T")
BACKOFF_CAP_SECONDS = 15.0
ANSWER_BYTES = 16 << 20


def exchange(method: str, url: str, body: Any, headers: dict[str, str], timeout: float) -> tuple[int, bytes]:
    """Send one HTTP request, its body bytes or a readable; return status and body. Raises Unreachable.

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


def transient(status: int) -> bool:
    """Tell whether an HTTP status means: the same again, later."""
    return status >= 500 or status in (408, 429)


def backoffs() -> Iterator[float]:
    """Yield seconds to wait between tries: exponential with jitter, capped."""
    delay = 0.25
    while True:
        yield delay * random.uniform(0.5, 1.0)
        delay = min(delay * 2, BACKOFF_CAP_SECONDS)


def persist(control: Control, what: str, work: Callable[[], T], tries: int = 0) -> T:
    """Do something until it is not Unreachable, or that `tries` times (0: no limit). Raises what the work raises.

    When the lease is lost, one try is all; when the work is abandoned otherwise, Abandoned is raised before any.
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
