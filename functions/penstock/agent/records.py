"""What systemd records of the jobs' user: its core dumps, and its journal. [UNIT-2]

The files belong to root. systemd lets the user read them by its id (with an ACL), so the next job could: a dump has the
memory and the environment of a process. The names of the files tell whose they are.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Container, Iterator

from .machine import PROC, ROUND_SECONDS, read_status

CORES = "/var/lib/systemd/coredump"
JOURNALS = ("/var/log/journal", "/run/log/journal")
NAMES = re.compile(r"(?:\.#)?core\.[^.]*\.(?P<core>\d+)\..*|user-(?P<journal>\d+)(?:@.*)?\.journal~?")
"""`core.COMMAND.UID.…`, where systemd escapes dots in COMMAND; `user-UID.journal`, or after rotation `user-UID@…`."""

STORER = "systemd-coredum"  # the kernel cuts names of processes after 15 bytes
ROOT_IDS = ["0"] * 4  # its real id, effective id, saved id and the one for files
STORE_ROUNDS = 1200  # a minute: large dumps take long to compress
JOURNAL_SOCKET = "/run/systemd/journal/socket"
SYNC_SECONDS = 20.0


def remove_records(uids: Container[int]) -> None:
    """Remove the core dumps and journals of users whose processes have ended. Raises OSError."""
    _wait_for_dumps()
    _sync_journal()
    folders = [CORES, *(each.path for top in JOURNALS for each in _entries(top) if each.is_dir(follow_symlinks=False))]
    for folder in folders:
        for entry in _entries(folder):
            if _owner(entry.name) in uids:
                with contextlib.suppress(FileNotFoundError):  # systemd may remove old ones
                    os.unlink(entry.path)


def _owner(name: str) -> int | None:
    """Return the id in the name of a record; None for another file."""
    found = NAMES.fullmatch(name)
    return int(found["core"] or found["journal"]) if found else None


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _wait_for_dumps() -> None:
    """Wait until the dumps that are being stored have their places. Raises OSError."""
    storing = set(_storers())
    for _ in range(STORE_ROUNDS):
        if not storing:
            return
        time.sleep(ROUND_SECONDS)
        storing &= set(_storers())
    raise OSError(f"systemd-coredump (processes {sorted(storing)}) is still storing core dumps")


def _storers() -> Iterator[int]:
    """Yield the processes that store core dumps; none where there is no /proc.

    They are root's. Anybody may call a process so: with that, a job would keep its neighbours from becoming clean.
    """
    for name in os.listdir(PROC) if os.path.isdir(PROC) else ():
        if name.isdigit():
            with contextlib.suppress(OSError):
                status = read_status(f"{PROC}/{name}")
                if status.get("Name", "").strip() == STORER and status.get("Uid", "").split() == ROOT_IDS:
                    yield int(name)


def _sync_journal() -> None:
    """Have journald write what it was sent so far. Later it would write that to a new journal of the user.

    journald notices that an open journal was removed, and begins a new one.
    """
    if os.path.exists(JOURNAL_SOCKET):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            command = ["journalctl", "--sync"]
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SYNC_SECONDS, check=False)
