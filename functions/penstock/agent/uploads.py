"""Uploads files to storage. A file is measured first, then sent in one piece or in several parts at once.

An `upload` is how the service allows one request to storage: `url`, `method` and `headers`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, TypeVar

from .client import Control, Unreachable, http_request, is_transient, retry
from .machine import size_text

Check = Callable[[], None]
"""Raises an exception if the upload is no longer wanted."""

T = TypeVar("T")
STORE_SECONDS = 120.0  # storage checks the whole piece before it answers
PUT_TRIES = 8
PARALLEL_UPLOADS = 4
PARTS_PER_CALL = 16  # how many uploads of parts are requested at once: their URLs expire after an hour
AskParts = Callable[[int, Sequence[str]], Sequence[dict[str, Any]]]
"""Requests the uploads of some parts from the service: by the number of the first, and the SHA-256 of each."""


@dataclass(frozen=True)
class File:
    """A file to upload. `name` is its path as the job knows it."""

    name: str
    path: str
    may_change: bool


@dataclass(frozen=True)
class MeasuredFile:
    """A file as it was when it was read: its size in bytes, its SHA-256, and its modification time.

    `parts` has the SHA-256 of each part, if there is more than one.
    """

    file: File
    size: int
    sha256: str
    written: int
    parts: tuple[str, ...] = ()

    @property
    def composite(self) -> str:
        """The SHA-256 of the parts' digests; "" for a file of one part."""
        return hashlib.sha256(bytes.fromhex("".join(self.parts))).hexdigest() if self.parts else ""


class NotUploaded(Exception):
    """Why a file was not uploaded. `moving`: it changed or vanished, which a rule with `%` allows.

    `size` and `limit`, in bytes, are set for a file that is too large.
    """

    def __init__(self, text: str, moving: bool = False, size: int = 0, limit: int | None = None) -> None:
        super().__init__(text)
        self.moving, self.size, self.limit = moving, size, limit


def no_check() -> None:
    """Raise nothing: the outputs of a cancelled job are uploaded, too."""


class HashedReader:
    """The first `size` bytes of a file, hashed while they are read. Raises NotUploaded when there are fewer.

    `check` is called before each read, and may raise.
    """

    def __init__(self, file: IO[bytes], size: int, check: Check = no_check) -> None:
        self._file, self._left, self._hash, self._check = file, size, hashlib.sha256(), check

    def read(self, count: int = 1 << 20) -> bytes:
        self._check()
        data = self._file.read(min(count, self._left))
        if self._left and not data:
            raise NotUploaded("it became shorter", moving=True)
        self._left -= len(data)
        self._hash.update(data)
        return data

    def sha256(self) -> str:
        """Read the rest. Return the SHA-256 in hex."""
        while self._left:
            self.read()
        return self._hash.hexdigest()

    def parts(self, part_bytes: int) -> Iterator[str]:
        """Read the rest; yield the SHA-256, in hex, of each part of `part_bytes`. The last part may be shorter."""
        while self._left:
            part, left = hashlib.sha256(), min(part_bytes, self._left)
            while left:
                data = self.read(min(left, 1 << 20))
                part.update(data)
                left -= len(data)
            yield part.hexdigest()


def _open_regular(path: str) -> IO[bytes]:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileNotFoundError(path)
    return open(handle, "rb")


@contextlib.contextmanager
def open_file(file: File) -> Iterator[IO[bytes]]:
    """Open a regular file; never wait for the other end of a FIFO. Raises NotUploaded for any OSError."""
    try:
        with _open_regular(file.path) as stream:
            yield stream
    except FileNotFoundError:
        raise NotUploaded("it vanished", moving=True) from None
    except OSError as why:
        raise NotUploaded(str(why)) from why


def measure_file(file: File, limit: int, part_bytes: int) -> MeasuredFile:
    """Read and hash a file of at most `limit` bytes, in parts of `part_bytes`. Raises NotUploaded."""
    with open_file(file) as stream:
        before = os.fstat(stream.fileno())
        if before.st_size > limit:
            text = f"it has {size_text(before.st_size)}; the limit is {size_text(limit)}"
            raise NotUploaded(text, size=before.st_size, limit=limit)
        prefix = HashedReader(stream, before.st_size)
        parts = tuple(prefix.parts(part_bytes)) if before.st_size > part_bytes else ()
        measured = MeasuredFile(file, before.st_size, prefix.sha256(), before.st_mtime_ns, parts)
        check_unchanged(measured, stream)
        return measured


def check_unchanged(measured: MeasuredFile, stream: IO[bytes]) -> None:
    """Raise NotUploaded if a file that must not change has changed."""
    after = os.fstat(stream.fileno())
    same = (after.st_size, after.st_mtime_ns) == (measured.size, measured.written)
    if not same and not measured.file.may_change:
        raise NotUploaded('it changed while it was read; a rule with "%" allows that', moving=True)


@dataclass(frozen=True)
class Piece:
    """`size` bytes of a file, from `start` on."""

    file: MeasuredFile
    start: int
    size: int
    sha256: str


def in_parallel(work: Callable[[T], None], items: Sequence[T]) -> dict[T, NotUploaded]:
    """Call `work` for each item, some at once. Return what went wrong. Raises ServiceError if the work is abandoned."""

    def tried(item: T) -> NotUploaded | None:
        try:
            work(item)
        except NotUploaded as why:
            return why
        return None

    with ThreadPoolExecutor(PARALLEL_UPLOADS) as pool:
        return {item: why for item, why in zip(items, list(pool.map(tried, items))) if why}


def upload_file(control: Control, file: MeasuredFile, upload: dict[str, Any], check: Check = no_check) -> None:
    """Send a file, with retries. Raises NotUploaded, ServiceError if the work is abandoned, and what `check` raises."""
    _upload_piece(control, check, Piece(file, 0, file.size, file.sha256), upload)


def upload_parts(control: Control, file: MeasuredFile, part_bytes: int, ask: AskParts, check: Check = no_check) -> None:
    """Send the parts of a file that storage does not have yet. Raises what `upload_file` raises."""
    for first in range(0, len(file.parts), PARTS_PER_CALL):
        parts = ask(first + 1, file.parts[first : first + PARTS_PER_CALL])
        uploads = {_part_piece(file, part["number"], part_bytes): part for part in parts if not part["there"]}
        failed = in_parallel(partial(_upload_part, control, check, uploads), list(uploads))
        for why in failed.values():
            raise why


def _upload_part(control: Control, check: Check, uploads: dict[Piece, dict[str, Any]], piece: Piece) -> None:
    _upload_piece(control, check, piece, uploads[piece])


def _part_piece(file: MeasuredFile, number: int, part_bytes: int) -> Piece:
    start = (number - 1) * part_bytes
    return Piece(file, start, min(part_bytes, file.size - start), file.parts[number - 1])


def _upload_piece(control: Control, check: Check, piece: Piece, upload: dict[str, Any]) -> None:
    try:
        retry(control, f"uploading {piece.file.file.name}", lambda: _upload_once(check, piece, upload), PUT_TRIES)
    except Unreachable as why:
        raise NotUploaded(str(why)) from why


def _upload_once(check: Check, piece: Piece, upload: dict[str, Any]) -> None:
    check()
    headers = {**upload.get("headers", {}), "Content-Length": str(piece.size)}
    with open_file(piece.file.file) as stream:
        stream.seek(piece.start)
        body = HashedReader(stream, piece.size, check)
        _send_piece(upload, body, headers)
        if body.sha256() != piece.sha256:
            raise NotUploaded("it was written to while it was uploaded", moving=True)
        check_unchanged(piece.file, stream)


def _send_piece(upload: dict[str, Any], body: HashedReader, headers: dict[str, str]) -> None:
    try:
        status, answer = http_request(upload.get("method", "PUT"), upload["url"], body, headers, STORE_SECONDS)
    except Unreachable as why:
        raise Unreachable(f"storage could not be reached: {why}") from why
    if status >= 300:
        codes = re.findall("<Code>(.*?)</Code>", answer.decode("utf-8", "replace"))
        text = " ".join([f"storage answered HTTP {status}", *codes])
        raise Unreachable(text) if is_transient(status) else NotUploaded(text)
