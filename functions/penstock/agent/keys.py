"""Keys of caches: texts in which `{{ hash "FILE" }}` stands for the digest of files."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Callable

PLACEHOLDER = re.compile(r'\{\{\s*hash((?:\s+"[^"{}]+")+)\s*\}\}')
QUOTED = re.compile(r'"([^"]+)"')
CHUNK = 1 << 18


class NoKey(Exception):
    """Why a key cannot be told."""


def fill(template: str, located: Callable[[str], str]) -> str:
    """Return a key with its placeholders filled in; `located` tells where a path is. Raises NoKey."""
    filled = PLACEHOLDER.sub(lambda found: _digest(QUOTED.findall(found[1]), located), template)
    if "{{" in filled or "}}" in filled:
        raise NoKey(f'{template!r} has a placeholder that there is not; there is {{{{ hash "FILE" }}}}')
    return filled


def _digest(patterns: list[str], located: Callable[[str], str]) -> str:
    """One digest over all files that patterns match: over what they are called there, and what is in them."""
    whole = hashlib.sha256()
    for pattern in patterns:
        place = located(pattern)
        paths = sorted(path for path in glob.glob(place, recursive=True) if os.path.isfile(path))
        if not paths:
            raise NoKey(f"there is no file {pattern!r} to take the digest of")
        for path in paths:
            name = os.fsencode(os.path.relpath(path, _fixed(place)))
            whole.update(len(name).to_bytes(8, "big") + name + _content(path))
    return whole.hexdigest()


def _fixed(pattern: str) -> str:
    """The folder above the first `*` of a pattern: it is not what a file is called."""
    return os.path.dirname(re.split(r"[*?\[]", pattern, maxsplit=1)[0])


def _content(path: str) -> bytes:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for chunk in iter(lambda: file.read(CHUNK), b""):
                digest.update(chunk)
    except OSError as why:
        raise NoKey(f"{path} cannot be read: {why}") from why
    return digest.digest()
