"""The job's processes."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A living process, as /proc shows it."""

    parent: int
    group: int


def processes() -> dict[int, Process]:
    """Return all living processes by id."""
    found = {}
    for name in os.listdir(PROC):
        if name.isdigit():
            with contextlib.suppress(OSError):
                text = (PROC / name / "stat").read_text(errors="replace")
                state, parent, group = text.rpartition(")")[2].split()[:3]
                if state not in "ZX":
                    found[int(name)] = Process(int(parent), int(group))
    return found


def lineage(pid: int, table: dict[int, Process]) -> list[int]:
    """Return a process and its ancestors."""
    line: list[int] = []
    while pid in table and pid not in line:
        line.append(pid)
        pid = table[pid].parent
    return line


class Family:
    """Finds the job's processes. `group` is that of the running task; without /proc it is all that is found."""

    def __init__(self, worker: str) -> None:
        self._mark = f"PENSTOCK_WORKER_ID={worker}".encode()
        self.group = 0

    def of_task(self) -> list[int]:
        """Return the living members of the task's process group."""
        if sys.platform != "linux":
            return self._probe_group()
        return [pid for pid, process in processes().items() if process.group == self.group]

    def of_sessions(self, leaders: set[int]) -> list[int]:
        """Return the living processes of the groups that these lead, and their descendants."""
        if sys.platform != "linux":
            return [pid for leader in leaders for pid in _probe(leader)]
        table = processes()
        return [pid for pid, each in table.items() if each.group in leaders or leaders & set(lineage(pid, table))]

    def everybody(self) -> list[int]:
        """Return the agent's descendants, and whoever has the worker's id in its environment.

        The latter finds what an agent that crashed has left. [JOB-2]
        """
        if sys.platform != "linux":
            return self._probe_group()
        table, me = processes(), os.getpid()
        spared = lineage(me, table)
        others = (pid for pid in table if pid not in spared)
        return [pid for pid in others if me in lineage(pid, table) or self._is_marked(pid)]

    def _is_marked(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            return self._mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        return False

    def _probe_group(self) -> list[int]:
        return _probe(self.group) if self.group else []


def _probe(group: int) -> list[int]:
    """Return what signals a whole group, if anybody is left in it."""
    with contextlib.suppress(OSError):
        os.kill(-group, 0)
        return [-group]
    return []
