"""Logs of jobs."""

from __future__ import annotations

from typing import Annotated

from penstock.api.app import Router
from penstock.api.readers import Reader
from penstock.api.shapes import JobOutcome, JobState, view
from penstock.domain.jobs import states
from penstock.domain.logs.logs import Event
from penstock.domain.users.users import READ
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.jobs import listing, readers
from penstock.usecases.logs import logs

router = Router("jobs")

FAR = 10**11
"""More lines than a log can have."""


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
    state: Annotated[JobState, "The job's state. The log grows until the job is settled."]
    outcome: Annotated[JobOutcome | None, "How the job ended; null until it is settled."]


@router.get("/v1/jobs/{job}/events", "Read a job's log", READ)
def read_events(
    on: System,
    user: Reader,
    job: str,
    *,
    after: Annotated[int, Bound(most=FAR), "Only lines after the one of this number."] = 0,
    limit: Annotated[int, Bound(least=1, most=1000), "How many lines to show at most."] = 500,
    last: Annotated[int, Bound(most=FAR), "Begin so many lines before the end; 0 for no such bound."] = 0,
) -> EventPage:
    found = readers.find(on, user, job)
    if last:
        after = max(after, logs.count(on, job) - last)
    if not found.is_settled:
        logs.watch(on, job)
    events = [show(event) for event in logs.read(on, job, after, limit)]
    state = states.shown(found.state, is_in_queue=listing.queue_of(on, found) is not None)
    return view(EventPage, found, found.end, state=state, items=events, next=events[-1].seq if events else after)


def show(found: Event) -> EventView:
    """A line of a log."""
    line = found.line
    return view(EventView, found, time=line.time, stream=line.stream, task=line.task, payload=line.payload)
