"""A job that is a list of tasks instead of a job file, through the real use cases."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.tasks import NewTask
from penstock.domain.replies import AssignedTask
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.system import current_site
from penstock.testing.twin import Twin
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.jobs.flow import spec_of
from penstock.usecases.users import users
from penstock.usecases.workers import agents
from tests.usecases.steps import hello, job_of

ONE = NewTask("packages", "apt-get update", uid=0, gid=0, workdir="/")
TWO = NewTask("tests", "./test", env={"SUITE": "all"}, env_clear=True)
ASSIGNED = [
    AssignedTask("packages", "apt-get update", {}, env_clear=False, workdir="/", uid=0, gid=0),
    AssignedTask("tests", "./test", {"SUITE": "all"}, env_clear=True, workdir="/work"),
]


def submit(twin: Twin, user: User, **ask: Any) -> str:
    return jobs_submit.submit(twin.on, user, SubmitJob(**{"tasks": [ONE, TWO], **ask}), None)


def assigned(twin: Twin, job: str) -> list[AssignedTask]:
    twin.run()
    found = agents.assignment(twin.on, hello(twin, job).job, current_site(twin.on), "w", None, is_kept=False)
    return found.tasks


def test_the_agent_gets_the_tasks_as_they_are(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, name="nightly", output_rules=["/work/*.log"], timeout="5m", env={"A": "b"})
    assert assigned(twin, job) == ASSIGNED
    found = job_of(twin, job)
    assert (found.name, found.limits.timeout, found.request.target) == ("nightly", 300, "default")
    spec = spec_of(twin.on, found)
    assert spec
    assert (spec.output_rules, spec.env, spec.script) == (("/work/*.log",), {"A": "b"}, "")
    assert "tasks" not in spec.request, "they would be in the row twice"


def test_a_job_with_tasks_can_be_submitted_again(twin: Twin, ada: User) -> None:
    first = submit(twin, ada, name="nightly", tags={"a": "b"})
    again = jobs_submit.retry(twin.on, ada, job_of(twin, first))
    assert again != first
    assert assigned(twin, again) == ASSIGNED
    assert (job_of(twin, again).name, job_of(twin, again).request.tags) == ("nightly", {"a": "b"})


def test_a_plan_of_tasks_checks_them_and_writes_nothing(twin: Twin, ada: User) -> None:
    before = len(twin.store.rows)
    assert jobs_submit.plan(twin.on, ada, SubmitJob(tasks=[ONE]))
    with pytest.raises(Refused):
        jobs_submit.plan(twin.on, ada, SubmitJob(tasks=[NewTask("", "true")]))
    assert len(twin.store.rows) == before


@pytest.mark.parametrize(
    ("ask", "where", "message"),
    [
        ({"tasks": [ONE, NewTask("x", " ")]}, "tasks[1].script", "`tasks.script` is empty"),
        ({"script": "#!/bin/sh\n"}, "script", "a job has either `script`, which is its job file, or `tasks`"),
        ({"timeout": "soon"}, "timeout", "`timeout`: wanted a duration"),
    ],
)
def test_what_is_wrong_is_told_where_it_is(
    twin: Twin, ada: User, ask: dict[str, Any], where: str, message: str
) -> None:
    with pytest.raises(Refused) as refused:
        submit(twin, ada, **ask)
    (fault,) = refused.value.faults
    assert (refused.value.status, fault.where) == (400, where)
    assert fault.message.startswith(message)


def test_without_tasks_and_script_there_is_no_job(twin: Twin, ada: User) -> None:
    with pytest.raises(Refused) as refused:
        submit(twin, ada, tasks=[])
    assert (refused.value.code, refused.value.faults[0].where) == ("bad-request", "script")
    with pytest.raises(Refused) as refused:
        submit(twin, ada, tasks=[], script="")
    assert (refused.value.code, refused.value.faults[0].message) == ("bad-job-file", "the file is empty")


def test_the_bytes_of_all_tasks_are_counted(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a job file are: they take as much room."""
    counted: list[int] = []
    count = users.count_job

    def noting(on: Any, job: Any, script: str, limits: Any) -> Any:
        counted.append(len(script))
        return count(on, job, script, limits)

    monkeypatch.setattr(users, "count_job", noting)
    submit(twin, ada, tasks=[NewTask("a", "x" * 10_000), NewTask("b", "y" * 5_000)])
    assert 15_000 < counted[0] < 15_500
