"""Lines of text, from bytes as they come."""

from __future__ import annotations

import codecs
from collections.abc import Callable


class Lines:
    """Makes lines of the bytes of one stream, whatever they are; lines over `limit` bytes become several."""

    def __init__(self, limit: int, emit: Callable[[str], None]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._limit, self._emit, self._rest = limit, emit, ""

    def feed(self, data: bytes, final: bool = False) -> None:
        """Emit all lines that are whole by now, and at the end also the last one."""
        *lines, rest = (self._rest + self._decoder.decode(data, final)).split("\n")
        for line in lines:
            self._emit_all(pieces(line, self._limit))
        *whole, self._rest = pieces(rest, self._limit)
        self._emit_all(whole)
        if final and self._rest:
            self._emit(self._rest)

    def _emit_all(self, texts: list[str]) -> None:
        for text in texts:
            self._emit(text)


def pieces(line: str, limit: int) -> list[str]:
    """Cut a line into pieces of at most `limit` bytes of UTF-8, between characters."""
    raw, found = line.encode("utf-8"), []
    while len(raw) > limit:
        cut = limit
        while raw[cut] & 0xC0 == 0x80:
            cut -= 1
        found.append(raw[:cut].decode("utf-8"))
        raw = raw[cut:]
    return [*found, raw.decode("utf-8")]
