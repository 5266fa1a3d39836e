"""How big the console's first view may be: what a browser loads before it shows anything, compressed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_BYTES = 200 * 1024
"""Compressed bytes of the first view."""

MANIFEST = ".vite/manifest.json"
"""Where Vite says which file is made of what, and which files each one imports."""


@dataclass(frozen=True)
class Part:
    """One file of the build."""

    name: str
    size: int
    is_first: bool


def parts(folder: Path) -> Sequence[Part]:
    """All files of a build with their compressed sizes in bytes, the first view's first, the biggest first."""
    first = {"index.html", *_first(json.loads((folder / MANIFEST).read_text(encoding="utf-8")))}
    files = [path for path in folder.rglob("*") if path.is_file()]
    named = {path.relative_to(folder).as_posix(): path for path in files}
    found = [Part(name, _compressed(path), name in first) for name, path in named.items() if name != MANIFEST]
    return sorted(found, key=lambda each: (not each.is_first, -each.size, each.name))


def first_view(found: Sequence[Part]) -> int:
    """The bytes of the first view."""
    return sum(each.size for each in found if each.is_first)


def table(found: Sequence[Part]) -> str:
    """What is how big, as text: the first view's files with a star."""
    lines = [f"{each.size / 1024:9.1f} KB  {'*' if each.is_first else ' '} {each.name}" for each in found]
    total = f"{first_view(found) / 1024:9.1f} KB  * the first view, of at most {MOST_BYTES // 1024} KB compressed"
    return "\n".join([*lines, total])


def _first(manifest: Mapping[str, Any]) -> Iterator[str]:
    """The entry's script and styles, and those of all that it imports at once."""
    left, seen = [name for name, each in manifest.items() if each.get("isEntry")], set[str]()
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            yield from (manifest[name]["file"], *manifest[name].get("css", ()))
            left += manifest[name].get("imports", ())


def _compressed(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), 9, mtime=0))
