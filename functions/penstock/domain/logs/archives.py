"""The log of a settled job as one object: one JSON object per line, written in parts, readable from any line on.

    waiting ──all given back, or long enough──▶ writing ──all written──▶ checking ──correct──▶ archived ──▶ gone
       ▲                                           └────────(not as it was written)─┘              │
       └──────────────────────────────────────────────────────────────────────   its rows are deleted

A log that is short when its job settles has no archive, and stays in its rows, until the job's retention ends.

The object has the lines up to `end`; later lines about the job stay in rows behind it. Once archived, the object
belongs to the job and is deleted when the job's retention ends. [ART-1]
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, ClassVar

from penstock.domain.artifacts.artifacts import RETRY_AFTER, RETRY_AFTER_MOST
from penstock.domain.artifacts.retention import Spans
from penstock.domain.jobs.jobs import Job
from penstock.domain.logs.logs import Batch, Event, Line, events
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

PART_BYTES = 5 * 1024**2
"""The smallest part, except the last one. S3 takes no smaller ones."""

BLOCK_BYTES = 128 * 1024
"""The least number of bytes between two positions from which the object can be read: whole batches."""

SHORT_BYTES = 32 * 1024
"""A log of fewer bytes stays in its rows. To make an object of it costs as much as to store that many bytes for years.
"""

LATE_ROWS_WITHIN = timedelta(hours=1)
"""How long after a log is deleted its last rows are searched for: by then every writer has ended."""

PATH = "/log.jsonl"
"""The path of the artifact."""


class ArchiveState(StrEnum):
    """The state of an archive. The sweep moves every state on."""

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


def settled(job: Job, spans: Spans) -> Archive | None:
    """The row that is written with a job's end; None for an unsettled job."""
    at = job.times.settled
    if at is None:
        return None
    due = at + timedelta(seconds=spans.log)
    return Archive(job=job.id, state=ArchiveState.WAITING, since=at, settled=at, due=due)


def wait(row: Archive, spans: Spans, now: datetime) -> Archive | None:
    """An archive that waits because not everything of the job is given back; None when that takes too long."""
    if row.settled + timedelta(seconds=spans.log_wait) <= now:
        return None
    return replace(row, due=now + timedelta(seconds=spans.log))


def is_short(last: Batch) -> bool:
    """Whether a log that ends with a batch is better left in its rows."""
    return last.size < SHORT_BYTES


def begin(row: Archive, last: Batch, artifact: str, now: datetime) -> Archive:
    """An archive whose lines so far will be written to an artifact's object."""
    ends = replace(last, version=0, first=last.end, lines=())
    begun = replace(row, state=ArchiveState.WRITING, since=now, last=ends, artifact=artifact)
    return begin_step(begun, now)


def begin_step(row: Archive, now: datetime) -> Archive:
    """An archive that is about to be moved on. A failure is retried, later with every try."""
    return replace(row, tries=row.tries + 1, due=now + min(RETRY_AFTER * 2 ** min(row.tries, 20), RETRY_AFTER_MOST))


def restart(row: Archive, now: datetime) -> Archive:
    """An archive that starts again, because the object is not as it was written."""
    fresh = Archive(job=row.job, state=ArchiveState.WAITING, since=now, settled=row.settled, tries=row.tries)
    return replace(begin_step(fresh, now), version=row.version)


def encode_batch(row: Archive, batch: Batch, written: int) -> tuple[Archive, bytes]:
    """A batch as lines of the object, `written` bytes after the last part; and the row with its block, if it starts
    one.
    """
    at = row.size + written
    begins = not row.blocks or at - row.blocks[-1][1] >= BLOCK_BYTES
    blocks = (*row.blocks, (batch.first, at)) if begins else row.blocks
    return replace(row, blocks=blocks, next=batch.end), b"".join(map(_encode, events(batch)))


def add_part(row: Archive, content: bytes, tag: str) -> Archive:
    """An archive with one more part."""
    part = Part(tag, len(content), sha256(content).hexdigest())
    is_all = row.next >= row.end
    state = ArchiveState.CHECKING if is_all else ArchiveState.WRITING
    return replace(row, parts=(*row.parts, part), state=state, tries=0)


def archived(row: Archive, now: datetime) -> Archive:
    """An archive whose object exists and is owned. Its rows will be deleted."""
    return replace(row, state=ArchiveState.ARCHIVED, since=now, upload="", tries=0, due=now)


def gone(row: Archive, now: datetime) -> Archive:
    """An archive whose log is deleted; later lines are not kept either."""
    return replace(row, state=ArchiveState.GONE, since=now, upload="", parts=(), blocks=(), due=now)


def never_archived(job: str, now: datetime) -> Archive:
    """The row of a log that is deleted, and that no object was made of."""
    return Archive(job=job, state=ArchiveState.GONE, since=now, settled=now, due=now)


def rows_deleted(row: Archive, now: datetime) -> Archive:
    """An archive without rows. Those of a deleted log are searched for once more."""
    is_over = row.state is ArchiveState.ARCHIVED or now - row.since >= LATE_ROWS_WITHIN
    return replace(row, due=None if is_over else row.since + LATE_ROWS_WITHIN)


def block(row: Archive, after: int) -> tuple[int, int] | None:
    """The position and size of the block with the line after `after`; None if there is none."""
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
