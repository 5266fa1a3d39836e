"""What an extra of Penstock brings, and a folder that has only that, as if it were installed there."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: Mapping[str, Sequence[str]] = PROJECT["optional-dependencies"]


def declared(*extras: str) -> set[Requirement]:
    """What Penstock itself asks for, with these extras and those that they include."""
    found = {Requirement(each) for each in PROJECT["dependencies"]}
    for extra in extras:
        for each in map(Requirement, EXTRAS[extra]):
            found |= declared(*each.extras) if each.name == "penstock" else {each}
    return found


def brought(*extras: str) -> set[str]:
    """The names of all packages that come with these extras, as installed here."""
    found: set[str] = set()
    left = list(declared(*extras))
    while left:
        each = left.pop()
        if canonicalize_name(each.name) not in found:
            found.add(canonicalize_name(each.name))
            left += needs(each)
    return found


def needs(of: Requirement) -> Iterator[Requirement]:
    """What a package needs on this machine."""
    for each in map(Requirement, metadata.requires(of.name) or ()):
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in (*of.extras, "")):
            yield each


def link(packages: Iterable[str], folder: Path) -> Path:
    """A folder with these packages and no other: links to where they are installed."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        installed = metadata.distribution(package)
        for top in {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
            at = Path(str(installed.locate_file(top)))
            if at.exists() and not (folder / top).exists():
                (folder / top).symlink_to(at)
    return folder


def describe(folder: Path) -> None:
    """Have Penstock's metadata there, as an installer would write it."""
    lines = [f"Requires-Dist: {each}" for each in PROJECT["dependencies"]]
    lines += [f'Requires-Dist: {each}; extra == "{name}"' for name, all_ in EXTRAS.items() for each in all_]
    (folder / "penstock-1.2.3.dist-info").mkdir()
    text = "\n".join(["Metadata-Version: 2.4", "Name: penstock", "Version: 1.2.3", *lines, ""])
    (folder / "penstock-1.2.3.dist-info" / "METADATA").write_text(text)
