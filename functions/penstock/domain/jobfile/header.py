"""The header of a job file: the unbroken run of `#` lines after the `#!` line; its `#:` lines are TOML."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from penstock.kernel.errors import Problem
from penstock.toml.document import BOM

__all__ = ["Header", "read_header"]

MARK = "#:"
INDENTED = re.compile(r"[ \t]+#:")
# `<<WORD`, `<<-WORD`, `<<'WORD'`; not `<<<`.
HERE_DOCUMENT = re.compile(r"(?<!<)<<-?[ \t]*[\\'\"]?([A-Za-z_]\w*)")


@dataclass(frozen=True)
class TomlLine:
    """A `#:` line without its mark, its line number in the file, and how many characters the mark took."""

    text: str
    number: int
    margin: int


@dataclass(frozen=True)
class Header:
    """The TOML of a job file, and where its lines stand.

    `end` is the number of lines up to the header's last, `late` the `#:` lines below it that nobody reads,
    `cut` the text of the line that ended the header.
    """

    lines: tuple[TomlLine, ...]
    end: int
    late: tuple[int, ...]
    cut: str

    @cached_property
    def toml(self) -> str:
        return "\n".join(line.text for line in self.lines)

    def place(self, line: int, column: int) -> tuple[int, int]:
        """The file's line and column of the TOML's, all counted from 1."""
        there = self.lines[line - 1]
        return there.number, there.margin + column

    def spot(self, offset: int) -> tuple[int, int]:
        """The file's line and column of an offset into the TOML."""
        before = self.toml[:offset]
        return self.place(before.count("\n") + 1, offset - before.rfind("\n"))

    def problems(self, path: str) -> Iterator[Problem]:
        """The `#:` lines that were meant to count and don't."""
        if not self.late:
            return
        if self.late[0] == self.end + 1:
            hint = "remove the spaces before `#:`"
        elif self.cut:
            hint = f"move them up: line {self.end + 1} is code, and only lines directly below `#!` are read"
        else:
            hint = f"line {self.end + 1} is empty: write a `#` on it, or move the lines above it"
        message = f"the header ended at line {self.end + 1}; these `#:` lines are never read"
        yield Problem(path, self.late[0], 1, message, hint)


def read_header(text: str) -> Header:
    """Cut a script into its header and the rest."""
    lines = [line.rstrip("\r") for line in text.removeprefix(BOM).split("\n")]
    end = 1
    while end < len(lines) and lines[end].startswith("#"):
        end += 1
    # Line 1 counts when the `#!` is missing, so that one slip does not hide every other.
    toml = tuple(_unmark(line, at + 1) for at, line in enumerate(lines[:end]) if line.startswith(MARK))
    cut = lines[end].strip() if end < len(lines) else ""
    return Header(toml, end, tuple(at + 1 for at in _late(lines, end)), cut)


def _unmark(line: str, number: int) -> TomlLine:
    text = line
    while text.startswith(MARK):
        text = text.removeprefix(MARK)
    return TomlLine(text, number, len(line) - len(text))


def _late(lines: list[str], start: int) -> Iterator[int]:
    """Indexes of `#:` lines outside here-documents.

    The line that ended the header is one of them if only the spaces before its `#:` made it so.
    """
    last = {line.strip("\t"): at for at, line in enumerate(lines)}
    at = start
    while at < len(lines):
        line = lines[at]
        if line.startswith(MARK) or (at == start and INDENTED.match(line)):
            yield at
        found = None if line.startswith("#") else HERE_DOCUMENT.search(line)
        at += 1
        # A `<<WORD` that is never closed is no here-document but a shift.
        if found and last.get(found[1], -1) >= at:
            while lines[at].strip("\t") != found[1]:
                at += 1
            at += 1
