"""The container engine of a host, Docker or Podman, through its command."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .machine import now, reap_orphans

CALL_SECONDS = 60.0
LOOK_SECONDS = 0.2
WORDS_CHARS = 250
LOG_LINES = "20"
NOT_STARTED = ("created", "configured", "initialized")
ENDED = ("exited", "stopped", "dead", "removing")
"""States of a container, as the two engines call them."""


@dataclass(frozen=True)
class Container:
    """A container: its state, its first process as this machine numbers it, and with what it ended."""

    state: str
    pid: int
    code: int

    @property
    def lives(self) -> bool:
        return self.state not in (*NOT_STARTED, *ENDED)

    @property
    def was_started(self) -> bool:
        return self.state not in NOT_STARTED


class Engine:
    """The engine. Its calls come from many threads, beside one that reaps what others leave to this process.

    Its commands run in `folder`, if given: Podman leaves an empty file `oom` there after a container that was out of
    memory. `is_in_doubt`: something of it failed, or nobody has asked it yet.
    """

    def __init__(self, program: str, folder: Path | None = None) -> None:
        self.name = os.path.basename(program)
        self._program, self._folder = program, folder
        self.is_in_doubt = True
        self._children: set[int] = set()
        self._starting = threading.Lock()

    def run(
        self,
        *words: str,
        given: bytes | None = None,
        seconds: float = CALL_SECONDS,
        is_unwanted: Callable[[], bool] = lambda: False,
    ) -> str:
        """Run one of the engine's commands, and return what it prints. Raises OSError with the engine's words.

        It is ended after so many seconds, or when it is no longer wanted.
        """
        return self._call(words, given, seconds, is_unwanted)[0]

    def _call(
        self, words: Sequence[str], given: bytes | None, seconds: float, is_unwanted: Callable[[], bool]
    ) -> tuple[str, str]:
        child = self._start(words, given is not None)
        until = now() + seconds
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, err = child.communicate(given, seconds if given else LOOK_SECONDS)  # input is given once
                    break
                if is_unwanted() or now() >= until:
                    raise OSError(f"`{self.name} {words[0]}` did not end within {seconds:.0f} s, or was given up")
        finally:
            if child.poll() is None:
                child.kill()
                child.communicate()
            self._children.discard(child.pid)
        if child.returncode:
            said = err.decode(errors="replace").strip() or f"it ended with {child.returncode}"
            raise OSError(f"`{self.name} {words[0]}` failed: {said[-WORDS_CHARS:]}")
        return out.decode(errors="replace"), err.decode(errors="replace")

    def _start(self, words: Sequence[str], has_input: bool) -> subprocess.Popen[bytes]:
        with self._starting:
            child = subprocess.Popen(
                [self._program, *words],
                cwd=self._folder,
                stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._children.add(child.pid)
        return child

    def reap_orphans(self, keep: set[int]) -> None:
        """Reap what this process adopted, except the engine's commands and `keep`: others wait for those."""
        with self._starting:
            reap_orphans(keep | self._children)

    def names(self, kind: str, *filters: str) -> set[str]:
        """Return the names of all that the engine has of a kind, `container` or `network`. Raises OSError."""
        command, name = (("ps", "--all"), "{{.Names}}") if kind == "container" else (("network", "ls"), "{{.Name}}")
        chosen = [word for each in filters for word in ("--filter", each)]
        return set(self.run(*command, *chosen, "--format", name).replace(",", "\n").split())

    def find(self, name: str) -> Container | None:
        """Return the container of a name, if there is one. Raises OSError if nobody knows."""
        form = "{{.State.Status}} {{.State.Pid}} {{.State.ExitCode}}"
        try:
            state, pid, code = self.run("container", "inspect", "--format", form, name).split()
        except OSError:
            if name in self.names("container"):
                raise
            return None
        return Container(state.lower(), int(pid), int(code))

    def bounds_memory(self, name: str) -> bool:
        """Return whether a container's memory has a bound: some engines ignore it without failing. Raises OSError."""
        return int(self.run("container", "inspect", "--format", "{{.HostConfig.Memory}}", name)) > 0

    def has_image(self, image: str) -> bool:
        """Return whether an image is there."""
        try:
            self.run("image", "inspect", "--format", "{{.Id}}", image)
        except OSError:
            return False
        return True

    def remove(self, name: str) -> None:
        """Remove the container and the network of a name, if they are there. Raises OSError if they are then."""
        for kind, command in (("container", ("rm", "--force", "--volumes")), ("network", ("network", "rm"))):
            if name in self.names(kind):
                self.run(*command, name)
            if name in self.names(kind):
                raise OSError(f"{self.name} still has the {kind} {name} after it was removed")

    def output(self, name: str) -> str:
        """Return the end of what a container printed. Raises OSError."""
        return "".join(self._call(("logs", "--tail", LOG_LINES, name), None, CALL_SECONDS, lambda: False)).strip()

    @property
    def isolation(self) -> Sequence[str]:
        """The options of a network that keep others out. Docker's networks have none, and keep each other out."""
        return ("--opt", "isolate=true") if "podman" in self.run("--version").lower() else ()


def find_engine(command: str, folder: Path) -> Engine:
    """Return the engine of a command: a name or a path. Raises OSError if this machine has no such command.

    Its commands run in `folder`.
    """
    found = shutil.which(command)
    if not found:
        raise OSError(f"--containers {command}: this machine has no such command")
    return Engine(os.path.abspath(found), folder)
