"""Finding and ending processes of this machine, by a tag in their environment or by a record of their id."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

PROC = Path("/proc")


def tagged(name: str, value: str) -> set[int]:
    """Processes whose environment has name=value: by /proc on Linux, else by `ps`."""
    if not PROC.is_dir():
        return _tagged_by_ps(f"{name}={value}")
    wanted = f"{name}={value}".encode()
    found = set()
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0") and not _is_zombie(entry):
                found.add(int(entry.name))
    return found - {os.getpid()}


def _is_zombie(entry: Path) -> bool:
    return (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _tagged_by_ps(wanted: str) -> set[int]:
    listed = subprocess.run(["ps", "-Eww", "-Ao", "pid=,command="], capture_output=True, text=True, check=False)
    lines = [line.split(None, 1) for line in listed.stdout.splitlines()]
    return {int(line[0]) for line in lines if len(line) == 2 and wanted in line[1].split()} - {os.getpid()}


def started(pid: int) -> str:
    """When a process started, in the machine's own terms; empty when it is gone. Tells a reused id from its first."""
    if not PROC.is_dir():
        listed = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return listed.stdout.strip()
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def recorded(path: Path) -> set[int]:
    """The process that a file records as {"pid", "started"}, while it is the same and alive."""
    try:
        record = json.loads(path.read_text())
        pid, since = int(record["pid"]), str(record["started"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {pid} if since and started(pid) == since else set()


def kill(pids: set[int], number: signal.Signals) -> None:
    """Send a signal to each; those that are gone are fine."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


LOOKS = 3
"""After how many looks in a row that find nothing there is nothing. One look misses what is started behind it by a
process that has ended when its turn comes, and a process that just starts a program: that has no environment yet.
"""


def kill_all(name: str, value: str, tries: int = 40) -> bool:
    """Kill the processes that are tagged until there are none: one may start another while it is killed.

    Returns whether there are none any more; a process that a device keeps waiting may take longer than a second to die.
    """
    empty = 0
    for _ in range(tries):
        alive = tagged(name, value)
        kill(alive, signal.SIGKILL)
        empty = 0 if alive else empty + 1
        if empty == LOOKS:
            return True
        time.sleep(0.025)
    return False
