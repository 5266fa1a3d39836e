"""Which tests evaluate which condition, and with which value, or come to which effect.

Only those can notice its mutants.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from tests.mutate import plant, trees
from tests.mutate.scope import source
from tests.mutate.sites import Mutant

VERSION = "3"
"""Of what is noted, and how."""

Seen = set[str]
seen: Seen = set()
"""What was evaluated since it was last emptied."""


def watch(mutants: Iterable[Mutant]) -> None:
    """Let conditions of this process note their values in `seen`."""
    by_module: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_module.setdefault(mutant.module, []).append(mutant)
    for module, some in by_module.items():
        _watch(module, some)
    builtins.__reached__ = _reached  # type: ignore[attr-defined]
    builtins.__seen__ = _note  # type: ignore[attr-defined]


def _reached(name: str) -> str:
    """Note that it is about to be evaluated: a check that refuses has no value."""
    seen.add(f"{name} None")
    return name


def _note(name: str, value: Any) -> Any:
    with suppress(TypeError):  # a condition of DynamoDB is neither true nor false
        seen.add(f"{name} {bool(value)}")
    return value


def _watch(module: str, mutants: list[Mutant]) -> None:
    tree = ast.parse(source(module))
    nodes = list(ast.walk(tree))
    for at in sorted({mutant.watched for mutant in mutants}, reverse=True):
        watched = nodes[at]
        assert isinstance(watched, ast.expr)
        reached = ast.Call(ast.Name("__reached__", ast.Load()), [ast.Constant(f"{module} {at}")], [])
        trees.put(nodes, watched, ast.Call(ast.Name("__seen__", ast.Load()), [reached, watched], []))
    plant.swap(module, ast.fix_missing_locations(tree), {mutant.function for mutant in mutants})
