"""Downloads files from storage: resumed after a break, and put in place whole or not at all; and keeps copies.

A machine that goes on to another job keeps copies for jobs of the same owner. A copy is a hard link to the job's file,
so a job that writes to the file writes to the copy: the agent verifies each copy before it uses it.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import shutil
import stat
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from . import VERSION
from .client import backoffs, is_transient
from .control import Control, Unreachable
from .log import log, now

WAIT_SECONDS = 60.0  # for connecting, and for each wait for bytes
DOWNLOAD_TRIES = 12  # without a byte between them: some two minutes
CHUNK_BYTES = 1 << 18
COPIES_CHECK_SECONDS = 600.0  # how often the service is asked which of them are still kept there
UNUSED_SECONDS = 12 * 3600.0
MOST_COPIES, ROOM_PART = 64, 4  # how many there are, and which part of the disk they may take of what is free


class NotFetched(Exception):
    """Why a file was not downloaded. `stale`: a fresh URL may help. `came`: how many bytes arrived, if too few."""

    def __init__(self, text: str, stale: bool = False, came: int | None = None) -> None:
        super().__init__(text)
        self.stale, self.came = stale, came


class Stopped(Exception):
    """The work was stopped meanwhile."""


def download(control: Control, told: dict[str, Any], path: str, tries: int = DOWNLOAD_TRIES) -> None:
    """Download a file to a path. Give up after `tries` tries without a byte between them.

    Raises NotFetched, Stopped, or ServiceError when the work is abandoned.
    """
    part = f"{path}.part-of-penstock"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(part, "w+b") as file:
            _download_all(control, told, file, tries)
            verify_file(told, file)
        os.chmod(part, 0o644)
        os.replace(part, path)
    except OSError as why:
        raise NotFetched(f"it cannot be written: {why}") from why
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def _download_all(control: Control, told: dict[str, Any], file: IO[bytes], most: int) -> None:
    """Download all bytes. After a break, resume with what is missing; give up after `most` tries without progress."""
    tries, delays = 0, backoffs()
    while True:
        before = file.tell()
        try:
            _download_rest(control, told, file)
            return
        except Unreachable as why:
            if file.tell() > before:
                tries, delays = 0, backoffs()
            tries += 1
            log(f"fetching {told['path']}: try {tries}: {why}")
            if tries == most:
                raise NotFetched(f"{why}; given up after {most} tries", stale=True, came=file.tell() or None) from why
            _check_stopping(control)
            control.sleep(next(delays))


def _check_stopping(control: Control) -> None:
    control.check()
    if control.stopping:
        raise Stopped


def _download_rest(control: Control, told: dict[str, Any], file: IO[bytes]) -> None:
    size = int(told["size"])
    with _open_url(told["url"], file.tell()) as answer:
        if answer.status == 200:  # also when only the rest was asked for: not every store gives parts
            file.seek(0)
            file.truncate()
        elif answer.status != 206:
            _raise_refusal(answer)
        while file.tell() <= size:
            _check_stopping(control)
            chunk = answer.read(CHUNK_BYTES)
            if not chunk:
                break
            file.write(chunk)
    if file.tell() < size:
        raise Unreachable(f"{file.tell()} of {size} bytes came")


@contextlib.contextmanager
def _open_url(url: str, have: int) -> Iterator[_Reader]:
    """Request a file, from the byte `have` on. Raises Unreachable for any trouble with the connection."""
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
    """An answer whose errors are Unreachable, so that they differ from errors of the disk."""

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


def _raise_refusal(answer: _Reader) -> None:
    codes = re.findall("<Code>(.*?)</Code>", answer.read(CHUNK_BYTES).decode("utf-8", "replace"))
    text = " ".join([f"storage answered HTTP {answer.status}", *codes])
    if is_transient(answer.status):
        raise Unreachable(text)
    raise NotFetched(text, stale=True)


def verify_file(told: dict[str, Any], file: IO[bytes]) -> None:
    """Raise NotFetched unless the file has the expected size and digest."""
    file.seek(0)
    digest = hashlib.sha256()
    for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
        digest.update(chunk)
    size = file.tell()
    if (size, digest.hexdigest()) != (int(told["size"]), told["sha256"]):
        came = size if size < int(told["size"]) else None
        expected = f"expected were {told['size']} bytes with SHA-256 {told['sha256']}"
        more = " or more" if size > int(told["size"]) else ""
        raise NotFetched(
            f"{expected}; what came were {size} bytes{more} with {digest.hexdigest()}", stale=True, came=came
        )


@dataclass
class Copy:
    """One copy: its size in bytes, and when it was used last."""

    size: int
    used: float


class Copies:
    """The copies on this machine; none at the start, whatever is in the folder. Only jobs of `owner` may use them."""

    def __init__(self, folder: Path, owner: str = "", is_on: bool = False) -> None:
        self._folder, self.owner, self.is_on = folder, owner, is_on
        self._all: dict[str, Copy] = {}
        self._lock = threading.Lock()
        self._compared = now()
        self._empty()

    def serve(self, owner: str, is_on: bool) -> None:
        """Prepare for a job of an owner: copies of another owner's jobs are removed first. [SEC-2]"""
        if owner != self.owner or not is_on:
            self._empty()
        self.owner, self.is_on = owner, is_on
        self._age()

    def summary(self) -> str:
        """Return which copies stay on a clean machine, as a part of a sentence."""
        of = f"; {len(self._all)} cop(ies) of what was fetched are kept for jobs of {self.owner[:64]}"
        return of if self._all else ""

    def due_for_check(self) -> list[str]:
        """Return the ids to compare with what the service keeps; none if they were compared recently. [ART-2]"""
        self._age()
        return list(self._all) if now() - self._compared >= COPIES_CHECK_SECONDS else []

    def keep_only(self, ids: Collection[str]) -> None:
        """Remove all copies but these."""
        self._compared = now()
        for id in set(self._all) - set(ids):
            self._remove(id)

    def fetch(self, control: Control, told: dict[str, Any], path: str, tries: int = DOWNLOAD_TRIES) -> bool:
        """Download a file, or use its copy. Return whether there was a copy. Raises what `download` raises."""
        id = str(told.get("artifact") or "")
        if id in self._all and self._place(id, told, path):
            return True
        download(control, told, path, tries)
        self.keep(id, path)
        return False

    def keep(self, id: str, path: str) -> None:
        """Keep a copy of a job's file, if there is room. Nothing depends on it."""
        if not self.is_on or not id.isalnum():
            return
        with self._lock, contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            size = os.stat(path).st_size
            self._make_room(size)
            os.link(path, self._folder / id)  # raises where the job has another disk
            self._all[id] = Copy(size, now())

    def _place(self, id: str, told: dict[str, Any], path: str) -> bool:
        """Put a copy in place if it is intact; otherwise remove it."""
        copy = self._folder / id
        try:
            with open(os.open(copy, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise NotFetched("it is no file any more")
                verify_file(told, file)
            os.chmod(copy, 0o644)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.link(copy, path)
        except (OSError, NotFetched) as why:
            log(f"the copy of {told['path']} is of no use: {why}")
            self._remove(id)
            return False
        self._all[id] = Copy(int(told["size"]), now())
        return True

    def _make_room(self, size: int) -> None:
        """Remove the copies that were unused for longest. Raises OSError if the file is too big in any case."""
        disk = os.statvfs(self._folder)
        most = disk.f_bavail * disk.f_frsize // ROOM_PART
        if size > most:
            raise OSError("there is no room")
        for id in sorted(self._all, key=lambda id: self._all[id].used):
            if len(self._all) < MOST_COPIES and sum(each.size for each in self._all.values()) + size <= most:
                return
            self._remove(id)

    def _age(self) -> None:
        for id in [id for id, each in self._all.items() if now() - each.used > UNUSED_SECONDS]:
            self._remove(id)

    def _remove(self, id: str) -> None:
        self._all.pop(id, None)
        with contextlib.suppress(OSError):
            os.unlink(self._folder / id)

    def _empty(self) -> None:
        """Remove everything in the folder, also what a job put there. Raises OSError."""
        self._all.clear()
        if self._folder.is_symlink() or self._folder.is_file():
            self._folder.unlink()
        if self._folder.exists():
            shutil.rmtree(self._folder)
