"""What is to be run after the tasks: `bmat post`."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import Declined
from .names import admit
from .order import Task

WHEN = {"success": ("succeeded",), "failure": ("failed",), "always": ("succeeded", "failed")}
"""With which results of the tasks it is run."""


@dataclass(frozen=True)
class Post:
    """One command, with the environment and the folder of whoever asked for it."""

    when: str
    name: str
    command: list[str]
    cwd: str
    env: dict[str, str]


class Posts:
    """Asked for by tasks, in order, by way of the agent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: dict[str, Post] = {}
        self._is_over = False

    def add(self, ask: dict[str, Any]) -> None:
        """Take one in. Raises Declined."""
        name, when = str(ask["name"]), str(ask["when"])
        if when not in WHEN:
            raise Declined(f"{when!r} is none of {', '.join(WHEN)}")
        with self._lock:
            if self._is_over:
                raise Declined("the tasks are over")
            admit(name, self._all, "post")
            command = [str(each) for each in ask["command"]]
            self._all[name] = Post(when, name, command, str(ask["cwd"]), dict(ask["env"]))

    def due(self, result: str, first: int) -> Iterator[Task]:
        """Yield what is to be run after tasks that ended with a result, numbered from `first`; no more is taken."""
        with self._lock:
            self._is_over = True
            wanted = [each for each in self._all.values() if result in WHEN[each.when]]
        for index, each in enumerate(wanted, first):
            script = f"cd {shlex.quote(each.cwd)} || exit\nexec {shlex.join(each.command)}\n"
            yield Task(index, each.name, script, each.env, env_clear=False, workdir="/work")
