"""The job's processes: the agent finds and ends them, starts background processes, and counts kills by the kernel.

Memory: the kernel counts the processes that it kills because memory is short. The count of the agent's own control
group concerns the job alone, for the job runs in it. The kernel's own count is the whole machine's: it proves something
only of a task that was killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .joblog import OutputReader, Put
from .machine import Machine, now, signal_name
from .masking import Mask

PROC = "/proc"
KILL_ROUNDS = 100  # some may fork while they are being killed, and a stuck one can't be
ROUND_SECONDS = 0.05
LOOKS, LOOK_SECONDS = 3, 0.002
PR_SET_CHILD_SUBREAPER = 36
NAME_PATTERN = re.compile(r"[A-Za-z0-9._-]{1,48}")
MOST_NAMES = 100
PIPE_SECONDS = 5.0  # how long the agent reads the rest of their output after their end
CONTROL_GROUPS = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60  # version 1 of control groups writes a little less than 2^63 if there is no limit
OOM_COUNT = "oom_kill"


@dataclass(frozen=True)
class Process:
    """A living process, as /proc shows it."""

    parent: int
    group: int


def list_processes() -> dict[int, Process]:
    """Return all living processes by id."""
    found = {}
    for name in os.listdir(PROC):
        if name.isdigit():
            with contextlib.suppress(OSError):
                state, parent, group = _read(name, "stat").rpartition(b")")[2].split(None, 3)[:3]
                if state not in b"ZX":
                    found[int(name)] = Process(int(parent), int(group))
    return found


def _read(pid: str, name: str) -> bytes:
    """Return a file of /proc about a process. Agents read hundreds of them at once, so this must be fast."""
    with open(f"{PROC}/{pid}/{name}", "rb", buffering=0) as file:
        return file.read()


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
        self._groups: set[int] = set()

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
        if sys.platform != "linux":
            return self._probe_group()
        table, me = list_processes(), os.getpid()
        spared = ancestry(me, table)
        others = (pid for pid in table if pid not in spared)
        found = [pid for pid in others if me in ancestry(pid, table) or self._is_marked(pid)]
        self._groups |= {table[pid].group for pid in found} - {0, 1, os.getpgrp()}
        return found

    def kill_all(self) -> list[int]:
        """Kill all processes of the job, until several looks in a row find none. Return what is left. [UNIT-2]

        A process that forks and ends over and over has another id whenever it is looked for. Its group has not, and is
        killed as a whole. One look can miss a process that begins behind it.
        """
        empty = 0
        for _ in range(KILL_ROUNDS):
            found = self.all_of_job()
            empty = 0 if found else empty + 1
            if empty == LOOKS:
                return []
            _signal_all([*found, *(-group for group in self._groups)], signal.SIGKILL)
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


def _signal_all(pids: Iterable[int], number: int) -> None:
    """Signal processes, some of which may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


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


class Declined(Exception):
    """The agent refuses a request of a task. The message says why."""


def text_environment(env: Any) -> dict[str, str]:
    """Return an environment with texts only: a script may write anything to the socket."""
    return {str(name): str(value) for name, value in dict(env).items()}


def check_name(name: str, known: Collection[str], what: str) -> None:
    """Make sure that a name is valid and new, and that there is room for it. Raises Declined."""
    if not NAME_PATTERN.fullmatch(name):
        raise Declined(f"{name!r} is no name: 1 to 48 of A-Z a-z 0-9 . _ -")
    if name in known:
        raise Declined(f"there is a {what} {name} already")
    if len(known) >= MOST_NAMES:
        raise Declined(f"there are {MOST_NAMES} of a {what} already, which is the limit")


@dataclass(frozen=True)
class BackgroundProcess:
    """A background process, with the reader of its output."""

    name: str
    child: subprocess.Popen[bytes]
    pump: OutputReader
    reader: threading.Thread


class Background:
    """The running task's background processes. The agent starts them, so that it can log their output and end them.

    The lock keeps `check` from reaping a process that has just been started.
    """

    def __init__(self, put: Put, mask: Mask, processes: JobProcesses, line_bytes: int, machine: Machine) -> None:
        self._put, self._mask, self._processes, self._line_bytes = put, mask, processes, line_bytes
        self._machine = machine
        self._lock = threading.Lock()
        self._all: dict[str, BackgroundProcess] = {}
        self._task: int | None = None  # none are started while no task runs

    def begin(self, task: int) -> None:
        """Accept processes of this task from now on."""
        with self._lock:
            self._task = task

    def start(self, ask: dict[str, Any]) -> None:
        """Start a process with the command, environment and folder of the request. Raises Declined."""
        name, command = str(ask["name"]), [str(each) for each in ask["command"]]
        with self._lock:
            if self._task is None:
                raise Declined("the task is over")
            check_name(name, self._all, "process")
            try:
                child = subprocess.Popen(
                    command, cwd=ask["cwd"], env=text_environment(ask["env"]), start_new_session=True,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    **self._machine.popen_options(),
                )  # fmt: skip
            except (OSError, ValueError) as why:
                raise Declined(f"{command[0]} cannot be started: {why}") from None
            self._all[name] = self._attended(name, child, self._task)
        self._say(self._task, f'started background process "{name}" (pid {child.pid})')

    def _attended(self, name: str, child: subprocess.Popen[bytes], task: int) -> BackgroundProcess:
        def put(stream: str, index: int | None, text: str) -> None:
            self._put(f"bg.{name}.{stream}", index, text)

        pump = OutputReader(child, task, self._line_bytes, self._mask, put)
        reader = threading.Thread(target=pump.run, name=f"pump of {name}", daemon=True)
        reader.start()
        return BackgroundProcess(name, child, pump, reader)

    def check(self, keep: int) -> None:
        """Report processes that have ended, then reap dead orphans, except the task's process `keep`."""
        with self._lock:
            for each in [each for each in self._all.values() if each.child.poll() is not None]:
                self._report_exit(each, self._all.pop(each.name).child.returncode)
            reap_orphans({keep, *(each.child.pid for each in self._all.values())})

    def end(self, grace: Callable[[], float]) -> None:
        """End all of them and their descendants: the task is over."""
        with self._lock:
            left, task = list(self._all.values()), self._task
            self._all, self._task = {}, None
        if not left:
            return
        roots = {each.child.pid for each in left if each.child.poll() is None}
        ended = end_processes(lambda: self._processes.in_sessions(roots), grace)
        for each in left:
            each.child.wait()
            each.reader.join(PIPE_SECONDS)
            each.pump.last_call()
            each.reader.join()
        if ended.count:
            names = ", ".join(each.name for each in left)
            self._say(task, f"ended the background processes of the task ({names}); they got {ended}")

    def _report_exit(self, each: BackgroundProcess, code: int) -> None:
        how = f"was killed by signal {signal_name(-code)}" if code < 0 else f"exited with code {code}"
        self._say(self._task, f'background process "{each.name}" {how}')

    def _say(self, task: int | None, text: str) -> None:
        self._put("task", task, text)
