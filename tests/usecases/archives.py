"""Logs that become objects."""

from __future__ import annotations

from datetime import timedelta

from penstock.domain.artifacts.artifacts import Artifact, ArtifactState
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.logs.logs import Archive, ArchiveState, Batch, Event, Line, archive_key
from penstock.domain.users.users import User
from penstock.testing.twin import Twin
from penstock.usecases.logs import archives as logs_archives
from penstock.usecases.logs import logs
from penstock.usecases.workers import agents
from tests.usecases.exact import running
from tests.usecases.retained_jobs import of
from tests.usecases.steps import TOKEN, finish

HOUR = timedelta(hours=1)


BATCHES = 12


def ended(twin: Twin, ada: User, batches: int = BATCHES) -> str:
    """A job that said three lines in each batch and is to be archived."""
    job = running(twin, ada)
    caller = agents.authenticate(twin.on, job, TOKEN)
    for first in range(1, 3 * batches, 3):
        lines = [Line(twin.world.now(), "stdout", f"line {number} é\r", 0) for number in range(first, first + 3)]
        agents.append_events(twin.on, caller, first, lines)
    finish(twin, job)
    twin.pass_time(HOUR.total_seconds())
    return job


def row_of(twin: Twin, job: str) -> Archive:
    found = twin.store.get(archive_key(job), Archive)
    assert found
    return found


def paged(twin: Twin, job: str, after: int = 0, limit: int = 4) -> list[Event]:
    """All that there is to read, page by page."""
    found: list[Event] = []
    while page := logs.read(twin.on, job, found[-1].seq if found else after, limit):
        assert len(page) <= limit
        found += page
    return found


def look(twin: Twin, job: str, most: int = 40) -> None:
    """Look until all is done, each time when it is due."""
    for _ in range(most):
        due = row_of(twin, job).due
        if due is None:
            return
        twin.world.time = max(twin.world.time, due)
        logs_archives.advance(twin.on, job)
    raise AssertionError(f"it never ends: {row_of(twin, job)}")


def is_archived(twin: Twin, job: str) -> bool:
    """Whether a log is an object of its job's, whole, and no rows."""
    (artifact,) = [row for row in of(twin, Artifact) if row.owners]
    content = twin.objects.objects[object_name(artifact.id)]
    assert (artifact.size, artifact.state) == (len(content), ArtifactState.CREATED)
    assert (artifact.owners, artifact.sort, artifact.by, artifact.due) == ((f"job#{job}",), "log", "ada", None)
    return not of(twin, Batch) and row_of(twin, job).state is ArchiveState.ARCHIVED
