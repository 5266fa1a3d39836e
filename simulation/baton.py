"""Handlers as threads of which only one moves at a time: whoever holds the baton.

A handler passes it back at its port calls and nowhere else, so the order of everything is the order in which the
engine hands it out, and the same dice give the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock, Thread
from typing import Any


class Died(BaseException):
    """The function was killed; no `except Exception` of the code under test sees it."""


@dataclass(eq=False)
class Task:
    """One call of a handler: what it is called, what it does, when it dies, and how it ended."""

    name: str
    call: Callable[[], Any]
    then: Callable[[Task], None]
    begun: datetime
    unit: str | None = None
    intruder: bool = False
    dies_at: int = 0
    dies_after: bool = True
    killed: bool = False
    effects: int = 0
    commits: int = 0
    kept: bool = False
    looked: dict[str, int] = field(default_factory=dict)
    result: Any = None
    error: BaseException | None = None
    done: bool = False
    turn: Lock = field(default_factory=Lock)


class Baton:
    """Hands the one right to move to a task and gets it back."""

    def __init__(self) -> None:
        self.current: Task | None = None
        self._home = Lock()
        self._home.acquire()
        self._idle: list[_Runner] = []

    def start(self, task: Task) -> None:
        """Let a new task move until it passes the baton back, or ends."""
        task.turn.acquire()
        runner = self._idle.pop() if self._idle else _Runner(self)
        runner.task = task
        self._hand_to(task, runner.go)

    def resume(self, task: Task) -> None:
        """Let a task go on."""
        self._hand_to(task, task.turn)

    def _hand_to(self, task: Task, turn: Lock) -> None:
        self.current = task
        turn.release()
        self._home.acquire()
        self.current = None

    def pause(self) -> None:
        """Called by a task: pass the baton back and wait for it. Raises Died in a task that was killed meanwhile."""
        task = self.current
        assert task is not None
        self._home.release()
        task.turn.acquire()
        if task.killed:
            raise Died

    def end(self, runner: _Runner) -> None:
        """Called by a thread whose task is done."""
        self._idle.append(runner)
        self._home.release()

    def close(self) -> None:
        """Let all idle threads end."""
        for runner in self._idle:
            runner.task = None
            runner.go.release()
            runner.thread.join()


class _Runner:
    """A thread that runs one task after another."""

    def __init__(self, baton: Baton) -> None:
        self.go = Lock()
        self.go.acquire()
        self.task: Task | None = None
        self._baton = baton
        self.thread = Thread(target=self._loop, daemon=True)
        self.thread.start()

    def _loop(self) -> None:
        while True:
            self.go.acquire()
            task = self.task
            if task is None:
                return
            try:
                task.result = task.call()
            except BaseException as error:
                task.error = error
            task.done = True
            self._baton.end(self)
