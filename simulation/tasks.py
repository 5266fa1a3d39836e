"""Handlers as coroutines: only one runs at a time, the one with the baton. Each has its own stack, and no thread.

A handler passes it back at its port calls and nowhere else, so the order of everything is the order in which the
engine hands it out, and the same dice give the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import greenlet

from penstock.domain.site.site import SiteText


class Died(BaseException):
    """The function was killed; no `except Exception` of the code under test sees it."""


@dataclass(eq=False)
class Task:
    """One call of a handler: what it is called, what it does, when it dies, and how it ended.

    `sites`: what it read of the site, each time; None where there was none yet.
    """

    name: str
    call: Callable[[], Any]
    then: Callable[[Task], None]
    begun: datetime
    unit: str | None = None
    intruder: bool = False
    apart: timedelta = timedelta()
    dies_at: int = 0
    dies_after: bool = True
    killed: bool = False
    effects: int = 0
    commits: int = 0
    goes_on: bool = False
    looked: dict[str, int] = field(default_factory=dict)
    sites: list[SiteText | None] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None
    done: bool = False
    stack: greenlet.greenlet | None = None


class Baton:
    """Gives one task the right to run, and takes it back."""

    def __init__(self) -> None:
        self.current: Task | None = None
        self._home = greenlet.getcurrent()

    def start(self, task: Task) -> None:
        """Run a new task until it passes the baton back or ends."""
        task.stack = greenlet.greenlet(_run, self._home)
        self._hand_to(task, task)

    def resume(self, task: Task) -> None:
        """Continue a task."""
        self._hand_to(task)

    def _hand_to(self, task: Task, *begin: Task) -> None:
        assert task.stack is not None
        self.current = task
        task.stack.switch(*begin)
        self.current = None

    def pause(self) -> None:
        """Called by a task: pass the baton back and wait for it. Raises Died in a task that was killed meanwhile."""
        task = self.current
        assert task is not None
        self._home.switch()
        if task.killed:
            raise Died


def _run(task: Task) -> None:
    try:
        task.result = task.call()
    except BaseException as error:
        task.error = error
    task.done = True
