"""Changes of a module's tree, by the nodes of a walk over it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import cache


@cache
def places(tree: ast.AST) -> Mapping[int, int]:
    """At which place of a walk each node comes, by the node's id. The tree is kept, so that no id is given again."""
    return {id(each): at for at, each in enumerate(ast.walk(tree))}


def put(nodes: Iterable[ast.AST], old: ast.AST, *new: ast.AST) -> None:
    """Replace a node where it hangs in its tree; where it hangs in a list, by any number of nodes."""
    for parent in nodes:
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new[0])
                return
            if isinstance(value, list) and any(each is old for each in value):
                at = next(at for at, each in enumerate(value) if each is old)
                value[at : at + 1] = new
                return
    raise ValueError(f"it hangs nowhere: {ast.dump(old)}")


def blocks(node: ast.AST) -> Iterable[Sequence[ast.stmt]]:
    """The lists of statements that hang in a node."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
