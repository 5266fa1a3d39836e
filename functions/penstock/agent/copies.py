"""Copies of what was fetched, on a machine that goes on to another job: of one owner, and none that is gone elsewhere.

A copy is another name of the job's file, which takes no room of its own while the job has it. Whoever writes to the
file writes to the copy, so one is looked at before each use exactly as what was fetched is. docs/caches.md
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .control import Control
from .fetch import TRIES, NotFetched, fetch, verify
from .log import log, now

COMPARE_SECONDS = 600.0  # how often the service is asked which of them are still kept there
UNUSED_SECONDS = 12 * 3600.0
MOST, ROOM_PART = 64, 4  # how many there are, and which part of the disk they may take of what is free


@dataclass
class Copy:
    """One copy: its size in bytes, and when it was used last."""

    size: int
    used: float


class Copies:
    """What this machine has. It begins with nothing, whatever is in the folder; `owner` is whose jobs may use it."""

    def __init__(self, folder: Path, owner: str = "", is_on: bool = False) -> None:
        self._folder, self.owner, self.is_on = folder, owner, is_on
        self._all: dict[str, Copy] = {}
        self._lock = threading.Lock()
        self._compared = now()
        self._empty()

    def serve(self, owner: str, is_on: bool) -> None:
        """A job begins. What another owner's jobs have fetched is gone before it does. [SEC-2]"""
        if owner != self.owner or not is_on:
            self._empty()
        self.owner, self.is_on = owner, is_on
        self._age()

    def told(self) -> str:
        """What stays on this machine when it has been cleaned, as a part of a sentence."""
        of = f"; {len(self._all)} cop(ies) of what was fetched are kept for jobs of {self.owner[:64]}"
        return of if self._all else ""

    def asked(self) -> list[str]:
        """Those to be compared with what the service keeps; none, if they were not long ago. [ART-2]"""
        self._age()
        return list(self._all) if now() - self._compared >= COMPARE_SECONDS else []

    def keep_only(self, ids: Collection[str]) -> None:
        """Remove what the service did not name."""
        self._compared = now()
        for id in set(self._all) - set(ids):
            self._remove(id)

    def fetch(self, control: Control, told: dict[str, Any], path: str, tries: int = TRIES) -> bool:
        """As `fetch.fetch`, from the copy where there is one; tell whether there was."""
        id = str(told.get("artifact") or "")
        if id in self._all and self._place(id, told, path):
            return True
        fetch(control, told, path, tries)
        self.keep(id, path)
        return False

    def keep(self, id: str, path: str) -> None:
        """Give a file of the job's a second name here, if there is room. Nothing depends on it."""
        if not self.is_on or not id.isalnum():
            return
        with self._lock, contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            size = os.stat(path).st_size
            self._make_room(size)
            os.link(path, self._folder / id)  # raises where the job has another disk
            self._all[id] = Copy(size, now())

    def _place(self, id: str, told: dict[str, Any], path: str) -> bool:
        """Put a copy in place if it is what was kept; else it goes."""
        copy = self._folder / id
        try:
            with open(os.open(copy, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise NotFetched("it is no file any more")
                verify(told, file)
            os.chmod(copy, 0o644)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.link(copy, path)
        except (OSError, NotFetched) as why:
            log(f"the copy of {told['path']} is of no use: {why}")
            self._remove(id)
            return False
        self._all[id] = Copy(int(told["size"]), now())
        return True

    def _make_room(self, size: int) -> None:
        """Remove what was unused for longest. Raises OSError when a file is too big in any case."""
        disk = os.statvfs(self._folder)
        most = disk.f_bavail * disk.f_frsize // ROOM_PART
        if size > most:
            raise OSError("there is no room")
        for id in sorted(self._all, key=lambda id: self._all[id].used):
            if len(self._all) < MOST and sum(each.size for each in self._all.values()) + size <= most:
                return
            self._remove(id)

    def _age(self) -> None:
        for id in [id for id, each in self._all.items() if now() - each.used > UNUSED_SECONDS]:
            self._remove(id)

    def _remove(self, id: str) -> None:
        self._all.pop(id, None)
        with contextlib.suppress(OSError):
            os.unlink(self._folder / id)

    def _empty(self) -> None:
        """Begin anew. What a job has put there goes, too. Raises OSError for what cannot be removed."""
        self._all.clear()
        if self._folder.is_symlink() or self._folder.is_file():
            self._folder.unlink()
        if self._folder.exists():
            shutil.rmtree(self._folder)
