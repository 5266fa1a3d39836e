"""Every version of every job file that some git directories have."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = ".github/buildomat/jobs"


@dataclass(frozen=True, order=True)
class Blob:
    """One content: whose it is and where it stood, which is the first place by name; and its digest."""

    repository: str
    path: str
    sha256: str
    data: bytes


def distinct(folders: Iterable[Path]) -> list[Blob]:
    """Each content once, in the order of repository, path and digest."""
    first: dict[str, Blob] = {}
    for folder in folders:
        for blob in _of(folder):
            first[blob.sha256] = min(blob, first.get(blob.sha256, blob))
    return sorted(first.values())


def git_directories(folder: Path) -> Iterator[Path]:
    """The folder, if it is a git directory; or those directly below it, or below those."""
    for pattern in (".", "*", "*/*"):
        found = [each.parent for each in sorted(folder.glob(f"{pattern}/HEAD"))]
        if found:
            yield from found
            return


def _of(folder: Path) -> Iterator[Blob]:
    places = {tuple(line.split("\t")) for line in _changes(folder)}
    names = sorted({name for name, path in places})
    contents = dict(zip(names, _contents(folder, names), strict=True))
    for name, path in sorted(places):
        data = contents[name]
        yield Blob(repository(folder), path, hashlib.sha256(data).hexdigest(), data)


def repository(folder: Path) -> str:
    """`owner/name` of a directory `owner+name`, or of whatever is in it; else the directory's own name."""
    return next((part.replace("+", "/") for part in reversed(folder.parts) if "+" in part), folder.name)


def _changes(folder: Path) -> Iterator[str]:
    """The name of each blob that any commit has put there, a tab, and its path; merges count as what they changed."""
    command = ["log", "--all", "-m", "--format=", "--raw", "--no-abbrev", "--no-renames", "-z", "--", FOLDER]
    words = iter(_git(folder, command).decode("utf-8", "surrogateescape").split("\0"))
    for word in words:
        if word.startswith(":"):
            _, mode, _, name, _ = word.split(" ")
            path = next(words)
            if mode.startswith("100") and path.endswith(".sh"):
                yield f"{name}\t{path}"


def _contents(folder: Path, names: list[str]) -> Iterator[bytes]:
    answer = _git(folder, ["cat-file", "--batch"], "\n".join(names).encode())
    at = 0
    while at < len(answer):
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split(b" ")[2])
        yield answer[end + 1 : end + 1 + size]
        at = end + 1 + size + 1


def _git(folder: Path, words: list[str], told: bytes = b"") -> bytes:
    done = subprocess.run(["git", "-C", str(folder), *words], input=told, capture_output=True, check=True)
    return done.stdout
