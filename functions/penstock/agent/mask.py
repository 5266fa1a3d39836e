"""Hides secrets in what leaves the machine. docs/users/secrets.md says what is found, and what cannot be. [SEC-1]"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator

from .disguises import FORM, ODD, PIECE, escaped, folded, spread

STARS = b"***"
ESCAPES = (b"\\", b"%", b"'\"'")
"""What a line has in which something is escaped."""

FOLDED = re.compile(rb"^[ \t]*[A-Za-z0-9+/_=-]{32,}\r?$", re.MULTILINE)
"""A line as tools make them that break Base64 and hex into lines."""

_BREAKS = re.compile(rb"\r?\n[ \t]*")
_IN_LINE = re.compile(rb"[^\n]+")


class Mask:
    """All that is secret by now. Threads share it; it only ever learns more."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._known: set[str] = set()
        self._literals: tuple[bytes, ...] = ()
        self._folded: tuple[bytes, ...] = ()
        self._escaped: tuple[tuple[bytes, re.Pattern[bytes]], ...] = ()
        self.longest = 1
        self.longest_folded = 1
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Hide these too from now on."""
        with self._lock:
            fresh = {secret for secret in secrets if secret} - self._known
            self._known |= fresh
            raw = {secret.encode("utf-8", "surrogatepass") for secret in fresh}
            wrapped = {form for secret in raw for form in folded(secret)}
            spaced = {secret.replace(b" ", b"+") for secret in raw}
            most = max((min(len(secret), PIECE + PIECE) for secret in fresh), default=0)
            self.longest = max(self.longest, FORM * most, *map(len, raw | wrapped), 1)
            self.longest_folded = max(self.longest_folded, *map(len, wrapped), 1)
            self._escaped += tuple(each for secret in sorted(fresh) for each in escaped(secret))
            self._folded += tuple(sorted(wrapped))
            self._literals += tuple(sorted(raw | wrapped | spaced))

    def text(self, text: str) -> str:
        """Return a text without the secrets in it."""
        data = text.encode("utf-8", "surrogatepass")
        return hide(data, self.spans(data)).decode("utf-8", "surrogatepass")

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return where there are secrets: in order, and apart from one another."""
        return _joined([*self._plain(data), *self._broken(data), *self._disguised(data)])

    def _plain(self, data: bytes) -> Iterator[tuple[int, int]]:
        for literal in self._literals:
            at = data.find(literal)
            while at >= 0:
                yield at, at + len(literal)
                at = data.find(literal, at + 1)

    def _broken(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Find what is broken into lines; the costly search is for what is there for sure."""
        if not (self._folded and FOLDED.search(data)):
            return
        flat = _BREAKS.sub(b"", data)
        for text in self._folded:
            if text in flat:
                yield from _all(spread(text), data)

    def _disguised(self, data: bytes) -> Iterator[tuple[int, int]]:
        lines = _lines_with(data, ESCAPES) if self._escaped else []
        if not lines:
            return
        likely = [pattern for word, pattern in self._escaped if word in data]
        for start, end in lines:
            patterns = [each for _, each in self._escaped] if ODD.search(data, start, end) else likely
            for pattern in patterns:
                yield from _all(pattern, data, start, end)


def hide(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    """Return data with stars where there are secrets. Lines stay lines."""
    kept, at = [], 0
    for start, end in spans:
        kept += [data[at:start], _IN_LINE.sub(STARS, data[start:end])]
        at = end
    return b"".join([*kept, data[at:]])


def _all(pattern: re.Pattern[bytes], data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Find a pattern wherever it begins, also within itself."""
    end = len(data) if end is None else end
    found = pattern.search(data, start, end)
    while found:
        yield found.span()
        found = pattern.search(data, found.start() + 1, end)


def _lines_with(data: bytes, marks: tuple[bytes, ...]) -> list[tuple[int, int]]:
    """Return the lines that have one of some marks."""
    found = []
    for mark in marks:
        at = data.find(mark)
        while at >= 0:
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            found.append((data.rfind(b"\n", 0, at) + 1, end))
            at = data.find(mark, end)
    return sorted(set(found))


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
