"""A process that has loaded the agent, and forks itself for each agent that a test starts.

To load the agent's modules takes longer than most jobs of the tests. A fork has them already; in all else it is a
process like one that `agent.pyz` was started in: a session of its own, with its own arguments, environment and log.

The program runs on the Python that agents run on: `python fork_server.py SOCKET agent.pyz`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

BIGGEST_REQUEST = 1 << 20
STARTED_WITHIN_SECONDS = 60.0


class Forked:
    """An agent that was forked, with the methods of subprocess.Popen that tests use."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb")
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the agent runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the agent's end and return its exit code. Raises TimeoutExpired."""
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._connection, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired("agent", timeout or 0)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to an agent that still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The test's side of a server."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], log: int) -> Forked:
        """Start an agent whose standard error is the file descriptor `log`."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._path)
        request = {"arguments": list(arguments), "environment": dict(environment), "folder": os.getcwd()}
        socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], [log])
        return Forked(connection)


@contextlib.contextmanager
def running(python: str, agent: Path, folder: Path) -> Iterator[ForkServer]:
    """Run a server of an agent's file, with its socket in a folder."""
    path = folder / "forks"
    with subprocess.Popen([python, __file__, str(path), str(agent)], stdin=subprocess.PIPE) as server:
        until = time.monotonic() + STARTED_WITHIN_SECONDS
        while not path.exists():
            assert server.poll() is None, "the fork server did not start"
            assert time.monotonic() < until, "the fork server did not start in time"
            time.sleep(0.01)
        yield ForkServer(path)


class Server:
    """The server's side: it lives until its standard input ends, so that it does not outlive the tests."""

    def __init__(self, path: str) -> None:
        self._children: dict[int, socket.socket] = {}
        self._ends, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno())
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{path}.new")
        self._listener.listen()
        os.rename(f"{path}.new", path)  # who sees it may connect

    def serve(self) -> list[str] | None:
        """Fork for each request. Return the arguments in a forked process, and None when the tests are over."""
        with selectors.DefaultSelector() as selector:
            for each in (sys.stdin, self._ends, self._listener):
                selector.register(each, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._ends in ready:
                    self._ends.recv(4096)
                    self._report()
                if self._listener in ready:
                    arguments = self._fork()
                    if arguments is not None:
                        return arguments
                if sys.stdin in ready:
                    return None

    def _report(self) -> None:
        """Tell the tests of the agents that have ended."""
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with self._children.pop(pid) as connection, contextlib.suppress(OSError):
                connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))

    def _fork(self) -> list[str] | None:
        """Fork for a request. Return the arguments in the forked process."""
        connection, _ = self._listener.accept()
        request, log = _read_request(connection)
        pid = os.fork()
        if pid:
            os.close(log)
            self._children[pid] = connection
            connection.sendall(b"%d\n" % pid)
            return None
        self._children[0] = connection
        self._let_go()
        _become(request, log)
        arguments: list[str] = request["arguments"]
        return arguments

    def _let_go(self) -> None:
        """In a forked process: have nothing that is the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (self._ends, self._wake, self._listener, *self._children.values()):
            each.close()


def _read_request(connection: socket.socket) -> tuple[dict[str, Any], int]:
    """Return a request and the file descriptor that came with it."""
    data, (log,), _, _ = socket.recv_fds(connection, BIGGEST_REQUEST, 1)
    while not data.endswith(b"\n"):
        data += connection.recv(BIGGEST_REQUEST)
    request: dict[str, Any] = json.loads(data)
    return request, log


def _become(request: dict[str, Any], log: int) -> None:
    """Make a forked process what Popen would have made of it."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 2)
    os.close(nothing)
    os.close(log)


def main(path: str, program: str) -> int:
    """Serve with the agent in a file; in a forked process, be the agent."""
    sys.path[0] = program  # as for a program that is a zip file
    import agent.host
    import agent.worker  # noqa: F401
    from agent.__main__ import main as agent_main

    gc.freeze()  # or each fork would copy what its garbage collector looks at
    arguments = Server(path).serve()
    if arguments is None:
        return 0
    sys.argv = [program, *arguments]
    code = agent_main(sys.argv)
    threading._shutdown()  # type: ignore[attr-defined]  # all that Python does at its end but to free its memory
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
