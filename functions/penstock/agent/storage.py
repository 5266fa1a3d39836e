"""Sends a file's bytes to where outputs are kept: in one piece, or in parts, several of them at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from .client import http_request, is_transient, retry
from .control import Control, Unreachable
from .files import Check, Measured, NotUploaded, Prefix, always, check_unchanged, opened

T = TypeVar("T")
STORE_SECONDS = 120.0  # storage checks all of a piece before it answers
PUT_TRIES = 8
AT_ONCE = 4
LEAVES = 16  # for how many parts leave is asked at once: it lasts an hour

AskParts = Callable[[int, Sequence[str]], Sequence[dict[str, Any]]]
"""Asks leave to send parts: by the number of the first, and the SHA-256 of each."""


@dataclass(frozen=True)
class Piece:
    """Some bytes of a file: from `start` on, `size` of them."""

    file: Measured
    start: int
    size: int
    sha256: str


def side_by_side(work: Callable[[T], None], items: Sequence[T]) -> dict[T, NotUploaded]:
    """Do something to each, some of them at once. Return what was wrong. Raises ServiceError when abandoned."""

    def tried(item: T) -> NotUploaded | None:
        try:
            work(item)
        except NotUploaded as why:
            return why
        return None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {item: why for item, why in zip(items, list(pool.map(tried, items))) if why}


def put(control: Control, file: Measured, upload: dict[str, Any], check: Check = always) -> None:
    """Send a file, several times if need be. Raises NotUploaded; ServiceError when abandoned; what `check` raises."""
    _put(control, check, Piece(file, 0, file.size, file.sha256), upload)


def put_parts(control: Control, file: Measured, part_bytes: int, ask: AskParts, check: Check = always) -> None:
    """Send those parts of a file that are not there yet. Raises the same."""
    for first in range(0, len(file.parts), LEAVES):
        told = ask(first + 1, file.parts[first : first + LEAVES])
        leaves = {_part(file, leave["number"], part_bytes): leave for leave in told if not leave["there"]}
        failed = side_by_side(partial(_put_to, control, check, leaves), list(leaves))
        for why in failed.values():
            raise why


def _put_to(control: Control, check: Check, leaves: dict[Piece, dict[str, Any]], piece: Piece) -> None:
    _put(control, check, piece, leaves[piece])


def _part(file: Measured, number: int, part_bytes: int) -> Piece:
    start = (number - 1) * part_bytes
    return Piece(file, start, min(part_bytes, file.size - start), file.parts[number - 1])


def _put(control: Control, check: Check, piece: Piece, leave: dict[str, Any]) -> None:
    try:
        retry(control, f"storing {piece.file.file.name}", lambda: _put_once(check, piece, leave), PUT_TRIES)
    except Unreachable as why:
        raise NotUploaded(str(why)) from why


def _put_once(check: Check, piece: Piece, leave: dict[str, Any]) -> None:
    check()
    headers = {**leave.get("headers", {}), "Content-Length": str(piece.size)}
    with opened(piece.file.file) as stream:
        stream.seek(piece.start)
        body = Prefix(stream, piece.size, check)
        _send(leave, body, headers)
        if body.sha256() != piece.sha256:
            raise NotUploaded("it was written to while it was uploaded", moving=True)
        check_unchanged(piece.file, stream)


def _send(leave: dict[str, Any], body: Prefix, headers: dict[str, str]) -> None:
    try:
        status, answer = http_request(leave.get("method", "PUT"), leave["url"], body, headers, STORE_SECONDS)
    except Unreachable as why:
        raise Unreachable(f"storage could not be reached: {why}") from why
    if status >= 300:
        codes = re.findall("<Code>(.*?)</Code>", answer.decode("utf-8", "replace"))
        text = " ".join([f"storage answered HTTP {status}", *codes])
        raise Unreachable(text) if is_transient(status) else NotUploaded(text)
