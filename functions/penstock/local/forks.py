"""The near end of a fork server: processes that start in milliseconds, since what they import is there already."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from penstock.local import forkserver


class ForkServer:
    """Runs a script in one new process after the other, each with an environment and a folder of its own.

    It ends with this object, and the processes with the last that holds their input.
    """

    def __init__(self, script: Path, folders: Iterable[Path], environment: Mapping[str, str]) -> None:
        self._asking, asked = socket.socketpair()
        with asked:
            self._process = subprocess.Popen(
                [sys.executable, "-P", forkserver.__file__, str(asked.fileno()), str(script), *map(str, folders)],
                stdin=subprocess.DEVNULL,
                env=environment,
                pass_fds=[asked.fileno()],
            )

    def start(self, environment: Mapping[str, str], folder: Path) -> Forked:
        """A new process. Raises OSError where the server is gone."""
        stdin, stdout, stderr, life = (os.pipe() for _ in range(4))
        forked, theirs = Forked(stdin[1], stdout[0], stderr[0], life[0]), [stdin[0], stdout[1], stderr[1], life[1]]
        try:
            socket.send_fds(self._asking, [b"."], theirs)
        finally:
            for each in theirs:
                os.close(each)
        forked.begin(environment, folder)
        return forked


class Forked:
    """What the emulator asks of a subprocess.Popen, of a process that is a child of a fork server."""

    pid: int

    def __init__(self, stdin: int, stdout: int, stderr: int, life: int) -> None:
        self.stdin, self.stdout, self.stderr = open(stdin, "w", buffering=1), open(stdout), open(stderr)  # noqa: SIM115
        self._life = open(life, "rb", buffering=0)  # noqa: SIM115  # all are closed with this

    def begin(self, environment: Mapping[str, str], folder: Path) -> None:
        """Tell it where it is, and learn its id. Raises OSError if there is nobody to tell."""
        self.stdin.write(json.dumps({"env": environment, "cwd": str(folder)}) + "\n")
        said = self.stdout.readline()
        if not said:
            raise ProcessLookupError("the function's process ended at once")
        self.pid = int(said)

    def poll(self) -> int | None:
        """0 when it has ended, however it did."""
        return 0 if self._has_ended(0) else None

    def wait(self, timeout: float) -> int:
        """Wait until it has ended. Raises TimeoutExpired."""
        if self._has_ended(timeout):
            return 0
        raise subprocess.TimeoutExpired(str(self.pid), timeout)

    def terminate(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _has_ended(self, seconds: float) -> bool:
        """The kernel closes the other end of this when the process ends; nobody writes to it."""
        poll = select.poll()
        poll.register(self._life)
        return bool(poll.poll(seconds * 1000))
