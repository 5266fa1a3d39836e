"""The machine: the agent's own files, log and clock on it, what a job sees of it, and the processes of the job.

The agent's folder has its config, its token, and a file that says how far the agent is with its job. A job sees
folders, a user, PATH and locale.

Memory: the kernel counts the processes that it kills because memory is short. The count of the agent's own control
group concerns the job alone, for the job runs in it. The kernel's own count is the whole machine's: it proves something
only of a task that was killed.
"""

from __future__ import annotations

import contextlib
import ctypes
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
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from .account import SHORT_HOME, Account

BASE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/ooce/bin:/opt/ooce/sbin"
PROGRAM = "/usr/local/lib/penstock/job.pyz"
"""Where the job's user can read the agent's file. The agent itself is elsewhere, where that user cannot write."""


@dataclass(frozen=True)
class Config:
    """The config file: the service's URL, the worker's id and bootstrap key, the job's root. `folder` is the file's.

    `identity` is the address of the machine's metadata service, empty if no identity document is needed. `alone`: the
    machine was made for this worker, and serves nothing else. `user` is the name of the jobs' user, empty if it is the
    agent's. `socket` is the path of a socket that leads to a service on the loopback of another machine's, empty if the
    agent reaches it.
    """

    url: str
    worker: str
    key: str = field(repr=False)
    root: str
    folder: Path
    identity: str = ""
    alone: bool = False
    user: str = ""
    socket: str = ""

    @classmethod
    def load(cls, path: Path) -> Config:
        """Read a config. Raises OSError, ValueError or KeyError for a file that can't be used."""
        data = json.loads(path.read_text(encoding="utf-8"))
        root = os.path.realpath(data.get("root", "/"))
        return cls(
            data["url"].rstrip("/"), data["worker"], data["key"], root, path.resolve().parent,
            data.get("identity", ""), data.get("alone") is True, str(data.get("user") or ""),
            str(data.get("socket") or ""),
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
class Machine:
    """The job's side of the machine. `root` is `/` on a machine of its own; otherwise job paths are below it.

    `account` is the job's user; None if that is the one that runs the agent. `apart`: the job has a home of its own,
    because the agent stores something there that must be removed with the job.
    """

    root: str
    account: Account | None = None
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
        return self.account.home if self.account else SHORT_HOME if self.apart else self.own_home

    @property
    def own_home(self) -> str:
        """The home of the user that runs the agent."""
        return pwd.getpwuid(os.getuid()).pw_dir

    @property
    def user(self) -> str:
        """The name of the user that runs the job's tasks."""
        return self.account.name if self.account else pwd.getpwuid(os.getuid()).pw_name

    @property
    def bin(self) -> str:
        return self.real_path("/bin" if self.private else "/usr/local/bin")

    @property
    def program(self) -> str:
        """The agent's own file, where the job's user can read it."""
        if not self.account:
            return os.path.realpath(sys.argv[0])
        return f"{self.bin}/job.pyz" if self.private else PROGRAM

    def folders(self) -> Iterator[str]:
        """Yield the folders that are emptied after a job."""
        yield from [self.root] if self.private else map(self.real_path, ("/work", "/input", "/tmp"))
        if self.account and self.home == self.account.home != SHORT_HOME:
            yield self.home

    def make(self) -> None:
        """Make the job's folders. Raises OSError."""
        for path in (*map(self.real_path, ("/work", "/input", "/tmp")), self.home, self.bin):
            os.makedirs(path, mode=0o755, exist_ok=True)
        if self.home == SHORT_HOME:
            _make_private(self.home, self.account)
        if self.account and self.private:
            os.chmod(self.bin, 0o755)  # whatever the umask is
        if self.account:
            os.makedirs(os.path.dirname(self.program), mode=0o755, exist_ok=True)
            shutil.copyfile(os.path.realpath(sys.argv[0]), self.program)
            os.chmod(self.program, 0o644)

    @property
    def is_confined(self) -> bool:
        """Whether the job can reach neither its agent nor root. [SEC-2]"""
        return self.account is not None and not self.account.may_be_root

    def acting(self) -> contextlib.AbstractContextManager[None]:
        """Let the agent use files with the rights of a job that is confined, as long as this context lasts. [SEC-2]"""
        return self.account.acting() if self.account else contextlib.nullcontext()

    def may_write(self, folder: str) -> bool:
        """Return whether entries can be made in a folder. access(2) answers for the agent, so one is really made."""
        if not self.is_confined:
            return os.access(folder, os.W_OK | os.X_OK)
        with contextlib.suppress(OSError):
            os.rmdir(tempfile.mkdtemp(prefix=".penstock-", dir=folder))
            return True
        return False

    def popen_options(self) -> dict[str, Any]:
        """Return the options with which `subprocess` starts something as the job's user."""
        return self.account.popen_options() if self.account else {}

    def give_to_user(self, path: str, owner: Account | None = None) -> None:
        """Make the job's user, or another owner, the owner of a path; of a link itself, not of its target."""
        owner = owner or self.account
        if owner:
            os.lchown(path, owner.uid, owner.gid)

    def make_folder(self, path: str, owner: Account | None = None) -> None:
        """Make a folder and its missing parents, owned by the job's user or another owner. Raises OSError."""
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for each in reversed(missing):
            os.makedirs(each, exist_ok=True)
            self.give_to_user(each, owner)


def _make_private(folder: str, account: Account | None) -> None:
    """Close a folder in /tmp to other users. Raises OSError if one of these owns it. [SEC-1]"""
    found = os.lstat(folder)
    owners = (os.geteuid(), account.uid) if account else (os.geteuid(),)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
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


PROC = "/proc"
KILL_ROUNDS = 100  # some may fork while they are being killed, and a stuck one can't be
ROUND_SECONDS = 0.05
LOOKS, LOOK_SECONDS = 3, 0.002
PR_SET_CHILD_SUBREAPER = 36
CONTROL_GROUPS = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60  # version 1 of control groups writes a little less than 2^63 if there is no limit
OOM_COUNT = "oom_kill"
JOB_OOM_SCORE = 500
"""What a job's processes have more than the agent, of `MOST_OOM_SCORE`, which is all of the memory: proc(5)."""

MOST_OOM_SCORE = 1000


@dataclass(frozen=True)
class Process:
    """A process, as /proc shows it. One that has ended is there until its parent waits for it."""

    parent: int
    group: int
    has_ended: bool = False


def list_processes() -> dict[int, Process]:
    """Return all living processes by id."""
    return {pid: each for pid, each in _read_processes().items() if not each.has_ended}


def _read_processes() -> dict[int, Process]:
    """Return all processes by id, those too that have ended and that nobody has waited for."""
    found = {}
    for name in os.listdir(PROC):
        if name.isdigit():
            with contextlib.suppress(OSError):
                state, parent, group = _read(name, "stat").rpartition(b")")[2].split(None, 3)[:3]
                found[int(name)] = Process(int(parent), int(group), state in b"ZX")
    return found


def _read(pid: str, name: str) -> bytes:
    """Return a file of /proc about a process. Agents read hundreds of them at once, so this must be fast."""
    with open(f"{PROC}/{pid}/{name}", "rb", buffering=0) as file:
        return file.read()


def read_status(folder: str) -> dict[str, str]:
    """Return what a process's folder in /proc says of it: its `Name`, `State`, `Uid` and so on. Raises OSError."""
    lines = Path(folder, "status").read_text(encoding="utf-8", errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def ancestry(pid: int, table: dict[int, Process]) -> list[int]:
    """Return a process and its ancestors."""
    line: list[int] = []
    while pid in table and pid not in line:
        line.append(pid)
        pid = table[pid].parent
    return line


class JobProcesses:
    """Finds the job's processes. `group` is the running task's process group; without /proc, only that is found."""

    def __init__(self, worker: str) -> None:
        self._mark = f"PENSTOCK_WORKER_ID={worker}".encode()
        self.group = 0

    def in_task(self) -> list[int]:
        """Return the living members of the task's process group."""
        if sys.platform != "linux":
            return self._probe_group()
        return [pid for pid, process in list_processes().items() if process.group == self.group]

    def in_sessions(self, leaders: set[int]) -> list[int]:
        """Return the living processes of these leaders' groups, and their descendants."""
        if sys.platform != "linux":
            return [pid for leader in leaders for pid in _probe_group(leader)]
        table = list_processes()
        return [pid for pid, each in table.items() if each.group in leaders or leaders & set(ancestry(pid, table))]

    def all_of_job(self) -> list[int]:
        """Return the agent's descendants, and all processes with the worker's id in their environment.

        The latter are found also after the agent has crashed. [JOB-2]
        """
        return self._look()[0]

    def _look(self) -> tuple[list[int], set[int]]:
        """Return all processes of the job that live, and the groups of those too that have ended."""
        if sys.platform != "linux":
            return self._probe_group(), set()
        table, me = _read_processes(), os.getpid()
        spared = ancestry(me, table)
        others = [pid for pid in table if pid not in spared]
        mine = [pid for pid in others if me in ancestry(pid, table) or self._is_marked(pid)]
        groups = {table[pid].group for pid in mine} - {0, 1, os.getpgrp()}
        return [pid for pid in mine if not table[pid].has_ended], groups

    def kill_all(self) -> list[int]:
        """Kill all processes of the job, until several looks in a row find none. Return what is left. [UNIT-2]

        A process that forks and ends over and over has another id whenever it is looked for, and lives for less time
        than a look takes. Its group stays, and is killed as a whole: those of it that have ended are still children of
        an agent that adopts orphans, and name it. A group that is gone is forgotten at once, as its id may come to be
        that of processes that have nothing to do with the job.
        """
        empty = 0
        groups: set[int] = set()
        for _ in range(KILL_ROUNDS):
            found, named = self._look()
            empty = 0 if found else empty + 1
            if empty == LOOKS:
                return []
            groups = set(_signal_all(groups | named, signal.SIGKILL, os.killpg))
            _signal_all(found, signal.SIGKILL)
            time.sleep(ROUND_SECONDS if found else LOOK_SECONDS)
        return self.all_of_job()

    def _is_marked(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            return self._mark in _read(str(pid), "environ").split(b"\0")
        return False

    def _probe_group(self) -> list[int]:
        return _probe_group(self.group) if self.group else []


def _probe_group(group: int) -> list[int]:
    """Return the negative group id, which signals the whole group, if a process is left in it."""
    with contextlib.suppress(OSError):
        os.kill(-group, 0)
        return [-group]
    return []


@dataclass(frozen=True)
class Ended:
    """How many processes were ended, and after how many seconds some had to be killed."""

    count: int
    killed_after: float | None

    def __str__(self) -> str:
        return "SIGTERM" if self.killed_after is None else f"SIGTERM, and SIGKILL after {self.killed_after:g} s"


def end_processes(find: Callable[[], list[int]], grace: Callable[[], float]) -> Ended:
    """End the processes that `find` returns: SIGTERM, then SIGKILL after `grace()` seconds, which may shrink."""
    started, first = now(), find()
    _signal_all(first, signal.SIGTERM)
    while find() and now() < started + grace():
        time.sleep(ROUND_SECONDS)
    allowed = grace()
    return Ended(len(first), allowed if _kill_all(find) else None)


def _kill_all(find: Callable[[], list[int]]) -> bool:
    """Send SIGKILL until no process is left. Return whether there was one."""
    for done in range(KILL_ROUNDS):
        left = find()
        if not left:
            return done > 0
        _signal_all(left, signal.SIGKILL)
        time.sleep(ROUND_SECONDS)
    return True


def _signal_all(ids: Iterable[int], number: int, send: Callable[[int, int], None] = os.kill) -> list[int]:
    """Signal processes, or with `os.killpg` groups, some of which may have ended. Return those that were signalled."""
    signalled = []
    for each in ids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(each, number)
            signalled.append(each)
    return signalled


def kill_each(ids: Iterable[int]) -> None:
    """Send SIGKILL to processes, some of which may have ended."""
    _signal_all(ids, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of the job's orphans, so that no process of the job gets lost. Linux only."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(keep: set[int]) -> None:
    """Reap dead orphans, except the children `keep`: another thread waits for those."""
    while sys.platform == "linux":
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if dead is None or dead.si_pid in keep:
            return
        os.waitpid(dead.si_pid, 0)


@dataclass(frozen=True)
class OomCounter:
    """A file that counts kills, and one with the memory limit. `is_ours`: it counts the kills of the job alone."""

    source: str
    path: Path
    limit: Path | None = None

    @property
    def is_ours(self) -> bool:
        return self.limit is not None


@dataclass(frozen=True)
class OomKills:
    """How many processes the kernel killed for lack of memory."""

    count: int
    source: str
    limit: int | None


def raise_oom_score(pid: int) -> None:
    """Have the kernel kill this process, and what it starts, before the agent when memory runs out, if it can.

    Else the agent, which may be the largest process of a small machine, is killed, and nobody says why the job ended.
    """
    with contextlib.suppress(OSError, ValueError):
        own = int(Path("/proc/self/oom_score_adj").read_text(encoding="ascii"))
        score = min(own + JOB_OOM_SCORE, MOST_OOM_SCORE)
        Path(f"/proc/{pid}/oom_score_adj").write_text(f"{score}", encoding="ascii")


def count_oom_kills() -> dict[OomCounter, int]:
    """Return the current count of each counter that this machine has."""
    found = {}
    for record in _oom_counters():
        with contextlib.suppress(OSError, ValueError):
            for line in record.path.read_text(encoding="ascii").splitlines():
                name, _, count = line.partition(" ")
                if name == OOM_COUNT:
                    found[record] = int(count)
    return found


def oom_kills_since(before: dict[OomCounter, int], was_killed: bool) -> OomKills | None:
    """Return the kills since `before`. The whole machine's count matters only if a task was killed."""
    for record, count in count_oom_kills().items():
        more = count - before.get(record, count)
        if more > 0 and (record.is_ours or was_killed):
            return OomKills(more, record.source, _memory_limit(record))
    return None


def _oom_counters() -> Iterator[OomCounter]:
    """Yield the counters, the most exact first."""
    for line in _own_control_groups():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folder = CONTROL_GROUPS / path.lstrip("/")
            yield OomCounter("memory.events of its control group", folder / "memory.events", folder / "memory.max")
        elif "memory" in controllers.split(","):
            folder = CONTROL_GROUPS / "memory" / path.lstrip("/")
            limit = folder / "memory.limit_in_bytes"
            yield OomCounter("memory.oom_control of its control group", folder / "memory.oom_control", limit)
    yield OomCounter("oom_kill of the whole machine", Path("/proc/vmstat"))


def _own_control_groups() -> list[str]:
    with contextlib.suppress(OSError):
        return Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    return []


def _memory_limit(record: OomCounter) -> int | None:
    """Return the limit in bytes, if there is one."""
    with contextlib.suppress(OSError, ValueError):
        if record.limit:
            limit = int(record.limit.read_text(encoding="ascii"))
            return limit if limit < UNLIMITED else None
    return None
