"""The `process` factory: a worker is a local process that runs the agent, in a private folder.

Each worker has one folder below the factory's home, which is the tag that every other process can see:

    <home>/workers/<id>/agent.pyz    a copy of the agent, for a function's own copy may vanish under it
                        agent.json   where to dial, who to be, and the bootstrap key; mode 0600
                        pid          the agent's process id and when it started, so that a reused id is not mistaken
                        agent.log    what the agent says
                        root/        the job's private root
                        gone         written when the worker was cleaned up, so that a late order makes nothing
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from penstock import agentfile, processes
from penstock.domain.units.units import CleanProof
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet, Order, Ready

TAG = "PENSTOCK_WORKER_ID"
"""The environment variable that every process of a worker inherits."""


class ProcessFactory:
    """Makes workers beside the local cloud. In a Lambda of a real account it refuses to work."""

    keeps = True

    def __init__(self, settings: Mapping[str, Any], surroundings: Mapping[str, str]) -> None:
        home = surroundings.get("PENSTOCK_HOME")
        if not home:
            raise Misconfigured("the process factory makes workers only beside the local cloud")
        self._workers = Path(home) / "workers"
        self._python = settings.get("python", sys.executable)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """The one setting is the Python that runs the agent."""
        unknown = [
            f"the process driver has no setting {key!r}; it takes: python" for key in settings if key != "python"
        ]
        if not isinstance(settings.get("python", ""), str):
            unknown.append("python must be the path of a Python 3.9 or newer")
        return unknown

    def create(self, order: Order) -> Ready | NotYet:
        """Start the agent, unless it was started before. Raises Misconfigured where none can be started."""
        folder = self._workers / order.id
        try:
            return self._create(order, folder)
        except OSError as error:
            if not processes.tagged(TAG, order.id):
                with suppress(OSError):
                    (folder / "claimed").unlink()
            raise Misconfigured(f"no agent can be started: {error}") from error

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
        if (folder / "gone").exists():  # it was cleaned while it was being made, and is in no list: nobody else will
            processes.kill(processes.tagged(TAG, order.id) | processes.recorded(folder / "pid"), signal.SIGKILL)
        return Ready({"folder": str(folder)})

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Kill every process of the worker and remove its folder; what remains is a note that it is gone."""
        try:
            return self._destroy(self._workers / unit, unit, now)
        except OSError as error:
            raise Misconfigured(f"the worker cannot be cleaned up: {error}") from error

    def _destroy(self, folder: Path, unit: str, now: datetime) -> CleanProof | NotYet:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "gone").touch()
        alive = processes.tagged(TAG, unit) | processes.recorded(folder / "pid")
        processes.kill(alive, signal.SIGKILL)
        if processes.tagged(TAG, unit):
            return NotYet(1, "its processes are being killed")
        for entry in folder.iterdir():
            if entry.name not in ("gone", "agent.log"):
                shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
        return CleanProof(by="process", time=now, checked=f"no process is tagged {unit}; its folder is empty")

    def list(self) -> Iterable[str]:
        """Workers with a folder that are not noted as gone."""
        if not self._workers.is_dir():
            return []
        return [folder.name for folder in self._workers.iterdir() if not (folder / "gone").exists()]

    def _spawn(self, order: Order, folder: Path) -> None:
        config = {"url": order.url, "worker": order.id, "key": order.key, "root": str(folder / "root")}
        handle = os.open(folder / "agent.json", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(config, file)
        agent = folder / "agent.pyz"
        agent.write_bytes(agentfile.build())
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
        (folder / "pid").write_text(json.dumps({"pid": process.pid, "started": processes.started(process.pid)}))
