"""The first call of each function of Penstock, with the time at which it was entered.

This file imports nothing of Penstock: the agent's process runs it too, and has only the agent.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

AGENT_FILE = "agent.pyz"
NOT_COUNTED = ("testing.", "kernel.frozen", "aws.codec")
"""The twin stands for AWS, and is no part of Penstock; and what a dataclass does, and how it is stored,
is nowhere to be read but in its own declaration.
"""


class Call(NamedTuple):
    """The first call of a function; `at` is in nanoseconds of a clock that all processes share."""

    at: int
    module: str
    function: str


class Tracer:
    """Notes first calls while it runs. What a module calls while it is imported does not count."""

    def __init__(self, folder: str, note: Callable[[Call], object]) -> None:
        self._folder = folder + os.sep
        self._known = dict[int, CodeType]()
        self._noted = set[tuple[str, str]]()
        self._note = note

    def start(self) -> None:
        """From here on, in this thread and in those that it starts."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def stop(self) -> None:
        """Threads that run already go on, and are not listened to any more."""
        sys.setprofile(None)
        threading.setprofile(None)

    def _profile(self, frame: FrameType, event: str, given: Any) -> None:
        del given
        if event != "call" or id(frame.f_code) in self._known:
            return
        module = module_of(frame.f_code.co_filename, self._folder)
        if module and (is_import(frame) or frame.f_code.co_name == "<module>"):
            return
        self._known[id(frame.f_code)] = frame.f_code  # not by value: equal code may be of two files
        function = frame.f_code.co_qualname.partition(".<")[0]
        if not module or module.startswith(NOT_COUNTED) or function.startswith("<"):
            return
        if (module, function) not in self._noted:
            self._noted.add((module, function))
            self._note(Call(time.monotonic_ns(), module, function))


def module_of(file: str, folder: str) -> str:
    """The module in a file below the folder, or in the agent's zip, without `penstock.`; empty for other files."""
    _, zipped, inside = file.rpartition(AGENT_FILE + os.sep)
    if not zipped and not file.startswith(folder):
        return ""
    path = f"penstock/{inside}" if zipped else file[len(folder) :]
    return path.removesuffix(".py").replace(os.sep, ".").removesuffix(".__init__").removeprefix("penstock.")


def is_import(frame: FrameType) -> bool:
    """Whether a call comes from the import of a module."""
    above: FrameType | None = frame
    while above:
        if above.f_code.co_filename.startswith("<frozen importlib"):
            return True
        above = above.f_back
    return False


def run_agent(pipe: str, arguments: list[str]) -> None:
    """Run the agent's file as Python would, and write its calls to a pipe."""
    import runpy

    with open(pipe, "w", encoding="utf-8", buffering=1) as lines:
        tracer = Tracer(os.devnull, lambda call: lines.write(f"{call.at} {call.module} {call.function}\n"))
        sys.argv = arguments
        tracer.start()
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        finally:
            tracer.stop()


def read(pipe: str) -> list[Call]:
    """The calls that run_agent writes, once it has ended."""
    with open(pipe, encoding="utf-8") as file:
        words = [line.split() for line in file]
    return [Call(int(at), module, function) for at, module, function in words]


if __name__ == "__main__":
    run_agent(sys.argv[1], sys.argv[2:])
