"""What is to be run after the tasks: what the job file says, and what `bmat post` asks for."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .control import Declined
from .names import admit, texts
from .order import Task

WHEN = {"success": ("succeeded",), "failure": ("failed",), "always": ("succeeded", "failed")}
"""With which results of the tasks it is run."""


@dataclass(frozen=True)
class Post:
    """One script. What a task asked for has the environment that the task had."""

    when: str
    name: str
    script: str
    env: dict[str, str] = field(default_factory=dict)


class Posts:
    """Those that the job file says, and then those that tasks ask for by way of the agent, in order."""

    def __init__(self, told: Iterable[dict[str, str]] = ()) -> None:
        self._lock = threading.Lock()
        self._all = {each["name"]: Post(each["on"], each["name"], each["script"]) for each in told}
        self._is_over = False

    def add(self, ask: dict[str, Any]) -> None:
        """Take a command in, which runs in the folder of whoever asked for it. Raises Declined."""
        name, when = str(ask["name"]), str(ask["when"])
        if when not in WHEN:
            raise Declined(f"{when!r} is none of {', '.join(WHEN)}")
        with self._lock:
            if self._is_over:
                raise Declined("the tasks are over")
            admit(name, self._all, "post")
            command = shlex.join(str(each) for each in ask["command"])
            script = f"cd {shlex.quote(str(ask['cwd']))} || exit\nexec {command}\n"
            self._all[name] = Post(when, name, script, texts(ask["env"]))

    def due(self, result: str, first: int, workdir: str = "/work") -> Iterator[Task]:
        """Yield what is to be run after tasks that ended with a result, numbered from `first`; no more is taken."""
        with self._lock:
            self._is_over = True
            wanted = [each for each in self._all.values() if result in WHEN[each.when]]
        for index, each in enumerate(wanted, first):
            yield Task(index, each.name, each.script, each.env, env_clear=False, workdir=workdir)
