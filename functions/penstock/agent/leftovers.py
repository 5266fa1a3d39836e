"""What the jobs' user has left on its machine, outside of the job's folders: none of it reaches the next job. [UNIT-2]

These are its processes, what cron, at and systemd would start for it later, its entries of folders that all users may
write to, its System V IPC, what is in its keyrings, and what systemd recorded of it. What has one of its subordinate
ids is the user's, too. Nothing of other users is touched.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Container, Iterator
from pathlib import Path

from .account import Account
from .keyrings import clear_keyrings
from .machine import KILL_ROUNDS, PROC, ROUND_SECONDS, kill_each, read_status
from .records import remove_records
from .removal import FOLDER, remove_entry, remove_tree, unmount_owned

SHARED = (
    *("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/var/lock", "/run/screen", "/run/tmux"),
    *("/var/mail", "/var/spool/mail", "/var/crash"),
)
"""Folders that all users may write to; others than the job's own are in them."""

SPOOLS = ("/var/spool/cron", "/var/spool/at", "/var/spool/atjobs")
CRONTABS = ("/var/spool/cron", "/var/spool/cron/crontabs", "/var/spool/cron/tabs")
LINGER = "/var/lib/systemd/linger"
RUNTIME = "/run/user"
SYSTEM_V = "/proc/sysvipc"
IPC_RMID = 0
DEEPEST = 200  # levels of folders of other users: a folder is open for each
SEARCHABLE = stat.S_IXGRP | stat.S_IXOTH


def end_user(account: Account) -> None:
    """Kill all processes of the user, and remove what would start others later. Raises OSError if some are left.

    What the user has mounted is unmounted first, as it may be in the way: its program has been killed.
    """
    for _ in range(KILL_ROUNDS):
        had_some = _kill_processes(account)
        unmount_owned(account.uids())
        if not (_remove_schedules(account) or had_some):
            return
        time.sleep(ROUND_SECONDS)
    raise OSError(f"processes {list(_processes(account))} of the user {account.name} can't be ended")


def remove_possessions(account: Account) -> None:
    """Remove what the user owns outside of the job's folders. Raises OSError."""
    uids = account.uids()
    for top in SHARED:
        remove_owned(top, uids)
    remove_tree(f"{RUNTIME}/{account.uid}")
    for kind, ids, remove in _system_v():
        for id in _owned_ipc(kind, ids, uids):
            remove(id)
        left = list(_owned_ipc(kind, ids, uids))
        if left:
            raise OSError(f"System V {kind} {left} of the user {account.name} can't be removed")
    clear_keyrings(account.uid)
    remove_records(uids)


def _kill_processes(account: Account) -> bool:
    """Kill the user's processes, all at once: none can fork meanwhile. Return whether there were some."""
    had_some = any(_processes(account))
    with contextlib.suppress(OSError):  # the user may have as many processes as it may have
        command = ["/bin/sh", "-c", "kill -KILL -1"]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, **account.popen_options())
    kill_each(_processes(account))
    return had_some


def _processes(account: Account) -> Iterator[int]:
    """Yield the processes that run as the user or were started by it; none where there is no /proc."""
    uids = account.uids()
    for name in os.listdir(PROC) if os.path.isdir(PROC) else ():
        if name.isdigit():
            with contextlib.suppress(OSError):
                known = read_status(f"{PROC}/{name}")
                ids = known.get("Uid", "").split()[:3]  # without the one for files, which the agent itself may borrow
                if any(int(id) in uids for id in ids) and known.get("State", "").split()[:1] not in (["Z"], ["X"]):
                    yield int(name)


def _remove_schedules(account: Account) -> bool:
    """Remove what cron, at and systemd start for the user. Return whether there was something."""
    places = [f"{folder}/{account.name}" for folder in CRONTABS] + [f"{LINGER}/{account.name}"]
    found = [place for place in places if os.path.isfile(place) or os.path.islink(place)]
    for place in found:
        os.unlink(place)
    uids = account.uids()
    return bool(sum(remove_owned(top, uids) for top in SPOOLS) + len(found))


def remove_owned(top: str, uids: Container[int]) -> int:
    """Remove the user's entries of a folder, and of those in it that it can enter. Return how many. Raises OSError."""
    try:
        folder = os.open(os.path.realpath(top), FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    try:
        return _remove_owned(folder, os.path.realpath(top), uids, DEEPEST)
    finally:
        os.close(folder)


def _remove_owned(folder: int, path: str, uids: Container[int], levels: int) -> int:
    """Do so in an open folder. The folder's own owner may change it meanwhile: no path is looked up twice."""
    if not levels:
        raise OSError(f"{path} is too deep: nobody knows what the job's user has there")
    removed = 0
    while True:  # a listing may leave out entries while others are removed
        before = removed
        with os.scandir(folder) as entries:
            for entry in entries:
                removed += _remove_if_owned(folder, entry.name, f"{path}/{entry.name}", uids, levels)
        if removed == before:
            return removed


def _remove_if_owned(folder: int, name: str, path: str, uids: Container[int], levels: int) -> int:
    """Remove an entry of the user's, or what it has in a folder of somebody else. Return how many were removed."""
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if found.st_uid in uids:
            remove_entry(folder, name, path)
            return 1
        is_here = found.st_dev == os.fstat(folder).st_dev
        if stat.S_ISDIR(found.st_mode) and found.st_mode & SEARCHABLE and is_here:
            return _enter(folder, name, path, uids, levels - 1)
    return 0


def _enter(folder: int, name: str, path: str, uids: Container[int], levels: int) -> int:
    try:
        inner = os.open(name, FOLDER, dir_fd=folder)
    except NotADirectoryError:  # its owner has exchanged it
        return 0
    try:
        return _remove_owned(inner, path, uids, levels)
    finally:
        os.close(inner)


def _system_v() -> Iterator[tuple[str, str, Callable[[int], int]]]:
    """Yield the kinds of System V IPC: the kernel's list, its column of ids, and what removes one of them."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        yield "shm", "shmid", lambda id: libc.shmctl(id, IPC_RMID, None)
        yield "msg", "msqid", lambda id: libc.msgctl(id, IPC_RMID, None)
        yield "sem", "semid", lambda id: libc.semctl(id, 0, IPC_RMID)


def _owned_ipc(kind: str, ids: str, uids: Container[int]) -> Iterator[int]:
    """Yield the ids of those that the user owns or made."""
    with contextlib.suppress(OSError):
        header, *lines = Path(SYSTEM_V, kind).read_text(encoding="ascii").splitlines()
        for line in lines:
            row = dict(zip(header.split(), line.split()))
            if int(row["uid"]) in uids or int(row["cuid"]) in uids:
                yield int(row[ids])
