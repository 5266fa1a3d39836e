"""The documentation as a site: its navigation has every page once, and links that leave docs/ lead to the source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from docs.tools import hooks

PAGES = {path.relative_to(hooks.DOCS).as_posix(): path.read_text(encoding="utf-8") for path in hooks.DOCS.rglob("*.md")}


def paths(entries: list[Any]) -> Iterator[str]:
    """The pages of a part of the navigation."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from paths(value) if isinstance(value, list) else [value]


def test_every_page_stands_in_the_navigation_once() -> None:
    found = list(paths(hooks.navigation(PAGES["README.md"], PAGES)))
    assert sorted(found) == sorted([hooks.START, *PAGES])


def test_decisions_are_listed_by_their_headings() -> None:
    (tab,) = [each for each in hooks.navigation(PAGES["README.md"], PAGES) if "You work on Penstock" in each]
    (decisions,) = [each["Decisions"] for each in tab["You work on Penstock"] if "Decisions" in each]
    assert decisions[0] == "decisions/README.md"
    assert next(iter(decisions[1])).startswith("0001: ")
    assert len(decisions) == sum(path.startswith("decisions/") for path in PAGES)


@pytest.mark.parametrize(
    ("link", "source", "wanted"),
    [
        ("[a](b.md#c)", "", "[a](b.md#c)"),
        ("[a](#c)", "", "[a](#c)"),
        ("[a](https://example.com/x)", "", "[a](https://example.com/x)"),
        ("![a](../pictures/a.svg)", "", "![a](../pictures/a.svg)"),
        ("[a](../../README.md#try-it)", "", "[a](../start.md#try-it)"),
        ("[`x`](../../tests/x.py)", "", "`x`"),
        (
            "[`x`](../../tests/x.py)",
            "https://example.com/tree/main/",
            "[`x`](https://example.com/tree/main/tests/x.py)",
        ),
    ],
)
def test_links(link: str, source: str, wanted: str) -> None:
    assert hooks.relinked(f"see {link}.", "users/a.md", source) == f"see {wanted}."


def test_the_readme_is_a_page_of_the_site() -> None:
    assert "](users/README.md)" in hooks.start((hooks.ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("heading", ["What it costs", "`why` is true, always", "A, B & C"])
def test_anchors_are_those_of_github(heading: str) -> None:
    wanted = {"What it costs": "what-it-costs", "`why` is true, always": "why-is-true-always", "A, B & C": "a-b--c"}
    assert hooks.slug(heading, "-") == wanted[heading]
