"""A job's log: append to it, read from it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from penstock.domain import logs
from penstock.domain.jobs import Job
from penstock.domain.logs import CONTROL, Batch, Line
from penstock.domain.rows import Change, Create, Replace
from penstock.domain.submissions import WATCHED, Watch, watch_key
from penstock.system import System
from penstock.usecases import race

BATCHES_PER_PAGE = 20
PAGE_BYTES = 2 * 1024**2
"""A Lambda's answer holds 6 MB; a page of a log stays well below it."""


@dataclass(frozen=True)
class Event:
    """One line of a log with its number."""

    seq: int
    attempt: int
    line: Line


def say(on: System, job: str, attempt: int, text: str, stream: str = CONTROL) -> None:
    """Tell a job's log what was decided and why. A text of several lines is as many of the log's.

    What nobody asked for yet is no job's: then there is no log.
    """
    if not job:
        return
    now = on.world.now()
    lines = [Line(now, stream, each) for each in text.splitlines()]

    def decide() -> tuple[Sequence[Change], None]:
        return [Create(logs.say(_last(on, job), job, attempt, lines))], None

    race.run(on, decide)


def hear(on: System, job: Job, first: int, lines: Sequence[Line]) -> None:
    """Add what an agent sent. What was added before is not added again."""

    def decide() -> tuple[Sequence[Change], None]:
        batch = logs.hear(_last(on, job.id), job.id, job.attempt, first, lines)
        return ([Create(batch)] if batch else []), None

    race.run(on, decide)


def read(on: System, job: str, after: int, limit: int) -> list[Event]:
    """The lines with numbers greater than `after`: whole batches, until there are `limit` lines or PAGE_BYTES."""
    found: list[Event] = []
    size = 0
    for batch in _behind(on, job, after):
        events = [Event(number, batch.attempt, line) for number, line in enumerate(batch.lines, batch.first)]
        found += [event for event in events if event.seq > after]
        size += sum(len(line.payload) for line in batch.lines)
        if len(found) >= limit or size > PAGE_BYTES:
            break
    return found


def watch(on: System, job: str) -> None:
    """Note that somebody reads the log, at most every half WATCHED. Losing the race is as good as winning it."""
    now = on.world.now()
    was = on.store.get(watch_key(job), Watch)
    until = now + WATCHED
    if was is None:
        on.store.commit([Create(Watch(job=job, until=until))])
    elif was.until < now + WATCHED / 2:
        on.store.commit([Replace(was, Watch(job=job, until=until))])


def is_watched(on: System, job: str) -> bool:
    """Whether somebody reads the log."""
    was = on.store.get(watch_key(job), Watch)
    return was is not None and was.until > on.world.now() - timedelta(seconds=1)


def last(on: System, job: str, attempt: int, streams: Collection[str], most: int) -> list[Line]:
    """The last lines of an attempt in some streams, at most so many: of the last BATCHES_PER_PAGE batches."""
    batches = on.store.find(f"job#{job}", "event#", Batch, limit=BATCHES_PER_PAGE, last=True)
    lines = [
        line
        for batch in reversed(batches)
        if batch.attempt == attempt
        for line in batch.lines
        if line.stream in streams
    ]
    return lines[-most:]


def _last(on: System, job: str) -> Batch | None:
    found = on.store.find(f"job#{job}", "event#", Batch, limit=1, last=True)
    return found[0] if found else None


def _behind(on: System, job: str, after: int) -> list[Batch]:
    """The batches that hold numbers greater than `after`, which usually is the last number of a batch."""
    place = logs.batch_key(job, after).sk
    behind = on.store.find(f"job#{job}", "event#", Batch, limit=BATCHES_PER_PAGE, after=place)
    if after == 0 or (behind and behind[0].first == after + 1):
        return behind
    holding = on.store.find(f"job#{job}", "event#", Batch, limit=1, last=True, upto=place)
    return [batch for batch in holding if batch.end > after + 1] + behind
