"""The worker's own agent: a process of its own, which goes on when this one dies. It holds a lock while it lives."""

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

from .config import write_secret
from .log import now
from .standing import WORKING, Standing

TERM_SECONDS = 20.0  # the agent gives its job 2 s, and sends nothing then
LOOK_SECONDS = 0.5


class Crew:
    """Starts the worker's agent, and knows whether it lives. `changed` is called when it ends."""

    def __init__(self, standing: Standing, program: str, url: str, root: str, changed: Callable[[], None]) -> None:
        self._standing, self._program, self._changed = standing, program, changed
        self._about = {"url": url, "root": root}

    def enrol(self, worker: str, key: str) -> None:
        """Write down who the agent is to be: after this it may be started, and again after a crash."""
        folder = self._standing.crew
        folder.mkdir(mode=0o700, exist_ok=True)
        for old in ("token", "progress"):
            with contextlib.suppress(FileNotFoundError):
                (folder / old).unlink()
        write_secret(folder / "agent.json", json.dumps({"worker": worker, "key": key, **self._about}))
        self._standing.note(worker, WORKING)

    def start(self) -> None:
        """Start the agent. One that was started before, and has begun, runs nothing twice: see `life`. [JOB-2]"""
        lock = self._take()
        if lock is None:
            return
        config = self._standing.crew / "agent.json"
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        command = [sys.executable, self._program, "run", "--config", str(config)]
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, pass_fds=(lock,))
        os.close(lock)
        self._standing.note(self._standing.worker, WORKING, pid=child.pid)
        threading.Thread(target=self._wait, args=(child,), daemon=True).start()

    def _wait(self, child: subprocess.Popen[bytes]) -> None:
        child.wait()
        self._changed()

    def lives(self) -> bool:
        """Tell whether the agent runs, also one that an earlier agent of this host started."""
        lock = self._take()
        if lock is None:
            return True
        os.close(lock)
        return False

    def end(self) -> None:
        """End the agent, which ends its job. Raises OSError when it does not end."""
        for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, TERM_SECONDS)):
            until = now() + seconds
            while self.lives() and now() < until:
                if self._standing.pid > 0:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self._standing.pid, number)
                time.sleep(LOOK_SECONDS)
        if self.lives():
            raise OSError(f"the agent {self._standing.pid} does not end")

    def _take(self) -> int | None:
        """Take the lock of the agent; None while it lives."""
        self._standing.crew.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(self._standing.crew / "alive", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        return lock
