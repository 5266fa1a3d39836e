"""docs/users/retention.md says what the code does."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from infra.retentionpage import page
from penstock.domain.artifacts.retention import Spans

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_code_says() -> None:
    told = (DOCS / "users/retention.md").read_text(encoding="utf-8")
    assert told == page(), "run `python -m infra.retentionpage > docs/users/retention.md`, by way of another file"


def test_the_sites_page_shows_every_span() -> None:
    text = (DOCS / "operators/site.md").read_text(encoding="utf-8")
    for each in fields(Spans):
        assert f"\n| `{each.name}` | " in text, each.name
