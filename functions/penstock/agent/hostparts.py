"""The parts of a host that several jobs share: each that has a worker has a loop of its own, and a container.

Each loop is a thread. The host's own loop says that the host is there, and hears which parts have workers. A host has
either a process of its own or containers, never both at a time: cleaning up after the process ends all that
descends from this agent, and what an engine starts may.

<state>/parts/N/   the state of part N: see `hostloop`
        service/   a socket for containers, if the service is on this machine's loopback: see `relay`
"""

from __future__ import annotations

import threading
import traceback
from pathlib import Path

from .containers import Containers
from .engine import Engine
from .hostclient import HostClient
from .hostloop import HostLoop, HostState
from .machine import log, reap_orphans

AWAY_SECONDS = 5.0
NO_ENGINE = (
    "the site has several jobs share this host, each in a container: start its agent with --containers docker, or "
    "--containers podman. Until then it takes no jobs"
)


class HostParts:
    """The parts of a host. `count` is how many the site has of it, 0 if jobs do not share it."""

    def __init__(self, client: HostClient, folder: Path, program: bytes, engine: Engine | None) -> None:
        self._client, self._folder = client, folder / "parts"
        self._of = Containers(engine, client.host, client.url, folder, program) if engine else None
        self._states: dict[int, HostState] = {}
        self._loops: dict[int, tuple[HostLoop, threading.Thread]] = {}
        self._wanted: set[int] = set()
        self._lock = threading.Lock()  # a loop ends, or goes on, before somebody looks whether there is one
        self.count, self.failed = 0, False
        self._leaving, self._is_away, self._last_logged = False, False, ""

    def resume(self) -> None:
        """Go on with the workers that an earlier agent of this host had. Raises OSError."""
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            self._states[int(path.name)] = HostState.load(path)
        if self._of:
            self._of.serve()
            for part, state in self._states.items():
                if state.worker:
                    self._start(part, self._of)

    @property
    def are_busy(self) -> bool:
        """Whether some part has a worker."""
        return bool(self._workers())

    def _workers(self) -> set[str]:
        return {state.worker for state in list(self._states.values()) if state.worker}

    def check(self) -> bool:
        """Return whether this host has to be away: the site divides it, and it has no engine that answers.

        A host that has workers is not away. Whatever the engine has of an unknown worker is removed.
        """
        why = self._why_away()
        self._is_away = bool(why and self.count and not self.are_busy)
        if why != self._last_logged and (self.count or self.are_busy or not why):
            log(f"host {self._client.host}: {why or 'the engine answers'}")
            self._last_logged = why
        return self._is_away

    def _why_away(self) -> str:
        if self._of is None:
            return NO_ENGINE
        if self._of.engine.is_in_doubt:
            try:
                self._of.remove_unknown(self._workers)
            except OSError as why:
                return str(why)
            self._of.engine.is_in_doubt = False
        return ""

    def adjust(self, count: int, busy: list[int]) -> bool:
        """Have a loop for each part that has a worker; the others end when they have none. Return as `check`."""
        self.count = max(count, *busy, 0)
        is_away = self.check()
        with self._lock:
            self._wanted = set(busy)
            for part in busy:
                if self._of and not is_away and part not in self._loops:
                    self._start(part, self._of)
        return is_away

    def _start(self, part: int, of: Containers) -> None:
        folder = self._folder / str(part)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = self._states.setdefault(part, HostState(folder))
        loop = HostLoop(self._client, state, of.worker, part)
        thread = threading.Thread(target=self._serve, args=(part, loop), name=loop.name, daemon=True)
        self._loops[part] = loop, thread
        thread.start()

    def _serve(self, part: int, loop: HostLoop) -> None:
        """Serve one part. An agent with a bug ends: the next one goes on with the workers."""
        try:
            loop.resume()
            while self._goes_on(part, loop):
                why = loop.step(lambda: self._turn(loop))
                if why:
                    loop.wait_refused(why)
            if self._leaving and loop.state.worker:
                loop.leave()
        except Exception:
            log(f"{loop.name} failed:\n{traceback.format_exc()}")
            self.failed = True

    def _goes_on(self, part: int, loop: HostLoop) -> bool:
        """Return whether a part goes on asking. One that does not is forgotten, unless the agent leaves."""
        with self._lock:
            if self._leaving or part in self._wanted or loop.state.worker:
                return not self._leaving
            del self._loops[part]
            return False

    def _turn(self, loop: HostLoop) -> float:
        return AWAY_SECONDS if self._is_away and not loop.state.worker else loop.turn()

    def leave(self) -> None:
        """End the workers of all parts, and report it."""
        self._leaving = True
        for loop, thread in list(self._loops.values()):
            loop.wake.set()
            thread.join()

    def reap_orphans(self, keep: set[int]) -> None:
        """Reap the orphans that this process adopted, but none for which somebody waits."""
        if self._of:
            self._of.engine.reap_orphans(keep)
        else:
            reap_orphans(keep)
