"""Trying again what may succeed later, and commands whose words go on into the log."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TypeVar

from ..clock import now  # noqa: TID252  (the agent's file has this package under another name)

T = TypeVar("T")
TRIES = 5
FIRST_SECONDS, MOST_SECONDS = 1.0, 30.0
PASSING = 75
"""The exit code that says so: EX_TEMPFAIL."""

PROGRESS_SECONDS = 10.0
LAST = 20
READ = 1 << 12


class Failed(Exception):
    """Why a task cannot do its work; `passing`: the same may succeed at another time, or from another machine."""

    def __init__(self, text: str, passing: bool = False) -> None:
        super().__init__(text)
        self.passing = passing


def persist(work: Callable[[], T]) -> T:
    """Do something, again and again while it fails in passing, a bounded number of times. Raises Failed."""
    seconds = FIRST_SECONDS
    for tried in range(1, TRIES):
        try:
            return work()
        except Failed as why:
            if not why.passing:
                raise
            say(f"try {tried} of {TRIES} failed: {why}; the next follows in {seconds:g} s")
            time.sleep(seconds)
            seconds = min(2 * seconds, MOST_SECONDS)
    return work()


def say(text: str) -> None:
    """Print a line, at once."""
    print(text, flush=True)


def run(command: Sequence[str], cwd: str | None = None, env: Mapping[str, str] | None = None) -> list[str]:
    """Run a command whose words become lines of the log. Return the last of them. Raises Failed, with the last."""
    try:
        child = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as why:
        raise Failed(f"{command[0]} cannot be run: {why}") from why
    last = deque[str](_lines(child.stdout), LAST) if child.stdout else deque[str]()
    code = child.wait()
    if code:
        raise Failed(next(iter(_telling(last)), f"{command[0]} exited with code {code}"), passing=True)
    return list(last)


def _telling(last: deque[str]) -> list[str]:
    """The lines that tell why a command failed, the best first: its own word for it, else what it said last."""
    errors = [line for line in last if line.lower().startswith(("fatal:", "error:"))]
    return [*errors[:1], *[line for line in reversed(last) if line.strip()][:1]]


def _lines(stream: IO[bytes]) -> Iterator[str]:
    """Pass lines on as they come; of those that a progress meter writes over each other, one now and then."""
    rest, told = b"", now()
    while data := stream.read1(READ):  # type: ignore[attr-defined]
        *parts, rest = (rest + data).replace(b"\r\n", b"\n").replace(b"\r", b"\r\0").split(b"\n")
        for part in parts:
            yield _passed(part.split(b"\0")[-1])
        if b"\0" in rest:
            *over, rest = rest.split(b"\0")
            if now() > told + PROGRESS_SECONDS:
                told = now()
                yield _passed(over[-1])
    if rest:
        yield _passed(rest)


def _passed(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip("\r")
    say(text)
    return text


def complain(why: Failed) -> int:
    """Say why a task failed, as the last of its lines. Return its exit code."""
    print(why, file=sys.stderr, flush=True)
    return PASSING if why.passing else 1
