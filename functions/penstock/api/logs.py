"""Logs of jobs."""

from __future__ import annotations

import re
from typing import Annotated

from penstock.api.app import Reply, Router
from penstock.api.conditional import Tag, tag_of_versions
from penstock.api.readers import Reader
from penstock.api.shapes import JobOutcome, JobState, view
from penstock.domain.jobs import states
from penstock.domain.logs.logs import Event
from penstock.domain.users.users import READ
from penstock.kernel.errors import not_found
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.jobs import listing, readers
from penstock.usecases.logs import logs

router = Router("jobs")

FAR = 10**11
"""More lines than a log can have."""

NUMBER = re.compile(r"0|[1-9][0-9]{0,7}")

FOR_A_DAY = "private, max-age=86400, immutable"
"""A browser keeps for itself what cannot change; and no longer than a day, since logs are deleted."""


@dataclass(frozen=True)
class EventView:
    """One line of a job's log."""

    seq: Annotated[int, "Its number. Lines count from 1."]
    time: Annotated[str, "When it was written, as RFC 3339."]
    stream: Annotated[str, "Where it was written: `stdout`, `stderr`, `control`, or a process's."]
    task: Annotated[int | None, "The number of the task that wrote it; null if none did. Tasks count from 0."]
    attempt: Annotated[int, "The number of the attempt that wrote it. Attempts count from 1."]
    payload: Annotated[str, "The line."]


@dataclass(frozen=True)
class EventPage:
    """Some lines of a job's log."""

    items: Annotated[list[EventView], "The lines, oldest first."]
    next: Annotated[int, "The number to ask after for the lines that follow."]
    total: Annotated[int, "How many lines the log has by now, which is the number of its last line."]
    state: Annotated[JobState, "The job's state. The log grows until the job is settled."]
    outcome: Annotated[JobOutcome | None, "How the job ended; null until it is settled."]


@dataclass(frozen=True)
class SegmentView:
    """A thousand lines of a job's log. They never change."""

    items: Annotated[list[EventView], "The lines, oldest first. Where they are very long, only the first ones."]
    next: Annotated[int, "The number to ask after for the lines that follow."]


@router.get("/v1/jobs/{job}/events", "Read a job's log", READ)
def read_events(
    on: System,
    user: Reader,
    job: str,
    *,
    after: Annotated[int, Bound(most=FAR), "Only lines after the one of this number."] = 0,
    before: Annotated[int, Bound(most=FAR), "Only lines before the one of this number; 0 for no such bound."] = 0,
    limit: Annotated[int, Bound(least=1, most=1000), "How many lines to show at most."] = 500,
    last: Annotated[int, Bound(most=FAR), "Begin so many lines before the end; 0 for no such bound."] = 0,
) -> EventPage:
    found = readers.find(on, user, job)
    total, is_gone = logs.total(on, job)
    if last:
        after = max(after, total - last)
    if not found.is_settled:
        logs.watch(on, job)
    most = min(limit, before - after - 1) if before else limit
    is_more = most > 0 and (after < total or is_gone)
    events = [show(event) for event in logs.read(on, job, after, most)] if is_more else []
    state = states.shown(found.state, is_in_queue=listing.queue_of(on, found) is not None)
    following = events[-1].seq if events else after
    total = max(total, following) if events else total
    return view(EventPage, found, found.end, state=state, items=events, next=following, total=total)


def _segment_tag(on: System, user: Reader, job: str, segment: str) -> str:
    return tag_of_versions(readers.find(on, user, job).id, segment)


@router.get("/v1/jobs/{job}/events/{segment}", "Read a segment of a job's log", READ, tag=Tag(_segment_tag, FOR_A_DAY))
def read_segment(on: System, user: Reader, job: str, segment: str) -> SegmentView | Reply:
    found = readers.find(on, user, job)
    if not NUMBER.fullmatch(segment):
        raise not_found("segment", segment[:20])
    events = [show(event) for event in logs.segment(on, found.id, int(segment))]
    return Reply(200, SegmentView(events, events[-1].seq), tag=tag_of_versions(found.id, segment))


def show(found: Event) -> EventView:
    """A line of a log."""
    line = found.line
    return view(EventView, found, time=line.time, stream=line.stream, task=line.task, payload=line.payload)
