"""Puts a mutant into the running process: its function gets the mutant's code, whoever imported it from where."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

from penstock.aws.dynamodb import Table
from penstock.kernel.rows import Change, Check, Create, Delete, Replace, Row, key_of
from penstock.testing.store import MemoryStore
from tests.mutate import effects
from tests.mutate.scope import UNSAFE, modules, source
from tests.mutate.sites import Mutant, mutated
from tests.mutate.trees import put


def plant(mutant: Mutant) -> None:
    """Let this process run a mutant."""
    if UNSAFE.match(mutant.module):
        raise ValueError(f"{mutant.module} is never mutated")
    if mutant.how == "unconditional":
        _let_be_unconditional()
    swap(mutant.module, tree_of(mutant), [mutant.function])


def tree_of(mutant: Mutant) -> ast.Module:
    """The mutant's module."""
    tree = ast.parse(source(mutant.module))
    nodes = list(ast.walk(tree))
    if effects.is_one(mutant):
        effects.make(mutant, nodes)
    else:
        put(nodes, nodes[mutant.at], mutated(mutant, nodes[mutant.at]))
    return ast.fix_missing_locations(tree)


def swap(module: str, tree: ast.Module, names: Iterable[str]) -> None:
    """Give functions of a module the code that they have in another tree of it."""
    codes = {code.co_qualname: code for code in _codes(compile(tree, str(modules()[module]), "exec"))}
    for name in names:
        function = _function(module, name)
        function.__code__ = codes[name].replace(co_flags=codes[name].co_flags)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _function(module: str, name: str) -> FunctionType:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = vars(found)[part]
        found = found.fget if isinstance(found, property) else found
        found = found.func if isinstance(found, cached_property) else found
        found = found.__func__ if isinstance(found, classmethod | staticmethod) else found
    if hasattr(found, "cache_clear"):
        found.cache_clear()
    function = inspect.unwrap(found)
    assert isinstance(function, FunctionType)
    return function


def _let_be_unconditional() -> None:
    """Let stores make a change that has lost its condition: as if what it assumes had been read at its commit."""

    def unconditional(change: Change) -> Change:
        object.__setattr__(change, "unconditional", True)
        return change

    builtins.__unconditional__ = unconditional  # type: ignore[attr-defined]
    for store in (MemoryStore, Table):
        store.commit = _forgiving(store.commit)  # type: ignore[method-assign, assignment]


def _forgiving(commit: Callable[[Any, Sequence[Change]], bool]) -> Callable[[Any, Sequence[Change]], bool]:
    def forgiving(self: Any, changes: Sequence[Change]) -> bool:
        now: list[Change] = []
        for change in changes:
            now += _as_it_stands(self, change) if hasattr(change, "unconditional") else [change]
        return commit(self, now) if now else True

    return forgiving


def _as_it_stands(store: Any, change: Change) -> list[Change]:
    """An unconditional change as a conditional one on what is stored now."""
    key = key_of(change)
    stored: Row | None = store.rows.get(key) if isinstance(store, MemoryStore) else store.get(key, Row)
    if isinstance(change, Check):
        return []
    if isinstance(change, Delete):
        return [Delete(stored)] if stored else []
    return [Replace(stored, change.row) if stored else Create(change.row)]
