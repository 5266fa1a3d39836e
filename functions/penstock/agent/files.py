"""Files that may be uploaded: opened with care, and measured."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from .log import size_text

Check = Callable[[], None]
"""Raises when it is no longer worth going on."""


@dataclass(frozen=True)
class Found:
    """A file that the rules name; `name` is its path as the job knows it."""

    name: str
    path: str
    may_change: bool


@dataclass(frozen=True)
class Measured:
    """A file as it was when it was read: its size in bytes, its SHA-256, when it was last written.

    `parts` are the SHA-256 of its parts, if it has more than one.
    """

    file: Found
    size: int
    sha256: str
    written: int
    parts: tuple[str, ...] = ()

    @property
    def composite(self) -> str:
        """The SHA-256 of those of the parts, as bytes; "" for a file of one part."""
        return hashlib.sha256(bytes.fromhex("".join(self.parts))).hexdigest() if self.parts else ""


class NotUploaded(Exception):
    """Why a file was not uploaded; `moving`: because it changed or vanished, which `%` allows.

    `size` and `limit` are in bytes, of one that is too large.
    """

    def __init__(self, text: str, moving: bool = False, size: int = 0, limit: int | None = None) -> None:
        super().__init__(text)
        self.moving, self.size, self.limit = moving, size, limit


def always() -> None:
    """A file is worth sending whatever happens: outputs of a cancelled job are kept, too."""


class Prefix:
    """The first `size` bytes of a file, hashed while they are read. Raises NotUploaded when there are fewer.

    `check` is called before each read, and may raise.
    """

    def __init__(self, file: IO[bytes], size: int, check: Check = always) -> None:
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
        """Read what is left and return the hash in hex."""
        while self._left:
            self.read()
        return self._hash.hexdigest()

    def parts(self, part_bytes: int) -> Iterator[str]:
        """Read what is left; yield the hash, in hex, of each part of so many bytes; the last may have fewer."""
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
def opened(file: Found) -> Iterator[IO[bytes]]:
    """Open a regular file, without ever waiting for the other end of a FIFO. Raises NotUploaded for all OSErrors."""
    try:
        with _open_regular(file.path) as stream:
            yield stream
    except FileNotFoundError:
        raise NotUploaded("it vanished", moving=True) from None
    except OSError as why:
        raise NotUploaded(str(why)) from why


def measure(file: Found, limit: int, part_bytes: int) -> Measured:
    """Read a file of at most `limit` bytes, which is in parts of so many bytes. Raises NotUploaded."""
    with opened(file) as stream:
        before = os.fstat(stream.fileno())
        if before.st_size > limit:
            text = f"it has {size_text(before.st_size)}; the limit is {size_text(limit)}"
            raise NotUploaded(text, size=before.st_size, limit=limit)
        prefix = Prefix(stream, before.st_size)
        parts = tuple(prefix.parts(part_bytes)) if before.st_size > part_bytes else ()
        measured = Measured(file, before.st_size, prefix.sha256(), before.st_mtime_ns, parts)
        check_unchanged(measured, stream)
        return measured


def check_unchanged(measured: Measured, stream: IO[bytes]) -> None:
    """Raise NotUploaded if a file that must not change has changed."""
    after = os.fstat(stream.fileno())
    same = (after.st_size, after.st_mtime_ns) == (measured.size, measured.written)
    if not same and not measured.file.may_change:
        raise NotUploaded('it changed while it was read; a rule with "%" allows that', moving=True)
