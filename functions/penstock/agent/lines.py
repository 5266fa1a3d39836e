"""Lines of text, from bytes as they come."""

from __future__ import annotations

import codecs
from collections.abc import Callable


class Lines:
    """Makes lines of the bytes of one stream, whatever they are, and holds no more than `limit` bytes of them.

    Longer lines become several, and bytes that are not UTF-8 become U+FFFD; `note` is told in a sentence: of each such
    line, and of such bytes once.
    """

    def __init__(self, limit: int, emit: Callable[[str], None], note: Callable[[str], None]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._strict: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
        self._limit, self._emit, self._note, self._rest = limit, emit, note, ""
        self._split = self._pieces = 0  # bytes and pieces that were emitted of the line that has not ended yet

    def feed(self, data: bytes, final: bool = False) -> None:
        """Emit all lines that are whole by now, and at the end also the last one."""
        self._look(data, final)
        *lines, rest = (self._rest + self._decoder.decode(data, final)).split("\n")
        for line in lines:
            *most, last = pieces(line, self._limit)
            self._emit_pieces(most)
            self._end(last)
        *most, self._rest = pieces(rest, self._limit)
        self._emit_pieces(most)
        if final and (self._rest or self._pieces):
            self._end(self._rest)

    def _emit_pieces(self, texts: list[str]) -> None:
        for text in texts:
            self._emit(text)
            self._split += len(text.encode("utf-8"))
            self._pieces += 1

    def _end(self, last: str) -> None:
        self._emit(last)
        if self._pieces:
            size = self._split + len(last.encode("utf-8"))
            self._note(f"a line of {size} bytes is shown as {self._pieces + 1}, for one has at most {self._limit}")
        self._split = self._pieces = 0

    def _look(self, data: bytes, final: bool) -> None:
        """Look for the first bytes that are not UTF-8."""
        try:
            if self._strict:
                self._strict.decode(data, final)
        except UnicodeDecodeError:
            self._strict = None
            self._note("it wrote bytes that are not UTF-8; each is shown as \ufffd")


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
