"""Decisions are numbered without gaps, dated, have a status, and stand in the index."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in PAGES}
HEAD = re.compile(
    r"# (?P<number>\d{4}): (?P<title>\S.*)\n\nDate: (?P<date>\S+)  \nStatus: (?P<status>accepted|superseded by .+)\n"
)
ROW = re.compile(r"^\| \[(\d{4})\]\((\S+)\) \| (.+?) \| (\S+) \| (.+?) \|$", re.MULTILINE)
PARTS = ("Context", "Decision", "Consequences")


def head(name: str) -> re.Match[str]:
    found = HEAD.match(TEXTS[name])
    assert found, f"{name} has no number, title, date and status at its top"
    return found


def test_numbers_are_unique_and_have_no_gaps() -> None:
    assert [name[:4] for name in TEXTS] == [f"{number:04}" for number in range(1, len(TEXTS) + 1)]


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_says_what_was_decided_when_and_whether_it_holds(name: str) -> None:
    found = head(name)
    assert re.fullmatch(r"\d{4}(-[a-z0-9]+)+\.md", name)
    assert found["number"] == name[:4]
    assert date.fromisoformat(found["date"]) <= date.today()
    assert re.findall(r"^## (.+)$", TEXTS[name], re.MULTILINE) == list(PARTS)
    later = re.fullmatch(r"superseded by \[(\d{4})\]\((\S+)\)", found["status"])
    assert found["status"] == "accepted" or (later and later[2] in TEXTS and later[2][:4] == later[1] > name[:4])


def test_the_index_has_all_of_them() -> None:
    rows = ROW.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
    assert rows == [
        (head(name)["number"], name, head(name)["title"], head(name)["date"], head(name)["status"]) for name in TEXTS
    ]
