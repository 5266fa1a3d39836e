"""How processes are ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .log import now

KILL_ROUNDS = 100  # some may fork while they are being killed, and a stuck one can't be
ROUND_SECONDS = 0.05


@dataclass(frozen=True)
class Ended:
    """How many processes there were, and after how many seconds some had to be killed."""

    count: int
    killed_after: float | None

    def __str__(self) -> str:
        return "SIGTERM" if self.killed_after is None else f"SIGTERM, and SIGKILL after {self.killed_after:g} s"


def end(find: Callable[[], list[int]], grace: Callable[[], float]) -> Ended:
    """End what `find` finds: TERM, wait at most `grace()` seconds, which may shrink meanwhile, then KILL."""
    started, first = now(), find()
    _send(first, signal.SIGTERM)
    while find() and now() < started + grace():
        time.sleep(ROUND_SECONDS)
    allowed = grace()
    return Ended(len(first), allowed if _kill(find) else None)


def _kill(find: Callable[[], list[int]]) -> bool:
    """Send KILL until nothing is found any more. Return whether there was anything."""
    for done in range(KILL_ROUNDS):
        left = find()
        if not left:
            return done > 0
        _send(left, signal.SIGKILL)
        time.sleep(ROUND_SECONDS)
    return True


def _send(pids: Iterable[int], number: int) -> None:
    """Signal processes, which may have gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
