"""A job's log: batches of lines, numbered without gaps, that are only ever appended.

A batch stands at the key of its first number, so that of two writers who read the same end of the log one wins.
Every batch carries forward how far the agent of the attempt had got, so that a batch sent twice is stored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from penstock.domain.rows import Key, Row

LOG_BYTES = 64 * 1024**2
"""How much of one job's log is kept. What comes after is counted and dropped."""

CONTROL = "control"
"""The stream of our own decisions."""


@dataclass(frozen=True)
class Line:
    """One line of a log. `task` counts from 0; control lines have none."""

    time: datetime
    stream: str
    payload: str
    task: int | None = None


@dataclass(frozen=True, kw_only=True)
class Batch(Row):
    """Consecutive lines of one log; the first has number `first`, counted from 1.

    `heard` is how many lines the agent of attempt `heard_of` had sent when this batch was written; `size` is the
    bytes of the log up to and including this batch.
    """

    kind: ClassVar[str] = "batch"
    job: str
    first: int
    attempt: int
    lines: tuple[Line, ...]
    heard_of: int
    heard: int
    size: int

    @property
    def key(self) -> Key:
        return batch_key(self.job, self.first)

    @property
    def end(self) -> int:
        """The number that the next batch begins with."""
        return self.first + len(self.lines)


def batch_key(job: str, first: int) -> Key:
    """Where the batch that begins with a number is."""
    return Key(f"job#{job}", f"event#{first:012d}")


def say(last: Batch | None, job: str, attempt: int, lines: Sequence[Line]) -> Batch:
    """The batch that adds our own lines to a log that ends with `last`."""
    return Batch(
        job=job,
        first=last.end if last else 1,
        attempt=attempt,
        lines=tuple(lines),
        heard_of=last.heard_of if last else attempt,
        heard=last.heard if last else 0,
        size=(last.size if last else 0) + _size(lines),
    )


def hear(last: Batch | None, job: str, attempt: int, first: int, lines: Sequence[Line]) -> Batch | None:
    """The batch that adds an agent's lines, the first of which has the agent's number `first`; None if none is new.

    Lines beyond LOG_BYTES are dropped, and one line says so.
    """
    heard = last.heard if last and last.heard_of == attempt else 0
    fresh = tuple(lines)[max(0, heard + 1 - first) :]
    if not fresh:
        return None
    kept = _cap(last.size if last else 0, fresh)
    if not kept:
        return None
    return Batch(
        job=job,
        first=last.end if last else 1,
        attempt=attempt,
        lines=kept,
        heard_of=attempt,
        heard=first + len(lines) - 1,
        size=(last.size if last else 0) + _size(fresh),
    )


def _cap(size: int, lines: tuple[Line, ...]) -> tuple[Line, ...]:
    if size + _size(lines) <= LOG_BYTES:
        return lines
    if size > LOG_BYTES:
        return ()
    notice = f"the log has reached its limit of {LOG_BYTES // 1024**2} MiB; what follows is not kept"
    return (Line(lines[0].time, CONTROL, notice),)


def _size(lines: Sequence[Line]) -> int:
    return sum(len(line.payload.encode()) + 32 for line in lines)
