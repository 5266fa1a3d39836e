"""Finds who keeps and who asks for each promise, by what they say of themselves."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutate import record, scope
from tests.mutate.kinds import KINDS

ROOT = Path(__file__).parents[2]
GIVEN = tomllib.loads(Path(__file__).with_name("promises.toml").read_text(encoding="utf-8"))
PROMISES: Mapping[str, str] = GIVEN["promises"]
NOT_YET: Mapping[str, str] = GIVEN["not_yet"]
KEEPS = scope.LABEL
ASKS = re.compile(r"\b((?:SLOT|QUEUE|JOB|UNIT|ART|SEC)-\d)\b")

Place = tuple[str, str]
"""A file, and the name in it; an empty name is the whole file."""

Found = dict[str, list[Place]]


@dataclass(frozen=True)
class Figures:
    """How many mutants there are of the conditions of what keeps a promise, and what came of them."""

    mutants: int
    noticed: int
    equivalent: int
    open: int


@cache
def code() -> Found:
    """What carries the label of each promise."""
    return _labelled("functions", "*.py", KEEPS, lambda name: True)


@cache
def tests() -> Found:
    """The tests that name each promise: one by one, or all of a file."""
    found = _labelled("tests", "test_*.py", ASKS, lambda name: name.rpartition(".")[2].startswith(("test_", "Test")))
    for path in _files("tests", "test_*.py"):
        if path.startswith("tests/promises/") or not ASKS.search(_text(path)):
            continue
        for label in _read(path).labels:  # those that are given labels to look for
            if (path, "") not in found[label]:
                found[label].append((path, ""))
    return {
        label: [place for place in places if not place[1] or (place[0], "") not in places]
        for label, places in found.items()
    }


@cache
def watchers(folder: str) -> Found:
    """What looks whether each promise is kept while others run: invariants, and what is checked at the end."""
    return _labelled(folder, "*.py", ASKS, lambda name: not name.rpartition(".")[2].startswith("test_") and bool(name))


@cache
def model() -> Found:
    """The properties and the configurations of the model that are about each promise."""
    found: Found = defaultdict(list)
    text = (ROOT / "model/properties.pml").read_text(encoding="utf-8")
    for after in re.finditer(r"\*/\s*(?:#\w+[^\n]*\n)*(?:inline|ltl) (\w+)", text):
        for label in KEEPS.findall(text[: after.start()].rpartition("/*")[2]):
            found[label].append(("model/properties.pml", after[1]))
    for name, config in tomllib.loads((ROOT / "model/configs.toml").read_text(encoding="utf-8")).items():
        for label in config["keeps"]:
            found[label].append(("model/configs.toml", name))
    return found


def figures() -> dict[str, Figures]:
    """The last run of mutation, by promise, and under "" of all that is mutated."""
    carry = {(m, name): labels for m in scope.modules() for name, _, labels, _ in scope.functions(m)}
    count: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for kind in KINDS.values():
        known, same = record.Record.load(kind=kind), record.equivalents(kind)
        for mutant in kind.every():
            is_open, is_same = known.is_open(mutant), mutant.key in same
            was_noticed = mutant.key[:2] in known.entries and not is_open and not is_same
            marks = True, was_noticed, is_same, is_open
            for label in (*carry[mutant.module, mutant.function], ""):
                for at, more in enumerate(marks):
                    count[label][at] += more
    return {label: Figures(*numbers) for label, numbers in count.items()}


def _files(folder: str, shape: str) -> Iterator[str]:
    yield from sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(shape))


@cache
def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@dataclass(frozen=True)
class _Said:
    """What the definitions of a file say of themselves, by name, and its texts that are the label of a promise.

    The tree is not kept: Python would look for garbage in all trees again and again.
    """

    docstrings: Sequence[tuple[str, str]]
    labels: Sequence[str]


@cache
def _read(path: str) -> _Said:
    tree = ast.parse(_text(path))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return _Said(list(_said(tree, "")), [text for text in texts if text in PROMISES])


def _labelled(folder: str, shape: str, pattern: re.Pattern[str], fits: Callable[[str], bool]) -> Found:
    found: Found = defaultdict(list)
    for path in _files(folder, shape):
        if not pattern.search(_text(path)):
            continue  # to parse it takes much longer
        for name, text in _read(path).docstrings:
            for label in dict.fromkeys(pattern.findall(text)):
                if name == "" or fits(name):
                    found[label].append((path, name))
    return found


def _said(node: ast.Module | ast.ClassDef | ast.FunctionDef, prefix: str) -> Iterator[tuple[str, str]]:
    """The docstrings of a definition and of all in it, by name; also those of values, which stand behind them."""
    yield prefix.rstrip("."), ast.get_docstring(node) or ""
    for before, each in zip([None, *node.body], node.body, strict=False):
        if isinstance(each, ast.ClassDef | ast.FunctionDef):
            yield from _said(each, f"{prefix}{each.name}.")
        elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(before, ast.Assign):
            yield prefix + ast.unparse(before.targets[0]), str(each.value.value)
