"""What a process writes to stdout and stderr: read from its pipes, masked, and cut into lines."""

from __future__ import annotations

import codecs
import os
import selectors
import subprocess
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import IO

from .log import now
from .masking import WRAPPED_LINE, Mask, hide_spans

QUIET_SECONDS = 0.2
"""How long lines wait that may go on in the next: as often, at most, lines are sent."""

Give = Callable[[bytes, bool], None]
"""Takes bytes, and whether they are the last."""

Put = Callable[[str, "int | None", str], None]
"""Takes a line: its stream, its task, and what it says."""

REST_BYTES = 4 << 20  # what is still read from pipes that strays hold open
TAIL_LINES = 20
TAIL_CHARS = 400  # more is cut by the service


class MaskedStream:
    """Passes the bytes of one stream on without the secrets in them, whole lines at once. [SEC-1]

    It holds back what may be the start of a secret: the end of an unfinished line, and lines that look like Base64 or
    hex broken into lines.
    """

    def __init__(self, mask: Mask, give: Give) -> None:
        self._mask, self._give = mask, give
        self._kept = bytearray()
        self._covered = 0  # how much of what is kept is known to be secret
        self._fed = now()

    def feed(self, data: bytes, final: bool = False) -> None:
        """Add bytes, and pass on what cannot be the start of a secret."""
        self._fed = now()
        self._kept += data
        if final:
            self._pass(len(self._kept), final)
        elif data:
            self._pass(max(self._whole(), self._surely()))

    def flush_quiet(self) -> None:
        """Pass whole lines on if no bytes have come for a while."""
        if self._kept and now() - self._fed >= QUIET_SECONDS:
            self._pass(self._kept.rfind(b"\n") + 1)

    def _whole(self) -> int:
        """Return where the last line ends that cannot go on in the next line."""
        end = at = self._kept.rfind(b"\n") + 1
        length = 0
        while at and length < self._mask.longest_folded:
            start = self._kept.rfind(b"\n", 0, at - 1) + 1
            line = bytes(self._kept[start : at - 1])
            if not WRAPPED_LINE.fullmatch(line):
                break
            length += len(line.strip())
            at = start
        return at if length else end

    def _surely(self) -> int:
        """Return how much of a very long unfinished line cannot be part of a secret."""
        rest = len(self._kept) - self._kept.rfind(b"\n") - 1
        longest = self._mask.longest
        return len(self._kept) - longest if rest > 2 * longest + 4096 else 0

    def _pass(self, end: int, final: bool = False) -> None:
        if not (end or final):
            return
        data = bytes(self._kept)
        spans = self._mask.spans(data)
        if self._covered:
            spans = [(0, max([self._covered, *(to for start, to in spans if start <= self._covered)]))] + [
                span for span in spans if span[0] > self._covered
            ]
        out = [(start, min(to, end)) for start, to in spans if start < end]
        self._covered = max([0, *(to - end for start, to in spans if start < end < to)])
        del self._kept[:end]
        self._give(hide_spans(data[:end], out), final)


class LineSplitter:
    """Splits the bytes of one stream into lines, and holds no more than `limit` bytes.

    Longer lines become several, and bytes that are not UTF-8 become U+FFFD. `note` gets a sentence about each such
    line, and one about such bytes.
    """

    def __init__(self, limit: int, emit: Callable[[str], None], note: Callable[[str], None]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._strict: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
        self._limit, self._emit, self._note, self._rest = limit, emit, note, ""
        self._split = self._pieces = 0  # bytes and pieces that were emitted of the line that has not ended yet

    def feed(self, data: bytes, final: bool = False) -> None:
        """Emit all whole lines, and at the end also the last one."""
        self._look(data, final)
        *lines, rest = (self._rest + self._decoder.decode(data, final)).split("\n")
        for line in lines:
            *most, last = split_line(line, self._limit)
            self._emit_pieces(most)
            self._end(last)
        *most, self._rest = split_line(rest, self._limit)
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


def split_line(line: str, limit: int) -> list[str]:
    """Cut a line into pieces of at most `limit` bytes of UTF-8, between characters."""
    raw, found = line.encode("utf-8"), []
    while len(raw) > limit:
        cut = limit
        while raw[cut] & 0xC0 == 0x80:
            cut -= 1
        found.append(raw[:cut].decode("utf-8"))
        raw = raw[cut:]
    return [*found, raw.decode("utf-8")]


@dataclass(frozen=True)
class Source:
    """One stream of a task."""

    pipe: IO[bytes]
    masked: MaskedStream


class OutputReader:
    """Reads stdout and stderr line by line until both are closed, and masks secrets. [SEC-1]"""

    def __init__(self, child: subprocess.Popen[bytes], task: int | None, limit: int, mask: Mask, put: Put) -> None:
        self._selector = selectors.DefaultSelector()
        self._left: int | None = None  # bytes that are still read, once nobody should be writing
        self.cut_off = False  # whether a pipe was still open at the end
        for stream, pipe in (("stdout", child.stdout), ("stderr", child.stderr)):
            if pipe:
                lines = LineSplitter(limit, partial(put, stream, task), partial(_put_note, put, stream, task))
                source = Source(pipe, MaskedStream(mask, lines.feed))
                self._selector.register(pipe, selectors.EVENT_READ, source)

    def last_call(self) -> None:
        """Read what is in the pipes now, then stop, even if a process holds them open."""
        self._left = REST_BYTES

    def run(self) -> None:
        """Read until the end. Runs as a thread."""
        while self._selector.get_map():
            ready = self._selector.select(0.2)
            if self._left is not None and (not ready or self._left < 0):
                self.cut_off = True
                break
            for key, _ in ready:
                self._read(key.data)
            for key in self._selector.get_map().values():
                key.data.masked.flush_quiet()
        for key in list(self._selector.get_map().values()):
            self._close(key.data)
        self._selector.close()

    def _read(self, source: Source) -> None:
        data = os.read(source.pipe.fileno(), 1 << 16)
        if self._left is not None:
            self._left -= len(data)
        if data:
            source.masked.feed(data)
        else:
            self._close(source)

    def _close(self, source: Source) -> None:
        self._selector.unregister(source.pipe)
        source.masked.feed(b"", final=True)
        source.pipe.close()


def _put_note(put: Put, stream: str, task: int | None, text: str) -> None:
    put("task", task, f"{stream}: {text}")


class Tail:
    """Passes lines on, and keeps the last of them. They are masked already."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._last: deque[str] = deque(maxlen=TAIL_LINES)

    def put(self, stream: str, task: int | None, payload: str) -> None:
        """Add a line."""
        self._last.append(payload[:TAIL_CHARS])
        self._put(stream, task, payload)

    @property
    def lines(self) -> list[str]:
        """The last lines, the oldest first."""
        return list(self._last)
