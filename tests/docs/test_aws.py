"""Every test that the page on AWS names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/internals/aws.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::test_\w+)?|test_\w+)`", PAGE)))


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_the_page_names_exists(name: str) -> None:
    path, test = re.fullmatch(r"([\w/]+\.py)?(?:::)?(test_\w+)?", name).groups()
    files = [ROOT / path] if path else (ROOT / "tests").rglob("test_*.py")
    assert any(f"def {test or ''}" in file.read_text(encoding="utf-8") for file in files)


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 30
