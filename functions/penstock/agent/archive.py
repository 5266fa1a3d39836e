"""Archives of caches, packed and unpacked.

Entries have the paths that the job knows, and no owners. An archive is unpacked beside its place first: no entry is
put in place before all are valid. An entry replaces a file of the same name; other files stay.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from .machine import Machine
from .removal import remove_tree

GZIP_LEVEL = 1  # the fastest: compression takes most of the time
NANOSECONDS = 10**9
CHUNK_BYTES = 1 << 20
STAGE_PREFIX = ".penstock-cache-"
FREE_BYTES = 64 << 20
ATTRIBUTE_BYTES = 1 << 20
ATTRIBUTES = (*tarfile.GNU_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
LATEST_SECONDS = 1 << 40
"""The furthest from 1970 that a time is set to, in seconds: file systems refuse later ones."""


class NotPacked(Exception):
    """Why an archive was not made."""


class NotUnpacked(Exception):
    """Why an archive was not unpacked. Nothing of it was put in place."""


@dataclass(frozen=True)
class Bounds:
    """How much an archive may hold when it is unpacked: bytes, entries, levels of folders, and bytes for each byte of
    the archive. Up to FREE_BYTES the last one does not matter.
    """

    bytes: int = 10 << 30
    entries: int = 1_000_000
    depth: int = 100
    ratio: int = 200

    @classmethod
    def of(cls, limits: dict[str, Any]) -> Bounds:
        """Return the site's bounds, as the service says them."""
        known = {each: limits.get(f"unpacked_{each}") for each in ("bytes", "entries", "depth", "ratio")}
        return cls(**{name: int(value) for name, value in known.items() if value is not None})


DEFAULT_BOUNDS = Bounds()


class Meter:
    """Counts what an archive holds, and says which bound it exceeds."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds, self.bytes, self.entries = bounds, 0, 0

    def count(self, info: tarfile.TarInfo) -> str | None:
        """Count an entry. Return which bound is exceeded, or None."""
        self.bytes, self.entries = self.bytes + tarfile.BLOCKSIZE + info.size, self.entries + 1
        bounds, depth = self._bounds, info.name.count("/")
        if self.bytes > bounds.bytes:
            return f"it has more than {bounds.bytes} bytes unpacked (unpacked_bytes, a limit of the site)"
        if self.entries > bounds.entries:
            return f"it has more than {bounds.entries} entries (unpacked_entries, a limit of the site)"
        if depth > bounds.depth:
            return f"it has folders deeper than {bounds.depth} levels (unpacked_depth, a limit of the site)"
        return None

    def compare(self, packed: int) -> str | None:
        """Compare what was counted with the archive's bytes. Return the bound that is exceeded, or None."""
        if self.bytes <= max(FREE_BYTES, self._bounds.ratio * packed):
            return None
        most = f"more than {self._bounds.ratio} times its own size (unpacked_ratio, a limit of the site)"
        return f"its {packed} bytes become {most}"


class BoundedInfo(tarfile.TarInfo):
    """An entry whose long name and other attributes are bounded: tarfile reads them into memory as a whole."""

    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        if self.type in ATTRIBUTES and not 0 <= self.size <= ATTRIBUTE_BYTES:
            raise NotUnpacked(f"the attributes of an entry have {self.size} bytes; {ATTRIBUTE_BYTES} are allowed")
        return super()._proc_member(tar)  # type: ignore[misc]  # of the standard library in all versions from 3.9 on


@dataclass
class Packed:
    """What an archive holds: the number of entries, and the paths that did not exist."""

    count: int = 0
    missing: list[str] = field(default_factory=list)
    left_out: int = 0


class BoundedStream(io.RawIOBase):
    """A stream that accepts a limited number of bytes."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._left, self._most = stream, most, most

    @property
    def written(self) -> int:
        """How many bytes were written."""
        return self._most - self._left

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._left -= len(data)
        if self._left < 0:
            raise NotPacked(f"the archive has more than {self._most} bytes, the site's limit")
        return self._stream.write(data)


def pack(
    machine: Machine,
    names: list[str],
    stream: IO[bytes],
    most: int,
    check: Callable[[], None],
    bounds: Bounds = DEFAULT_BOUNDS,
) -> Packed:
    """Write an archive of at most `most` bytes, which can be unpacked. `check` is called often, and may raise.

    Raises NotPacked.
    The archive has the entries' modes, times and symlinks, and the hard links between them. Devices, pipes and sockets
    are left out.
    """
    packed, links = Packed(), dict[tuple[int, int], str]()
    meter, bounded = Meter(bounds), BoundedStream(stream, most)
    try:
        with (
            machine.acting(),
            gzip.GzipFile(fileobj=bounded, mode="wb", compresslevel=GZIP_LEVEL) as zipped,
            tarfile.open(fileobj=zipped, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name in names:
                path = locate(machine, name)
                if path is None:
                    raise NotPacked(f"{name} leads out of the job's root")
                if not os.path.lexists(path):
                    packed.missing.append(name)
                    continue
                for each, info in _entries(path, name, links):
                    check()
                    if info is None:
                        packed.left_out += 1
                    else:
                        _refuse_packing(meter.count(info))
                        _add_entry(tar, each, info, check)
                        packed.count += 1
    except (OSError, tarfile.TarError, ValueError) as why:
        raise NotPacked(f"it could not be packed: {why}") from why
    _refuse_packing(meter.compare(bounded.written))
    return packed


def _refuse_packing(exceeded: str | None) -> None:
    if exceeded:
        raise NotPacked(exceeded)


def locate(machine: Machine, name: str) -> str | None:
    """Return where a job's path is on the machine; None if symlinks on the way lead out of the job's root."""
    path = machine.real_path(name)
    above, root = os.path.realpath(os.path.dirname(path)), os.path.realpath(machine.root)
    return path if f"{above.rstrip('/')}/".startswith(f"{root.rstrip('/')}/") else None


def _entries(path: str, name: str, links: dict[tuple[int, int], str]) -> Iterator[tuple[str, tarfile.TarInfo | None]]:
    """Yield everything at and below a path, folders before their contents; None for what no archive can hold."""
    pending = [(path, name)]
    while pending:
        path, name = pending.pop()
        found = os.lstat(path)
        yield path, _entry_info(path, name, found, links)
        if stat.S_ISDIR(found.st_mode):
            children = sorted(os.listdir(path), reverse=True)
            pending += [(os.path.join(path, child), f"{name.rstrip('/')}/{child}") for child in children]


def _entry_info(
    path: str, name: str, found: os.stat_result, links: dict[tuple[int, int], str]
) -> tarfile.TarInfo | None:
    info = tarfile.TarInfo(name.lstrip("/"))
    info.mode, info.mtime = found.st_mode & 0o777, found.st_mtime_ns // NANOSECONDS
    info.pax_headers = {"mtime": f"{info.mtime}.{found.st_mtime_ns % NANOSECONDS:09d}"}
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


def _add_entry(tar: tarfile.TarFile, path: str, info: tarfile.TarInfo, check: Callable[[], None]) -> None:
    if info.type != tarfile.REGTYPE:
        tar.addfile(info)
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as stream:
        tar.addfile(info, CheckedStream(stream, check))


class CheckedStream:
    """A stream that calls `check` before each read."""

    def __init__(self, stream: IO[bytes], check: Callable[[], None]) -> None:
        self._stream, self._check = stream, check

    def read(self, count: int = -1) -> bytes:
        self._check()
        return self._stream.read(count)


@dataclass
class Stage:
    """The folder in which the entries of one path are unpacked first. It is on the same file system as their place."""

    name: str
    place: str
    folder: str

    def path(self, name: str) -> str:
        return os.path.join(self.folder, "it") + name[len(self.name) :]


@dataclass(frozen=True)
class Attributes:
    """The mode of a file or folder, and its modification time in nanoseconds."""

    mode: int
    time: int

    @classmethod
    def of(cls, info: tarfile.TarInfo) -> Attributes:
        """Read the attributes of an entry. Raises ValueError for an invalid time."""
        seconds, _, rest = info.pax_headers.get("mtime", str(info.mtime)).partition(".")
        whole = max(-LATEST_SECONDS, min(LATEST_SECONDS, int(seconds)))
        return cls(info.mode & 0o777, whole * NANOSECONDS + int(rest[:9].ljust(9, "0")))


@dataclass
class Unpacking:
    """What is unpacked so far: the folders, with the attributes that they will get, and the files."""

    machine: Machine
    names: list[str]
    stages: dict[str, Stage] = field(default_factory=dict)
    folders: dict[str, Attributes] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)


def unpack(
    machine: Machine, names: list[str], path: str, check: Callable[[], None], bounds: Bounds = DEFAULT_BOUNDS
) -> int:
    """Put the entries of an archive in place, all of them below `names`. Return how many there are.

    `check` is called often, and may raise. Raises NotUnpacked; nothing that exceeds a bound is written first.
    """
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as stream, machine.acting():
            return _unpack(Unpacking(machine, names), stream, size, check, Meter(bounds))
    except (OSError, tarfile.TarError, zlib.error, EOFError, ValueError) as why:
        raise NotUnpacked(f"it cannot be unpacked: {why}") from why


def _unpack(work: Unpacking, stream: IO[bytes], size: int, check: Callable[[], None], meter: Meter) -> int:
    machine = work.machine
    try:
        with tarfile.open(fileobj=stream, mode="r|gz", tarinfo=BoundedInfo) as tar:
            for info in tar:
                exceeded = meter.count(info) or meter.compare(size)
                if exceeded:
                    raise NotUnpacked(exceeded)
                _stage_entry(work, tar, info, check)
        for stage in work.stages.values():
            _check_place(stage.path(stage.name), stage.place, machine)
        new = [name for name in work.folders if not _is_folder(machine.real_path(name))]
        for stage in work.stages.values():
            _put_in_place(stage.path(stage.name), stage.place)
        for name in reversed(new):
            _set_attributes(machine.real_path(name), work.folders[name])
    finally:
        for stage in work.stages.values():
            with contextlib.suppress(OSError):
                remove_tree(stage.folder)
    return len(work.seen)


def _stage_entry(work: Unpacking, tar: tarfile.TarFile, info: tarfile.TarInfo, check: Callable[[], None]) -> None:
    """Unpack one entry beside its place. It must be below one of the names, and follow its folder's entry."""
    check()
    name = f"/{info.name}"
    top = next((each for each in work.names if name == each or name.startswith(f"{each}/")), None)
    if top is None or os.path.normpath(name) != name or "\0" in name:
        raise NotUnpacked(f"{name!r} is outside of the cache's paths")
    if name in work.seen or (name != top and os.path.dirname(name) not in work.folders):
        raise NotUnpacked(f"{name!r} has two entries, or its folder has none")
    work.seen.add(name)
    path = _stage_of(work, top).path(name)
    if info.isdir():
        os.mkdir(path, 0o700)
        work.folders[name] = Attributes.of(info)
    elif info.issym():
        os.symlink(info.linkname, path)
    elif info.islnk():
        _link_file(work, info, path)
    elif info.isreg():
        _write_file(tar, info, path, check)
        work.files[info.name] = path
    else:
        raise NotUnpacked(f"{name!r} is neither file, folder nor link")
    work.machine.give_to_user(path)


def _stage_of(work: Unpacking, top: str) -> Stage:
    if top not in work.stages:
        place = locate(work.machine, top)
        if place is None:
            raise NotUnpacked(f"{top} leads out of the job's root")
        beside = place if _is_folder(place) else os.path.dirname(place)
        work.machine.make_folder(beside)
        work.stages[top] = Stage(top, place, tempfile.mkdtemp(prefix=STAGE_PREFIX, dir=beside))
    return work.stages[top]


def _link_file(work: Unpacking, info: tarfile.TarInfo, path: str) -> None:
    """Unpack a hard link to an earlier file: link it, or copy it if the file is on another file system."""
    if info.linkname not in work.files:
        raise NotUnpacked(f"{info.name!r} is a link to {info.linkname!r}, and no earlier entry is that file")
    try:
        os.link(work.files[info.linkname], path)
    except OSError:
        shutil.copy2(work.files[info.linkname], path)


def _write_file(tar: tarfile.TarFile, info: tarfile.TarInfo, path: str, check: Callable[[], None]) -> None:
    source = tar.extractfile(info)
    assert source is not None  # a regular file always has one
    with source, open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        for chunk in iter(lambda: source.read(CHUNK_BYTES), b""):
            check()
            file.write(chunk)
    _set_attributes(path, Attributes.of(info))


def _set_attributes(path: str, attributes: Attributes) -> None:
    """Set the mode and the modification time of a file or folder."""
    os.chmod(path, attributes.mode)
    os.utime(path, ns=(attributes.time, attributes.time))


def _is_folder(path: str) -> bool:
    return os.path.lexists(path) and stat.S_ISDIR(os.lstat(path).st_mode)


def _check_place(staged: str, place: str, machine: Machine) -> None:
    """Make sure that everything can be put in place, before anything is. Raises NotUnpacked."""
    if not _is_folder(place):
        return
    if not _is_folder(staged):
        raise NotUnpacked(f"{place} is a folder, but the archive's entry is not")
    if not machine.may_write(place):
        raise NotUnpacked(f"{place} cannot be written to")
    for child in os.listdir(staged):
        _check_place(os.path.join(staged, child), os.path.join(place, child), machine)


def _put_in_place(staged: str, place: str) -> None:
    """Move entries to their place. Folders that exist stay, and their entries are moved into them."""
    if _is_folder(staged) and _is_folder(place):
        for child in os.listdir(staged):
            _put_in_place(os.path.join(staged, child), os.path.join(place, child))
        return
    if _is_folder(staged) and os.path.lexists(place):
        os.unlink(place)
    os.replace(staged, place)
