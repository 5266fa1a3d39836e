"""What docs/internals/parity.md names is there: each file, each function, each test, and each metric."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from penstock.domain import metrics

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/internals/parity.md").read_text(encoding="utf-8")
PLACES = ("tests", "functions/penstock", ".")
NAMED = sorted({(path, name) for path, name in re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", PAGE)})
ITEMS = [*(f"I{number}" for number in range(1, 14)), *(f"W{number}" for number in range(1, 34))]


@pytest.mark.parametrize(("path", "name"), NAMED, ids=["::".join(each) for each in NAMED])
def test_what_is_named_is_there(path: str, name: str) -> None:
    found = [place for place in PLACES if (ROOT / place / path).is_file()]
    assert found, f"there is no {path}"
    assert not name or any(name in names(ROOT / place / path) for place in found), f"{path} has no {name}"


def test_documents_that_are_named_are_there() -> None:
    told = set(re.findall(r"\]\(([\w./-]+\.md)\)", PAGE))
    assert told
    assert [path for path in told if not (ROOT / "docs/internals" / path).is_file()] == []


def test_every_metric_that_is_named_is_told() -> None:
    told = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+|Units)`", PAGE.partition("## What it measures")[2]))
    assert told
    assert told <= {metric.name for metric in metrics.METRICS}


def test_nothing_is_left_out() -> None:
    first = [row.split("|")[1] for row in PAGE.splitlines() if re.match(r"\| [IW]\d", row)]
    assert [label for cell in first for label in re.findall(r"[IW]\d+", cell)] == ITEMS


def test_a_row_is_shown_by_a_test_or_says_why_not() -> None:
    for row in rows():
        *_, how, shown = row
        is_said = re.search(r"decided otherwise|missing|nothing is packed|no versions|no standby", how)
        assert shown or is_said, row
        assert not shown or re.search(r"::test_\w+`", shown), row


def rows() -> Iterator[list[str]]:
    """The rows of the tables that name tests."""
    for line in PAGE.partition("## What it measures")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) > 2 and cells[-1] != "shown by":
            yield cells


@cache
def names(path: Path) -> frozenset[str]:
    """What a module defines: functions, classes, methods and values."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(found)
