"""The agent of a host: a machine that exists already, and starts a worker's agent for each job. docs/operators/hosts.md

A host runs one job at a time, as a process; or, if the site divides it into parts, a job in each, in containers.

<state>/standing.json    the worker, and how far this host is with it
        session          identifies this agent: another machine of the same name has another session
        worker/          the folder of the worker's own agent
        parts/           the same for each part of a host that is divided: see `hostparts`
        lock             held by this agent while it runs
        root/            the job's root, if no other is given
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .engine import find_engine
from .hostclient import HostClient, HostToken
from .hostloop import HostLoop, HostState
from .hostparts import HostParts
from .hostprocess import WorkerProcess
from .hostuser import check_apart, host_account
from .machine import Machine, adopt_orphans, log, now
from .packed import compile_file

WRONG_USAGE = 2
BUSY_SECONDS = 5.0
AWAY_SECONDS = 300.0


class Host:
    """One host, and the parts into which the site divides it."""

    def __init__(
        self, client: HostClient, state: HostState, machine: Machine, program: bytes, parts: HostParts
    ) -> None:
        self._client, self._state, self._parts, self._stopped = client, state, parts, False
        self._quiet_until = 0.0  # for how long a host that is away does not ask again: each time it comes and goes

        def process(state: HostState, changed: Callable[[], None]) -> WorkerProcess:
            return WorkerProcess(state, compile_file(program), client.url, machine, changed)

        self._loop = HostLoop(client, state, process)

    def serve(self) -> int:
        """Serve until a signal comes. Return the exit code: 1 if the service refuses this host and it has no worker."""
        adopt_orphans()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self._loop.say(f"host {self._client.host}: asking {self._client.url} for work")
        self._loop.resume()
        self._parts.resume()
        while not self._stopped:
            why = self._loop.step(self._turn)
            if why and not self._parts.are_busy:
                log(f"the service refuses this host: {why}")
                return 1
            if why:
                self._loop.wait_refused(why)
            if self._parts.failed:
                return 1
        return self._leave()

    def _turn(self) -> float:
        """One turn. Of a process of the machine and containers beside it, there is only one kind at a time."""
        self._parts.reap_orphans({self._state.pid})
        is_away = self._parts.check()
        if is_away and now() < self._quiet_until:
            return BUSY_SECONDS
        reply = self._loop.ask(leaving=is_away)
        self._quiet_until = now() + AWAY_SECONDS if is_away else 0.0
        parts, busy = int(reply.get("parts") or 0), reply.get("busy") or []
        if self._parts.adjust(*((0, []) if self._state.worker else (parts, busy))) and not is_away:
            return 0.0
        if reply["do"] != "wait" and self._parts.are_busy:
            return BUSY_SECONDS
        return self._loop.act(reply)

    def _leave(self) -> int:
        self._loop.say(f"host {self._client.host}: leaving")
        self._parts.leave()
        self._loop.leave()
        return 0

    def _stop(self, number: int, frame: Any) -> None:
        self._stopped = True
        threading.Thread(target=self._loop.wake.set, daemon=True).start()


def state_folder(name: str) -> Path:
    """Return the default folder for a host's state: under systemd its StateDirectory."""
    given = os.environ.get("STATE_DIRECTORY")
    if given:
        return Path(given)
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home, "penstock", name)


def serve_host(
    url: str,
    host: str,
    token_file: Path | None,
    root: Path | None,
    state: Path | None,
    user: str | None = None,
    containers: str | None = None,
) -> int:
    """Serve as the host's agent until a signal ends it; jobs run as `user`, if given. Return the exit code. [SEC-2]

    `containers`: the command of the container engine in which jobs run if the site divides this host.
    """
    folder = (state or state_folder(host)).absolute()
    token = HostToken(token_file, os.environ.pop("PENSTOCK_TOKEN", ""))
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        machine = Machine(os.path.realpath(root or folder / "root"), host_account(user, root) if user else None)
        machine.make()
        lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        token.read()
        if machine.account:
            check_apart(machine.account, machine, folder, token_file)
        engine = find_engine(containers, folder) if containers else None
    except (OSError, subprocess.SubprocessError) as why:
        log(f"this host cannot be served: {why}")
        return WRONG_USAGE
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        log(f"another agent of a host works in {folder}; give this one a --state of its own")
        return WRONG_USAGE
    saved = HostState.load(folder)
    client = HostClient(url.rstrip("/"), host, token, saved.session())
    program = Path(os.path.realpath(sys.argv[0])).read_bytes()
    return Host(client, saved, machine, program, HostParts(client, folder, program, engine)).serve()
