"""The `process` factory: a worker is a local process that runs the agent, in a private folder.

Each worker has a folder in the factory's home. Any process can list the workers by their folders:

    <home>/workers/<id>/agent.pyz    a copy of the agent: the function's own copy may be deleted while it runs
                        agent.json   the agent's configuration, with its bootstrap key; mode 0600
                        pid          the agent's process id and start time, so that a reused process id is noticed
                        agent.log    the agent's output
                        root/        the job's private root
                        gone         written when the worker is destroyed, so that a late `create` makes nothing

Processes of this machine are found and ended by a tag in their environment, or by a record of their id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from penstock import agentfile
from penstock.agent.removal import remove_tree
from penstock.domain.units.units import CleanProof
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet, Order, Ready

TAG = "PENSTOCK_WORKER_ID"
"""The environment variable that every process of a worker inherits."""


class ProcessFactory:
    """Makes workers on the machine of the local cloud. In AWS Lambda it refuses to work."""

    reusable = True

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        home = environment.get("PENSTOCK_HOME")
        if not home:
            raise Misconfigured(
                "the process driver works only with the local cloud; choose another driver for a deployment in AWS"
            )
        self._workers = Path(home) / "workers"
        self._python = settings.get("python", sys.executable)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings: the only one is the Python that runs the agent."""
        unknown = [
            f"the process driver has no setting {key!r}; it takes: python" for key in settings if key != "python"
        ]
        if not isinstance(settings.get("python", ""), str):
            unknown.append("python must be the path of a Python 3.9 or newer")
        return unknown

    def create(self, order: Order) -> Ready | NotYet:
        """Start the agent, unless it was started before. Raises Misconfigured if it cannot be started."""
        folder = self._workers / order.id
        try:
            return self._create(order, folder)
        except OSError as error:
            if not tagged(TAG, order.id):
                with suppress(OSError):
                    (folder / "claimed").unlink()
            raise Misconfigured(f"the agent cannot be started: {error}") from error

    def _create(self, order: Order, folder: Path) -> Ready | NotYet:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (folder / "gone").exists():
            return Ready()
        try:
            claim = os.open(folder / "claimed", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return Ready()
        os.close(claim)
        self._spawn(order, folder)
        if (folder / "gone").exists():  # destroyed meanwhile, so no list shows it: kill it here
            kill(recorded(folder / "pid"), signal.SIGKILL)
            kill_all(TAG, order.id)
        return Ready({"folder": str(folder)})

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Kill every process of the worker and empty its folder. The file `gone` and the agent's log remain."""
        try:
            return self._destroy(self._workers / unit, unit, now)
        except OSError as error:
            raise Misconfigured(f"the worker's folder cannot be emptied: {error}") from error

    def _destroy(self, folder: Path, unit: str, now: datetime) -> CleanProof | NotYet:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "gone").touch()
        kill(recorded(folder / "pid"), signal.SIGKILL)
        if not kill_all(TAG, unit):
            return NotYet(1, "its processes are being killed")
        for entry in folder.iterdir():
            if entry.name not in ("gone", "agent.log"):
                remove_tree(str(entry))
        return CleanProof(by="process", time=now, checked=f"no process is tagged {unit}; its folder is empty")

    def list(self) -> Iterable[str]:
        """Workers whose folder has no file `gone`."""
        if not self._workers.is_dir():
            return []
        return [folder.name for folder in self._workers.iterdir() if not (folder / "gone").exists()]

    def _spawn(self, order: Order, folder: Path) -> None:
        config = {"url": order.url, "worker": order.id, "key": order.key, "root": str(folder / "root")}
        handle = os.open(folder / "agent.json", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(config, file)
        agent = folder / "agent.pyz"
        agent.write_bytes(agentfile.build_compiled())
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", TAG: order.id}
        with (folder / "agent.log").open("ab") as log:
            process = subprocess.Popen(
                [self._python, str(agent), "run", "--config", str(folder / "agent.json")],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (folder / "pid").write_text(json.dumps({"pid": process.pid, "started": started(process.pid)}))


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
        with suppress(OSError):
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
        with suppress(ProcessLookupError):
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
