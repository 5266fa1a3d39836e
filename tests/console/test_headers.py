"""What is sent with the console's files, wherever they are served."""

from __future__ import annotations

import mimetypes

import pytest

from penstock.console import headers

KINDS = {
    "assets/x-1.js": "text/javascript; charset=utf-8",
    "assets/x-1.css": "text/css; charset=utf-8",
    "index.html": "text/html; charset=utf-8",
    "icon.svg": "image/svg+xml; charset=utf-8",
    "assets/x-1.woff2": "font/woff2",
    "manifest.webmanifest": "application/manifest+json",
    "assets/x-1.png": "image/png",
    "licences.txt": "text/plain; charset=utf-8",
    "assets/x-1.none": "application/octet-stream",
}


@pytest.mark.parametrize("name", KINDS)
def test_files_have_their_type(name: str) -> None:
    assert headers.kind(name) == KINDS[name]


@pytest.mark.parametrize("name", [name for name in KINDS if not name.endswith((".png", ".txt"))])
def test_types_that_matter_do_not_depend_on_the_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-2: with `nosniff`, a browser takes no script of another type."""
    monkeypatch.setattr(mimetypes, "guess_type", lambda name: (None, None))
    assert headers.kind(name) == KINDS[name]


FILES = {
    "/": False, "/jobs": False, "/jobs/01ABC/log": False, "/pools/target/linux-24.04": False, "/users/ada.l": False,
    "/index.html": True, "/icon.svg": True, "/manifest.webmanifest": True, "/assets/index-0a1B.js": True,
    "/assets/none": True, "//evil.example/x.y": False,
}  # fmt: skip


@pytest.mark.parametrize("path", FILES)
def test_names_with_dots_are_pages_unless_they_are_files(path: str) -> None:
    assert headers.is_file(path) == FILES[path]


def test_only_names_with_a_hash_are_cached_for_ever() -> None:
    assert "immutable" in headers.caching("assets/x-1.js")
    assert headers.caching("index.html") == headers.caching("icon.svg") == "no-cache"


def test_no_script_or_style_of_a_page_itself_is_allowed() -> None:
    """SEC-2."""
    assert "unsafe" not in headers.policy("https://b.example")
    rules = dict(each.strip().split(" ", 1) for each in headers.policy("https://b.example").split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == "'self'"
    assert rules["connect-src"] == "'self' https://b.example"
