"""An owner has a job's files and log deleted before their time. [ART-1]"""

from __future__ import annotations

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.retention import Retention
from penstock.domain.jobs.jobs import Result
from penstock.domain.logs.logs import Batch
from penstock.domain.users.audit import Entry
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import outputs, pins
from penstock.usecases.artifacts.discard import discard
from penstock.usecases.jobs import cancel, prerequisites
from penstock.usecases.logs import logs
from tests.usecases.dependencies import depends
from tests.usecases.races import before_the_next_commit
from tests.usecases.retained_jobs import ended, nothing_is_left, of, tidy, with_a_row_of_its_own
from tests.usecases.steps import hello, job_of, submit


def gone(twin: Twin, job: str) -> bool:
    tidy(twin, times=3)
    return nothing_is_left(twin) and not of(twin, Batch) and job_of(twin, job).end.outputs_gone is not None


@pytest.mark.parametrize("result", [Result.SUCCEEDED, Result.FAILED])
@pytest.mark.parametrize("has_own_row", [False, True])
def test_all_that_a_job_has_is_deleted_within_one_sweep(
    twin: Twin, ada: User, result: Result, has_own_row: bool
) -> None:
    """Also what is kept longer as the latest failure; no time passes."""
    job = ended(twin, ada, 3, result)
    if has_own_row:
        with_a_row_of_its_own(twin, job)
    tidy(twin, times=3)
    assert len(of(twin, Artifact)) == 3
    for _ in range(2):
        discard(twin.on, ada, job_of(twin, job))
        twin.pass_time(1)
    assert gone(twin, job)
    with pytest.raises(Refused, match="UTC: ada discarded what the job had") as told:
        outputs.sign(twin.on, job_of(twin, job), "no-output", 60)
    assert (told.value.status, told.value.code) == (410, "outputs-gone")
    with pytest.raises(Refused, match="UTC: ada discarded what the job had") as told:
        logs.read(twin.on, job, 0, 10)
    assert (told.value.status, told.value.code) == (410, "log-gone")
    assert [(row.by, row.did, row.what) for row in of(twin, Entry) if row.did == "discard"] == [
        ("ada", "discard", f"job {job}")
    ]
    discard(twin.on, ada, job_of(twin, job))
    assert not of(twin, Retention)


def test_a_job_that_goes_on_keeps_all(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    with pytest.raises(Refused, match="is running: cancel it first") as told:
        discard(twin.on, ada, job_of(twin, job))
    assert told.value.status == 409


def test_what_another_job_needs_is_kept_until_that_has_settled(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    needs = submit(twin, ada, **depends(job))
    with pytest.raises(Refused, match=f"job {needs} depends on job {job}") as told:
        discard(twin.on, ada, job_of(twin, job))
    assert (told.value.status, told.value.code) == (409, "outputs-needed")
    cancel.cancel(twin.on, ada, needs)
    twin.run()
    discard(twin.on, ada, job_of(twin, job))
    tidy(twin, times=3)
    assert job_of(twin, job).end.outputs_gone


@pytest.mark.parametrize("settled", [False, True])
def test_what_nobody_needs_any_more_is_not_kept_for_a_lost_message(twin: Twin, ada: User, settled: bool) -> None:
    """Its dependent has settled, or is nowhere, and the retention names it still."""
    job = ended(twin, ada)
    dependent = ended(twin, ada) if settled else "D"
    assert twin.store.commit(prerequisites.pin(twin.on, job, dependent))
    discard(twin.on, ada, job_of(twin, job))
    tidy(twin, times=3)
    assert job_of(twin, job).end.outputs_gone


def test_a_job_that_comes_to_need_it_meanwhile_keeps_it(twin: Twin, ada: User) -> None:
    """ART-1: both write the row that tells of the retention."""
    job = ended(twin, ada)
    before_the_next_commit(twin, lambda: submit(twin, ada, **depends(job)))
    with pytest.raises(Refused):
        discard(twin.on, ada, job_of(twin, job))
    assert job_of(twin, job).end.outputs_gone is None


def test_what_is_pinned_stays(twin: Twin, ada: User) -> None:
    job = ended(twin, ada, 2)
    pinned = of(twin, Artifact)[0]
    pins.pin(twin.on, ada, pinned.id, "evidence", None)
    discard(twin.on, ada, job_of(twin, job))
    tidy(twin, times=3)
    assert [row.id for row in of(twin, Artifact)] == [pinned.id]
