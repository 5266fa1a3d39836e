"""docs/users/failures.md says what the code does."""

from __future__ import annotations

from pathlib import Path

from infra.failurespage import page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_code_says() -> None:
    told = (DOCS / "users/failures.md").read_text(encoding="utf-8")
    assert told == page(), "run `python -m infra.failurespage > docs/users/failures.md`, by way of another file"
