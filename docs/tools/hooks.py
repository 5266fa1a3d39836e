"""What mkdocs does with the pages: the navigation is that of docs/README.md; links out of docs/ lead to the source.

mkdocs calls the functions named `on_…`: https://www.mkdocs.org/user-guide/configuration/#hooks
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
START = "start.md"
"""The page of the site that is the README of the repository."""

SECTION = re.compile(r"^## +(.+?)\s*$", re.MULTILINE)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:")
HEADING = re.compile(r"^# +(.+?)\s*$", re.MULTILINE)
ROW = re.compile(r"^\|(.+?)\|", re.MULTILINE)


def slug(heading: str, separator: str) -> str:
    """The anchor of a heading, as GitHub makes it: the links in the pages are written for it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def navigation(index: str, pages: Mapping[str, str]) -> list[Any]:
    """Tabs and pages as in the text of docs/README.md, with the pages that only the index page of a folder names.

    `pages` has the text of each page by its path below docs/.
    """
    parts = SECTION.split(index)[1:]
    told = [(title, list(_pages(body, "README.md"))) for title, body in zip(parts[::2], parts[1::2], strict=True)]
    known = {page for _, listed in told for _, page in listed} | {"README.md"}
    tabs: list[Any] = [{"Start": [START, "README.md"]}]
    for title, listed in told:
        entries: list[Any] = []
        for name, page in listed:
            more = [each for each in _of_index(page, pages) if each[1] not in known]
            known |= {each for _, each in more}
            found = [{_title(*each, pages): each[1]} for each in more]
            is_first = not entries
            entry = {_title(name, page, pages): [page, *found] if found and not is_first else page}
            entries += [entry, *(found if is_first else [])]
        tabs.append({title: entries})
    return tabs


def _of_index(page: str, pages: Mapping[str, str]) -> list[tuple[str, str]]:
    """The pages of its folder that an index page names, each once: their names and paths."""
    listed = _pages(pages[page], page) if posixpath.basename(page) == "README.md" else ()
    below = posixpath.dirname(page) + "/"
    found = {path: name for name, path in listed if path in pages and path.startswith(below)}
    return [(name, path) for path, name in found.items()]


def _title(name: str, page: str, pages: Mapping[str, str]) -> str:
    """What stands in the navigation: the words of the link or, where these are a number, the heading of the page."""
    found = HEADING.search(pages[page]) if name.isdigit() else None
    return found[1] if found else name[:1].upper() + name[1:]


def _pages(text: str, page: str) -> Iterator[tuple[str, str]]:
    """The pages that the first column of a page's tables links to, with the words of their links."""
    for cell in ROW.findall(text):
        for _, name, target in LINK.findall(cell):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target.partition("#")[0]))
            if path.endswith(".md") and not path.startswith(".."):
                yield name, path


def relinked(text: str, page: str, source: str) -> str:
    """A page's text, whose links out of docs/ lead to the source at an address; without one, they are plain text."""

    def change(link: re.Match[str]) -> str:
        mark, words, target = link.groups()
        path, _, anchor = target.partition("#")
        if ADDRESS.match(target) or not path:
            return link[0]
        found = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
        if found == "README.md":
            here = posixpath.relpath(START, posixpath.dirname(page) or ".")
            return f"{mark}[{words}]({here}{'#' + anchor if anchor else ''})"
        if found.startswith("docs/"):
            return link[0]
        return f"[{words}]({source.rstrip('/')}/{found})" if source else words

    return LINK.sub(change, text)


def start(readme: str) -> str:
    """The README of the repository as a page of the site."""
    return readme.replace("](docs/", "](")


def on_config(config: Any) -> Any:
    """Make the navigation."""
    pages = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    config.nav = navigation(pages["README.md"], pages)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the README of the repository."""
    from mkdocs.structure.files import File  # type: ignore[import-not-found]  # only `make docs` has mkdocs

    text = start((ROOT / "README.md").read_text(encoding="utf-8"))
    files.append(File.generated(config, START, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Change the links that leave docs/."""
    return relinked(markdown, page.file.src_uri, str(config.repo_url or ""))
