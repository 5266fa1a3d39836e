"""docs/internals/known-violations.md lists every test there is here, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from tests.known.caught import broken, known

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "known-violations.md"
LABEL = re.compile(r"\b(?:SLOT|QUEUE|JOB|UNIT|SEC)-\d\b")
TESTS = {f"{where}::{test.__name__}": test for where, test in known()}


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading."""
    section = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


HAVE, LEFT_OUT = rows("What is tested"), rows("What is left out")


def test_every_test_is_in_the_table_and_nothing_else_is() -> None:
    listed = {row[4].strip("`") for row in HAVE}
    assert listed == set(TESTS)


@pytest.mark.parametrize("row", HAVE, ids=lambda row: row[4].strip("`").partition("::")[2])
def test_a_row_says_what_its_test_says(row: list[str]) -> None:
    """Its promises are those of the docstring, and what it fails without is what is planted."""
    system, wrong, reference, answer, name, without = row
    test = TESTS[name.strip("`")]
    assert all((system, wrong, reference))
    assert set(LABEL.findall(answer)) == set(LABEL.findall(str(test.__doc__))) != set()
    assert without == f"`{broken(test.plant)}`"


@pytest.mark.parametrize("name", sorted({broken(test.plant) for test in TESTS.values()}))
def test_a_named_function_exists(name: str) -> None:
    assert name == "attempt.asl.json" or resolve_name(f"penstock.{name}")


def test_what_is_left_out_has_a_reason() -> None:
    assert LEFT_OUT
    assert all(len(row) == 4 and all(row) for row in LEFT_OUT)
