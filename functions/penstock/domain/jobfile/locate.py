"""Where in the TOML each key and value stands: `tomllib` tells values but no positions."""

import tomllib
from typing import NamedTuple

from penstock.domain.jobfile.place import Path
from penstock.domain.jobfile.tokens import Token

__all__ = ["Spot", "locate", "nearest"]


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
