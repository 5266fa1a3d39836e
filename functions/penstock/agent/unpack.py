"""Archives of caches, unpacked: beside their place first, so that nothing is in place before all of it is good.

What is at a path already is kept, but for what an archive has under the same name.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from .archive import SECOND, NotUnpacked, located
from .places import Places

CHUNK = 1 << 20
PREFIX = ".penstock-cache-"
LATEST = 1 << 40
"""The furthest from 1970 that a time is set to, in seconds: what is further away, no system knows."""


@dataclass
class Stage:
    """Where what belongs at one path is unpacked first, on the same file system."""

    name: str
    place: str
    folder: str

    def path(self, name: str) -> str:
        return os.path.join(self.folder, "it") + name[len(self.name) :]


@dataclass(frozen=True)
class Look:
    """The mode that a file or folder had, and its time in nanoseconds."""

    mode: int
    time: int

    @classmethod
    def of(cls, info: tarfile.TarInfo) -> Look:
        """Read it from an entry. Raises ValueError for a time that is none."""
        seconds, _, rest = info.pax_headers.get("mtime", str(info.mtime)).partition(".")
        whole = max(-LATEST, min(LATEST, int(seconds)))
        return cls(info.mode & 0o777, whole * SECOND + int(rest[:9].ljust(9, "0")))


@dataclass
class Unpacking:
    """What is unpacked so far: which folders there are, with what they are to be like, and which files."""

    places: Places
    names: list[str]
    stages: dict[str, Stage] = field(default_factory=dict)
    folders: dict[str, Look] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)


def unpack(places: Places, names: list[str], path: str, check: Callable[[], None]) -> int:
    """Put in place what is in an archive, which has nothing outside of the paths named; return how many entries.

    `check` is called often, and may raise. Raises NotUnpacked.
    """
    work = Unpacking(places, names)
    try:
        with open(path, "rb") as stream, tarfile.open(fileobj=stream, mode="r|gz") as tar:
            for info in tar:
                _stage(work, tar, info, check)
        for stage in work.stages.values():
            _look(stage.path(stage.name), stage.place)
        new = [name for name in work.folders if not _is_folder(places.on_machine(name))]
        for stage in work.stages.values():
            _move(stage.path(stage.name), stage.place)
        for name in reversed(new):
            _finish(places.on_machine(name), work.folders[name])
    except (OSError, tarfile.TarError, zlib.error, EOFError, ValueError) as why:
        raise NotUnpacked(f"it cannot be unpacked: {why}") from why
    finally:
        for stage in work.stages.values():
            shutil.rmtree(stage.folder, ignore_errors=True)
    return len(work.seen)


def _stage(work: Unpacking, tar: tarfile.TarFile, info: tarfile.TarInfo, check: Callable[[], None]) -> None:
    """Unpack one entry beside its place. Its name is below a path that was named, and in a folder before it."""
    check()
    name = f"/{info.name}"
    top = next((each for each in work.names if name == each or name.startswith(f"{each}/")), None)
    if top is None or os.path.normpath(name) != name or "\0" in name:
        raise NotUnpacked(f"{name!r} is outside of the paths named")
    if name in work.seen or (name != top and os.path.dirname(name) not in work.folders):
        raise NotUnpacked(f"{name!r} is there twice, or in no folder")
    work.seen.add(name)
    path = _stage_of(work, top).path(name)
    if info.isdir():
        os.mkdir(path, 0o700)
        work.folders[name] = Look.of(info)
    elif info.issym():
        os.symlink(info.linkname, path)
    elif info.islnk():
        _link(work, info, path)
    elif info.isreg():
        _write(tar, info, path, check)
        work.files[info.name] = path
    else:
        raise NotUnpacked(f"{name!r} is neither file, folder nor link")
    work.places.give(path)


def _stage_of(work: Unpacking, top: str) -> Stage:
    if top not in work.stages:
        place = located(work.places, top)
        if place is None:
            raise NotUnpacked(f"{top} leads out of what is the job's")
        beside = place if _is_folder(place) else os.path.dirname(place)
        work.places.make_folder(beside)
        work.stages[top] = Stage(top, place, tempfile.mkdtemp(prefix=PREFIX, dir=beside))
    return work.stages[top]


def _link(work: Unpacking, info: tarfile.TarInfo, path: str) -> None:
    """A file that was unpacked before, once more: linked, or copied where two paths are on two file systems."""
    if info.linkname not in work.files:
        raise NotUnpacked(f"{info.name!r} is a link to {info.linkname!r}, which is no file before it")
    try:
        os.link(work.files[info.linkname], path)
    except OSError:
        shutil.copy2(work.files[info.linkname], path)


def _write(tar: tarfile.TarFile, info: tarfile.TarInfo, path: str, check: Callable[[], None]) -> None:
    source = tar.extractfile(info)
    assert source is not None  # of a regular file there always is one
    with source, open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        for chunk in iter(lambda: source.read(CHUNK), b""):
            check()
            file.write(chunk)
    _finish(path, Look.of(info))


def _finish(path: str, look: Look) -> None:
    """Give a file or folder the mode and the time that it had."""
    os.chmod(path, look.mode)
    os.utime(path, ns=(look.time, look.time))


def _is_folder(path: str) -> bool:
    return os.path.lexists(path) and stat.S_ISDIR(os.lstat(path).st_mode)


def _look(staged: str, place: str) -> None:
    """Look whether all of it has its place, before any is put there. Raises NotUnpacked."""
    if not _is_folder(place):
        return
    if not _is_folder(staged):
        raise NotUnpacked(f"{place} is a folder, and in the archive it is none")
    if not os.access(place, os.W_OK | os.X_OK):
        raise NotUnpacked(f"{place} cannot be written to")
    for child in os.listdir(staged):
        _look(os.path.join(staged, child), os.path.join(place, child))


def _move(staged: str, place: str) -> None:
    """Put it in place; folders that are there stay, and get what is theirs."""
    if _is_folder(staged) and _is_folder(place):
        for child in os.listdir(staged):
            _move(os.path.join(staged, child), os.path.join(place, child))
        return
    if _is_folder(staged) and os.path.lexists(place):
        os.unlink(place)
    os.replace(staged, place)
