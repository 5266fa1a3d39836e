"""A settled job's log as one object: a JSON object a line, written in parts, read from any line on.

    waiting ──given back, or long enough──▶ writing ──all is in──▶ checking ──it is there──▶ archived ──▶ gone
       ▲                                       └──────(it is not as it was written)─┘           │
       └────────────────────────────────────────────────────────────────────────────   its rows are deleted

The lines up to `end` are the object's, and what is said of the job after that stays in rows behind it. From `archived`
on the object is the job's own, and goes when the job's retention ends. [ART-1]
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, ClassVar

from penstock.domain.artifacts.retention import Spans
from penstock.domain.artifacts.volumes import RETRY_AFTER, RETRY_AFTER_MOST
from penstock.domain.jobs.jobs import Job
from penstock.domain.logs.logs import Batch, Event, Line, events
from penstock.kernel.rows import Key, Row

PART_BYTES = 5 * 1024**2
"""How much a part has at least, but for the last. S3 takes no smaller ones."""

BLOCK_BYTES = 128 * 1024
"""How much is between two places from which the object can be read, at least: whole batches."""

LATE_ROWS_WITHIN = timedelta(hours=1)
"""How long after a log is gone its last rows are looked for: whoever was writing one then has ended."""

PATH = "/log.jsonl"
"""What the artifact is called."""


class ArchiveState(StrEnum):
    """How far it is. All are moved on by the sweep."""

    WAITING = "waiting"  # rows alone; due: it is begun
    WRITING = "writing"  # rows alone, and parts of an object that is no object yet
    CHECKING = "checking"  # rows alone, and an object that is to be read back
    ARCHIVED = "archived"  # the object; due while there are rows of the same lines left
    GONE = "gone"  # nothing; due while there are rows left


@dataclass(frozen=True)
class Part:
    """A part of the object as it was written. `size` in bytes, `sha256` in hex."""

    tag: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Archive(Row):
    """How far a job's log is archived.

    `last` stands for the lines before `end`, so that the log goes on behind them when their rows are gone. The lines
    before `next` are in `parts`; `blocks` are the first line of each block, and where it begins in the object.
    `checked` is how many parts were read back, `tries` how often it was begun anew or went no further.
    """

    kind: ClassVar[str] = "archive"
    later: ClassVar[bool] = True
    job: str
    state: ArchiveState
    since: datetime
    settled: datetime
    artifact: str = ""
    upload: str = ""
    last: Batch | None = None
    next: int = 1
    parts: tuple[Part, ...] = ()
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
        """The number of the first line that is not the object's."""
        return self.last.end if self.last else 1

    @property
    def size(self) -> int:
        """The bytes that were written."""
        return sum(part.size for part in self.parts)

    @property
    def digest(self) -> str:
        """The object's SHA-256, in hex; of one in several parts, that of the parts' digests."""
        if len(self.parts) == 1:
            return self.parts[0].sha256
        return sha256(b"".join(bytes.fromhex(part.sha256) for part in self.parts)).hexdigest()


def archive_key(job: str) -> Key:
    """Where it is said how far a job's log is archived."""
    return Key(f"job#{job}", "archive")


def settled(job: Job, spans: Spans) -> Archive | None:
    """What is written with a job's end; None for a job that goes on."""
    at = job.times.settled
    if at is None:
        return None
    due = at + timedelta(seconds=spans.log)
    return Archive(job=job.id, state=ArchiveState.WAITING, since=at, settled=at, due=due)


def wait(row: Archive, spans: Spans, now: datetime) -> Archive | None:
    """Looked at again later, for not all of the job's things are given back; None when that lasts too long."""
    if row.settled + timedelta(seconds=spans.log_wait) <= now:
        return None
    return replace(row, due=now + timedelta(seconds=spans.log))


def begin(row: Archive, last: Batch, artifact: str, now: datetime) -> Archive:
    """All lines so far are to be written, to an artifact's object."""
    ends = replace(last, version=0, first=last.end, lines=())
    begun = replace(row, state=ArchiveState.WRITING, since=now, last=ends, artifact=artifact)
    return begin_step(begun, now)


def begin_step(row: Archive, now: datetime) -> Archive:
    """About to be moved on: if that fails, then again, later with every try."""
    return replace(row, tries=row.tries + 1, due=now + min(RETRY_AFTER * 2 ** min(row.tries, 20), RETRY_AFTER_MOST))


def restart(row: Archive, now: datetime) -> Archive:
    """To be begun anew: what was written is not there as it was written."""
    fresh = Archive(job=row.job, state=ArchiveState.WAITING, since=now, settled=row.settled, tries=row.tries)
    return replace(begin_step(fresh, now), version=row.version)


def encode_batch(row: Archive, batch: Batch, written: int) -> tuple[Archive, bytes]:
    """A batch as lines of the object, `written` bytes behind the last part; and the row with its block, if it begins
    one."""
    at = row.size + written
    begins = not row.blocks or at - row.blocks[-1][1] >= BLOCK_BYTES
    blocks = (*row.blocks, (batch.first, at)) if begins else row.blocks
    return replace(row, blocks=blocks, next=batch.end), b"".join(map(_encode, events(batch)))


def add_part(row: Archive, content: bytes, tag: str) -> Archive:
    """With one part more."""
    part = Part(tag, len(content), sha256(content).hexdigest())
    is_all = row.next >= row.end
    state = ArchiveState.CHECKING if is_all else ArchiveState.WRITING
    return replace(row, parts=(*row.parts, part), state=state, tries=0)


def archived(row: Archive, now: datetime) -> Archive:
    """The object is there, and owned. Its rows are to be deleted."""
    return replace(row, state=ArchiveState.ARCHIVED, since=now, upload="", tries=0, due=now)


def gone(row: Archive, now: datetime) -> Archive:
    """Nothing is kept of it any more, and what is said now is not kept either."""
    return replace(row, state=ArchiveState.GONE, since=now, upload="", parts=(), blocks=(), due=now)


def rows_deleted(row: Archive, now: datetime) -> Archive:
    """With no rows left. Those of a log that is gone are looked for once more."""
    is_over = row.state is ArchiveState.ARCHIVED or now - row.since >= LATE_ROWS_WITHIN
    return replace(row, due=None if is_over else row.since + LATE_ROWS_WITHIN)


def block(row: Archive, after: int) -> tuple[int, int] | None:
    """Where the block that has the line behind `after` begins, and how many bytes it has; None when there is none."""
    if after + 1 >= row.end:
        return None
    at = bisect_right(row.blocks, after + 1, key=lambda one: one[0]) - 1
    ends = row.blocks[at + 1][1] if at + 1 < len(row.blocks) else row.size
    return row.blocks[at][1], ends - row.blocks[at][1]


def _encode(event: Event) -> bytes:
    line = event.line
    fields = {
        "seq": event.seq, "time": line.time.isoformat(), "stream": line.stream, "task": line.task,
        "attempt": event.attempt, "payload": line.payload,
    }  # fmt: skip
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def decode(content: bytes) -> list[Event]:
    """The lines of a block."""
    return [_event(json.loads(each)) for each in content.splitlines()]


def _event(fields: dict[str, Any]) -> Event:
    line = Line(datetime.fromisoformat(fields["time"]), fields["stream"], fields["payload"], fields["task"])
    return Event(fields["seq"], fields["attempt"], line)
