"""Fetches one file from where bytes are kept: gone on with where it broke off, and put in place whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import urlsplit

from . import VERSION
from .client import backoffs, is_transient
from .control import Control, Unreachable
from .log import log

WAIT_SECONDS = 60.0  # for connecting, and for each wait for bytes
TRIES = 12  # without a byte between them: some two minutes
CHUNK = 1 << 18


class NotFetched(Exception):
    """Why a file was not fetched; `stale`: with a fresh URL it may be. `came`: how many bytes did, if fewer."""

    def __init__(self, text: str, stale: bool = False, came: int | None = None) -> None:
        super().__init__(text)
        self.stale, self.came = stale, came


class Stopped(Exception):
    """The work is to be stopped."""


def fetch(control: Control, told: dict[str, Any], path: str, tries: int = TRIES) -> None:
    """Put a file at a path; give up after so many tries without a byte between them.

    Raises NotFetched, Stopped, or ServiceError when the work is abandoned.
    """
    part = f"{path}.part-of-penstock"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(part, "w+b") as file:
            _fetch_all(control, told, file, tries)
            verify(told, file)
        os.chmod(part, 0o644)
        os.replace(part, path)
    except OSError as why:
        raise NotFetched(f"it cannot be written: {why}") from why
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def _fetch_all(control: Control, told: dict[str, Any], file: IO[bytes], most: int) -> None:
    """Fetch until all bytes are there: after each break what is missing, and only so often without any progress."""
    tries, delays = 0, backoffs()
    while True:
        before = file.tell()
        try:
            _fetch_rest(control, told, file)
            return
        except Unreachable as why:
            if file.tell() > before:
                tries, delays = 0, backoffs()
            tries += 1
            log(f"fetching {told['path']}: try {tries}: {why}")
            if tries == most:
                raise NotFetched(f"{why}; given up after {most} tries", stale=True, came=file.tell() or None) from why
            _check(control)
            control.sleep(next(delays))


def _check(control: Control) -> None:
    control.check()
    if control.stopping:
        raise Stopped


def _fetch_rest(control: Control, told: dict[str, Any], file: IO[bytes]) -> None:
    size = int(told["size"])
    with _answer(told["url"], file.tell()) as answer:
        if answer.status == 200:  # also when only the rest was asked for: not every store gives parts
            file.seek(0)
            file.truncate()
        elif answer.status != 206:
            _refuse(answer)
        while file.tell() <= size:
            _check(control)
            chunk = answer.read(CHUNK)
            if not chunk:
                break
            file.write(chunk)
    if file.tell() < size:
        raise Unreachable(f"{file.tell()} of {size} bytes came")


@contextlib.contextmanager
def _answer(url: str, have: int) -> Iterator[_Reader]:
    """Ask for a file, or for what is behind its first bytes. Whatever breaks meanwhile is Unreachable."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=WAIT_SECONDS)
    headers = {"User-Agent": f"penstock-agent/{VERSION}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with _broken_is_unreachable():
            connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), headers=headers)
            answer = connection.getresponse()
        yield _Reader(answer)
    finally:
        connection.close()


class _Reader:
    """An answer, whose breaking is told from that of the disk."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer, self.status = answer, answer.status

    def read(self, count: int) -> bytes:
        with _broken_is_unreachable():
            return self._answer.read(count)


@contextlib.contextmanager
def _broken_is_unreachable() -> Iterator[None]:
    try:
        yield
    except (OSError, http.client.HTTPException) as why:
        raise Unreachable(f"storage: {type(why).__name__}: {why}") from why


def _refuse(answer: _Reader) -> None:
    codes = re.findall("<Code>(.*?)</Code>", answer.read(CHUNK).decode("utf-8", "replace"))
    text = " ".join([f"storage answered HTTP {answer.status}", *codes])
    if is_transient(answer.status):
        raise Unreachable(text)
    raise NotFetched(text, stale=True)


def verify(told: dict[str, Any], file: IO[bytes]) -> None:
    """Raise NotFetched, saying what was expected and what came, unless these are the bytes that were kept."""
    file.seek(0)
    digest = hashlib.sha256()
    for chunk in iter(lambda: file.read(CHUNK), b""):
        digest.update(chunk)
    size = file.tell()
    if (size, digest.hexdigest()) != (int(told["size"]), told["sha256"]):
        came = size if size < int(told["size"]) else None
        expected = f"expected were {told['size']} bytes with SHA-256 {told['sha256']}"
        more = " or more" if size > int(told["size"]) else ""
        raise NotFetched(
            f"{expected}; what came were {size} bytes{more} with {digest.hexdigest()}", stale=True, came=came
        )
