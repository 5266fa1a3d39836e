"""A job's log: append to it, and read from it. Called by almost every use case of jobs and units."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from penstock.domain.artifacts import retention
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.logs import archives, logs
from penstock.domain.logs.logs import (
    CONTROL,
    WATCH_WINDOW,
    Archive,
    ArchiveState,
    Batch,
    Event,
    Line,
    LogLimits,
    Watch,
    archive_key,
    watch_key,
)
from penstock.domain.replies import LogFull
from penstock.domain.site.site import Limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System, current_site, transact

BATCHES_PER_PAGE = 20

PAGE_BYTES = 2 * 1024**2
"""A Lambda's answer holds 6 MB; a page of a log stays well below that."""


def append(on: System, job: str, attempt: int, text: str, stream: str = CONTROL, *, is_end: bool = False) -> None:
    """Add a service line to a job's log: what was decided, and why. A text of several lines becomes several.

    `stream` is CONTROL for what every reader needs, DETAIL for the rest. Service lines are limited in number; the line
    that says how the job ended (`is_end`) is always added. Does nothing without a job, or when the log was deleted.
    """
    if not job:
        return
    now = on.world.now()
    for part in logs.parts([Line(now, stream, each) for each in text.splitlines()]):
        _append_part(on, job, attempt, part, is_end=is_end)


def _append_part(on: System, job: str, attempt: int, lines: Sequence[Line], *, is_end: bool) -> None:
    """Add service lines that fit into one row."""

    def decide() -> tuple[Sequence[Change], None]:
        last, is_gone = _end_of_log(on, job)
        batch = None if is_gone else logs.append_service_lines(last, job, attempt, lines, is_end=is_end)
        return ([Create(batch)] if batch else []), None

    transact(on, decide)


def _end_of_log(on: System, job: str) -> tuple[Batch | None, bool]:
    """The last batch, and whether the log is gone. Rows first: the archive is written before they are deleted."""
    found = on.store.find(f"job#{job}", "event#", Batch, limit=1, last=True)
    if found:
        return found[0], False
    archive = on.store.get(archive_key(job), Archive)
    return (archive.last, archive.state is ArchiveState.GONE) if archive else (None, False)


def append_output(on: System, job: Job, first: int, lines: Sequence[Line], bounds: Limits) -> LogFull | None:
    """Add lines that an agent sent, each once. Returns what was dropped when there is no more room."""
    most = LogLimits(bounds.log_events, bounds.log_bytes)

    def decide() -> tuple[Sequence[Change], Batch | None]:
        last, is_gone = _end_of_log(on, job.id)
        batch = None if is_gone else logs.append_agent_lines(last, job.id, job.attempt, first, lines, most)
        return ([Create(batch)] if batch else []), batch or last

    ends = transact(on, decide)
    return LogFull(ends.dropped, ends.dropped_bytes) if ends and ends.full else None


SEGMENT = 1000
"""How many lines a segment of a log has. A segment that is full never changes."""


def segment(on: System, job: str, number: int) -> list[Event]:
    """The lines of a full segment; segments count from 0. Of long lines the first ones: PAGE_BYTES. Raises Refused.

    The agent's last lines may come after the job has settled, and so may some of ours: what is not full may grow.
    """
    first, end = number * SEGMENT, (number + 1) * SEGMENT
    if count(on, job) < end:
        raise Refused(404, "segment-not-full", f"the log of job {job} has fewer than {end} lines: read it as events")
    return read(on, job, first, SEGMENT)


def read(on: System, job: str, after: int, limit: int) -> list[Event]:
    """The lines with numbers greater than `after`, in order and without a gap: at most `limit`, and PAGE_BYTES.

    From rows while there are some, else from the object, which exists before its first row is deleted. Raises Refused
    410 for a log that is gone.
    """
    found: list[Event] = []
    size = 0
    for batch in _batches_after(on, job, after):
        if batch.first > after + len(found) + 1:  # rows between were deleted since the first was read
            break
        found += [event for event in logs.events(batch) if event.seq > after]
        size += sum(len(line.payload) for line in batch.lines)
        if len(found) >= limit or size > PAGE_BYTES:
            break
    return (found or _read_archive(on, job, after, limit))[:limit]


def _batches_after(on: System, job: str, after: int) -> list[Batch]:
    """The batches that hold numbers greater than `after`, which usually is the last number of a batch."""
    place = logs.batch_key(job, after).sk
    behind = on.store.find(f"job#{job}", "event#", Batch, limit=BATCHES_PER_PAGE, after=place)
    if after == 0 or (behind and behind[0].first == after + 1):
        return behind
    holding = on.store.find(f"job#{job}", "event#", Batch, limit=1, last=True, upto=place)
    return [batch for batch in holding if batch.end > after + 1] + behind


def _read_archive(on: System, job: str, after: int, limit: int) -> list[Event]:
    """At most so many lines from the blocks of the object, and PAGE_BYTES. Empty while there is no object."""
    row = on.store.get(archive_key(job), Archive)
    if row is None or row.state not in (ArchiveState.ARCHIVED, ArchiveState.GONE):
        return []
    if row.state is ArchiveState.GONE:
        of = on.store.get(job_key(job), Job)
        why = retention.why_gone(of.end.discarded_by if of else None)
        raise Refused(410, "log-gone", f"the log of job {job} is gone since {row.since:%Y-%m-%d %H:%M} UTC: {why}")
    found: list[Event] = []
    size = 0
    while len(found) < limit and size < PAGE_BYTES:
        block = archives.block(row, after + len(found))
        if block is None:
            break
        found += [event for event in _read_block(on, row, block) if event.seq > after]
        size += block[1]
    return found


def _read_block(on: System, row: Archive, block: tuple[int, int]) -> list[Event]:
    """The lines of a block of an archived log. Raises Refused 410."""
    content = on.objects.read(object_name(row.artifact), *block)
    if len(content) < block[1]:
        raise Refused(410, "log-lost", f"the log of job {row.job} is lost: its bytes are no longer in the store")
    return archives.decode(content)


def watch(on: System, job: str) -> None:
    """Note that somebody reads the log, at most every half WATCHED. Losing the race is as good as winning it."""
    now = on.world.now()
    was = on.store.get(watch_key(job), Watch)
    until = now + WATCH_WINDOW
    if was is None:
        on.store.commit([Create(Watch(job=job, until=until))])
    elif was.until < now + WATCH_WINDOW / 2:
        on.store.commit([Replace(was, Watch(job=job, until=until))])


def is_watched(on: System, job: str) -> bool:
    """Whether somebody reads the log."""
    was = on.store.get(watch_key(job), Watch)
    return was is not None and was.until > on.world.now() - timedelta(seconds=1)


def last_batch(on: System, job: str) -> Batch | None:
    """The last batch of a log."""
    return _end_of_log(on, job)[0]


def last_lines(on: System, job: str, attempt: int, streams: Collection[str], most: int) -> list[Line]:
    """The last lines of an attempt in some streams, from its last BATCHES_PER_PAGE batches."""
    batches = on.store.find(f"job#{job}", "event#", Batch, limit=BATCHES_PER_PAGE, last=True)
    lines = [
        line
        for batch in reversed(batches)
        if batch.attempt == attempt
        for line in batch.lines
        if line.stream in streams
    ]
    return lines[-most:]


def count(on: System, job: str) -> int:
    """How many lines a log has, which is the number of its last line."""
    return _length(last_batch(on, job))


def total(on: System, job: str) -> tuple[int, bool]:
    """How many lines a log has, or had; and whether it is gone."""
    ends, is_gone = _end_of_log(on, job)
    return _length(ends), is_gone


def _length(ends: Batch | None) -> int:
    return ends.end - 1 if ends else 0


def on_settled(on: System, job: Job) -> list[Change]:
    """The row to create in the commit that settles a job, if its log is to be archived. A short log stays in rows."""
    row = logs.archive_when_settled(job, current_site(on).retention)
    last = last_batch(on, job.id) if row else None
    return [Create(row)] if row and last and not logs.is_short(last) else []
