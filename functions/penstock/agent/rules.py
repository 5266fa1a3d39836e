"""Output rules, and the paths that their patterns match."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """An output rule. `!`: never upload; `=`: something must match; `%`: may change while it is read."""

    text: str
    parts: tuple[str, ...]
    ignore: bool
    required: bool
    may_change: bool

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule. No `..` is left in its parts, so it can't lead out of the root."""
        pattern = text.lstrip("!=%")
        sigils = text[: len(text) - len(pattern)]
        parts = tuple(os.path.normpath(f"/{pattern}").strip("/").split("/"))
        return cls(text, parts, "!" in sigils, "=" in sigils, "%" in sigils)


def expand(base: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths below `base` that a pattern matches; a last `**` matches all files at any depth."""
    if not parts:
        yield base
        return
    first, rest = parts[0], parts[1:]
    if first == "**":
        for directory in _directories(base):
            yield from expand(directory, rest or ("*",))
        return
    for name in _names(base, first):
        yield from expand(os.path.join(base, name), rest)


def _directories(base: str) -> Iterator[str]:
    """Yield a directory and all below it, parents first. Doesn't follow symlinks, so it ends.

    `os.walk` before Python 3.12 recurses, and fails on deep trees.
    """
    pending = [base]
    while pending:
        directory = pending.pop()
        yield directory
        with contextlib.suppress(OSError), os.scandir(directory) as entries:
            inner = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
            pending += reversed(inner)


def _names(base: str, pattern: str) -> list[str]:
    """Return what is in a directory, if it is one, by the names that match."""
    if not re.search(r"[*?\[]", pattern):
        return [pattern] if os.path.lexists(os.path.join(base, pattern)) else []
    with contextlib.suppress(OSError):
        return sorted(name for name in os.listdir(base) if fnmatch.fnmatchcase(name, pattern))
    return []
