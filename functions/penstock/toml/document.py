"""The text of a job file or a site as TOML, and where in the text each key and value stands.

`tomllib` reads the values, but gives no positions. So the text is also cut into tokens, as far as finding positions
needs them. Wrong TOML gives tokens too, and no pattern can fail late: the time is linear whatever the text.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from penstock.kernel.errors import Fault
from penstock.kernel.frozen import dataclass
from penstock.toml import checks
from penstock.toml.checks import Path

NESTING = 32
KEY_PARTS = 32

PIECES = r"""(?xs)
      (?P<space>[ \t]+|\#[^\n]*)
    | (?P<newline>\n)
    | (?P<string>\"{3}(?:\\.|[^\\])*?(?:\"{3,5}|\\?\Z) | '{3}.*?(?:'{3,5}|\Z)
        | \"(?:\\[^\n]|[^\"\\\n])*\"? | '[^'\n]*'?)
    | (?P<mark>[\[\]{},=.])
    | (?P<bare>[^\s\[\]{},=.\#\"']+|.)
    """


class Token(NamedTuple):
    kind: str
    text: str
    offset: int


def tokenise(text: str) -> list[Token]:
    """All tokens but white space and comments, and one `end` after the last."""
    found = (Token(piece.lastgroup or "", piece[0], piece.start()) for piece in re.finditer(PIECES, text))
    return [*(token for token in found if token.kind != "space"), Token("end", "", len(text))]


def too_deep(tokens: list[Token]) -> int | None:
    """The offset where nesting gets absurd, or None.

    The TOML parser recurses per bracket and takes time quadratic in a key's parts: both need a bound.
    """
    depth = parts = 0
    for token in tokens:
        if token.kind == "mark":
            depth = max(0, depth + (token.text in "[{") - (token.text in "]}"))
            parts = parts + 1 if token.text == "." else 0
        elif token.kind == "newline":
            parts = 0
        if depth > NESTING or parts > KEY_PARTS:
            return token.offset
    return None


class Spot(NamedTuple):
    """Offsets of a key and of its value; the same for an entry of a list and for a table's own line."""

    key: int
    value: int


def locate(tokens: list[Token]) -> dict[Path, Spot]:
    """A spot for every path of a document that `tomllib` accepted; `()` is its start."""
    return _Locator(tokens).document()


def nearest(spots: dict[Path, Spot], path: Path) -> Spot:
    """The spot of a path, or of the smallest thing around it that has one."""
    while path not in spots:
        path = path[:-1]
    return spots[path]


class _Locator:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.spots: dict[Path, Spot] = {(): Spot(0, 0)}
        self.counts: dict[Path, int] = {}  # arrays of tables: how many so far

    def document(self) -> dict[Path, Spot]:
        table: Path = ()
        while self.peek().kind != "end":
            if self.peek().kind == "newline":
                self.take()
            elif self.peek().text == "[":
                table = self.table_line()
            else:
                self.pair(table)
        return self.spots

    def peek(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def table_line(self) -> Path:
        """`[a.b]` or `[[a.b]]`; the path of the table that it opens."""
        self.take()
        many = self.skip("[")
        keys = self.key()
        path: Path = ()
        for at, (name, offset) in enumerate(keys):
            path = (*path, name)
            self.spots.setdefault(path, Spot(offset, offset))
            if many and at == len(keys) - 1:
                self.counts[path] = self.counts.get(path, 0) + 1
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
                self.spots.setdefault(path, Spot(offset, offset))
        while self.skip("]"):
            pass
        return path

    def key(self) -> list[tuple[str, int]]:
        """The parts of a dotted key, each with its offset."""
        parts = [self.part()]
        while self.skip("."):
            parts.append(self.part())
        return parts

    def part(self) -> tuple[str, int]:
        token = self.take()
        if token.kind == "string":
            return str(tomllib.loads(f"key = {token.text}")["key"]), token.offset
        return token.text, token.offset

    def pair(self, table: Path) -> None:
        path = table
        for name, offset in self.key():
            path = (*path, name)
            self.spots.setdefault(path, Spot(offset, offset))
        self.skip("=")
        self.spots[path] = Spot(self.spots[path].key, self.peek().offset)
        self.value(path)

    def value(self, path: Path) -> None:
        if self.skip("["):
            self.entries(path)
        elif self.skip("{"):
            while not self.ends("}"):
                self.pair(path)
        else:
            # A number or a date is several tokens: `1.5`, `2026-01-01 10:00:00`.
            self.take()
            while self.peek().kind not in ("newline", "end") and self.peek().text not in (",", "]", "}"):
                self.take()

    def entries(self, path: Path) -> None:
        index = 0
        while not self.ends("]"):
            entry = (*path, index)
            self.spots[entry] = Spot(self.peek().offset, self.peek().offset)
            self.value(entry)
            index += 1

    def ends(self, mark: str) -> bool:
        """Step over commas and line ends; whether the closing `mark` (or the end of it all) was next."""
        while self.peek().kind == "newline" or self.peek().text == ",":
            self.take()
        return self.skip(mark) or self.peek().kind == "end"

    def skip(self, mark: str) -> bool:
        """Take the next token if it is that mark."""
        if self.peek().kind == "mark" and self.peek().text == mark:
            self.take()
            return True
        return False


SITE_BYTES = 256 * 1024
"""The site is kept in one item of the database, which holds 400 KB."""

# What `tomllib` says, and what usually led to it.
TOML_HINTS = {
    "Unclosed array": "close the list with `]`; entries are separated by commas",
    "Cannot overwrite a value": "the same key is written twice",
    "Cannot declare": "the same table is written twice",
    "Invalid value": 'strings stand in double quotes: target = "default"',
    "Expected '=' after a key": "a line is `key = value`; other text goes on a `#` line without the colon",
    "Illegal character '\\n'": "close the string with a double quote",
    "Unterminated string": "close the string with a double quote",
    "Expected newline": 'one `key = value` per line; a double quote inside a string is written `\\"`',
    "Unclosed inline table": "close the table with `}`, on the line that opened it",
}

HINTS = {**TOML_HINTS, "Expected '=' after a key": "a line is `key = value` or `[table]`; other text goes behind a `#`"}


SURROGATE = r"[\ud800-\udfff]"


@dataclass(frozen=True)
class Text:
    """A text with lines; `path` is only for messages."""

    path: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def fault(self, offset: int, message: str, hint: str | None = None, where: str | None = None) -> Fault:
        """A fault at an offset; its line and column count from 1."""
        line = bisect_right(self._starts, offset)
        column = offset - self._starts[line - 1] + 1
        return Fault(message, where=where, file=self.path, line=line, column=column, hint=hint)


@dataclass(frozen=True)
class Document:
    """What a text says, and where its parts stand."""

    text: Text
    content: Mapping[str, Any]
    spots: dict[checks.Path, Spot]

    def fault(self, found: checks.Fault) -> Fault:
        """What a check found, with its line and column."""
        spot = nearest(self.spots, found.path)
        offset = spot.key if found.on_key else spot.value
        return self.text.fault(offset, found.message, found.hint, found.where or None)


def read(source: str, path: str) -> Document | Fault:
    """The TOML of a text, or the one fault that leaves nothing to look at. Never raises, whatever the text."""
    text = Text(path, source.removeprefix(BOM).replace("\r\n", "\n"))
    if bad := re.search(SURROGATE, text.text):
        return text.fault(bad.start(), f"U+{ord(bad[0]):04X} is no character", "save the text as UTF-8")
    if len(source.encode()) > SITE_BYTES:
        return text.fault(0, f"the site is larger than {SITE_BYTES // 1024} KiB", "keep what is big elsewhere")
    tokens = tokenise(text.text)
    deep = too_deep(tokens)
    if deep is not None:
        return text.fault(deep, "this is nested too deeply", "no key needs so many levels")
    try:
        content = tomllib.loads(text.text)
    except ValueError as error:
        return _not_toml(str(error), text)
    return Document(text, content, locate(tokens))


def _not_toml(said: str, text: Text) -> Fault:
    """What the TOML parser said. Its errors are all kinds of ValueError; some don't tell a place."""
    hint = next((hint for start, hint in HINTS.items() if said.startswith(start)), None)
    message = f"not TOML: {re.sub(AT, '', said)}"
    at = re.search(AT, said)
    if at is None or at[1] is None:
        return text.fault(len(text.text), message, hint)
    return Fault(message, file=text.path, line=int(at[1]), column=int(at[2]), hint=hint)


AT = r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z"

BOM = "\ufeff"
