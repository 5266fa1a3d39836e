"""Logs of jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2 as Request

from penstock.api.app import Authenticated, Pattern, Reply, Router
from penstock.api.conditional import Tag, tag_of_versions
from penstock.api.readers import Reader
from penstock.api.shapes import JobOutcome, JobState, view
from penstock.domain.jobs import states
from penstock.domain.jobs.jobs import Job
from penstock.domain.logs import keys
from penstock.domain.logs.logs import Event
from penstock.domain.users.users import READ, Need
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.jobs import jobs, listing, readers
from penstock.usecases.logs import logs

router = Router("jobs")

FAR = 10**11
"""More lines than a log can have."""

NUMBER = r"0|[1-9][0-9]{0,7}"

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
    key: Annotated[
        str | None,
        "With this, `GET /v1/logs/{job}` reads the log without a token for 10 to 20 minutes, from a cache that all of "
        "its readers share; null where there is no such cache, and in what comes from it.",
    ]


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
    key = keys.key(on.front_key(), found.id, on.world.now()) if on.front_key else None
    return _page(on, found, after, before, limit, last, key)


def _page(on: System, job: Job, after: int, before: int, limit: int, last: int, key: str | None) -> EventPage:
    """Some lines of a log. That somebody reads it is noted, so that the agent sends lines sooner."""
    total, is_gone = logs.total(on, job.id)
    if last:
        after = max(after, total - last)
    if not job.is_settled:
        logs.watch(on, job.id)
    most = min(limit, before - after - 1) if before else limit
    is_more = most > 0 and (after < total or is_gone)
    events = [show(event) for event in logs.read(on, job.id, after, most)] if is_more else []
    state = states.shown(job.state, is_in_queue=listing.queue_of(on, job) is not None)
    following = events[-1].seq if events else after
    total = max(total, following) if events else total
    return view(EventPage, job, job.end, state=state, items=events, next=following, total=total, key=key)


def _segment_tag(on: System, user: Reader, job: str, segment: str) -> str:
    return tag_of_versions(readers.find(on, user, job).id, segment)


@router.get("/v1/jobs/{job}/events/{segment}", "Read a segment of a job's log", READ, tag=Tag(_segment_tag, FOR_A_DAY))
def read_segment(on: System, user: Reader, job: str, segment: str) -> SegmentView | Reply:
    return _segment(on, readers.find(on, user, job), segment)


def _segment(on: System, job: Job, segment: str) -> Reply:
    """A full segment. Raises Refused 404."""
    if not re.fullmatch(NUMBER, segment):
        raise not_found("segment", segment[:20])
    events = [show(event) for event in logs.segment(on, job.id, int(segment))]
    return Reply(200, SegmentView(events, events[-1].seq), tag=tag_of_versions(job.id, segment))


def _job_of_key(on: System, event: Request, path: Mapping[str, str], need: Need) -> Job:
    """The job whose log's key is shown. Raises Refused 403 or 404. [SEC-2]"""
    del need
    shown = str(event.get_query_string_value("key", ""))
    if not on.front_key or not keys.is_good(shown, on.front_key(), path["job"], on.world.now()):
        raise Refused(
            403, "log-key", "this is no good key of this log any more: GET /v1/jobs/{job}/events has a new one"
        )
    job = jobs.by_id(on, path["job"])
    if job is None:
        raise not_found("job", path["job"][:64])
    return job


LoggedJob = Annotated[Job, Authenticated(_job_of_key, "Whoever has the log's key.", must=False, has_scopes=False)]
"""The job whose log is read by a key."""

Key = Annotated[str, Pattern(keys.PATTERN, "key is what `GET /v1/jobs/{job}/events` says"), "The log's key."]

FOR_A_SECOND, FOR_MINUTES = "public, max-age=1", "public, max-age=300, immutable"
"""How long the cache keeps what has come, and a full segment: no longer, since logs are deleted."""


def _no_versions(**_: object) -> str:
    return ""


@router.get("/v1/logs/{job}", "Read a job's log by its key", tag=Tag(_no_versions, FOR_A_SECOND))
def read_shared_events(
    on: System,
    of: LoggedJob,
    job: str,
    *,
    key: Key,
    after: Annotated[int, Bound(most=FAR), "Only lines after the one of this number."] = 0,
    limit: Annotated[int, Bound(least=1, most=1000), "How many lines to show at most."] = 500,
) -> EventPage:
    del job, key
    return _page(on, of, after, 0, limit, 0, None)


def _shared_segment_tag(on: System, of: LoggedJob, job: str, segment: str, key: str) -> str:
    del on, of, key
    return tag_of_versions(job, segment)


@router.get(
    "/v1/logs/{job}/{segment}",
    "Read a segment of a job's log by its key",
    tag=Tag(_shared_segment_tag, FOR_MINUTES),
)
def read_shared_segment(on: System, of: LoggedJob, job: str, segment: str, *, key: Key) -> SegmentView | Reply:
    del job, key
    return _segment(on, of, segment)


def show(found: Event) -> EventView:
    """A line of a log."""
    line = found.line
    return view(EventView, found, time=line.time, stream=line.stream, task=line.task, payload=line.payload)
