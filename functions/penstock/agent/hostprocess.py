"""The worker of a host that runs one job at a time: a process of its own on the machine."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .health import remove_leftovers
from .hostloop import WORKING, HostState
from .machine import JobProcesses, Machine, now, write_secret

TERM_SECONDS = 20.0  # for the agent to end: its job gets 2 s of them, and the rest of the log 4 s
POLL_SECONDS = 0.5


class WorkerProcess:
    """The worker's own agent: a process of its own, which outlives this one, and holds a lock while it runs.

    `changed` is called when it ends.
    """

    def __init__(
        self, state: HostState, program: bytes, url: str, machine: Machine, changed: Callable[[], None]
    ) -> None:
        self._state, self._program, self._machine, self._changed = state, program, machine, changed
        self._about = {"url": url, "root": machine.root}
        if machine.account:
            self._about["user"] = machine.account.name

    def configure(self, order: dict[str, Any]) -> None:
        """Write the worker's config. From now on its agent may be started, also again after a crash."""
        worker, key = order["worker"], order["key"]
        folder = self._state.worker_folder
        folder.mkdir(mode=0o700, exist_ok=True)
        for old in ("token", "progress"):
            with contextlib.suppress(FileNotFoundError):
                (folder / old).unlink()
        write_secret(folder / "agent.json", json.dumps({"worker": worker, "key": key, **self._about}))
        self._state.note(worker, WORKING)

    def start(self) -> None:
        """Start the agent. If it began its job before, it does not run the job again: see `worker`. [JOB-2]"""
        lock = self._take()
        if lock is None:
            return
        config, program = self._state.worker_folder / "agent.json", self._state.worker_folder / "agent.pyz"
        program.write_bytes(self._program)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        command = [sys.executable, str(program), "run", "--config", str(config)]
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, pass_fds=(lock,))
        os.close(lock)
        self._state.note(self._state.worker, WORKING, pid=child.pid)
        threading.Thread(target=self._wait, args=(child,), daemon=True).start()

    def _wait(self, child: subprocess.Popen[bytes]) -> None:
        child.wait()
        self._changed()

    def lives(self) -> bool:
        """Return whether the agent runs, also if an earlier agent of this host started it."""
        lock = self._take()
        if lock is None:
            return True
        os.close(lock)
        return False

    def end(self) -> None:
        """End the agent, and with it its job. Raises OSError if it does not end."""
        for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, TERM_SECONDS)):
            until = now() + seconds
            while self.lives() and now() < until:
                if self._state.pid > 0:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self._state.pid, number)
                time.sleep(POLL_SECONDS)
        if self.lives():
            raise OSError(f"the agent {self._state.pid} does not end")

    def fault(self) -> str:
        """Return "": an agent that cannot be started raises when it is started."""
        return ""

    def clean(self, worker: str) -> str:
        """End what the worker left, and remove its files. Return what was checked. Raises OSError. [UNIT-2]"""
        return remove_leftovers(JobProcesses(worker), self._machine, str(self._state.folder), f"worker {worker}")

    def _take(self) -> int | None:
        """Take the agent's lock. Return None while the agent runs."""
        self._state.worker_folder.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(self._state.worker_folder / "alive", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        return lock
