"""The named effects of a module, and how each is mutated: what a function does, and in which order.

left out  a statement that is a call or yields; a change in a list of changes; a keyword argument that has a default
flipped   a keyword argument that is True or False
before    a statement that asks the store, made before the one that asks it last; neither needs the other's names
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from tests.mutate.called import asks_store, called
from tests.mutate.scope import functions
from tests.mutate.sites import CHANGES, STORE, Mutant, nodes_of, text_of
from tests.mutate.trees import blocks, places, put

OTHERS = re.compile(r"log\.\w+|super\(\)\.\w+")
"""Calls that have no mutants: those that only say something to operators, and those that Python asks for."""

WORDS = ("extra", "reason", "why")
"""Keyword arguments that are words: they decide nothing."""

LEFT_OUT, FLIPPED, BEFORE = "left out", "flipped", "before"

_Way = tuple[ast.AST, str, str, ast.expr]
"""A node, the text that names it, how it is mutated, and what is watched."""


@cache
def mutants(module: str) -> tuple[Mutant, ...]:
    """Every mutant of the effects of a module."""
    if module == STORE:  # it is the effect
        return ()
    found: list[Mutant] = []
    for function, node, _, tree in functions(module):
        at = places(tree)
        count: Counter[str] = Counter()
        for part in nodes_of(node):
            for each, text, how, watched in _ways(module, node, part):
                count[text + how] += 1
                number = count[text + how]
                text += f" ({number})" if number > 1 else ""
                found.append(Mutant(module, function, text, how, at[id(each)], at[id(watched)], None))
    return tuple(found)


def make(mutant: Mutant, nodes: Sequence[ast.AST]) -> None:
    """Change a tree of the mutant's module, given by its walk, into the mutant."""
    node = nodes[mutant.at]
    if mutant.how.startswith(BEFORE):
        block = next(block for each in nodes for block in blocks(each) if any(one is node for one in block))
        last = _before(mutant.module, block, block.index(node))
        assert last
        put(nodes, node)
        put(nodes, last, node, last)
    elif mutant.how == FLIPPED:
        assert isinstance(node, ast.keyword)
        assert isinstance(node.value, ast.Constant)
        put(nodes, node, ast.keyword(node.arg, ast.Constant(not node.value.value)))
    elif isinstance(node, ast.Expr):
        is_call = isinstance(node.value, ast.Call)
        put(nodes, node, ast.Pass() if is_call else ast.Expr(ast.YieldFrom(ast.Tuple([], ast.Load()))))
    else:
        put(nodes, node)


def is_one(mutant: Mutant) -> bool:
    """Whether a mutant is one of an effect."""
    return mutant.how.partition(" ")[0] in (LEFT_OUT.partition(" ")[0], FLIPPED, BEFORE)


def _ways(module: str, function: ast.FunctionDef, node: ast.AST) -> Iterator[_Way]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Yield | ast.YieldFrom):
        said = isinstance(node.value, ast.Call) and OTHERS.fullmatch(ast.unparse(node.value.func))
        watched = node.value if isinstance(node.value, ast.Call) else node.value.value
        if watched and not said:
            yield node, text_of(module, node), LEFT_OUT, watched
    if isinstance(node, ast.List) and isinstance(node.ctx, ast.Load) and _is_of_changes(function, node):
        for each in node.elts:
            yield each, text_of(module, each), LEFT_OUT, node
    if isinstance(node, ast.Call):
        yield from _keywords(module, node)
    for block in blocks(node):
        yield from _orders(module, block)


def _is_of_changes(function: ast.FunctionDef, made: ast.List) -> bool:
    """Whether a list has changes: one is made in it, or its function returns changes."""
    here = (ast.unparse(each.func) for each in made.elts if isinstance(each, ast.Call))
    returned = (each.value for each in ast.walk(function) if isinstance(each, ast.Return))
    returns = function.returns is not None and "Change" in ast.unparse(function.returns)
    return any(each in CHANGES for each in here) or (returns and made in returned)


def _keywords(module: str, call: ast.Call) -> Iterator[_Way]:
    function = called(module, call)
    is_replacing = ast.unparse(call.func) in ("replace", "dataclasses.replace")
    if not (function or is_replacing) or inspect.isclass(function):
        return
    given = inspect.signature(function).parameters if function and not is_replacing else {}
    for each in call.keywords:
        if each.arg is None or each.arg in WORDS or isinstance(each.value, ast.JoinedStr) or _is_one_more(each.value):
            continue
        text = f"{each.arg}={text_of(module, each.value)} in {ast.unparse(call.func)}"
        is_there = each.arg in given and given[each.arg].default is not inspect.Parameter.empty
        if isinstance(each.value, ast.Constant) and isinstance(each.value.value, bool):
            yield each, text, FLIPPED, call
        elif is_replacing or is_there:
            yield each, text, LEFT_OUT, call


def _is_one_more(value: ast.expr) -> bool:
    """Whether a value is another one with one field replaced, whose being left out says it already."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "replace" and len(value.keywords) == 1


def _orders(module: str, block: Sequence[ast.stmt]) -> Iterator[_Way]:
    for at, each in enumerate(block):
        last = _before(module, block, at)
        if last:
            yield each, _head(module, each), f"{BEFORE} {_head(module, last)}", _first(each)


def _before(module: str, block: Sequence[ast.stmt], at: int) -> ast.stmt | None:
    """The statement that asks the store last before another that does, if the other may as well come before it."""
    if not _is_movable(block[at]) or not asks_store(module, block[at]):
        return None
    first = next((first for first in range(at - 1, -1, -1) if asks_store(module, block[first])), None)
    if first is None or isinstance(block[first], ast.Return | ast.Raise | ast.FunctionDef | ast.ClassDef):
        return None
    if first < at - 1 and not isinstance(block[at], ast.Assign | ast.AnnAssign):
        return None  # something is decided between them
    between = block[first:at]
    here, there = _names(block[at : at + 1]), _names(between)
    is_free = not (here[0] & (there[0] | there[1]) or there[0] & here[1])
    return block[first] if is_free else None


def _is_movable(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.If | ast.For)


def _names(statements: Iterable[ast.stmt]) -> tuple[set[str], set[str]]:
    """The names that statements bind, and those that they use."""
    names = [each for some in statements for each in ast.walk(some) if isinstance(each, ast.Name)]
    defined = {each.name for some in statements for each in ast.walk(some) if isinstance(each, ast.FunctionDef)}
    bound = {each.id for each in names if isinstance(each.ctx, ast.Store)} | defined
    return bound, {each.id for each in names if isinstance(each.ctx, ast.Load)}


def _head(module: str, statement: ast.stmt) -> str:
    if isinstance(statement, ast.If | ast.For | ast.While):
        return text_of(module, _first(statement))
    return text_of(module, statement)


def _first(statement: ast.stmt) -> ast.expr:
    """What a statement evaluates first."""
    if isinstance(statement, ast.If | ast.While):
        return statement.test
    if isinstance(statement, ast.For):
        return statement.iter
    return next(each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.expr) and not _is_bound(each))


def _is_bound(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)
