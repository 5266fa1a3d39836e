"""Processes that a task has left to run beside it: `bmat process start`. They end with the task."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import orphans
from .control import Declined
from .ending import end
from .family import Family
from .log import signal_name
from .masking import Mask
from .names import admit, texts
from .places import Places
from .streams import OutputReader

PIPE_SECONDS = 5.0  # how long what they have said last is read

Put = Callable[[str, "int | None", str], None]
"""Takes a line: its stream, its task, and what it says."""


@dataclass(frozen=True)
class Started:
    """One of them, with what reads what it says."""

    name: str
    child: subprocess.Popen[bytes]
    pump: OutputReader
    reader: threading.Thread


class Background:
    """Those of the running task. Tasks ask for them by way of the agent, so that they get an end and their words a log.

    The lock keeps whoever collects dead orphans from one that has just been started.
    """

    def __init__(self, put: Put, mask: Mask, family: Family, line_bytes: int, places: Places) -> None:
        self._put, self._mask, self._family, self._line_bytes = put, mask, family, line_bytes
        self._places = places
        self._lock = threading.Lock()
        self._all: dict[str, Started] = {}
        self._task: int | None = None  # none are started while no task runs

    def begin(self, task: int) -> None:
        """A task begins."""
        with self._lock:
            self._task = task

    def start(self, ask: dict[str, Any]) -> None:
        """Start one, with the command, the environment and the folder of whoever asks. Raises Declined."""
        name, command = str(ask["name"]), [str(each) for each in ask["command"]]
        with self._lock:
            if self._task is None:
                raise Declined("the task is over")
            admit(name, self._all, "process")
            try:
                child = subprocess.Popen(
                    command, cwd=ask["cwd"], env=texts(ask["env"]), start_new_session=True,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    **self._places.start(),
                )  # fmt: skip
            except (OSError, ValueError) as why:
                raise Declined(f"{command[0]} cannot be started: {why}") from None
            self._all[name] = self._attended(name, child, self._task)
        self._say(self._task, f'started background process "{name}" (pid {child.pid})')

    def _attended(self, name: str, child: subprocess.Popen[bytes], task: int) -> Started:
        def put(stream: str, index: int | None, text: str) -> None:
            self._put(f"bg.{name}.{stream}", index, text)

        pump = OutputReader(child, task, self._line_bytes, self._mask, put)
        reader = threading.Thread(target=pump.run, name=f"pump of {name}", daemon=True)
        reader.start()
        return Started(name, child, pump, reader)

    def look(self, keep: int) -> None:
        """Tell of those that have ended by themselves, then collect dead orphans, but not the task's child `keep`."""
        with self._lock:
            for each in [each for each in self._all.values() if each.child.poll() is not None]:
                self._bid_farewell(each, self._all.pop(each.name).child.returncode)
            orphans.bury({keep, *(each.child.pid for each in self._all.values())})

    def end(self, grace: Callable[[], float]) -> None:
        """End all of them with what they have started: the task is over."""
        with self._lock:
            left, task = list(self._all.values()), self._task
            self._all, self._task = {}, None
        if not left:
            return
        roots = {each.child.pid for each in left if each.child.poll() is None}
        ended = end(lambda: self._family.of_sessions(roots), grace)
        for each in left:
            each.child.wait()
            each.reader.join(PIPE_SECONDS)
            each.pump.last_call()
            each.reader.join()
        if ended.count:
            names = ", ".join(each.name for each in left)
            self._say(task, f"ended the background processes of the task ({names}); they got {ended}")

    def _bid_farewell(self, each: Started, code: int) -> None:
        how = f"was killed by signal {signal_name(-code)}" if code < 0 else f"exited with code {code}"
        self._say(self._task, f'background process "{each.name}" {how}')

    def _say(self, task: int | None, text: str) -> None:
        self._put("task", task, text)
