"""What `make e2e` finds, and what begins first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import HERE, LONG, names_end_to_end


def test_what_takes_longest_is_named_as_tests_name_it() -> None:
    texts = [path.read_text(encoding="utf-8") for path in HERE.rglob("*.py")]
    named = {name for text in texts for name in re.findall(r'xdist_group\("([^"]+)"\)', text)}
    assert set(LONG) <= named | {f"{path.name}/" for path in HERE.iterdir()}


@pytest.mark.parametrize(
    ("file", "is_found"),
    [
        ("agent/test_hardened.py", True),
        ("web/test_effort.py", True),  # its conftest.py marks it
        ("e2e/test_first_hour.py", True),  # its folder does
        ("domain/test_pools.py", False),
        ("conftest.py", False),
    ],
)
def test_files_that_may_have_end_to_end_tests_are_found(file: str, is_found: bool) -> None:
    assert names_end_to_end(HERE / Path(file)) is is_found
