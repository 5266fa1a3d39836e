"""Exactly what a job that waits for others, or for files, reads, writes and tells. [JOB-1] [ART-1]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.artifacts.inputs import Input
from penstock.domain.artifacts.retention import Retention, retention_key
from penstock.domain.commands import NewInput
from penstock.domain.jobs.jobs import State
from penstock.domain.users.users import User
from penstock.system import current_site
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import inputs
from penstock.usecases.jobs import prerequisites, settle
from tests.usecases.dependencies import depends
from tests.usecases.exact import commits, drop
from tests.usecases.inputs import all_inputs, digest
from tests.usecases.inputs import run as run_with
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, submit, told


def send(twin: Twin, job: str, name: str, data: bytes) -> None:
    leave = inputs.begin(twin.on, job_of(twin, job), NewInput(name, size=len(data), sha256=digest(data)))
    twin.objects.objects[leave.url.removeprefix("memory://")] = data


def test_two_that_judge_at_once_start_it_once(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first, copy_outputs=False, on="always"))
    settle.settle(twin.on, first, 1, None, None)
    before_the_next_commit(twin, lambda: prerequisites.judge(twin.on, second))
    prerequisites.judge(twin.on, second)
    assert sum("dependencies complete" in line for line in told(twin, second)) == 1


def test_a_job_that_goes_on_is_not_kept_for_again(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    run_with(twin, first, "/work/a")
    second = submit(twin, ada, **depends(first))
    twin.run()
    hello(twin, second)
    finish(twin, second)
    prerequisites.judge(twin.on, second)
    row = twin.store.get(retention_key(first), Retention)
    assert row
    assert row.dependents == ()


def test_what_is_not_ready_is_neither_said_to_be_nor_ended_early(twin: Twin, ada: User) -> None:
    """That what it needs is gone is found out when it would begin: until then it could not be."""
    settled, running = submit(twin, ada), submit(twin, ada)
    run_with(twin, settled, "/work/a")
    job = submit(twin, ada, **depends(settled, running))
    row = twin.store.get(retention_key(settled), Retention)
    assert row
    drop(twin, row)
    prerequisites.judge(twin.on, job)
    assert job_of(twin, job).state is State.WAITING
    assert not any("complete" in line for line in told(twin, job))


def test_a_job_without_files_asks_for_none(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, **depends(submit(twin, ada)))
    find, asked = twin.store.find, list[str]()

    def noting(pk: str, prefix: str, *more: Any, **how: Any) -> Any:
        asked.append(prefix)
        return find(pk, prefix, *more, **how)

    twin.store.find = noting  # type: ignore[method-assign]
    prerequisites.judge(twin.on, job)
    assert "input#" not in asked


def test_a_job_whose_prior_has_no_row_any_more_is_told_so(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    job = submit(twin, ada, **depends(first, copy_outputs=False))
    drop(twin, job_of(twin, first))
    prerequisites.judge(twin.on, job)
    assert job_of(twin, job).is_settled


def test_a_file_as_big_as_the_limit_is_taken(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a"])
    most = current_site(twin.on).limits.output_bytes
    assert inputs.begin(twin.on, job_of(twin, job), NewInput("a", size=most, sha256=digest(b""))).there is False


def test_an_arrived_input_is_not_checked_again(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a", "b"])
    send(twin, job, "a", b"x")
    inputs.commit(twin.on, job_of(twin, job), "a")
    twin.objects.objects.clear()
    written = commits(twin)
    inputs.commit(twin.on, job_of(twin, job), "a")
    assert written == []


def test_files_of_ones_own_are_all_where_nothing_else_is_copied(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a"], **depends(submit(twin, ada), copy_outputs=False))
    send(twin, job, "a", b"x")
    inputs.commit(twin.on, job_of(twin, job), "a")
    page = inputs.list_for_agent(twin.on, job_of(twin, job), "")
    assert ([each.path for each in page.inputs], page.next) == (["/input/a"], None)


@pytest.mark.parametrize("after", ["", "0", "0:01ARZ3NDEKTSV4RRFFQ69G5FAV.01ARZ3NDEKTSV4RRFFQ69G5FAV"])
def test_the_first_page_is_what_was_sent(twin: Twin, ada: User, after: str) -> None:
    job = submit(twin, ada, inputs=["a"])
    send(twin, job, "a", b"x")
    assert [each.path for each in inputs.list_for_agent(twin.on, job_of(twin, job), after).inputs] == ["/input/a"]
    assert len(all_inputs(twin, job)) == 1
    assert next(row for row in twin.store.rows.values() if isinstance(row, Input)).is_committed is False
