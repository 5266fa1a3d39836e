"""Carries the record of an earlier revision over to functions that are the same but for names.

It is the same if its text is the earlier one with other names, each in the place of one name everywhere. Texts in
quotes and Python's own names stay. The names that changed are told, for a name may be another thing, and not a new name
of the same: then `python -m tests.mutate --all --only MODULE` tries the function again.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from tests.mutate import sites
from tests.mutate.record import Entry, Function, Record, defined, digest, mutated
from tests.mutate.scope import ROOT, definitions

NAME = re.compile(r"""'[^']*'|"[^"]*"|[A-Za-z_]\w*""")
"""A name, or a text in quotes: the names in it are none."""

OWN = frozenset(dir(builtins)) | frozenset(keyword.kwlist)


def carry(record: Record, revision: str) -> tuple[int, Counter[str]]:
    """Give functions that are not known the entries that they had.

    Returns for how many functions, and the names that changed, with the number of functions in which each did.
    """
    kind, tests = record.kind, defined()
    old = Record.parse(_git("show", f"{revision}:{kind.record.relative_to(ROOT)}"), kind)
    was: dict[str, list[tuple[Function, str]]] = defaultdict(list)
    for function, text in _texts(revision):
        if function in old.entries and old.entries[function].digest:
            was[shape(text)].append((function, text))
    count, changed = 0, Counter[str]()
    for function, some in mutated(kind).items():
        text = sites.texts(function[0])[function[1]]
        if record.is_known(some[0]) or not was[shape(text)]:
            continue
        before, before_text = min(was[shape(text)], key=lambda each: _distance(each[0], function))
        names = dict(zip(_names(before_text), _names(text), strict=True))
        entry = old.entries[before]
        now = Entry(digest(*function, kind), {test for test in entry.tests if test in tests})
        now.endless, now.open = ({renamed(name, names) for name in each} for each in (entry.endless, entry.open))
        record.entries[function] = now
        count += 1
        changed.update(f"{one} is {other}" for one, other in names.items() if one != other)
    return count, changed


def shape(text: str) -> str:
    """A text whose names are numbers, but for Python's own."""
    numbers: dict[str, str] = {}
    return NAME.sub(
        lambda name: numbers.setdefault(name[0], f"_{len(numbers)}") if _is_free(name[0]) else name[0], text
    )


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A text with other names."""
    return NAME.sub(lambda name: names.get(name[0], name[0]), text)


def _names(text: str) -> list[str]:
    """The names of a text, each once, in their order."""
    return [name for name in dict.fromkeys(NAME.findall(text)) if _is_free(name)]


def _is_free(name: str) -> bool:
    return name not in OWN and name[0] not in "'\""


def _distance(one: Function, other: Function) -> tuple[bool, bool]:
    return one[1] != other[1], one[0] != other[0]


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
