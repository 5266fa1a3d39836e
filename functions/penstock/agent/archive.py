"""Archives of caches, packed: what is there, as another worker of the same target can have it there again."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from .places import Places

LEVEL = 1  # of gzip: what most of an archive's time goes into
SECOND = 10**9


class NotPacked(Exception):
    """Why an archive was not made."""


class NotUnpacked(Exception):
    """Why an archive is not what can be unpacked here; nothing of it is in place."""


@dataclass
class Packed:
    """What is in an archive: how many entries, and of the paths that were named those that are not there."""

    count: int = 0
    missing: list[str] = field(default_factory=list)
    left_out: int = 0


class Bounded(io.RawIOBase):
    """A stream that takes only so many bytes."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._left, self._most = stream, most, most

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._left -= len(data)
        if self._left < 0:
            raise NotPacked(f"the archive has more than {self._most} bytes, which is what the site takes")
        return self._stream.write(data)


def pack(places: Places, names: list[str], stream: IO[bytes], most: int, check: Callable[[], None]) -> Packed:
    """Write an archive of at most so many bytes. `check` is called often, and may raise. Raises NotPacked.

    Entries have the paths that the job knows, and no owners: their modes, times and symlinks are kept, and hard links
    between them. What is neither file, folder nor symlink is left out.
    """
    packed, links = Packed(), dict[tuple[int, int], str]()
    try:
        with (
            gzip.GzipFile(fileobj=Bounded(stream, most), mode="wb", compresslevel=LEVEL) as zipped,
            tarfile.open(fileobj=zipped, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name in names:
                path = located(places, name)
                if path is None:
                    raise NotPacked(f"{name} leads out of what is the job's")
                if not os.path.lexists(path):
                    packed.missing.append(name)
                    continue
                for each, info in _entries(path, name, links):
                    check()
                    if info is None:
                        packed.left_out += 1
                    else:
                        _add(tar, each, info, check)
                        packed.count += 1
    except (OSError, tarfile.TarError, ValueError) as why:
        raise NotPacked(f"it could not be packed: {why}") from why
    return packed


def located(places: Places, name: str) -> str | None:
    """Where a path of the job's is, if the symlinks on the way to it do not lead out of what is the job's."""
    path = places.on_machine(name)
    above, root = os.path.realpath(os.path.dirname(path)), os.path.realpath(places.root)
    return path if f"{above.rstrip('/')}/".startswith(f"{root.rstrip('/')}/") else None


def _entries(path: str, name: str, links: dict[tuple[int, int], str]) -> Iterator[tuple[str, tarfile.TarInfo | None]]:
    """Yield what is at a path and below it, folders before what is in them; None for what no archive can hold."""
    pending = [(path, name)]
    while pending:
        path, name = pending.pop()
        found = os.lstat(path)
        yield path, _info(path, name, found, links)
        if stat.S_ISDIR(found.st_mode):
            children = sorted(os.listdir(path), reverse=True)
            pending += [(os.path.join(path, child), f"{name.rstrip('/')}/{child}") for child in children]


def _info(path: str, name: str, found: os.stat_result, links: dict[tuple[int, int], str]) -> tarfile.TarInfo | None:
    info = tarfile.TarInfo(name.lstrip("/"))
    info.mode, info.mtime = found.st_mode & 0o777, found.st_mtime_ns // SECOND
    info.pax_headers = {"mtime": f"{info.mtime}.{found.st_mtime_ns % SECOND:09d}"}
    if stat.S_ISDIR(found.st_mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(found.st_mode):
        info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)
    elif not stat.S_ISREG(found.st_mode):
        return None
    elif found.st_nlink > 1 and (found.st_dev, found.st_ino) in links:
        info.type, info.linkname = tarfile.LNKTYPE, links[found.st_dev, found.st_ino]
    else:
        links[found.st_dev, found.st_ino] = info.name
        info.size = found.st_size
    return info


def _add(tar: tarfile.TarFile, path: str, info: tarfile.TarInfo, check: Callable[[], None]) -> None:
    if info.type != tarfile.REGTYPE:
        tar.addfile(info)
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as stream:
        tar.addfile(info, Checked(stream, check))


class Checked:
    """A stream that asks before each read whether it is still wanted."""

    def __init__(self, stream: IO[bytes], check: Callable[[], None]) -> None:
        self._stream, self._check = stream, check

    def read(self, count: int = -1) -> bytes:
        self._check()
        return self._stream.read(count)
