"""Reads what a task says."""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import IO

from .lines import Lines
from .mask import Mask
from .masked import Masked

Put = Callable[[str, "int | None", str], None]
"""Takes a line: its stream, its task, and what it says."""

REST_BYTES = 4 << 20  # what is still read from pipes that strays hold open


@dataclass(frozen=True)
class Source:
    """One stream of a task."""

    pipe: IO[bytes]
    masked: Masked


class Pump:
    """Reads stdout and stderr line by line, as they come, until both are closed. Secrets go no further. [SEC-1]"""

    def __init__(self, child: subprocess.Popen[bytes], task: int | None, limit: int, mask: Mask, put: Put) -> None:
        self._selector = selectors.DefaultSelector()
        self._left: int | None = None  # bytes that are still read, once nobody should be writing
        self.cut_off = False  # whether a pipe was still open at the end
        for stream, pipe in (("stdout", child.stdout), ("stderr", child.stderr)):
            if pipe:
                lines = Lines(limit, partial(put, stream, task), partial(_note, put, stream, task))
                source = Source(pipe, Masked(mask, lines.feed))
                self._selector.register(pipe, selectors.EVENT_READ, source)

    def last_call(self) -> None:
        """Read what is in the pipes now, then end, even if somebody holds them open."""
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
                key.data.masked.look()
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


def _note(put: Put, stream: str, task: int | None, text: str) -> None:
    put("task", task, f"{stream}: {text}")
