"""A short log stays in its rows until the job's retention ends: to make an object of it costs more than to keep it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.logs.archives import ArchiveState
from penstock.domain.logs.logs import Batch
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.logs import logs
from tests.usecases.archives import ended, paged, row_of
from tests.usecases.retained_jobs import of
from tests.usecases.steps import sweep

MONTH = timedelta(days=31).total_seconds()


def test_a_short_log_becomes_no_object_and_is_not_looked_at_again(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    said = paged(twin, job)
    sweep(twin)
    row = row_of(twin, job)
    assert (row.state, row.due) == (ArchiveState.WAITING, None)
    assert (of(twin, Artifact), twin.objects.objects) == ([], {})
    assert paged(twin, job) == said


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
