"""Downloads files from storage, and keeps copies of them for later jobs.

A `source` is how the service describes a file: `path`, `url`, `size`, the id of its `artifact`, and its digest. That is
`sha256`, or for a file that was sent in parts of `part_bytes` the `composite`: the SHA-256 of the parts' SHA-256
digests. An interrupted download resumes. A file is put in place whole or not at all.

A reused worker keeps copies for jobs of the same owner. A copy is a hard link to the job's file, so a job that writes
to the file writes to the copy: the agent verifies each copy before it uses it.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import stat
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from . import VERSION
from .client import Control, Unreachable, backoffs, is_transient
from .machine import log, now
from .removal import remove_tree

WAIT_SECONDS = 60.0  # for connecting, and for each wait for bytes
DOWNLOAD_TRIES = 12  # in a row that get no byte: about two minutes
CHUNK_BYTES = 1 << 18
COPIES_CHECK_SECONDS = 600.0  # how often the agent asks the service which of these files still exist
UNUSED_SECONDS = 12 * 3600.0  # an older copy is removed
MOST_COPIES, ROOM_PART = 64, 4  # at most 64 copies, which take at most a quarter of the free disk


class NotFetched(Exception):
    """Why a file was not downloaded. `stale`: a fresh URL may help. `received`: the bytes that arrived, if too few."""

    def __init__(self, text: str, stale: bool = False, received: int | None = None) -> None:
        super().__init__(text)
        self.stale, self.received = stale, received


class Stopped(Exception):
    """The work was stopped during a download."""


def download(control: Control, source: dict[str, Any], path: str, tries: int = DOWNLOAD_TRIES) -> None:
    """Download a file to a path. Give up after `tries` tries in a row that get no byte.

    Raises NotFetched, Stopped, or ServiceError when the work is abandoned.
    """
    part = f"{path}.part-of-penstock"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with _new_file(part) as file:
            _download_all(control, source, file, tries)
            verify_file(source, file)
            os.fchmod(file.fileno(), 0o644)
        os.replace(part, path)
    except OSError as why:
        raise NotFetched(f"it cannot be written: {why}") from why
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def _new_file(path: str) -> IO[bytes]:
    """Make a file in place of what is there, and open it. Nothing that a job left there is used. [SEC-2]"""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "w+b")


def _download_all(control: Control, source: dict[str, Any], file: IO[bytes], most: int) -> None:
    """Download all bytes. Resume after an interruption; give up after `most` tries without progress."""
    tries, delays = 0, backoffs()
    while True:
        before = file.tell()
        try:
            _download_rest(control, source, file)
            return
        except Unreachable as why:
            if file.tell() > before:
                tries, delays = 0, backoffs()
            tries += 1
            log(f"downloading {source['path']}: try {tries}: {why}")
            if tries == most:
                raise NotFetched(
                    f"{why}; given up after {most} tries", stale=True, received=file.tell() or None
                ) from why
            _check_stopping(control)
            control.sleep(next(delays))


def _check_stopping(control: Control) -> None:
    control.check()
    if control.stopping:
        raise Stopped


def _download_rest(control: Control, source: dict[str, Any], file: IO[bytes]) -> None:
    size = int(source["size"])
    with _open_url(source["url"], file.tell()) as answer:
        if answer.status == 200:  # the whole file: not every store supports ranges
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
        raise Unreachable(f"{file.tell()} of {size} bytes arrived")


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
    """An HTTP answer. Errors of reading it are Unreachable, which tells them from errors of the disk."""

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


def verify_file(source: dict[str, Any], file: IO[bytes]) -> None:
    """Raise NotFetched unless the file has the expected size and digest."""
    wanted, composite = int(source["size"]), source.get("composite") or ""
    size, digest = digest_file(file, int(source["part_bytes"]) if composite else 0)
    if (size, digest) != (wanted, composite or source["sha256"]):
        kind = "composite SHA-256" if composite else "SHA-256"
        expected = f"expected were {wanted} bytes with {kind} {composite or source['sha256']}"
        more = " or more" if size > wanted else ""
        received = size if size < wanted else None
        raise NotFetched(f"{expected}; found were {size} bytes{more} with {digest}", stale=True, received=received)


def digest_file(file: IO[bytes], part_bytes: int) -> tuple[int, str]:
    """Return a file's size and its SHA-256 in hex; with `part_bytes`, that of the digests of its parts."""
    file.seek(0)
    whole = hashlib.sha256()
    for chunk in iter(lambda: file.read(CHUNK_BYTES), b"") if not part_bytes else _part_digests(file, part_bytes):
        whole.update(chunk)
    return file.tell(), whole.hexdigest()


def _part_digests(file: IO[bytes], part_bytes: int) -> Iterator[bytes]:
    """Yield the SHA-256 of each part of a file, from its position on."""
    while True:
        part, left = hashlib.sha256(), part_bytes
        while left:
            chunk = file.read(min(CHUNK_BYTES, left))
            if not chunk:
                break
            part.update(chunk)
            left -= len(chunk)
        if left < part_bytes:
            yield part.digest()
        if left:
            return


@dataclass
class Copy:
    """One copy: its size in bytes, and when it was used last."""

    size: int
    used: float


class Copies:
    """The copies on this machine, in a folder that is empty at first. Only jobs of `owner` may use them. [SEC-2]"""

    def __init__(self, folder: Path, owner: str) -> None:
        self._folder, self.owner = folder, owner
        self._all: dict[str, Copy] = {}
        self._lock = threading.Lock()
        self._compared = now()

    def summary(self) -> str:
        """Return which copies stay on a clean machine, as a part of a sentence."""
        text = f"; copies of downloaded files that stay for jobs of {self.owner[:64]}: {len(self._all)}"
        return text if self._all else ""

    def due_for_check(self) -> list[str]:
        """Return the ids to compare with the service's; none if they were compared recently. [ART-2]"""
        self._remove_unused()
        return list(self._all) if now() - self._compared >= COPIES_CHECK_SECONDS else []

    def keep_only(self, ids: Collection[str]) -> None:
        """Remove all copies but these."""
        self._compared = now()
        for id in set(self._all) - set(ids):
            self._remove(id)

    def fetch(self, control: Control, source: dict[str, Any], path: str, tries: int = DOWNLOAD_TRIES) -> bool:
        """Download a file, or use its copy. Return whether there was a copy. Raises what `download` raises."""
        id = str(source.get("artifact") or "")
        if id in self._all and self._place(id, source, path):
            return True
        download(control, source, path, tries)
        self.keep(id, path)
        return False

    def keep(self, id: str, path: str) -> None:
        """Keep a copy of a job's file, if there is room. Nothing depends on it."""
        if not id.replace(".", "").isalnum() or id.startswith("."):
            return
        with self._lock, contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            size = os.stat(path).st_size
            self._make_room(size)
            os.link(path, self._folder / id)  # raises where the job has another disk
            self._all[id] = Copy(size, now())

    def _place(self, id: str, source: dict[str, Any], path: str) -> bool:
        """Put a copy in place if it is intact; otherwise remove it."""
        copy = self._folder / id
        try:
            with open(os.open(copy, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise NotFetched("it is not a file any more")
                verify_file(source, file)
            os.chmod(copy, 0o644)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.link(copy, path)
        except (OSError, NotFetched) as why:
            log(f"the copy of {source['path']} cannot be used: {why}")
            self._remove(id)
            return False
        self._all[id] = Copy(int(source["size"]), now())
        return True

    def _make_room(self, size: int) -> None:
        """Make room by removing the copies that were unused for longest. Raises OSError for a file that is too big."""
        disk = os.statvfs(self._folder)
        most = disk.f_bavail * disk.f_frsize // ROOM_PART
        if size > most:
            raise OSError("there is no room")
        for id in sorted(self._all, key=lambda id: self._all[id].used):
            if len(self._all) < MOST_COPIES and sum(each.size for each in self._all.values()) + size <= most:
                return
            self._remove(id)

    def _remove_unused(self) -> None:
        for id in [id for id, each in self._all.items() if now() - each.used > UNUSED_SECONDS]:
            self._remove(id)

    def _remove(self, id: str) -> None:
        self._all.pop(id, None)
        with contextlib.suppress(OSError):
            os.unlink(self._folder / id)


def remove_copies(folder: Path) -> None:
    """Remove the folder of copies with everything in it, also what a job put there. Raises OSError."""
    remove_tree(str(folder))
