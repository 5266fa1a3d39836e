"""Sends a file's bytes to where bytes are kept: a big one in parts, several of them at once, and none of them twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from penstock.cli.download import CHUNK
from penstock.cli.errors import Refused
from penstock.cli.transport import open_client
from penstock.domain.parts import PART_BYTES, composite

AT_ONCE = 4
LEAVES = 16
"""For how many parts leave is asked at once: it lasts an hour."""

Progress = Callable[[int], None]
"""Told how many bytes more were sent; fewer than none when they are to be sent again."""

AskParts = Callable[[int, Sequence[str]], Sequence[dict[str, Any]]]
"""Asks leave to send parts: by the number of the first, and the SHA-256 of each."""


@dataclass(frozen=True)
class Described:
    """A file as it was read: its size in bytes, its SHA-256 in hex, and those of its parts, if it has several."""

    path: Path
    size: int
    sha256: str
    parts: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """What is said of it before it is sent."""
        about = {"size": self.size, "sha256": self.sha256}
        return {**about, "composite": composite(self.parts)} if self.parts else about


def describe(path: Path) -> Described:
    """Read a file. Raises Refused when it cannot be read."""
    whole, parts, size = hashlib.sha256(), [], path.stat().st_size
    for start in range(0, size, PART_BYTES):
        part = hashlib.sha256()
        for chunk in _chunks(path, start, PART_BYTES):
            part.update(chunk)
            whole.update(chunk)
        parts.append(part.hexdigest())
    return Described(path, size, whole.hexdigest(), tuple(parts) if len(parts) > 1 else ())


def put(file: Described, leave: dict[str, Any], progress: Progress) -> None:
    """Send a file in one piece. Raises httpx.HTTPError, and Refused when it cannot be read."""
    _put(file.path, 0, file.size, leave, progress)


def put_parts(file: Described, ask: AskParts, progress: Progress) -> None:
    """Send those parts of a file that are not there. Raises httpx.HTTPError when all of the others were sent."""
    for first in range(0, len(file.parts), LEAVES):
        told = ask(first + 1, file.parts[first : first + LEAVES])
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(partial(_put_part, file, progress), told))


def _put_part(file: Described, progress: Progress, leave: dict[str, Any]) -> None:
    start = (leave["number"] - 1) * PART_BYTES
    size = min(PART_BYTES, file.size - start)
    if leave["there"]:
        progress(size)
    else:
        _put(file.path, start, size, leave, progress)


def _put(path: Path, start: int, size: int, leave: dict[str, Any], progress: Progress) -> None:
    headers, sent = {**leave["headers"], "content-length": str(size)}, 0

    def told() -> Iterator[bytes]:
        nonlocal sent
        for chunk in _chunks(path, start, size):
            yield chunk
            sent += len(chunk)
            progress(len(chunk))

    try:
        with open_client(leave["url"]) as client:
            response = client.request(leave["method"], leave["url"], headers=headers, content=told())
        if not response.is_success:
            raise httpx.HTTPStatusError(
                f"{response.status_code} {response.reason_phrase}", request=response.request, response=response
            )
    except httpx.HTTPError:
        progress(-sent)
        raise


def _chunks(path: Path, start: int, size: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(start)
            while size and (chunk := file.read(min(CHUNK, size))):
                yield chunk
                size -= len(chunk)
    except OSError as error:
        raise Refused(f"can't read {path}: {error.strerror}") from error
