"""The proofs that parts.toml lists: what is run for each, in how many pieces, and which figures its output shows."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from model.run import configurations
from tests.crash.sweep import SCENARIOS
from tests.fuzz.targets import READERS

NAMED: Mapping[str, Sequence[str]] = {
    "configurations": tuple(each.name for each in configurations()),
    "scenarios": tuple(SCENARIOS),
    "readers": tuple(READERS),
}
"""What `pieces` may name."""


@dataclass(frozen=True)
class Part:
    """A proof: what it shows to a reader, what Python is called with, once for each piece, and with what environment.

    `shows` is an expression; each of its groups is a figure, under the group's name. `of` is the folder with the code
    that is proved: while that is the same, the proof stands.
    """

    name: str
    says: str
    run: tuple[str, ...]
    pieces: tuple[str, ...] = ("",)
    shows: str = ""
    of: str = "functions"
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_parallel(self) -> bool:
        """Whether each piece uses several processes itself; otherwise several pieces run at once."""
        return "{processes}" in self.run

    def command(self, piece: str, processes: int) -> list[str]:
        """What Python is called with for one piece."""
        return [word.format(piece=piece, processes=processes) for word in self.run]

    def count(self, output: str) -> Counter[str]:
        """The figures in the output of a piece."""
        total: Counter[str] = Counter()
        for found in re.finditer(self.shows, output) if self.shows else ():
            total.update({name: int(text) for name, text in found.groupdict().items() if text})
        return total


def figures(counted: Iterable[Mapping[str, int]]) -> str:
    """The figures of all pieces, added up: `10,000 sites, 183,240 jobs`."""
    total: Counter[str] = Counter()
    for counts in counted:
        total.update(counts)
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in total.items())


def load() -> dict[str, Part]:
    """All parts by name, in their order."""
    tables = tomllib.loads(Path(__file__).with_name("parts.toml").read_text())
    return {name: _part(name, table) for name, table in tables.items()}


def _part(name: str, table: Mapping[str, object]) -> Part:
    pieces = table.get("pieces")
    lists = {"run": tuple(table["run"]), "pieces": split(str(pieces)) if pieces else ("",)}  # type: ignore[arg-type]
    return Part(name, **{**table, **lists})  # type: ignore[arg-type]


def split(pieces: str) -> tuple[str, ...]:
    """What `pieces` means: names, or the ranges of seeds in FROM:TO:STEP."""
    if pieces in NAMED:
        return tuple(NAMED[pieces])
    first, last, step = (int(number) for number in pieces.split(":"))
    return tuple(f"{at}:{min(at + step, last)}" for at in range(first, last, step))
