"""A job's log: batches of lines, numbered without gaps, that are only ever appended.

The key of a batch is its first number, so that one of two writers who read the same end of the log wins. Every batch
records how many lines the attempt's agent had sent, so that a batch that is sent twice is stored once.

When a job settles, the row of its archive is written, unless its log is short: `archives` makes an object of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from penstock.domain.artifacts.retention import Spans
from penstock.domain.jobs.jobs import Job
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

CONTROL = "control"
"""The stream of our decisions that every reader needs."""

CONSOLE = "console"
"""The stream of a machine's console, as its cloud shows it."""

SERVICE_STREAMS = frozenset((CONTROL, CONSOLE))
"""The streams that only the service writes to."""

DETAIL = "detail"
"""The stream of service lines that a reader needs only to find a fault: command lines show them with `--verbose`."""

OUTPUT = ("stdout", "stderr")
"""The streams of a job's own output, which is dropped when its log is full. Other lines still find room."""

LINE_BYTES = 32
"""What a line counts in addition to its text: its time, stream and number."""

SERVICE_EVENTS, SERVICE_BYTES = 5000, 2 * 1024**2
"""How many lines and bytes of ours one job's log may have: a job that waits for weeks is handed over very often."""

LAST_EVENTS, LAST_BYTES = 1000, 1024**2
"""How many more lines and bytes an agent may add itself when the log is full: how each task ended."""


SERVICE_LIMIT_NOTICE = (
    f"more than {SERVICE_EVENTS} lines or {SERVICE_BYTES} bytes tell of decisions about this job: those that follow "
    "are left out until it settles, and the job goes on"
)


@dataclass(frozen=True)
class LogLimits:
    """How much of one job's log is kept, in lines and in bytes of UTF-8."""

    events: int
    bytes: int


@dataclass(frozen=True)
class Line:
    """One line of a log. `task` counts from 0; control lines have none."""

    time: datetime
    stream: str
    payload: str
    task: int | None = None


def within(line: Line, since: datetime, until: datetime) -> Line:
    """A line whose time is not before or after two others."""
    time = max(since, min(line.time, until))
    return line if time == line.time else replace(line, time=time)


@dataclass(frozen=True, kw_only=True)
class Batch(Row):
    """Consecutive lines of one log; the first has number `first`, counted from 1.

    `heard`: how many lines the agent of attempt `heard_of` had sent when this batch was written; `size`: the bytes of
    the log up to and including it. `full`: it had no more room by then; `dropped` and `dropped_bytes`: the output of
    that attempt that found no room. `said` and `said_bytes`: our own lines so far; `hushed`: they have reached their
    bound.
    """

    kind: ClassVar[str] = "batch"
    job: str
    first: int
    attempt: int
    lines: tuple[Line, ...]
    heard_of: int
    heard: int
    size: int
    full: bool = False
    dropped: int = 0
    dropped_bytes: int = 0
    said: int = 0
    said_bytes: int = 0
    hushed: bool = False

    @property
    def key(self) -> Key:
        return batch_key(self.job, self.first)

    @property
    def end(self) -> int:
        """The number that the next batch begins with."""
        return self.first + len(self.lines)


def batch_key(job: str, first: int) -> Key:
    """The key of the batch that starts with a number."""
    return Key(f"job#{job}", f"event#{first:012d}")


@dataclass(frozen=True)
class Event:
    """One line of a log with its number."""

    seq: int
    attempt: int
    line: Line


def events(batch: Batch) -> list[Event]:
    """A batch's lines with their numbers."""
    return [Event(number, batch.attempt, line) for number, line in enumerate(batch.lines, batch.first)]


def empty_batch(job: str, attempt: int) -> Batch:
    """The empty batch before the first one of a log."""
    return Batch(job=job, first=1, attempt=attempt, lines=(), heard_of=attempt, heard=0, size=0)


def parts(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Lines in pieces that each fit into a row, as an agent sends them: a machine's console may have many lines."""
    piece: list[Line] = []
    size = 0
    for line in lines:
        cut = replace(line, payload=line.payload[: limits.EVENT_LINE_BYTES // 4])  # a character has at most four bytes
        size += _size((cut,))
        if piece and (len(piece) == limits.EVENTS_PER_BATCH or size > limits.EVENT_BATCH_BYTES):
            yield piece
            piece, size = [], _size((cut,))
        piece.append(cut)
    if piece:
        yield piece


def append_service_lines(
    last: Batch | None, job: str, attempt: int, lines: Sequence[Line], *, is_end: bool = False
) -> Batch | None:
    """The batch that adds our own lines after `last`; None if there is nothing to add.

    When there are too many, one line says so and the others are left out, except how the job ended.
    """
    before = last or empty_batch(job, attempt)
    kept = list(lines) if is_end else _bounded(before, lines)
    if not kept:
        return None
    size = _size(kept)
    return replace(
        before,
        version=0,
        first=before.end,
        attempt=attempt,
        lines=tuple(kept),
        size=before.size + size,
        said=before.said + len(kept),
        said_bytes=before.said_bytes + size,
        hushed=before.hushed or kept != list(lines),
    )


def _bounded(before: Batch, lines: Sequence[Line]) -> list[Line]:
    """Those of our own lines that find room after a batch, and one line if others find none."""
    kept: list[Line] = []
    if before.hushed:
        return kept
    size = before.said_bytes
    for line in lines:
        size += _size((line,))
        if before.said + len(kept) >= SERVICE_EVENTS or size > SERVICE_BYTES:
            return [*kept, Line(line.time, CONTROL, SERVICE_LIMIT_NOTICE)]
        kept.append(line)
    return kept


def append_agent_lines(
    last: Batch | None, job: str, attempt: int, first: int, lines: Sequence[Line], most: LogLimits
) -> Batch | None:
    """The batch that adds an agent's lines, the first of which has the agent's number `first`; None if none is new.

    Lines without room are dropped, one line says so, and the job goes on. The agent's own lines are still kept.
    """
    before = last or empty_batch(job, attempt)
    if before.heard_of != attempt:
        before = replace(before, heard_of=attempt, heard=0, dropped=0, dropped_bytes=0)
    fresh = tuple(lines)[max(0, before.heard + 1 - first) :]
    kept, lost, full = _sift(before, fresh, most)
    if not kept:
        return None
    return replace(
        before,
        version=0,
        first=before.end,
        attempt=attempt,
        lines=tuple(kept),
        heard=first + len(lines) - 1,
        size=before.size + _size(kept),
        full=full,
        dropped=before.dropped + len(lost),
        dropped_bytes=before.dropped_bytes + sum(len(line.payload.encode()) for line in lost),
    )


def _sift(before: Batch, lines: Sequence[Line], most: LogLimits) -> tuple[list[Line], list[Line], bool]:
    """Split lines after a batch into those that find room and those that do not; and whether the log is full then."""
    kept: list[Line] = []
    lost: list[Line] = []
    full, size, count = before.full, before.size, before.end - 1
    for line in lines:
        more = size + _size((line,))
        if not full and (more > most.bytes or count + 1 > most.events):
            kept, full = [*kept, Line(line.time, CONTROL, _notice(most))], True
        if full and (line.stream in OUTPUT or more > most.bytes + LAST_BYTES or count + 1 > most.events + LAST_EVENTS):
            lost.append(line)
        else:
            kept.append(line)
            size, count = more, count + 1
    return kept, lost, full


def _notice(most: LogLimits) -> str:
    limit = f"{most.events} lines or {most.bytes} bytes"
    return f"the log has reached its limit of {limit}: output that follows is dropped, and the job goes on"


def _size(lines: Sequence[Line]) -> int:
    return sum(len(line.payload.encode()) + LINE_BYTES for line in lines)


SHORT_BYTES = 32 * 1024
"""A log of fewer bytes stays in its rows. To make an object of it costs as much as to store that many bytes for years.
"""


class ArchiveState(StrEnum):
    """The state of an archive. The sweep moves every state on."""

    WAITING = "waiting"  # rows alone; due: it is begun
    WRITING = "writing"  # rows alone, and parts of an object that is no object yet
    CHECKING = "checking"  # rows alone, and an object that is to be read back
    ARCHIVED = "archived"  # the object; due while there are rows of the same lines left
    GONE = "gone"  # nothing; due while there are rows left


@dataclass(frozen=True)
class ArchivePart:
    """A part of the object as it was written. `size` in bytes, `sha256` in hex."""

    tag: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Archive(Row):
    """How far a job's log is archived.

    `last` stands for the lines before `end`, so that the log continues after them when their rows are gone. `parts`
    have the lines before `next`; `blocks`: the first line of each block, and its position in the object. `checked`: how
    many parts were read back; `tries`: how often it was restarted or made no progress.
    """

    kind: ClassVar[str] = "archive"
    shards: ClassVar[int] = 4
    later: ClassVar[bool] = True
    job: str
    state: ArchiveState
    since: datetime
    settled: datetime
    artifact: str = ""
    upload: str = ""
    last: Batch | None = None
    next: int = 1
    parts: tuple[ArchivePart, ...] = ()
    blocks: tuple[tuple[int, int], ...] = ()
    checked: int = 0
    tries: int = 0
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return archive_key(self.job)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def end(self) -> int:
        """The number of the first line after those of the object."""
        return self.last.end if self.last else 1

    @property
    def size(self) -> int:
        """The bytes that were written."""
        return sum(part.size for part in self.parts)

    @property
    def digest(self) -> str:
        """The object's SHA-256, in hex; "" for one of several parts, because nobody computes that of the whole."""
        return self.parts[0].sha256 if len(self.parts) == 1 else ""


def archive_key(job: str) -> Key:
    """The key of a job's archive."""
    return Key(f"job#{job}", "archive")


def archive_when_settled(job: Job, spans: Spans) -> Archive | None:
    """The row that is written with a job's end; None for an unsettled job."""
    at = job.times.settled
    if at is None:
        return None
    due = at + timedelta(seconds=spans.log)
    return Archive(job=job.id, state=ArchiveState.WAITING, since=at, settled=at, due=due)


def is_short(last: Batch) -> bool:
    """Whether a log that ends with a batch is better left in its rows."""
    return last.size < SHORT_BYTES


WATCH_WINDOW = timedelta(seconds=30)
"""How long a job counts as watched after somebody read its log."""


@dataclass(frozen=True, kw_only=True)
class Watch(Row):
    """Somebody is reading a job's log: until then its agent sends lines faster."""

    kind: ClassVar[str] = "watch"
    job: str
    until: datetime

    @property
    def key(self) -> Key:
        return watch_key(self.job)

    @property
    def expiry(self) -> datetime:
        return self.until


def watch_key(job: str) -> Key:
    """The key of a job's Watch."""
    return Key(f"job#{job}", "watch")
