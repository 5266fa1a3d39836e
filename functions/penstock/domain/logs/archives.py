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
from hashlib import sha256
from typing import Any

from penstock.domain.artifacts.artifacts import RETRY_AFTER_MOST
from penstock.domain.artifacts.retention import Spans
from penstock.domain.logs.logs import Archive, ArchivePart, ArchiveState, Batch, Event, Line, events

PART_BYTES = 5 * 1024**2
"""The smallest part, except the last one. S3 takes no smaller ones."""

BLOCK_BYTES = 128 * 1024
"""The least number of bytes between two positions from which the object can be read: whole batches."""

RETRY_AFTER = timedelta(minutes=1)
"""After how long a step is taken again that came to nothing: a log takes several, and the sweep comes each minute."""

LATE_ROWS_WITHIN = timedelta(hours=1)
"""How long after a log is deleted its last rows are searched for: by then every writer has ended."""

PATH = "/log.jsonl"
"""The path of the artifact."""


def wait(row: Archive, spans: Spans, now: datetime) -> Archive | None:
    """An archive that waits because not everything of the job is given back; None when that takes too long."""
    if row.settled + timedelta(seconds=spans.log_wait) <= now:
        return None
    return replace(row, due=now + timedelta(seconds=spans.log))


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
    part = ArchivePart(tag, len(content), sha256(content).hexdigest())
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
