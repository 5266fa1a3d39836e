"""`python -m tests.mutate.renamed REVISION TABLE`: carry the record over a renaming.

TABLE has two words in each line: a name as it was, and as it is now. A function that is now what it was at REVISION,
but for these names, keeps its entry, in whatever module it is. What else changed is tried by `make mutate`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.mutate import sites
from tests.mutate.record import PATH, Function, Record, digest, mutated
from tests.mutate.scope import ROOT, definitions


def main(revision: str, table: str) -> int:
    """Write the record anew, and say how many functions were found."""
    names = dict(line.split() for line in Path(table).read_text(encoding="utf-8").splitlines() if line.strip())
    record = Record.parse(_git("show", f"{revision}:{PATH.relative_to(ROOT)}"))
    was = {renamed(text, names): function for function, text in _texts(revision) if function in record.entries}
    found = {function: was[text] for function in mutated() if (text := sites.texts(function[0])[function[1]]) in was}
    record.entries = {now: record.entries[old] for now, old in found.items() if record.entries[old].digest}
    for function, entry in record.entries.items():
        entry.digest = digest(*function)
    record.save()
    print(f"{len(record.entries)} of {len(mutated())} functions have their entries; `make mutate` tries the others")
    return 0


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A text with other names."""
    return re.sub(r"[A-Za-z_]\w*", lambda word: names.get(word[0], word[0]), text)


def _texts(revision: str) -> Iterator[tuple[Function, str]]:
    """The text of every function at a revision."""
    for path in _git("ls-tree", "-r", "--name-only", revision, "functions").splitlines():
        if path.endswith(".py"):
            parts = path.removeprefix("functions/").removesuffix(".py").removesuffix("/__init__").split("/")
            text = _git("show", f"{revision}:{path}")
            tree = ast.parse(text)
            for name, node, _ in definitions(tree):
                yield (".".join(parts), name), sites.bare(text, node, tree)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
