"""What a job runs stands in the job's own row, if that is short enough."""

from __future__ import annotations

import random
import string
from datetime import timedelta

import pytest

from penstock.aws.dynamodb import UNIT_BYTES, stored_bytes
from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Outcome, Spec
from penstock.domain.users.users import User
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import submit
from penstock.usecases.jobs.flow import spec_of
from tests.usecases.exact import commits
from tests.usecases.retained_jobs import of
from tests.usecases.steps import finish, hello, job_of

SCRIPT = "#!/bin/sh\necho "


def size(twin: Twin, ada: User, script: str) -> int:
    """The least SHORT_BYTES with which a job and what it runs stand in one row, within a few bytes: ids differ."""
    twin.world.time = START + timedelta(milliseconds=1)
    made = submit.prepare(twin.on, ada, SubmitJob(script))
    with pytest.MonkeyPatch.context() as patch:
        for most in range(600, UNIT_BYTES):
            patch.setattr(submit, "SHORT_BYTES", most)
            if submit._is_short(made.job, made.spec):
                return most
    raise AssertionError(script)


@pytest.mark.usefixtures("by_flow")
@pytest.mark.parametrize("less", [-20, 20])
def test_a_short_one_is_written_with_its_job_and_a_long_one_has_its_row(
    twin: Twin, ada: User, less: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = SCRIPT + "short"
    monkeypatch.setattr(submit, "SHORT_BYTES", size(twin, ada, script) - less)
    written = commits(twin)
    job = submit.submit(twin.on, ada, SubmitJob(script), None)
    assert [change.row.kind for change in written[0]] == ["job", "spec"][: 1 + (less > 0)]  # type: ignore[union-attr]
    found = spec_of(twin.on, job_of(twin, job))
    assert found
    assert found.script == script
    assert len(of(twin, Spec)) == (less > 0)
    again = submit.retry(twin.on, ada, job_of(twin, job))
    assert (spec_of(twin.on, job_of(twin, again)) or found).script == script


@pytest.mark.usefixtures("by_flow")
@pytest.mark.parametrize("letters", [1000, 5000])
def test_a_long_script_has_its_row_however_well_it_compresses(twin: Twin, ada: User, letters: int) -> None:
    """Each call that reads the job's row would unpack it."""
    submit.submit(twin.on, ada, SubmitJob(SCRIPT + "x" * letters), None)
    assert len(of(twin, Spec)) == (letters > 1000)


@pytest.mark.parametrize("resources", [[], ["bench", "licence"]])
def test_a_row_with_what_it_runs_is_written_for_one_unit_to_its_end(
    twin: Twin, ada: User, resources: list[str]
) -> None:
    """However little of a script can be compressed. One that is longer has a row of its own."""
    noise = random.Random(1)
    shared = []
    for letters in range(0, 400, 20):
        script = SCRIPT + "".join(noise.choices(string.ascii_letters + string.digits, k=letters)) + "\n"
        job = submit.submit(
            twin.on, ada, SubmitJob(script, resources=resources, output_rules=["=/work/kept.txt"]), None
        )
        twin.run()
        hello(twin, job)
        finish(twin, job)
        twin.run()
        row = job_of(twin, job)
        assert row.end.outcome is Outcome.SUCCEEDED
        shared.append(row.spec is not None)
        assert stored_bytes(row) <= UNIT_BYTES or not shared[-1]
    assert shared == sorted(shared, reverse=True)
    assert (shared[0], shared[-1]) == (True, False)
