"""Calls of the Docker Engine API over a unix socket, and what its errors mean. Podman speaks the same API.

It speaks version 1.41, which Docker has from 20.10 on and Podman from 3 on, or the oldest that the engine still speaks
if that is newer. What is used here is the same in all of them.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Unknown
from penstock.kernel.frozen import dataclass

VERSION = (1, 41)
SECONDS = 30.0
"""How long the engine may take for one answer. It makes a container in less than a second, as a rule."""

MOST_BYTES = 16 << 20
"""The longest answer. A list has less than 4 KiB for each container."""

CHUNK = 1 << 16
BLOB = re.compile(r"[A-Za-z0-9+/=_-]{60,}")
"""Possible keys. Image digests are shown by their beginning."""

PODMAN = "Podman Engine"
"""How Podman calls itself among its components."""

MISSING, CONFLICT = 404, 409
TIMED_OUT = "TimedOut"
"""The code of the error of a call that took too long."""

WORDS = (
    (r"no space left|cannot allocate memory|resource temporarily unavailable", NoCapacity),
    (r"address pool|predefined network|free subnet", QuotaReached),
    (r"active endpoints|network is being used", Unknown),
    (r"toomanyrequests|too many requests|rate limit", RateLimited),
    (r"executable file (`.*` )?not found|python3.*no such file|permission denied|not permitted|cgroup", Misconfigured),
    (r"manifest unknown|name unknown|unauthorized|access .*denied|invalid reference", Misconfigured),
    (r"docker-init|catatonit|network.* not found|no command (or entrypoint )?(provided|specified)", Misconfigured),
)
"""The first that a message matches says what it means, whatever the status: engines answer many errors with 500."""

BY_STATUS: Mapping[int, type[DriverError]] = {
    **dict.fromkeys((400, 401, 403, 404, 405, 406, 413, 422), Misconfigured),
    429: RateLimited,
}


@dataclass(frozen=True)
class Answer:
    """The status of an answer, and its body."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body. Raises Unknown if it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Unknown("the container engine sent an answer that is no JSON", "Garbage") from error


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of to a host. Raises OSError."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Engine:
    """The engine at a socket. Each call has a connection of its own."""

    def __init__(self, path: str, seconds: float = SECONDS) -> None:
        self._path = path
        self._seconds = seconds

    def call(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Any = None, *also: int
    ) -> Answer:
        """One call, with JSON, or with bytes that are a tar. Raises DriverError for a status over 399 not in `also`."""
        with self._answer(method, self._versioned(path), query, body, self._seconds) as answer:
            found = Answer(answer.status, _read(answer, time.monotonic() + self._seconds))
        if found.status >= 400 and found.status not in also:
            raise failure(f"{method} {path.partition('?')[0]}", found.status, _message(found.body))
        return found

    @contextmanager
    def stream(
        self, method: str, path: str, query: Mapping[str, str] | None, seconds: float, body: Any = None
    ) -> Iterator[Iterator[bytes]]:
        """A call whose answer comes in parts, for so many seconds at most; then it just ends. Raises DriverError."""
        with self._answer(method, self._prefix + path, query, body, seconds) as answer:
            if answer.status >= 400:
                raise failure(f"{method} {path}", answer.status, _message(_read(answer, time.monotonic() + seconds)))
            yield _parts(answer, time.monotonic() + seconds)

    def _versioned(self, path: str) -> str:
        """A path with the version to speak, unless it has one: it begins with `libpod`."""
        return path if path.startswith("/v") else self._prefix + path

    @cached_property
    def _prefix(self) -> str:
        """What paths begin with: the version to speak."""
        least = re.fullmatch(r"([0-9]+)\.([0-9]+)", str(self._version.get("MinAPIVersion")))
        major, minor = max(VERSION, (int(least[1]), int(least[2]))) if least else VERSION
        return f"/v{major}.{minor}"

    @cached_property
    def libpod(self) -> str:
        """What paths of Podman's own API begin with, in the oldest version that it speaks; "" if it is not Podman 4.0.

        Podman 3, and whatever else speaks Docker's API, have none.
        """
        components = self._version.get("Components")
        for each in components if isinstance(components, list) else ():
            if isinstance(each, dict) and each.get("Name") == PODMAN and isinstance(each.get("Details"), dict):
                least = re.fullmatch(r"([0-9]+)\.[0-9]+\.[0-9]+", str(each["Details"].get("MinAPIVersion")))
                return f"/v{least[0]}/libpod" if least and int(least[1]) >= 4 else ""
        return ""

    @cached_property
    def _version(self) -> Mapping[str, Any]:
        """What the engine says of itself. Only this path needs no version."""
        with self._answer("GET", "/version", None, None, self._seconds) as answer:
            found = Answer(answer.status, _read(answer, time.monotonic() + self._seconds))
        if found.status != 200:
            raise failure("GET /version", found.status, _message(found.body))
        said = found.json()
        if not isinstance(said, dict) or "ApiVersion" not in said:
            raise Unknown(f"what listens at {self._path} does not say that it is a container engine", "Garbage")
        return said

    @contextmanager
    def _answer(
        self, method: str, path: str, query: Mapping[str, str] | None, body: Any, seconds: float
    ) -> Iterator[http.client.HTTPResponse]:
        connection = Connection(self._path, seconds)
        kind = "application/x-tar" if isinstance(body, bytes) else "application/json"
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        url = path + (f"?{urlencode(query)}" if query else "")
        try:
            connection.request(method, url, sent, {"Content-Type": kind} if sent is not None else {})
            yield connection.getresponse()
        except (FileNotFoundError, PermissionError) as error:
            raise Misconfigured(_no_engine(self._path, error)) from error
        except (OSError, http.client.HTTPException) as error:
            why = f"the container engine at {self._path} did not answer: {type(error).__name__}: {error}"
            raise Unknown(why, TIMED_OUT if isinstance(error, TimeoutError) else "NoAnswer") from error
        finally:
            connection.close()


def _no_engine(path: str, error: OSError) -> str:
    return (
        f"there is no container engine at {path} ({error.strerror}): start Docker, or Podman's service with "
        "`systemctl --user start podman.socket`, or name its socket in the setting `socket`"
    )


def failure(call: str, status: int, message: str) -> DriverError:
    """What an error of the engine means, by the words of its message, then by its status."""
    text = f"the container engine answered {call} with {status}: {scrubbed(message) or 'nothing'}"
    by_words = next((kind for words, kind in WORDS if re.search(words, message, re.I)), None)
    kind = by_words or BY_STATUS.get(status, Unknown)
    return Unknown(text, str(status)) if kind is Unknown else kind(text)


def scrubbed(text: str) -> str:
    """A text without what may be a key. An engine may repeat a refused request."""
    return BLOB.sub(lambda found: f"{found[0][:12]}…", text)


def _message(body: bytes) -> str:
    """The message of an error; the beginning of the body if it has none."""
    with suppress(ValueError, AttributeError):
        return str(json.loads(body).get("message") or json.loads(body).get("cause") or "")[:500]
    return body[:500].decode("utf-8", "replace")


def _read(answer: http.client.HTTPResponse, until: float) -> bytes:
    found = bytearray()
    while part := answer.read1(CHUNK):
        found += part
        if len(found) > MOST_BYTES or time.monotonic() > until:
            raise http.client.HTTPException("its answer is too long, or takes too long")
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    return bytes(found)


def _parts(answer: http.client.HTTPResponse, until: float) -> Iterator[bytes]:
    while time.monotonic() < until and (part := answer.read1(CHUNK)):
        yield part
