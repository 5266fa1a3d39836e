"""From what was handed in to text that can be read: size, encoding, and what breaks a script unseen."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.kernel import limits
from penstock.kernel.errors import Problem
from penstock.toml.document import BOM


def decode(source: str | bytes, path: str) -> str | Problem:
    """The text of a job file, or the one problem that leaves nothing to look at."""
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if not data:
        return Problem(path, 1, 1, "the file is empty", "start it with `#!/bin/bash`")
    if len(data) > limits.SCRIPT_BYTES:
        message = f"the file has {len(data)} bytes; a job file may have at most {limits.SCRIPT_BYTES}"
        return Problem(path, 1, 1, message, "let the script fetch what is big")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        message = f"not text in UTF-8: byte 0x{data[error.start]:02x} cannot stand here"
        return _at(before, path, message, "save the file as UTF-8; a job file is a script, not a program")
    nul = text.find("\0")
    if nul >= 0:
        hint = "a job file is a script in UTF-8, not a program and not UTF-16"
        return _at(text[:nul], path, "a NUL byte: this is not text", hint)
    return text


def flaws(text: str, header_end: int, path: str) -> Iterator[Problem]:
    """What is wrong with the first lines themselves; `header_end` counts the header's lines, `#!` included.

    A carriage return below the header is left alone: here-documents hold them on purpose.
    """
    if text.startswith(BOM):
        hint = "save the file as UTF-8 without a byte order mark: with one the `#!` is not seen"
        yield Problem(path, 1, 1, "the file starts with a byte order mark", hint)
    lines = text.split("\n")
    if not lines[0].removeprefix(BOM).startswith("#!"):
        message = "a job file must have an interpreter line"
        yield Problem(path, 1, 1, message, "make the very first line `#!/bin/bash`")
    for number, line in enumerate(lines[: max(header_end, 1)], 1):
        if line.endswith("\r"):
            hint = "save the file with Unix line ends: `sed -i 's/\\r$//' FILE`"
            yield Problem(path, number, len(line), "the line ends with a carriage return (CRLF)", hint)
            return


def _at(before: str, path: str, message: str, hint: str) -> Problem:
    """A problem right after the text `before`."""
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return Problem(path, line, column, message, hint)
