"""The agent of a host: a machine that exists already, and starts a worker's agent for each job. docs/operators/hosts.md

It asks the service what to do, does it, and reports it. From its files a restarted agent knows where to continue:
[JOB-2] [UNIT-2]

<state>/standing.json    the worker, and how far this host is with it
        session          identifies this agent: another machine of the same name has another session
        worker/          the folder of the worker's own agent
        lock             held by this agent while it runs
        root/            the job's root, if no other is given
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import VERSION
from .client import Refused, ServiceError, Unreachable, backoffs, http_request, is_transient, looks, wait_for_bell
from .health import remove_leftovers
from .hostuser import check_apart, host_account
from .machine import JobProcesses, Machine, adopt_orphans, log, now, reap_orphans, write_secret
from .packed import compile_file
from .removal import remove_tree

WRONG_USAGE = 2
WORKING, ENDED, CLEAN = "working", "ended", "clean"
CALL_SECONDS = 15.0
TEXT_CHARS = 300
TERM_SECONDS = 20.0  # for the agent to end: its job gets 2 s of them, and it makes no more calls
POLL_SECONDS = 0.5
TAKEN = 409  # the status if another agent serves this host
REFUSED_SECONDS = 15.0
STUCK_SECONDS = 30.0


@dataclass
class HostState:
    """The worker that holds this host (empty: none), and how far the host is with it."""

    folder: Path
    worker: str = ""
    stage: str = WORKING
    cleaned: str = ""
    pid: int = 0

    @classmethod
    def load(cls, folder: Path) -> HostState:
        """Read the state. Raises OSError or ValueError for a file that cannot be read."""
        path = folder / "standing.json"
        return cls(folder, **(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}))

    def note(self, worker: str, stage: str, cleaned: str = "", pid: int = 0) -> None:
        """Write the state, before the host acts on it."""
        self.worker, self.stage, self.cleaned, self.pid = worker, stage, cleaned, pid
        state = {"worker": worker, "stage": stage, "cleaned": cleaned, "pid": pid}
        write_secret(self.folder / "standing.json", json.dumps(state))

    def forget(self) -> None:
        """Remove what is left of the last worker: this host is free."""
        with contextlib.suppress(OSError):
            remove_tree(str(self.worker_folder))
        self.note("", WORKING)

    @property
    def worker_folder(self) -> Path:
        """The folder of the worker's own agent."""
        return self.folder / "worker"

    def session(self) -> str:
        """Return what identifies this agent; chosen once."""
        path = self.folder / "session"
        if not path.exists():
            write_secret(path, secrets.token_urlsafe(48))
        return path.read_text(encoding="ascii").strip()


class HostToken:
    """The token of the host's user. Its file is read for each call, so that it can be replaced."""

    def __init__(self, path: Path | None, given: str) -> None:
        self._path, self._given = path, given

    def read(self) -> str:
        """Return the token. Raises OSError when there is none."""
        found = self._path.read_text(encoding="ascii").strip() if self._path else self._given
        if not found:
            raise OSError("it has no token: give --token-file, or PENSTOCK_TOKEN")
        return found


class HostClient:
    """Calls to the host API."""

    def __init__(self, url: str, host: str, token: HostToken, session: str) -> None:
        self.url, self.host = url, host
        self._token, self._session = token, session

    def ask(self, worker: str, stage: str, cleaned: str, trouble: str = "", leaving: bool = False) -> dict[str, Any]:
        """Report this host's state; return what to do. Raises Unreachable, Refused, or OSError without a token."""
        body = {
            "session": self._session,
            "machine": socket.gethostname()[:255],
            "version": VERSION,
            "worker": worker,
            "stage": stage,
            "cleaned": cleaned[:TEXT_CHARS],
            "trouble": trouble[:TEXT_CHARS],
            "leaving": leaving,
        }
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token.read()}"}
        url = f"{self.url}/v1/agent/hosts/{self.host}"
        status, answer = http_request("POST", url, json.dumps(body).encode(), headers, CALL_SECONDS)
        if is_transient(status):
            raise Unreachable(f"HTTP {status}")
        try:
            reply = json.loads(answer)
        except ValueError:
            raise Unreachable(f"HTTP {status} with a body that is not JSON") from None
        if status >= 300:
            raise Refused(status, str(reply.get("detail", "")))
        return dict(reply)


class WorkerProcess:
    """The worker's own agent: a process of its own, which outlives this one, and holds a lock while it runs.

    `changed` is called when it ends.
    """

    def __init__(
        self, state: HostState, program: bytes, url: str, machine: Machine, changed: Callable[[], None]
    ) -> None:
        self._state, self._program, self._changed = state, program, changed
        self._about = {"url": url, "root": machine.root}
        if machine.account:
            self._about["user"] = machine.account.name

    def configure(self, worker: str, key: str) -> None:
        """Write the worker's config. From now on its agent may be started, also again after a crash."""
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


class Host:
    """One host. A restart needs only `state`; everything else can be lost."""

    def __init__(self, client: HostClient, state: HostState, machine: Machine, program: bytes) -> None:
        self._client, self._state, self._machine = client, state, machine
        self._wake, self._stopped = threading.Event(), False
        self._worker = WorkerProcess(state, program, client.url, machine, self._wake.set)
        self._delays, self._trouble, self._last_logged = backoffs(), "", ""
        self._bell: str | None = None
        self._looks = looks()

    def serve(self) -> int:
        """Serve until a signal comes. Return the exit code: 1 if the service refuses this host and it has no worker."""
        adopt_orphans()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self._say(f"host {self._client.host}: asking {self._client.url} for work")
        if self._state.worker and self._state.stage == WORKING:
            self._worker.start()
        while not self._stopped:
            try:
                self._pause(self._turn())
            except Refused as why:
                if why.status != TAKEN and not self._state.worker:
                    log(f"the service refuses this host: {why}")
                    return 1
                self._say(f"the service refuses this host for now: {why}")
                self._pause(REFUSED_SECONDS)
            except (ServiceError, OSError) as why:
                self._say(f"host {self._client.host}: {why}")
                self._pause(next(self._delays))
        return self._leave()

    def _turn(self) -> float:
        """Ask the service, and do what it answers. Return how many seconds to wait."""
        reap_orphans({self._state.pid})
        mine, self._bell = self._state, None
        if mine.worker and mine.stage == WORKING and not self._worker.lives():
            mine.note(mine.worker, ENDED)
        reply = self._client.ask(mine.worker, mine.stage, mine.cleaned, self._trouble)
        self._delays, self._bell = backoffs(), reply.get("bell")
        if reply["do"] == "work":
            return self._work(reply)
        if reply["do"] == "clean":
            return self._clean(reply["worker"])
        if reply["do"] == "forget":
            return self._forget()
        return float(reply["seconds"])

    def _work(self, reply: dict[str, Any]) -> float:
        if not self._state.worker:
            self._say(f"host {self._client.host}: here is worker {reply['worker']}")
            self._worker.configure(reply["worker"], reply["key"])
            self._worker.start()
        return float(reply["lease_seconds"]) / 4

    def _clean(self, worker: str) -> float:
        """Remove what a worker left. Report what cannot be removed, and try again: somebody may repair it."""
        self._worker.end()
        self._state.note(worker, ENDED)
        try:
            cleaned = remove_leftovers(JobProcesses(worker), self._machine, str(self._state.folder), f"worker {worker}")
        except OSError as why:
            self._trouble = str(why)
            self._say(f"host {self._client.host} cannot be cleaned: {why}")
            return STUCK_SECONDS
        self._trouble = ""
        self._state.note(worker, CLEAN, cleaned)
        self._say(f"host {self._client.host} is clean after worker {worker}")
        return 0.0

    def _forget(self) -> float:
        """Forget a worker that the service took away. The host is not free before it is clean. [UNIT-2]"""
        if self._state.stage != CLEAN:
            pause = self._clean(self._state.worker)
            if pause:
                return pause
        self._state.forget()
        self._looks = looks()
        return 0.0

    def _leave(self) -> int:
        """End the worker's agent, and report that the host leaves: the job can run elsewhere at once."""
        self._say(f"host {self._client.host}: leaving")
        mine = self._state
        try:
            if mine.worker and mine.stage == WORKING:
                self._worker.end()
                mine.note(mine.worker, ENDED)
            self._client.ask(mine.worker, mine.stage, mine.cleaned, leaving=True)
        except (ServiceError, OSError) as why:
            log(f"host {self._client.host}: {why}")
        return 0

    def _pause(self, seconds: float) -> None:
        """Wait, at most until the bell rings, the worker's agent ends, or a signal comes."""
        wait_for_bell(self._bell, seconds, self._looks, self._wake.wait)
        self._wake.clear()

    def _stop(self, number: int, frame: Any) -> None:
        self._stopped = True
        threading.Thread(target=self._wake.set, daemon=True).start()

    def _say(self, text: str) -> None:
        """Log a text, unless it is the last one again."""
        if text != self._last_logged:
            log(text)
        self._last_logged = text


def state_folder(name: str) -> Path:
    """Return the default folder for a host's state: under systemd its StateDirectory."""
    given = os.environ.get("STATE_DIRECTORY")
    if given:
        return Path(given)
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home, "penstock", name)


def serve_host(
    url: str, host: str, token_file: Path | None, root: Path | None, state: Path | None, user: str | None = None
) -> int:
    """Serve as the host's agent until a signal ends it; jobs run as `user`, if given. Return the exit code. [SEC-2]"""
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
    program = compile_file(Path(os.path.realpath(sys.argv[0])).read_bytes())
    return Host(client, saved, machine, program).serve()
