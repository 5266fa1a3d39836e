"""A test module is read by pytest alone: what several tests share stands in a module that is no test."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("functions", "infra", "model", "simulation", "tests")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


@cache
def imported(path: Path) -> set[str]:
    """The modules that a file imports, as far as `from x import y` says which."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{each.name}" for each in node.names} | {str(node.module)}
    return found


def is_test(module: str) -> bool:
    return module.rpartition(".")[2].startswith("test_") and (ROOT / f"{module.replace('.', '/')}.py").is_file()


def test_the_check_sees_imports(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("from tests.docs import test_imports\ndef f():\n    from tests.docs.test_links import pages\n")
    assert {module for module in imported(file) if is_test(module)} == {
        "tests.docs.test_imports",
        "tests.docs.test_links",
    }


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_imports_a_test_module(folder: str) -> None:
    below = [path for path in FILES if path.is_relative_to(ROOT / folder)]
    assert [(path.relative_to(ROOT), module) for path in below for module in imported(path) if is_test(module)] == []


def test_what_is_shipped_imports_no_tests() -> None:
    shipped = [path for path in FILES if path.is_relative_to(ROOT / "functions")]
    assert [path for path in shipped for module in imported(path) if module.partition(".")[0] == "tests"] == []


def test_mypy_reads_all_that_is_used_of_the_cdk() -> None:
    """What comes from a module that mypy skips is of any type."""
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["overrides"]
    (read,) = [set(each["module"]) for each in overrides if each.get("follow_imports") == "normal"]
    paths = [ROOT / "app.py", *(path for path in FILES if path.is_relative_to(ROOT / "infra"))]
    names = {module.split(".")[1] for path in paths for module in imported(path) if module.startswith("aws_cdk.")}
    assert {f"aws_cdk.{name}" for name in names if name.startswith("aws_")} == {
        name for name in read if name.startswith("aws_cdk.aws_")
    }
