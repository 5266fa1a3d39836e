"""What a call calls, as far as its name says it, and whether that asks the store."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, get_type_hints

from penstock.ports import Store
from penstock.system import System
from tests.mutate.scope import UNSAFE, definitions, modules, tree_of

ASKS = frozenset(name for name in vars(Store) if not name.startswith("_"))
"""The operations of the store."""

SETTLED = ("penstock.system", "current_site")
"""Nothing rests on when the description of the site is read: it is one row, which only operators change."""

Name = tuple[str, str]


def called(module: str, call: ast.Call) -> Callable[..., Any] | None:
    """The function of ours that a call calls, or the operation of a port; None where its name does not say it."""
    return _called(module, _dotted(call.func))


def _dotted(node: ast.expr) -> str:
    """How a node is written. What is only names with dots between them, as most is, needs no unparsing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ast.unparse(node)


@cache
def _called(module: str, name: str) -> Callable[..., Any] | None:
    parts = name.split(".")
    port = _ports().get(parts[-2]) if "on" in parts[:-2] else None
    if port:
        return getattr(port, parts[-1], None)
    found: Any = importlib.import_module(module)
    for at, part in enumerate(parts):
        if at and not isinstance(found, ModuleType):
            return None
        found = getattr(found, part, None)
    return found if callable(found) and str(getattr(found, "__module__", "")).startswith("penstock") else None


@cache
def asks_store(module: str, node: ast.AST) -> bool:
    """Whether a node, when it is evaluated, reads or writes the store, itself or in what it calls."""
    return any(_is_asking(module, each) or _name(module, each) in _asking() for each in _calls(node))


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in a node. What it defines, it does not call."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return
    if isinstance(node, ast.Call):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _calls(child)


def _is_asking(module: str, call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and called(module, call) in _operations()


@cache
def _ports() -> dict[str, Any]:
    return get_type_hints(System)


@cache
def _operations() -> frozenset[Any]:
    return frozenset(getattr(Store, name) for name in ASKS)


@cache
def _asking() -> frozenset[Name]:
    """The functions of ours that ask the store, by module and name."""
    nodes = {
        (module, name): node
        for module in modules()
        if not UNSAFE.match(module)
        for name, node, _ in definitions(tree_of(module))
        if (module, name) != SETTLED
    }
    calls = {key: _all_calls(node) for key, node in nodes.items()}
    found = {key for key, made in calls.items() if any(_is_asking(key[0], each) for each in made)}
    uses = {key: {_name(key[0], each) for each in made} for key, made in calls.items()}
    while more := {key for key, used in uses.items() if key not in found and used & found}:
        found |= more
    return frozenset(found)


def _all_calls(node: ast.AST) -> list[ast.Call]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Call)]


def _name(module: str, call: ast.Call) -> Name:
    found = called(module, call)
    function = inspect.unwrap(found) if found else None
    return str(getattr(function, "__module__", "")), str(getattr(function, "__qualname__", ""))
