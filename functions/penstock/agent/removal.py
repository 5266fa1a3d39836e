"""Removes folders, whatever a job left in them: any depth, any name, modes, immutable files and mounts. [UNIT-2]

Nothing recurses, at most a few files are open, and memory does not grow with the tree: a folder is moved to the top of
the tree before it is entered, so all work is done one or two levels below the top. A mount cannot be moved, so what is
behind one is never entered.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Container, Iterator
from typing import Any

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MOUNTS = "/proc/self/mountinfo"
UNMOUNTERS = (("umount", "-l"), ("fusermount3", "-uz"), ("fusermount", "-uz"))
UNMOUNT_SECONDS = 20.0
LONG_BYTES = struct.calcsize("l")
GET_FLAGS, SET_FLAGS = (2 << 30 | LONG_BYTES << 16 | 0x6601, 1 << 30 | LONG_BYTES << 16 | 0x6602)  # linux/fs.h
PROTECTED = 0x10 | 0x20  # immutable, append only


def remove_tree(path: str) -> None:
    """Remove a folder with everything in it, or a file or link in its place. Raises OSError.

    One that does not exist needs no removal.
    """
    above, name = os.path.split(os.path.abspath(path))
    with contextlib.suppress(FileNotFoundError), _opened(above) as parent:
        remove_entry(parent, name, path)


def remove_entry(parent: int, name: str, path: str) -> None:
    """Remove an entry of an open folder, with everything in it. `path` is where it is. Raises OSError."""
    unmount_below(path)
    if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        with _opened(name, parent) as top:
            _Emptying(path, top, lambda name: False).run()
        _insist(lambda: os.rmdir(name, dir_fd=parent), parent, name)
    else:
        _insist(lambda: os.unlink(name, dir_fd=parent), parent, name)


def empty_folder(path: str, spare: Callable[[str], bool] = lambda name: False) -> None:
    """Remove everything in a folder but the entries whose names are to be spared. Raises OSError."""
    unmount_below(path, spare)
    try:
        top = os.open(path, FOLDER)
    except PermissionError:
        os.chmod(path, stat.S_IRWXU)
        top = os.open(path, FOLDER)
    try:
        _Emptying(path, top, spare).run()
    finally:
        os.close(top)


class _Emptying:
    """The removal of everything in one folder, `top`."""

    def __init__(self, path: str, top: int, spare: Callable[[str], bool]) -> None:
        self._path, self._top, self._spare = path, top, spare
        self._moved, self._count = f".penstock-removed-{secrets.token_hex(8)}-", 0

    def run(self) -> None:
        """Remove all entries of the top."""
        self._each(self._top, self._remove)

    def _each(self, folder: int, act: Callable[[str, bool], None]) -> None:
        """Call `act` for each entry of a folder until none is left. Raises OSError if a whole round removes none."""
        while True:
            done, failure = 0, None
            with os.scandir(folder) as entries:
                for entry in entries:
                    if folder == self._top and self._spare(entry.name):
                        continue
                    try:
                        act(entry.name, entry.is_dir(follow_symlinks=False))
                        done += 1
                    except OSError as why:
                        failure = failure or self._named(why, entry.name)
            if not done and failure:
                raise failure
            if not done:
                return

    def _named(self, why: OSError, name: str) -> OSError:
        return OSError(why.errno, why.strerror, os.path.join(self._path, name))

    def _remove(self, name: str, is_folder: bool) -> None:
        """Remove an entry of the top. The folders in a folder are moved to the top, where their turn comes."""
        if not is_folder:
            self._unlink(self._top, name)
            return
        moved = name if name.startswith(self._moved) else self._move(self._top, name)
        with _opened(moved, self._top) as folder:
            self._each(folder, lambda name, is_folder: self._scatter(folder, name, is_folder))
        _insist(lambda: os.rmdir(moved, dir_fd=self._top), self._top, moved)

    def _scatter(self, folder: int, name: str, is_folder: bool) -> None:
        if is_folder:
            self._move(folder, name)
        else:
            self._unlink(folder, name)

    def _move(self, folder: int, name: str) -> str:
        """Move a folder to the top, and return its name there. Raises OSError for a mount."""
        self._count += 1
        moved = f"{self._moved}{self._count}"
        _insist(lambda: os.rename(name, moved, src_dir_fd=folder, dst_dir_fd=self._top), folder, name)
        return moved

    def _unlink(self, folder: int, name: str) -> None:
        _insist(lambda: os.unlink(name, dir_fd=folder), folder, name)


@contextlib.contextmanager
def _opened(path: str, parent: int | None = None) -> Iterator[int]:
    """Open a folder, also one whose mode forbids it."""
    try:
        folder = os.open(path, FOLDER, dir_fd=parent)
    except PermissionError:
        os.chmod(path, stat.S_IRWXU, dir_fd=parent)
        folder = os.open(path, FOLDER, dir_fd=parent)
    try:
        yield folder
    finally:
        os.close(folder)


def _insist(act: Callable[[], None], folder: int, name: str) -> None:
    """Remove an entry of a folder, again without what protects the two. One that is gone is fine. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        try:
            act()
        except PermissionError:
            _unprotect(folder)
            _unprotect_entry(folder, name)
            act()


def _unprotect_entry(folder: int, name: str) -> None:
    """Take the protection from a file or folder. A file's mode does not matter; it may have other names elsewhere."""
    kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISDIR(kind):
        with contextlib.suppress(PermissionError), _opened(name, folder) as entry:
            _unprotect(entry)
    elif stat.S_ISREG(kind):
        with contextlib.suppress(PermissionError):
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            try:
                _clear_flags(file)
            finally:
                os.close(file)


def _unprotect(folder: int) -> None:
    """Let entries of a folder be removed. All users share a sticky folder: its mode stays."""
    _clear_flags(folder)
    if not os.fstat(folder).st_mode & stat.S_ISVTX:
        with contextlib.suppress(PermissionError):
            os.fchmod(folder, stat.S_IRWXU)


def _clear_flags(file: int) -> None:
    """Clear the flags with which `chattr` protects a file, where the file system has them and the agent may."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        (flags,) = struct.unpack("l", fcntl.ioctl(file, GET_FLAGS, bytes(LONG_BYTES)))
        if flags & PROTECTED:
            fcntl.ioctl(file, SET_FLAGS, struct.pack("l", flags & ~PROTECTED))


def unmount_below(path: str, spare: Callable[[str], bool] | None = None) -> None:
    """Unmount what is mounted below a folder, the last first. Raises OSError for what stays.

    Without `spare` the folder itself may be a mount, too; with it, it stays, and so do its spared entries.
    """
    _unmount(lambda: _mounts(path, spare))


def unmount_owned(uids: Container[int]) -> None:
    """Unmount what users of these ids mounted by FUSE, wherever it is. Raises OSError for what stays.

    Nobody else may even look at such a mount, not root either.
    """
    _unmount(lambda: [place for place, owner in _read_mounts() if owner in uids])


def _unmount(find: Callable[[], list[str]]) -> None:
    """Unmount the mounts that are found, the last first. Raises OSError for what stays."""
    for place in reversed(find()):
        for command in UNMOUNTERS:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True}
                subprocess.run([*command, place], timeout=UNMOUNT_SECONDS, check=True, **quiet)
                break
    left = find()
    if left:
        raise OSError(errno.EBUSY, "something is mounted here, and the agent may not unmount it", left[0])


def _mounts(path: str, spare: Callable[[str], bool] | None) -> list[str]:
    """Return the mounts below a folder, in the order in which they were made."""
    places = [place for place, _ in _read_mounts()]
    top = _place_of(path)
    below = [place for place in places if place.startswith(f"{top}/")]
    if spare is None:
        return [place for place in places if place == top] + below
    return [place for place in below if not spare(place[len(top) + 1 :].split("/")[0])]


def _read_mounts() -> list[tuple[str, int | None]]:
    """Return all mounts, in the order in which they were made, with the user of those by FUSE; none without /proc."""
    try:
        with open(MOUNTS, "rb") as file:
            lines = [line.split() for line in file]
    except OSError:
        return []
    return [(os.fsdecode(_unescape(words[4])), _fuse_user(words)) for words in lines if len(words) > 4]


def _fuse_user(words: list[bytes]) -> int | None:
    """Return the user who made a mount by FUSE, from its line in /proc; None for another kind of mount."""
    kind, *about = words[words.index(b"-") + 1 :] if b"-" in words else [b""]
    found = re.search(rb"(?:^|,)user_id=(\d+)", about[-1]) if about and kind.startswith(b"fuse") else None
    return int(found[1]) if found else None


def _place_of(path: str) -> str:
    """Return where an entry is, with no link on the way. It may be a link itself: what that leads to is not meant."""
    above, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(above), name).rstrip("/")


def _unescape(text: bytes) -> bytes:
    """Undo how the kernel writes spaces and the like: as a backslash and three octal digits."""
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), text)
