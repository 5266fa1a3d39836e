"""The tasks of a job without a job file: what is wrong with them is told where it is."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.jobs.jobs import Spec
from penstock.domain.jobs.tasks import TASKS, NewTask, check_tasks
from penstock.kernel import limits

GOOD: dict[str, Any] = {"name": "unit tests", "script": "make test"}


def said(*tasks: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fault.where, fault.message) for fault in check_tasks([NewTask(**task) for task in tasks])]


@pytest.mark.parametrize(
    "changes",
    [{}, {"uid": 0, "gid": 0}, {"uid": 2**32 - 2}, {"workdir": "/"}, {"env": {"A": ""}, "env_clear": True}],
)
def test_a_good_task(changes: dict[str, Any]) -> None:
    assert said({**GOOD, **changes}) == []


@pytest.mark.parametrize(
    ("changes", "where", "message"),
    [
        ({"name": " "}, "tasks[1].name", "`tasks.name` is empty"),
        ({"name": "a\nb"}, "tasks[1].name", "`tasks.name` holds the control character U+000A"),
        ({"script": "\n"}, "tasks[1].script", "`tasks.script` is empty"),
        ({"script": "a\0"}, "tasks[1].script", "`tasks.script` holds the character U+0000, which is no text"),
        ({"uid": -1}, "tasks[1].uid", "`tasks.uid` must be from 0 to 4294967294"),
        ({"gid": 2**32 - 1}, "tasks[1].gid", "`tasks.gid` must be from 0 to 4294967294"),
        ({"workdir": "work"}, "tasks[1].workdir", "`tasks.workdir` is not absolute"),
        ({"workdir": ""}, "tasks[1].workdir", "`tasks.workdir` is empty"),
        (
            {"workdir": "/" + "x" * 1024},
            "tasks[1].workdir",
            "`tasks.workdir` has 1025 characters; it may have at most 1024",
        ),
        ({"env": {"1": ""}}, "tasks[1].env.1", "`tasks.env.1`: a variable's name is letters, digits and _"),
    ],
)
def test_a_bad_task(changes: dict[str, Any], where: str, message: str) -> None:
    ((found, text),) = said(GOOD, {**GOOD, **changes})
    assert (found, text[: len(message)]) == (where, message)


def test_there_may_be_so_many_tasks_and_so_much_of_them() -> None:
    assert said(*[GOOD] * TASKS) == []
    assert said(*[GOOD] * (TASKS + 1)) == [("tasks", "`tasks` has 65 entries; it may have at most 64")]
    half = {**GOOD, "script": "x" * (limits.SCRIPT_BYTES // 2)}
    assert said(half, half) == []
    assert said(half, half, {**GOOD, "script": "y"}) == [
        ("tasks", f"the scripts have {limits.SCRIPT_BYTES + 1} bytes; they may have at most {limits.SCRIPT_BYTES}")
    ]


def test_what_a_job_runs_is_its_file_or_its_tasks() -> None:
    assert Spec(job="J", path="job.sh", script="echo").source == "echo"
    tasks = (NewTask("a", "echo", workdir="/"),)
    assert Spec(job="J", path="job", script="", tasks=tasks).source == (
        '[{"env": {}, "env_clear": false, "gid": null, "name": "a", "script": "echo", "uid": null, "workdir": "/"}]'
    )
