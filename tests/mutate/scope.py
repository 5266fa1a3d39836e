"""Which functions have named conditions: those of the modules below, and those that carry a promise's label."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FUNCTIONS = ROOT / "functions"
LABEL = re.compile(r"\[((?:SLOT|QUEUE|JOB|UNIT|ART|SEC)-\d)\]")

WHOLE = (
    "penstock.aws.dynamodb",
    "penstock.domain.jobs.jobs",
    "penstock.domain.jobs.outcome",
    "penstock.domain.jobs.unused",
    "penstock.domain.pools.capacity",
    "penstock.domain.pools.grants",
    "penstock.domain.pools.graph",
    "penstock.domain.pools.pools",
    "penstock.domain.pools.pools",
    "penstock.domain.site.site",
    "penstock.domain.units.hosts",
    "penstock.domain.units.prewarm",
    "penstock.domain.units.quarantine",
    "penstock.domain.units.retries",
    "penstock.domain.units.units",
    "penstock.domain.users.users",
    "penstock.kernel.rows",
    "penstock.system",
    "penstock.usecases.artifacts.outputs",
    "penstock.usecases.jobs.jobs",
    "penstock.usecases.jobs.settle",
    "penstock.usecases.pools.resize",
    "penstock.usecases.pools.scheduler",
    "penstock.usecases.site.apply",
    "penstock.usecases.sweep",
    "penstock.usecases.units.advance",
    "penstock.usecases.units.broken",
    "penstock.usecases.units.driver_calls",
    "penstock.usecases.units.release",
    "penstock.usecases.units.prewarm",
    "penstock.usecases.units.quarantine",
    "penstock.usecases.units.release",
    "penstock.usecases.units.retire",
    "penstock.usecases.units.reuse",
    "penstock.usecases.users.users",
    "penstock.usecases.workers.agents",
    "penstock.usecases.workers.agents",
    "penstock.usecases.workers.hosts",
    "penstock.usecases.workers.presence",
)
"""Modules all of whose functions decide or commit."""

UNSAFE = re.compile(r"penstock\.(agent|drivers|local|testing)\b")
"""What is never mutated, whatever it carries: what finds and ends processes, and all that goes with it. A mutant that
takes every process for the job's own ends those of the machine, and nothing stands between the two."""

Definition = ast.FunctionDef | ast.ClassDef | ast.Module


@cache
def modules() -> dict[str, Path]:
    """Every module of ours that runs in the cloud or on a worker, by name."""
    found = {}
    for path in sorted(FUNCTIONS.rglob("*.py")):
        parts = path.relative_to(FUNCTIONS).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path
    return found


@cache
def source(module: str) -> str:
    """A module's text."""
    return modules()[module].read_text(encoding="utf-8")


@cache
def tree_of(module: str) -> ast.Module:
    """A module's tree, which nobody may change."""
    return ast.parse(source(module))


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef, tuple[Definition, ...]]]:
    """The functions and methods of a module by qualified name, each with what it is defined in, itself the last."""

    def walk(
        inside: tuple[Definition, ...], prefix: str
    ) -> Iterator[tuple[str, ast.FunctionDef, tuple[Definition, ...]]]:
        for node in inside[-1].body:
            if isinstance(node, ast.FunctionDef):
                yield prefix + node.name, node, (*inside, node)
            elif isinstance(node, ast.ClassDef):
                yield from walk((*inside, node), f"{prefix}{node.name}.")

    yield from walk((tree,), "")


def labels(inside: tuple[Definition, ...]) -> set[str]:
    """The labels in the docstrings of a definition and of what it is defined in."""
    return {label for node in inside for label in LABEL.findall(ast.get_docstring(node) or "")}


@cache
def functions(module: str) -> Sequence[tuple[str, ast.FunctionDef, set[str], ast.Module]]:
    """The functions of a module whose conditions are named: qualified name, definition, labels, and the module."""
    if UNSAFE.match(module) or not (module in WHOLE or LABEL.search(source(module))):
        return ()
    tree = tree_of(module)
    found = [(name, node, labels(inside), tree) for name, node, inside in definitions(tree)]
    return [each for each in found if module in WHOLE or each[2]]
