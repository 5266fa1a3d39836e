"""Every link leads somewhere, and docs/README.md leads to every page."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?\)")
MENTION = re.compile(r"(?<![\w./!*-])docs/(?:[\w-]+/)*[\w-]{2,}\.md")
"""A page that a text names. Names of one letter are examples in tests."""

PLACE = re.compile(r"`((?:functions|simulation|model|tests|infra|examples|docs)/[\w/.-]+)`")
"""A file or folder of the repository that a page names."""

NAMING = (".py", ".md", ".pml", ".toml", ".sh", ".service", ".txt", "Makefile", "openapi.json")
"""Files that may name a page."""


@cache
def files() -> tuple[Path, ...]:
    """All files of the repository that may name a page, those not committed yet too."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = (ROOT / name for name in listed.splitlines() if name.endswith(NAMING))
    return tuple(path for path in found if path.is_file())


def pages() -> list[Path]:
    """The README and all pages below docs."""
    return [path for path in files() if path.suffix == ".md" and (path.is_relative_to(DOCS) or path.parent == ROOT)]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", prose(page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        count = sum(1 for each in found if each == slug or re.fullmatch(rf"{re.escape(slug)}-\d+", each))
        found.add(f"{slug}-{count}" if count else slug)
    return frozenset(found)


def links(page: Path) -> Iterator[tuple[str, Path, str]]:
    """The relative links of a page: as written, the file, and the anchor."""
    for link in LINK.findall(CODE.sub("", prose(page))):
        if not re.match(r"[a-z][a-z0-9+.-]*:", link):
            target, _, anchor = link.partition("#")
            yield link, (page.parent / target).resolve() if target else page, anchor


def is_dead(target: Path, anchor: str) -> bool:
    return not target.exists() or (bool(anchor) and target.suffix == ".md" and anchor not in anchors(target))


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert [link for link, target, anchor in links(page) if is_dead(target, anchor)] == []


def test_every_page_that_a_file_names_exists() -> None:
    named = {(name_of(path), page) for path in files() for page in MENTION.findall(path.read_text("utf-8", "replace"))}
    assert sorted((path, page) for path, page in named if not (ROOT / page).is_file()) == []


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    assert [place for place in PLACE.findall(prose(page)) if not (ROOT / place).exists()] == []


def test_the_index_leads_to_every_page() -> None:
    reached, left = set(), [DOCS / "README.md"]
    while left:
        page = left.pop()
        if page not in reached and page.suffix == ".md" and page.is_file():
            reached.add(page)
            left += [target for _, target, _ in links(page) if target.is_relative_to(DOCS)]
    assert sorted(name_of(page) for page in pages() if page.is_relative_to(DOCS) and page not in reached) == []


def test_what_is_dead_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`: c\n\n## A b c\n\n[x](page.md#a-b-c) [y](gone.md) [z](#no) `[w](code.md)`\n\n```\n[v](v)\n```\n"
    )
    assert [link for link, target, anchor in links(page) if is_dead(target, anchor)] == ["gone.md", "#no"]
    assert anchors(page) == {"a-b-c", "a-b-c-1"}
    assert MENTION.findall("see docs/users/cli.md, not docs/a.md or src/docs/cli.md") == ["docs/users/cli.md"]
