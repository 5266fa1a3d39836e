"""A pseudo terminal that a command runs on, and what its screen looked like whenever it had been drawn."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

TOKENS = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\r\n|[\r\n]|[^\x1b\r\n]")
HURRIED = """
from penstock.cli import follow, joined
joined.PAGE_SECONDS = joined.ONE_SECONDS = follow.SLOW = {pace}
follow.FAST = {pace} / 5
from penstock.cli.app import cli
cli.main()
"""


@dataclass
class Grid:
    """Lines of a terminal that is wide enough: it knows the cursor, and what `rich` uses to draw again."""

    lines: list[str] = field(default_factory=lambda: [""])
    row: int = 0
    column: int = 0

    def write(self, text: str) -> None:
        """Obey what a program prints."""
        for token in TOKENS.finditer(text):
            if token[2]:
                self._obey(token[1], token[2])
            elif token[0] in ("\r\n", "\n"):
                self.row, self.column = self.row + 1, 0
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif token[0] == "\r":
                self.column = 0
            else:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + token[0] + line[self.column + 1 :]
                self.column += 1

    def _obey(self, values: str, what: str) -> None:
        if what == "A":
            self.row = max(0, self.row - int(values or 1))
        elif what == "K":
            self.lines[self.row] = "" if values == "2" else self.lines[self.row][: self.column]

    def text(self) -> list[str]:
        """Its lines without what is empty at their ends."""
        shown = [line.rstrip() for line in self.lines]
        while shown and not shown[-1]:
            shown.pop()
        return shown


@dataclass
class Seen:
    """The exit code, all that was written, the screen after each piece of it, and the screen at the end."""

    code: int
    written: str
    screens: list[list[str]]

    @property
    def last(self) -> list[str]:
        return self.screens[-1]


def run_on_terminal(words: Sequence[str], *, columns: int = 80, lines: int = 24, pace: float = 0.1) -> Seen:
    """Run the command on a pseudo terminal of some size. Its looks at the service are `pace` seconds apart."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "PYTHONPATH": path, "TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "CI"):
        environment.pop(name, None)
    command = [sys.executable, "-c", HURRIED.format(pace=pace), *words]
    running = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    try:
        written, screens = _read(master)
        return Seen(running.wait(60), written, screens)
    finally:
        running.kill()
        running.wait()
        os.close(master)


def _read(master: int) -> tuple[str, list[list[str]]]:
    grid, written, screens, ends = Grid(), "", [], time.monotonic() + 60
    while time.monotonic() < ends:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            data = os.read(master, 65536)
        except OSError:  # the other side was closed
            break
        if not data:
            break
        text = data.decode(errors="replace")
        written += text
        grid.write(text)
        screens.append(grid.text())
    return written, screens
