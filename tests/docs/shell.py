"""The shell examples of the documentation, and the commands of `penstock` in them."""

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
NAMES = ("decisions", "cli.md")
"""What is not read: decisions tell of what was, and the command reference is generated."""


class Command(NamedTuple):
    """A command of `penstock` as a page gives it."""

    page: str
    line: str
    words: tuple[str, ...]


def pages() -> list[Path]:
    """The pages that tell a reader what to type."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if not any(name in page.parts for name in NAMES)]


def commands() -> list[Command]:
    """All commands of `penstock`, in the order of the pages."""
    return [each for page in pages() for each in _of_page(page)]


def _of_page(page: Path) -> Iterator[Command]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    for block in (text for language, text in found if language in SHELLS):
        for line in block.replace("\\\n", " ").splitlines():
            text = COMMENT.sub("", line.strip().removeprefix("$ "))
            for words in _simple(text) if text.startswith("penstock ") else ():
                yield Command(page.relative_to(ROOT).as_posix(), " ".join(text.split()), words)


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
