"""What was proved, in two files that are committed: the last run of each part that passed whole, in the record; and the
pieces that passed of the others, so that a long part can be proved bit by bit, and on several machines.

Both count as long as the code that a part proves is the same: that of functions/, or of model/ for the models. What was
run with changes that are not committed counts only for these changes, in build/prove.
"""

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
BEGUN = Path(__file__).with_name("begun.toml")
WRITTEN = ("tests/prove/record.toml", "tests/prove/begun.toml", "docs/internals/promises.md")
"""What `make prove` itself changes."""


def commit() -> str:
    """The commit that is proved; behind a dash a digest of what was changed since, if anything was."""
    others = [f":!{path}" for path in WRITTEN]
    head, status = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", *others)
    changed = _git("diff", "HEAD", "--", *others)
    return f"{head}-{sha256((status + changed).encode()).hexdigest()[:12]}" if status else head


def code(of: str, commit: str = "HEAD") -> str:
    """What git calls a folder's content at a commit: two commits with the same code have the same name for it."""
    return _git("rev-parse", f"{commit}:{of}")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


@dataclass(frozen=True)
class Proved:
    """A part that passed whole: on which commit, on which day, its figures, and what git calls the code that ran."""

    commit: str
    day: str
    figures: str
    code: str

    def standing(self, code: str, of: str) -> str:
        """What it says of this code, which is that of the folder `of`."""
        return f"passed on {self.day}{' with this code' if self.code == code else f', {of}/ changed since'}"


Pieces = Mapping[str, Mapping[str, int]]
"""Pieces that passed, each with what it counted."""


@dataclass(frozen=True)
class Begun:
    """The pieces of a part that passed with some code; at least one is missing."""

    code: str
    pieces: Pieces


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

    def counted(self, part: Part) -> Pieces:
        """The pieces of a part that passed, each with what it counted."""
        found = {piece: self.passed(part, piece) for piece in part.pieces}
        return {piece: part.count(path.read_text(errors="replace")) for piece, path in found.items() if path.exists()}

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


def read_begun(path: Path = BEGUN) -> dict[str, Begun]:
    """The parts that have begun."""
    return {name: Begun(**table) for name, table in tomllib.loads(path.read_text()).items()} if path.exists() else {}


def write_begun(begun: Mapping[str, Begun], path: Path = BEGUN) -> None:
    """Write the parts that have begun, in the order of their names."""
    path.write_text(BEGUN_HEAD + "".join(f"\n{_begun(name, begun[name])}" for name in sorted(begun)))


BEGUN_HEAD = "# Pieces that passed of parts of `make prove` that are not whole yet. `make prove` writes this file.\n"


def _begun(name: str, begun: Begun) -> str:
    lines = (
        f'pieces."{piece}" = {{ {", ".join(f"{key} = {count}" for key, count in counts.items())} }}\n'
        for piece, counts in begun.pieces.items()
    )
    return f'[{name}]\ncode = "{begun.code}"\n{"".join(lines)}'
