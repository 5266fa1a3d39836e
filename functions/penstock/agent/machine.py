"""The machine as a job sees it: its folders, the user that its tasks run as, the PATH and the locale."""

from __future__ import annotations

import contextlib
import locale
import os
import pwd
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

BASE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/ooce/bin:/opt/ooce/sbin"
PROGRAM = "/usr/local/lib/penstock/agent.pyz"


def installed_locale() -> str:
    """Return en_US.UTF-8 where there is one: bash complains in every job's log about a locale that is not."""
    for name in ("en_US.UTF-8", "C.UTF-8"):
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, name)
            locale.setlocale(locale.LC_ALL, "C")
            return name
    return "C"


@dataclass(frozen=True)
class Account:
    """A user of the machine, by numbers that are the same everywhere: it may not be there yet."""

    name: str
    uid: int
    gid: int
    home: str

    def groups(self) -> list[int]:
        """Return the groups that it is in, which an image may have given it more of."""
        with contextlib.suppress(OSError):
            return os.getgrouplist(self.name, self.gid)
        return [self.gid]

    def options(self) -> dict[str, Any]:
        """Return what has `subprocess` start something as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": self.groups()}


BUILD_USER = Account("build", 12345, 12345, "/home/build")
"""As in buildomat, whose job files name it."""


@dataclass(frozen=True)
class Machine:
    """On a machine of its own `root` is `/`; else job paths are looked up below `root`.

    `alone`: the machine was made for its jobs alone, which run as a user of their own there. `apart`: the job's home is
    not that of the machine's user, for something is put into it that must go with the job.
    """

    root: str
    alone: bool = False
    apart: bool = False

    @property
    def private(self) -> bool:
        return self.root != "/"

    def on_machine(self, path: str) -> str:
        """Return where a job's absolute path really is; `..` can't leave the root."""
        return os.path.join(self.root, os.path.normpath("/" + path).lstrip("/"))

    def in_job(self, path: str) -> str:
        """Return the name that the job knows a path of the machine by."""
        return path[len(self.root) :] if self.private else path

    def holds(self, path: str) -> bool:
        """Tell whether a path, its symlinks followed, is below the root."""
        return os.path.realpath(path).startswith(self.root.rstrip("/") + "/")

    @property
    def home(self) -> str:
        if self.private:
            return self.on_machine("/home")
        return BUILD_USER.home if self.alone else "/tmp/home" if self.apart else self.own_home

    @property
    def own_home(self) -> str:
        """The home of the user that runs the agent."""
        return pwd.getpwuid(os.getuid()).pw_dir

    @property
    def user(self) -> str:
        """The name of the user that runs the job's tasks."""
        return BUILD_USER.name if self.alone else pwd.getpwuid(os.getuid()).pw_name

    @property
    def bin(self) -> str:
        return self.on_machine("/bin" if self.private else "/usr/local/bin")

    @property
    def program(self) -> str:
        """The agent's own file, where the job's user can read it."""
        return PROGRAM if self.alone else os.path.realpath(sys.argv[0])

    def folders(self) -> Iterator[str]:
        """Yield what is emptied after a job."""
        yield from [self.root] if self.private else map(self.on_machine, ("/work", "/input", "/tmp"))
        if self.alone:
            yield self.home

    def make(self) -> None:
        """Make the job's directories. Raises OSError."""
        for path in (*map(self.on_machine, ("/work", "/input", "/tmp")), self.home, self.bin):
            os.makedirs(path, mode=0o755, exist_ok=True)
        if self.apart and not (self.private or self.alone):
            _make_private(self.home)
        if self.alone:
            os.makedirs(os.path.dirname(PROGRAM), mode=0o755, exist_ok=True)
            shutil.copyfile(os.path.realpath(sys.argv[0]), PROGRAM)
            os.chmod(PROGRAM, 0o644)

    def start(self) -> dict[str, Any]:
        """Return what has `subprocess` start something as the job's user."""
        return BUILD_USER.options() if self.alone else {}

    def give(self, path: str) -> None:
        """Give something that the agent has made to the job's user; a link itself, not what it leads to."""
        if self.alone:
            os.lchown(path, BUILD_USER.uid, BUILD_USER.gid)

    def make_folder(self, path: str) -> None:
        """Make a folder, and those that it is in, as the job's user would. Raises OSError."""
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for each in reversed(missing):
            os.makedirs(each, exist_ok=True)
            self.give(each)


def _make_private(folder: str) -> None:
    """See to it that nobody else looks into a folder that stands where anybody may make one. Raises OSError. [SEC-1]"""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is somebody else's")
    os.chmod(folder, stat.S_IRWXU)
