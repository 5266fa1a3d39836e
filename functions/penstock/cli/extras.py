"""Commands that need more than the client: what is missing, and how to install it.

What each extra has is declared in pyproject.toml alone; the installed package's metadata says it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from penstock.cli.errors import Refused

NAME = "penstock"
NEEDED = re.compile(r"([\w.-]+)(?:\[([\w,. -]+)\])?.*; extra == [\"'](.+)[\"']")
"""A line of metadata such as `penstock[aws]; extra == "local"`. Source: PyPA, core metadata, Requires-Dist."""


def require(extra: str) -> None:
    """Raises Refused, with the command that installs it, unless everything that an extra brings is installed."""
    missing = [each for each in sorted(_packages(extra)) if not _is_installed(each)]
    if missing:
        raise _refused(extra, ", ".join(missing))


@contextmanager
def needed(extra: str) -> Iterator[None]:
    """For imports of what an extra brings: raises Refused, with the command that installs it, if one fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise _refused(extra, (error.name or "a library").partition(".")[0]) from error


def _refused(extra: str, missing: str) -> Refused:
    return Refused(f"this needs {missing}, not installed here", f"pip install '{NAME}[{extra}]'")


def _packages(extra: str) -> set[str]:
    """The packages of an extra, and of those that it includes."""
    found: set[str] = set()
    for package, extras, of in _declared():
        if of == extra:
            found |= {each for name in extras for each in _packages(name)} if package == NAME else {package}
    return found


def _declared() -> Iterator[tuple[str, list[str], str]]:
    """Package, its extras, and the extra of ours that it belongs to. Nothing where Penstock itself is not installed."""
    try:
        lines = metadata.requires(NAME) or []
    except metadata.PackageNotFoundError:
        return
    for found in filter(None, map(NEEDED.fullmatch, lines)):
        yield found[1], [each.strip() for each in (found[2] or "").split(",")], found[3]


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True
