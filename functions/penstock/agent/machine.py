"""The machine: the agent's own files, log and clock on it, and what a job sees of it: folders, user, PATH and locale.

The agent's folder has its config, its token, and a file that says how far the agent is with its job.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import locale
import os
import pwd
import secrets
import shutil
import signal
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

BASE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/ooce/bin:/opt/ooce/sbin"
PROGRAM = "/usr/local/lib/penstock/agent.pyz"


@dataclass(frozen=True)
class Config:
    """The config file: the service's URL, the worker's id and bootstrap key, the job's root. `folder` is the file's.

    `identity` is the address of the machine's metadata service, empty if no identity document is needed. `alone`: the
    machine was made for this worker, and serves nothing else.
    """

    url: str
    worker: str
    key: str = field(repr=False)
    root: str
    folder: Path
    identity: str = ""
    alone: bool = False

    @classmethod
    def load(cls, path: Path) -> Config:
        """Read a config. Raises OSError, ValueError or KeyError for a file that can't be used."""
        data = json.loads(path.read_text(encoding="utf-8"))
        root = os.path.realpath(data.get("root", "/"))
        return cls(
            data["url"].rstrip("/"), data["worker"], data["key"], root, path.resolve().parent,
            data.get("identity", ""), data.get("alone") is True,
        )  # fmt: skip

    def token(self) -> str:
        """Return the worker token. It is chosen once, so that a hello whose answer was lost can be repeated. [SEC-2]"""
        path = self.folder / "token"
        return path.read_text(encoding="ascii").strip() if path.exists() else self.new_token()

    def new_token(self) -> str:
        """Choose the token for the next job, in place of the last job's."""
        token = secrets.token_urlsafe(48)
        write_secret(self.folder / "token", token)
        return token


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read: atomically, and flushed to disk."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


class Step(Enum):
    """How far the agent is with its job."""

    NONE, STARTED, FINISHED = "", "started", "finished"


class Progress:
    """How far the agent is with its job, in a file, so that no restart runs the job twice. [JOB-2]"""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "progress"

    def read(self) -> Step:
        """Return the last step. A truncated file means that the job was started."""
        if not self._path.exists():
            return Step.NONE
        return Step.FINISHED if self._path.read_text(encoding="utf-8").startswith("finished") else Step.STARTED

    def note(self, step: Step, job: str) -> None:
        """Write a step of a job."""
        self._path.write_text(f"{step.value} {job}\n", encoding="utf-8")


@dataclass(frozen=True)
class Account:
    """A user of the machine, with fixed ids. It may not exist yet."""

    name: str
    uid: int
    gid: int
    home: str

    def groups(self) -> list[int]:
        """Return the ids of its groups: an image may have added some."""
        with contextlib.suppress(OSError):
            return os.getgrouplist(self.name, self.gid)
        return [self.gid]

    def popen_options(self) -> dict[str, Any]:
        """Return the options with which `subprocess` starts something as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": self.groups()}


BUILD_USER = Account("build", 12345, 12345, "/home/build")
"""The same as in buildomat: its job files use the name."""


@dataclass(frozen=True)
class Machine:
    """The job's side of the machine. `root` is `/` on a machine of its own; otherwise job paths are below it.

    `alone`: the machine was made for its jobs, which run as a user of their own. `apart`: the job has a home of its
    own, because the agent stores something there that must be removed with the job.
    """

    root: str
    alone: bool = False
    apart: bool = False

    @property
    def private(self) -> bool:
        return self.root != "/"

    def real_path(self, path: str) -> str:
        """Return where a job's absolute path is on the machine. `..` cannot leave the root."""
        return os.path.join(self.root, os.path.normpath("/" + path).lstrip("/"))

    def job_path(self, path: str) -> str:
        """Return the job's name for a path of the machine."""
        return path[len(self.root) :] if self.private else path

    def contains(self, path: str) -> bool:
        """Return whether a path is below the root, after its symlinks are followed."""
        return os.path.realpath(path).startswith(self.root.rstrip("/") + "/")

    @property
    def home(self) -> str:
        if self.private:
            return self.real_path("/home")
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
        return self.real_path("/bin" if self.private else "/usr/local/bin")

    @property
    def program(self) -> str:
        """The agent's own file, where the job's user can read it."""
        return PROGRAM if self.alone else os.path.realpath(sys.argv[0])

    def folders(self) -> Iterator[str]:
        """Yield the folders that are emptied after a job."""
        yield from [self.root] if self.private else map(self.real_path, ("/work", "/input", "/tmp"))
        if self.alone:
            yield self.home

    def make(self) -> None:
        """Make the job's folders. Raises OSError."""
        for path in (*map(self.real_path, ("/work", "/input", "/tmp")), self.home, self.bin):
            os.makedirs(path, mode=0o755, exist_ok=True)
        if self.apart and not (self.private or self.alone):
            _make_private(self.home)
        if self.alone:
            os.makedirs(os.path.dirname(PROGRAM), mode=0o755, exist_ok=True)
            shutil.copyfile(os.path.realpath(sys.argv[0]), PROGRAM)
            os.chmod(PROGRAM, 0o644)

    def popen_options(self) -> dict[str, Any]:
        """Return the options with which `subprocess` starts something as the job's user."""
        return BUILD_USER.popen_options() if self.alone else {}

    def give_to_user(self, path: str) -> None:
        """Make the job's user the owner of a path; of a link itself, not of its target."""
        if self.alone:
            os.lchown(path, BUILD_USER.uid, BUILD_USER.gid)

    def make_folder(self, path: str) -> None:
        """Make a folder and its missing parents, owned by the job's user. Raises OSError."""
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for each in reversed(missing):
            os.makedirs(each, exist_ok=True)
            self.give_to_user(each)


def _make_private(folder: str) -> None:
    """Close a folder in /tmp to other users. Raises OSError if another user owns it. [SEC-1]"""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to another user")
    os.chmod(folder, stat.S_IRWXU)


def installed_locale() -> str:
    """Return en_US.UTF-8 if it is installed: bash complains in every job's log about a locale that is missing."""
    for name in ("en_US.UTF-8", "C.UTF-8"):
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, name)
            locale.setlocale(locale.LC_ALL, "C")
            return name
    return "C"


def utc_now() -> str:
    """Return the wall-clock time, RFC 3339 in UTC with milliseconds."""
    here = datetime.datetime.now(datetime.timezone.utc)
    return here.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> float:
    """Return seconds on a clock that never jumps and, on Linux, goes on while the machine sleeps."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def log(message: str) -> None:
    """Write a line for whoever operates the machine. Users see the job's events instead."""
    with contextlib.suppress(OSError, ValueError):  # its disk may be full, or its reader gone: the job goes on
        print(f"{utc_now()} {message}", file=sys.stderr, flush=True)


def duration_text(seconds: float) -> str:
    """Return a duration as text: `30m`, `1h5m`, `2.5s`."""
    text = ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        count, seconds = divmod(seconds, size)
        text += f"{count:.0f}{unit}" if count else ""
    return text if text and not seconds else f"{text}{seconds:g}s"


def size_text(count: float) -> str:
    """Return a number of bytes as text: `12.3 KiB`."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} GiB"


def signal_name(number: int) -> str:
    """Return `9 (SIGKILL)` for 9."""
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)
