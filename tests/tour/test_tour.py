"""docs/internals/tour.md names every module that one job enters, in order, and there are not more than we allow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tour.__main__ import MOST

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "internals" / "tour.md"
ENTRY = re.compile(r"^ *(\d+) (\S+) +\S", re.MULTILINE)
ITEM = re.compile(r"^(\d+)\. `([^`]+)`", re.MULTILINE)


@pytest.fixture(scope="module")
def entered() -> list[tuple[str, str]]:
    """What `make tour` prints of modules: number and name. A process of its own: other tests plug in other things."""
    paths = os.pathsep.join((str(ROOT / "functions"), str(ROOT)))
    words = [sys.executable, "-m", "tests.tour"]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [(number, module) for number, module in ENTRY.findall(done.stdout) if module != "functions"]


def test_the_page_names_every_module_in_the_order_of_the_tour(entered: list[tuple[str, str]]) -> None:
    assert ITEM.findall(PAGE.read_text(encoding="utf-8")) == entered


def test_one_job_enters_no_more_modules_than_allowed(entered: list[tuple[str, str]]) -> None:
    assert len(entered) == MOST, "if there are fewer now, lower MOST"
