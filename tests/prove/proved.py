"""What was proved: of one commit, in build/prove; and in the record the last run of each part that passed whole."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from tests.prove.parts import Part

FOLDER = Path("build/prove")
RECORD = Path(__file__).with_name("record.toml")
WRITTEN = ("tests/prove/record.toml", "docs/internals/promises.md")
"""What `make prove` itself changes."""


def commit() -> str:
    """The commit that is proved; behind a dash a digest of what was changed since, if anything was."""
    others = [f":!{path}" for path in WRITTEN]
    head, status = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", *others)
    changed = _git("diff", "HEAD", "--", *others)
    return f"{head}-{sha256((status + changed).encode()).hexdigest()[:12]}" if status else head


def code(commit: str = "HEAD") -> str:
    """What git calls the product's code at a commit: two commits with the same code have the same name for it."""
    return _git("rev-parse", f"{commit}:functions")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


@dataclass(frozen=True)
class Proved:
    """A part that passed whole: on which commit, on which day, its figures, and what git calls the code that ran."""

    commit: str
    day: str
    figures: str
    code: str

    def standing(self, code: str) -> str:
        """What it says of this code."""
        return f"passed on {self.day}{' with this code' if self.code == code else ', functions/ changed since'}"


class Outputs:
    """The outputs of pieces on one commit. A piece that passed has its output under its own name."""

    def __init__(self, commit: str, folder: Path = FOLDER) -> None:
        self.folder = folder / commit
        self.folder.mkdir(parents=True, exist_ok=True)

    def passed(self, part: Part, piece: str) -> Path:
        """Where the output of a piece stands once it has passed."""
        return self.folder / f"{_name(part, piece)}.passed"

    def running(self, part: Part, piece: str) -> Path:
        """Where the output of a piece goes while it runs, and stays if it fails."""
        return self.folder / f"{_name(part, piece)}.log"

    def missing(self, part: Part) -> list[str]:
        """The pieces of a part that did not pass yet."""
        return [piece for piece in part.pieces if not self.passed(part, piece).exists()]

    def figures(self, part: Part) -> str:
        """The figures of all pieces that passed."""
        found = (self.passed(part, piece) for piece in part.pieces)
        return part.figures(path.read_text(errors="replace") for path in found if path.exists())

    def forget(self, part: Part) -> None:
        """Have all pieces of a part run again."""
        for piece in part.pieces:
            self.passed(part, piece).unlink(missing_ok=True)


def _name(part: Part, piece: str) -> str:
    return f"{part.name}.{piece.replace(':', '-')}" if piece else part.name


def read(path: Path = RECORD) -> dict[str, Proved]:
    """The record of full runs, by part."""
    return {name: Proved(**table) for name, table in tomllib.loads(path.read_text()).items()} if path.exists() else {}


def write(record: Mapping[str, Proved], path: Path = RECORD) -> None:
    """Write the record, in the order of the parts' names."""
    path.write_text(HEAD + "".join(f"\n{_table(name, record[name])}" for name in sorted(record)))


HEAD = "# When each part of `make prove` passed whole the last time. `make prove` writes this file.\n"


def _table(name: str, proved: Proved) -> str:
    return f"[{name}]\n" + "".join(f'{key} = "{value}"\n' for key, value in asdict(proved).items())
