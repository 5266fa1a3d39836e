"""A short log stays in its rows until the job's retention ends: to make an object of it costs more than to keep it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.logs.archives import LATE_ROWS_WITHIN
from penstock.domain.logs.logs import SHORT_BYTES, Archive, ArchiveState, Batch
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Delete
from penstock.testing.twin import Twin
from penstock.usecases.logs import archives, logs
from tests.usecases.archives import ended, paged, row_of
from tests.usecases.exact import put, running
from tests.usecases.retained_jobs import of
from tests.usecases.steps import finish, sweep

MONTH = timedelta(days=31).total_seconds()


def test_a_short_log_becomes_no_object_and_is_not_looked_at(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    said = paged(twin, job)
    sweep(twin)
    assert of(twin, Archive) == []
    assert (of(twin, Artifact), twin.objects.objects) == ([], {})
    assert paged(twin, job) == said


@pytest.mark.parametrize(("size", "archived"), [(SHORT_BYTES - 1, 0), (SHORT_BYTES, 1)])
def test_how_long_a_log_is_when_its_job_settles_decides(twin: Twin, ada: User, size: int, archived: int) -> None:
    job = running(twin, ada)
    last = logs.last_batch(twin.on, job)
    assert last
    put(twin, last, size=size)
    finish(twin, job)
    assert [row.state for row in of(twin, Archive)] == [ArchiveState.WAITING] * archived


def test_a_short_log_goes_when_its_jobs_retention_ends(twin: Twin, ada: User) -> None:
    """ART-2: and who asks for it is told since when it is gone."""
    job = ended(twin, ada)
    sweep(twin)
    twin.pass_time(MONTH)
    for _ in range(3):
        sweep(twin)
    assert [row for row in of(twin, Batch) if row.job == job] == []
    with pytest.raises(Refused, match="is gone since"):
        logs.read(twin.on, job, 0, 10)
    twin.pass_time(LATE_ROWS_WITHIN.total_seconds())
    for _ in range(2):
        sweep(twin)
    row = row_of(twin, job)
    assert (row.state, row.due, row.version) == (ArchiveState.GONE, None, 3), "created, deleted, and looked at again"


def test_a_log_that_is_half_deleted_is_gone_to_its_readers(twin: Twin, ada: User) -> None:
    """The process that deletes it died after its first row: nobody is shown the rest as if it were the log."""
    job = ended(twin, ada)
    archives.delete(twin.on, job)
    first, *left = sorted((row for row in of(twin, Batch) if row.job == job), key=lambda row: row.first)
    assert twin.store.commit([Delete(first)])
    assert left
    with pytest.raises(Refused, match="is gone since"):
        logs.read(twin.on, job, 0, 10)
    assert logs.read(twin.on, job, left[0].first - 1, 1)[0].seq == left[0].first, "who had the first lines reads on"
