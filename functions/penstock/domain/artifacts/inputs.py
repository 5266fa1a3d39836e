"""Inputs: files that a user sends with a job. It waits until each has arrived, and owns them from then on.

declared ──leave to send it──▶ awaited ──arrived──▶ committed
    └──── nothing in time ────────┴──▶ the job fails, and says which
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.artifacts.artifacts import Name
from penstock.kernel.rows import Key

ARRIVE_WITHIN = timedelta(hours=1)
"""How long an input may take from the submit, or from the last leave to send it, which is good for as long."""


@dataclass(frozen=True, kw_only=True)
class Input(Name):
    """One file, which appears as /input/`name`. `size` in bytes, `sha256` in hex; `until` is when it must be there.

    `artifact` is "" until somebody asks for leave to send it.
    """

    kind: ClassVar[str] = "input"
    name: str
    until: datetime
    size: int = 0
    sha256: str = ""
    is_committed: bool = False

    @property
    def key(self) -> Key:
        return input_key(self.job, self.name)


def input_key(job: str, name: str) -> Key:
    """Where an input's row is."""
    return Key(f"job#{job}", f"input#{name}")


def declare(job: str, name: str, now: datetime) -> Input:
    """An input of which only the name is known."""
    return Input(job=job, artifact="", name=name, until=now + ARRIVE_WITHIN)


def expect(input: Input, artifact: str, size: int, sha256: str, now: datetime) -> Input:
    """An input that somebody is about to send. What was sent before under its name is not it."""
    return replace(input, artifact=artifact, size=size, sha256=sha256, until=now + ARRIVE_WITHIN)


def commit(input: Input) -> Input:
    """An input whose bytes have arrived."""
    return replace(input, is_committed=True)


def path_of(name: str, path: str = "") -> str:
    """Where a job finds an input; of another job's output, `path` is where that job had it. Nothing leads out of it."""
    inside: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del inside[-1:]
        elif step not in ("", "."):
            inside.append(step)
    return "/".join(["/input", name, *inside])
