"""The shell examples of the documentation: their lines, the commands of `penstock` in them, and the job files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELLS = ("", "sh", "bash", "console")
COMMENT = re.compile(r"(^|\s)#.*$")
EXAMPLE = "Example: "
"""How the help of a command begins the line of its example."""

NAMES = ("decisions",)
"""What is not read: decisions tell of what was."""


class Line(NamedTuple):
    """A line of a shell example, without its comment. `block` counts the blocks of its page."""

    page: str
    block: int
    text: str


class Command(NamedTuple):
    """A command of `penstock` as a page gives it."""

    page: str
    line: str
    words: tuple[str, ...]


def pages() -> list[Path]:
    """The pages that tell a reader what to type."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if not any(name in page.parts for name in NAMES)]


def blocks(page: Path, *languages: str) -> Iterator[str]:
    """What stands in a page's fences of some languages."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    yield from (text for language, text in found if language in languages)


def lines() -> list[Line]:
    """All lines of shell examples, in the order of the pages. Some are a program's output, and not typed."""
    return [each for page in pages() for each in _of_page(page)]


def commands() -> list[Command]:
    """All commands of `penstock`, in the order of the pages."""
    typed = (each for each in lines() if is_penstock(each))
    return [Command(each.page, each.text, words) for each in typed for words in _simple(each.text)]


def is_penstock(line: Line) -> bool:
    """Whether a line is one of `penstock`."""
    return line.text.startswith("penstock ")


def _of_page(page: Path) -> Iterator[Line]:
    name = page.relative_to(ROOT).as_posix()
    for number, block in enumerate(blocks(page, *SHELLS)):
        for line in block.replace("\\\n", " ").splitlines():
            text = " ".join(COMMENT.sub("", line.strip().removeprefix("$ ").removeprefix(EXAMPLE)).split())
            if text:
                yield Line(name, number, text)


def _simple(text: str) -> Iterator[tuple[str, ...]]:
    """The simple commands of a line that are `penstock`'s, without redirections."""
    words: list[str] = []
    reader = shlex.shlex(text, posix=True, punctuation_chars="|&;<>")
    reader.whitespace_split = True
    for word in [*reader, ";"]:
        if set(word) <= set("|&;<>"):
            if words[:1] == ["penstock"]:
                yield tuple(words[1:])
            words = ["redirected"] if set(word) <= set("<>") else []
        else:
            words.append(word)
