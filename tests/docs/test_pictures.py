"""Pictures of the documentation: each that a page shows exists, each that exists is shown, none is big."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.tools import console
from docs.tools.browser import CHROMIUM, QUIET

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)\s]+\.(?:png|svg))\)")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shown(page: Path) -> Iterator[tuple[str, Path]]:
    """The pictures of a page: what it says for those who do not see them, and their files."""
    for words, target in SHOWN.findall(page.read_text(encoding="utf-8")):
        yield words, (page.parent / target).resolve()


def test_every_picture_that_a_page_shows_exists_and_is_described() -> None:
    found = [(page, words, path) for page in PAGES for words, path in shown(page)]
    assert len(found) > 10
    assert [(page, path) for page, words, path in found if not path.is_file() or len(words) < 20] == []


def test_every_picture_is_shown() -> None:
    there = {path for path in FOLDER.iterdir() if path.suffix in (".png", ".svg")}
    assert there - {path for page in PAGES for _, path in shown(page)} == set()


def test_those_of_the_console_are_the_ones_that_are_made() -> None:
    made = {f"console-{each.name}.png" for each in console.pictures("ID")}
    assert {path.name for path in FOLDER.glob("console-*")} == made
    assert {each.colours for each in console.pictures("ID")} == {"light", "dark"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("console-*.png")), ids=lambda path: path.name)
def test_they_are_small(path: Path) -> None:
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size <= console.AT_MOST_BYTES


@pytest.mark.e2e
def test_a_picture_is_made_anew_only_if_it_shows_something_else(tmp_path: Path) -> None:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine: apt install chromium, or set CHROMIUM")
    api = pytest.importorskip("playwright.sync_api", reason="`make e2e` installs playwright")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = started.new_page(viewport={"width": 400, "height": 300})

        def drawn(height: int) -> bytes:
            page.set_content(
                f"<div style='position: absolute; top: 0; left: 0; width: 400px; height: {height}px; background: red'>"
            )
            return bytes(page.screenshot())

        first, nearly, other = drawn(100), drawn(103), drawn(200)
        assert console.difference(page, first, nearly) == pytest.approx(0.01)
        for png, kept in ((first, first), (nearly, first), (other, other)):
            console._keep(started, png, tmp_path, "x")
            assert (tmp_path / "console-x.png").read_bytes() == kept
        started.close()
