"""`make docs` writes a site that can be searched, whose links all lead somewhere, and that asks no other server."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from docs.tools import pictures

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?([^\" >]+)|<link\b[^>]*\bhref=\"?([^\" >]+)")


def test_the_pictures_of_the_terminal_are_made(tmp_path: Path) -> None:
    pictures.terminal(tmp_path)  # those of the console take minutes: `make pictures`
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {path.name for path in (ROOT / "docs" / "pictures").glob("*.svg")} - {"architecture.svg"}
    shown = (tmp_path / "why.svg").read_text(encoding="utf-8")
    assert "bench-1" in shown
    assert "url(http" not in shown


def test_the_site_is_built_from_every_page() -> None:
    done = subprocess.run(["make", "docs"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    site = ROOT / "build" / "docs"
    pages = {page.relative_to(site).as_posix() for page in site.rglob("*.html")}
    wanted = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    named = {re.sub(r"(^|/)README\.md$", r"\1index.md", name).removesuffix("md") + "html" for name in wanted}
    assert named | {"start.html", "404.html"} == pages

    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {each["location"].partition("#")[0] for each in index["docs"] if "lexicographic" in each["text"].lower()}
    assert found, "a search finds nothing"

    for page in pages:
        text = (site / page).read_text(encoding="utf-8")
        loaded = {one or other for one, other in LOADED.findall(text)}
        assert not [each for each in loaded if re.match(r"(https?:)?//", each)], page
