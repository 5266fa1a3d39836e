"""The loop of a host, or of a part of one: asks the service what to do with its worker, does it, and reports it.

From its files a restarted agent knows where to continue: [JOB-2] [UNIT-2]

<folder>/standing.json   the worker, and how far this host, or this part of it, is with it
         worker/         what the worker needs
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .client import Refused, ServiceError, backoffs, looks, wait_for_bell
from .hostclient import HostClient
from .machine import log, write_secret
from .removal import remove_tree

WORKING, ENDED, CLEAN = "working", "ended", "clean"
TAKEN = 409  # the status if another agent serves this host
REFUSED_SECONDS = 15.0
STUCK_SECONDS = 30.0


@dataclass
class HostState:
    """The worker that holds this host, or this part of it (empty: none), and how far it is with it."""

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
        """The folder of what the worker needs; that of its own agent, if this is a process of the host."""
        return self.folder / "worker"

    def session(self) -> str:
        """Return what identifies this agent; chosen once."""
        path = self.folder / "session"
        if not path.exists():
            write_secret(path, secrets.token_urlsafe(48))
        return path.read_text(encoding="ascii").strip()


class HostWorker(Protocol):
    """How a worker of a host runs: as a process, or as a container."""

    def configure(self, order: dict[str, Any]) -> None:
        """Write down the worker that the service gives. From now on it may be started, also again after a crash."""

    def start(self) -> None:
        """Start the worker's agent, unless it was started before. [JOB-2]"""

    def lives(self) -> bool:
        """Return whether the worker's agent runs, or is about to. Raises OSError if nobody knows."""

    def fault(self) -> str:
        """Return why the worker's agent could not be started; "" if it was."""

    def end(self) -> None:
        """End the worker's agent, and with it its job. Raises OSError if it does not end."""

    def clean(self, worker: str) -> str:
        """Remove what a worker left. Return what was checked, as a proof. Raises OSError. [UNIT-2]"""


Makes = Callable[[HostState, Callable[[], None]], HostWorker]
"""Makes the workers of a state; these call the function when they end."""


class HostLoop:
    """One host, or one part of it, from 1. A restart needs only `state`; everything else can be lost."""

    def __init__(self, client: HostClient, state: HostState, makes: Makes, part: int = 0) -> None:
        self.state, self._client, self._part = state, client, part
        self.name = f"host {client.host}" + (f", part {part}" if part else "")
        self.wake = threading.Event()
        self.worker = makes(state, self.wake.set)
        self._delays, self._trouble, self._last_logged = backoffs(), "", ""
        self._bell: str | None = None
        self._looks = looks()

    def resume(self) -> None:
        """Go on with the worker that an earlier agent of this host had."""
        if self.state.worker and self.state.stage == WORKING:
            self.worker.start()

    def step(self, turn: Callable[[], float]) -> Refused | None:
        """Take one turn, and wait as long as it returns. Return the refusal, if it is one that will stay."""
        try:
            self.pause(turn())
        except Refused as why:
            if why.status != TAKEN and not self.state.worker:
                return why
            self.wait_refused(why)
        except (ServiceError, OSError) as why:
            self.say(f"{self.name}: {why}")
            self.pause(next(self._delays))
        return None

    def wait_refused(self, why: Refused) -> None:
        """Wait before the next turn, as the service refused this one."""
        self.say(f"the service refuses this host for now: {why}")
        self.pause(REFUSED_SECONDS)

    def turn(self) -> float:
        """Ask the service, and do what it answers. Return how many seconds to wait."""
        return self.act(self.ask())

    def ask(self, leaving: bool = False) -> dict[str, Any]:
        """Report how far this host is, and return what to do. Raises ServiceError, OSError."""
        mine, self._bell = self.state, None
        if mine.worker and mine.stage == WORKING:
            self._look()
        reply = self._client.ask(mine.worker, mine.stage, mine.cleaned, self._trouble, leaving, self._part)
        self._delays, self._bell, self._trouble = backoffs(), reply.get("bell"), ""
        return reply

    def _look(self) -> None:
        """Note that the worker's agent has ended, if it has. One of which nobody knows is taken to live."""
        try:
            if not self.worker.lives():
                self.state.note(self.state.worker, ENDED)
                self._trouble = self.worker.fault()
        except OSError as why:
            self._trouble = str(why)
        if self._trouble:
            self.say(f"{self.name}: {self._trouble}")

    def act(self, reply: dict[str, Any]) -> float:
        """Do what the service answered. Return how many seconds to wait. Raises OSError."""
        if reply["do"] == "work":
            return self._work(reply)
        if reply["do"] == "clean":
            return self._clean(reply["worker"])
        if reply["do"] == "forget":
            return self._forget()
        return float(reply["seconds"])

    def _work(self, reply: dict[str, Any]) -> float:
        if not self.state.worker:
            self.say(f"{self.name}: here is worker {reply['worker']}")
            self.worker.configure(reply)
            self.worker.start()
        return float(reply["lease_seconds"]) / 4

    def _clean(self, worker: str) -> float:
        """Remove what a worker left. Report what cannot be removed, and try again: somebody may repair it."""
        try:
            self.worker.end()
            self.state.note(worker, ENDED)
            cleaned = self.worker.clean(worker)
        except OSError as why:
            self._trouble = str(why)
            self.say(f"{self.name} cannot be cleaned: {why}")
            return STUCK_SECONDS
        self._trouble = ""
        self.state.note(worker, CLEAN, cleaned)
        self.say(f"{self.name} is clean after worker {worker}")
        return 0.0

    def _forget(self) -> float:
        """Forget a worker that the service took away. The host is not free before it is clean. [UNIT-2]"""
        if self.state.stage != CLEAN:
            pause = self._clean(self.state.worker)
            if pause:
                return pause
        self.state.forget()
        self._looks = looks()
        return 0.0

    def leave(self) -> None:
        """End the worker's agent, and report that the host leaves: the job can run elsewhere at once."""
        mine = self.state
        try:
            if mine.worker and mine.stage == WORKING:
                self.worker.end()
                mine.note(mine.worker, ENDED)
            self._client.ask(mine.worker, mine.stage, mine.cleaned, leaving=True, part=self._part)
        except (ServiceError, OSError) as why:
            log(f"{self.name}: {why}")

    def pause(self, seconds: float) -> None:
        """Wait, at most until the bell rings, the worker's agent ends, or a signal comes."""
        wait_for_bell(self._bell, seconds, self._looks, self.wake.wait)
        self.wake.clear()

    def say(self, text: str) -> None:
        """Log a text, unless it is the last one again."""
        if text != self._last_logged:
            log(text)
        self._last_logged = text
