"""Writes the hashes of all pinned libraries: `make pins`, after a version was changed in a requirements file.

The hashes are those that pip's configured index says, of each version's source archive and of its wheels for the
machines and versions of Python that Penstock runs on. Whoever installs then gets these files, or an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.tags import Tag
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion

SOURCES = Path(__file__).parent.parent
FILES = (
    "requirements.txt",
    "functions/requirements.txt",
    "functions/requirements-libcloud.txt",
    "docs/tools/requirements.txt",
    "tests/web/requirements.txt",
)

PYTHONS = ("py2", "py3", "py311", "py312", "py313", "cp311", "cp312", "cp313")
PLATFORMS = ("any", "manylinux", "musllinux", "linux", "macosx")
PROCESSORS = ("any", "x86_64", "aarch64", "arm64", "universal2")
HASH = "    --hash=sha256:"


def main() -> None:
    """Write the hashes into all requirements files."""
    files = {SOURCES / name: (SOURCES / name).read_text(encoding="utf-8") for name in FILES}
    known = dict(_look_up({pin for text in files.values() for pin in pins(text)}))
    for path, text in files.items():
        path.write_text(with_hashes(text, known), encoding="utf-8")


def pins(text: str) -> Iterator[str]:
    """The pinned versions in a requirements file, such as `attrs==26.1.0`."""
    for line in text.splitlines():
        pin = line.partition("#")[0].strip(" \\")
        if pin and not pin.startswith("-"):
            yield pin


def hashes(text: str) -> Mapping[str, Sequence[str]]:
    """The SHA-256 hashes, in hex, of each pinned version in a requirements file."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith(HASH):
            found[list(found)[-1]].append(line.removeprefix(HASH).strip(" \\"))
        else:
            found.update((pin, []) for pin in pins(line))
    return found


def with_hashes(text: str, known: Mapping[str, Sequence[str]]) -> str:
    """A requirements file whose pins have these hashes and no others. Comments stay, above their pin."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(HASH):
            continue
        pin, mark, comment = line.partition("#")
        if not pin.strip(" \\"):
            lines.append(line)
            continue
        lines += [f"# {comment.strip()}"] if mark else []
        lines.append(" \\\n".join([pin.strip(" \\"), *(HASH + each for each in known[pin.strip(" \\")])]))
    return "\n".join(lines) + "\n"


def _look_up(wanted: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The hashes of each pin. Raises SystemExit for a version that the index does not have."""
    from pip._internal.commands import create_command
    from pip._internal.index.collector import LinkCollector, parse_links
    from pip._internal.models.link import Link

    command: Any = create_command("download")
    options, _ = command.parse_args(["--quiet", "."])
    with command.main_context():
        collector = LinkCollector.create(command.get_default_session(options), options=options)
        for pin in sorted(wanted):
            name, _, version = pin.partition("==")
            pages = (collector.fetch_response(Link(at)) for at in collector.search_scope.get_index_urls_locations(name))
            links = [link for page in pages if page for link in parse_links(page)]
            found = sorted({str(link.hash) for link in links if is_wanted(link.filename, version)})
            if not found or None in found:
                sys.exit(f"the index has no files, or no hashes, of {pin}")
            yield pin, found


def is_wanted(filename: str, version: str) -> bool:
    """Whether a file is one of this version that we may install."""
    try:
        if filename.endswith(".whl"):
            _, found, _, tags = parse_wheel_filename(filename)
            return str(found) == version and any(map(_runs_here, tags))
        return str(parse_sdist_filename(filename)[1]) == version
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return False


def _runs_here(tag: Tag) -> bool:
    is_python = tag.interpreter in PYTHONS or (tag.abi == "abi3" and tag.interpreter.startswith("cp3"))
    is_threaded = tag.abi.endswith("t") and tag.abi.startswith("cp")
    return (
        is_python and not is_threaded and tag.platform.startswith(PLATFORMS) and tag.platform.endswith(PROCESSORS)
    )  # fmt: skip


if __name__ == "__main__":
    main()
