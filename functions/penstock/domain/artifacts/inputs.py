"""Inputs: files that a user uploads for a job. The job waits until each has arrived, and owns them from then on.

declared ──permission to upload──▶ awaited ──arrived──▶ committed
    └──── nothing in time ────────────┴──▶ the job fails and names the file
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.artifacts.content import Content
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

ARRIVE_WITHIN = timedelta(hours=1)
"""How long a job waits for its inputs, from the submission or from the last permission to upload one, or a part of one.
Such a permission is valid as long.
"""


@dataclass(frozen=True, kw_only=True)
class Input(Row):
    """A file that appears as /input/`name`. `size` in bytes; `until`: when it must have arrived, unless another input
    of the job has a later time.

    `sha256` or, for one that is sent in parts, `composite`, in hex: its digest (see content).
    `artifact` is "" until somebody asks for permission to upload it.
    """

    kind: ClassVar[str] = "input"
    is_recreated: ClassVar[bool] = True
    job: str
    artifact: str
    name: str
    until: datetime
    size: int = 0
    sha256: str = ""
    composite: str = ""
    is_committed: bool = False

    @property
    def key(self) -> Key:
        return input_key(self.job, self.name)

    @property
    def content(self) -> Content:
        """What its bytes are, or are announced to be."""
        return Content(self.size, self.sha256, self.composite)


def input_key(job: str, name: str) -> Key:
    """The key of an input's row."""
    return Key(f"job#{job}", f"input#{name}")


def declare(job: str, name: str, now: datetime) -> Input:
    """An input of which only the name is known."""
    return Input(job=job, artifact="", name=name, until=now + ARRIVE_WITHIN)


def expect(input: Input, artifact: str, content: Content, now: datetime) -> Input:
    """An input that somebody is about to upload. It replaces what was uploaded before under its name."""
    return replace(input, **vars(content), artifact=artifact, until=now + ARRIVE_WITHIN)


def commit(input: Input) -> Input:
    """An input whose bytes have arrived."""
    return replace(input, is_committed=True)


def path_of(name: str, path: str = "") -> str:
    """The path at which a job finds an input. For another job's output, `path` is its path there. It never leaves
    /input.
    """
    inside: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del inside[-1:]
        elif step not in ("", "."):
            inside.append(step)
    return "/".join(["/input", name, *inside])
