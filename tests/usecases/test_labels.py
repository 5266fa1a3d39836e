"""Every promise that code claims to keep is asked for by some test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLAIMED = re.compile(r"\[((?:SLOT|QUEUE|JOB|UNIT|ART|SEC)-\d)\]")
ASKED = re.compile(r"\b((?:SLOT|QUEUE|JOB|UNIT|ART|SEC)-\d)\b")


def _labels(folder: str, shape: re.Pattern[str]) -> set[str]:
    return {label for path in (ROOT / folder).rglob("*.py") for label in shape.findall(path.read_text())}


def test_every_label_in_the_code_is_in_a_test() -> None:
    claimed = _labels("functions", CLAIMED)
    assert len(claimed) > 10
    assert claimed - _labels("tests", ASKED) == set()
