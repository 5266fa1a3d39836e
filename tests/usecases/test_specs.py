"""What a job runs stands in the job's own row, if that is short enough."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job, Spec, job_key, spec_key
from penstock.domain.users.users import User
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import submit
from penstock.usecases.jobs.flow import spec_of
from tests.usecases.exact import commits
from tests.usecases.retained_jobs import of
from tests.usecases.steps import job_of

SCRIPT = "#!/bin/sh\necho "


def size(twin: Twin, ada: User, script: str) -> int:
    """The bytes that a job takes with what it runs, with every default, after the site's first millisecond."""
    twin.world.time = START + timedelta(milliseconds=1)
    made = submit.prepare(twin.on, ada, SubmitJob(script))
    return sum(len(json.dumps(asdict(row), default=str).encode()) for row in (made.job, made.spec))


@pytest.mark.usefixtures("by_flow")
@pytest.mark.parametrize("more", [0, 1])
def test_a_short_one_is_written_with_its_job_and_a_long_one_has_its_row(twin: Twin, ada: User, more: int) -> None:
    script = SCRIPT + "x" * (submit.SHORT_BYTES - size(twin, ada, SCRIPT) + more)
    assert size(twin, ada, script) == submit.SHORT_BYTES + more
    written = commits(twin)
    job = submit.submit(twin.on, ada, SubmitJob(script), None)
    assert [change.row.kind for change in written[0]] == ["job", "spec"][: 1 + more]  # type: ignore[union-attr]
    found = spec_of(twin.on, job_of(twin, job))
    assert found
    assert found.script == script
    assert len(of(twin, Spec)) == more
    again = submit.retry(twin.on, ada, job_of(twin, job))
    assert (spec_of(twin.on, job_of(twin, again)) or found).script == script


@pytest.mark.usefixtures("by_flow")
def test_a_character_counts_as_many_bytes_as_it_takes(twin: Twin, ada: User) -> None:
    room = submit.SHORT_BYTES - size(twin, ada, SCRIPT)
    job = submit.submit(twin.on, ada, SubmitJob(SCRIPT + "é" * (room // 2 + 1)), None)
    assert twin.store.get(spec_key(job), Spec)
    job = submit.submit(twin.on, ada, SubmitJob(SCRIPT + "é" * (room // 2)), None)
    row = twin.store.get(job_key(job), Job)
    assert row
    assert row.spec
