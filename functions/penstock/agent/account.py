"""The job's user, where that is not the user that runs the agent.

A job that cannot become root cannot reach its agent: neither the files and memory of the agent, nor its processes. Then
the agent, which is root, must not do for the job what the job may not do itself: it reads and writes files for the job
with the rights of the job's user. [SEC-2]
"""

from __future__ import annotations

import contextlib
import ctypes
import grp
import os
import pwd
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ASK = -1  # an id that nobody can have: the kernel changes nothing, and returns the present one
ID_MASK = 0xFFFFFFFF
SUBORDINATE_UIDS, SUBORDINATE_GIDS = "/etc/subuid", "/etc/subgid"


@dataclass(frozen=True)
class Account:
    """A user of the machine, with fixed ids, and the home that its jobs get.

    `is_made`: the agent makes it, and it may not exist yet. `may_be_root`: the agent lets it become root.
    """

    name: str
    uid: int
    gid: int
    home: str
    is_made: bool = False
    may_be_root: bool = False

    def groups(self) -> list[int]:
        """Return the ids of its groups: an image may have added some."""
        with contextlib.suppress(OSError):
            return os.getgrouplist(self.name, self.gid)
        return [self.gid]

    def uids(self) -> Uids:
        """Return the ids that its processes and files can have: its own, and its subordinate ones."""
        return Uids(self.uid, tuple(_subordinate_ids(self, SUBORDINATE_UIDS)))

    def foreign_ids(self) -> dict[str, dict[int, str]]:
        """Return which ids of others it can take in a user namespace, with their names, for each list that allows it.

        There it is them: `newuidmap` and `newgidmap`, which belong to root, ask nothing but these lists. [SEC-2]
        """
        users = {each.pw_uid: each.pw_name for each in pwd.getpwall() if each.pw_uid != self.uid}
        groups = {each.gr_gid: each.gr_name for each in grp.getgrall() if each.gr_gid not in self.groups()}
        found = {}
        for path, known in ((SUBORDINATE_UIDS, {0: "root", **users}), (SUBORDINATE_GIDS, {0: "root", **groups})):
            ranges = tuple(_subordinate_ids(self, path))
            found[path] = {id: name for id, name in sorted(known.items()) if any(id in each for each in ranges)}
        return {path: ids for path, ids in found.items() if ids}

    def popen_options(self) -> dict[str, Any]:
        """Return the options with which `subprocess` starts something as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": self.groups()}

    @contextlib.contextmanager
    def acting(self) -> Iterator[None]:
        """Let this thread, and threads that it starts meanwhile, use files as this user and not as root. [SEC-2]

        One that may become root needs no such bounds. Raises OSError where the kernel has no such thing.
        """
        if self.may_be_root:
            yield
            return
        user, group = _id_setters()
        before = user(ASK), group(ASK)
        try:
            _become(group, self.gid)
            _become(user, self.uid)
            yield
        finally:
            user(before[0])
            group(before[1])


@dataclass(frozen=True)
class Uids:
    """A user's id, and the ranges of ids that it can have in user namespaces, as rootless containers do.

    Only ids of users matter: whatever a process makes in such a namespace has one of these, whichever its group is.
    An id that root or another known user has is not the user's, even if a range contains it.
    """

    own: int
    ranges: tuple[range, ...] = ()

    def __contains__(self, id: object) -> bool:
        if id == self.own:
            return True
        return isinstance(id, int) and any(id in each for each in self.ranges) and not _is_known(id)


def _is_known(uid: int) -> bool:
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwuid(uid))
    return uid == 0


def _subordinate_ids(account: Account, path: str) -> Iterator[range]:
    """Yield the ranges in one of the system's lists of them; lines that are none are left out."""
    with contextlib.suppress(OSError):
        for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                owner, first, count = line.split(":")
                if owner in (account.name, str(account.uid)):
                    yield range(int(first), int(first) + int(count))


BUILD_USER = Account("build", 12345, 12345, "/home/build", is_made=True, may_be_root=True)
"""The same as in buildomat: its job files use the name."""

SHORT_HOME = "/tmp/home"
"""A home that goes with its job."""


def existing_account(name: str) -> Account:
    """Return the account of a user that exists already. Raises OSError for root, and for one that does not exist."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise OSError(
            f"this machine has no user {name}: make it, with useradd --system --no-create-home {name}"
        ) from None
    if found.pw_uid == 0:
        raise OSError(f"the user {name} is root: jobs need a user that is not")
    return Account(name, found.pw_uid, found.pw_gid, SHORT_HOME)


def task_account(own: Account | None, uid: int | None, gid: int | None) -> Account | None:
    """Return the account of a task that asks for these ids, where `own` is that of the job; None is the agent's user.

    Only a job that may become root may be somebody else. Raises PermissionError for another. [SEC-2]
    """
    here = (own.uid, own.gid) if own else (os.geteuid(), os.getegid())
    if uid in (None, here[0]) and gid in (None, here[1]):
        return own
    if own is None or not own.may_be_root:
        wanted = " and ".join(f"{what} {id}" for what, id in (("user", uid), ("group", gid)) if id is not None)
        raise PermissionError(f"it asks for {wanted}, but here a job has only user {here[0]} and group {here[1]}")
    found = here[0] if uid is None else uid
    with contextlib.suppress(KeyError):
        known = pwd.getpwuid(found)
        return Account(known.pw_name, found, known.pw_gid if gid is None else gid, known.pw_dir, may_be_root=True)
    return Account(str(found), found, found if gid is None else gid, "/", may_be_root=True)


def _id_setters() -> tuple[Callable[[int], int], Callable[[int], int]]:
    """Return the functions that set a thread's user and group for files, and return the last one. Linux only."""
    if sys.platform != "linux":
        raise OSError(f"jobs without root need Linux, and this is {sys.platform}")
    libc = ctypes.CDLL(None)
    return (lambda id: libc.setfsuid(id) & ID_MASK), (lambda id: libc.setfsgid(id) & ID_MASK)


def _become(setter: Callable[[int], int], id: int) -> None:
    """Set an id of this thread, and make sure that it is set: the kernel reports no error. Raises OSError."""
    setter(id)
    if setter(ASK) != id:
        raise PermissionError(f"the agent cannot act as the job's user {id}: it must run as root")
