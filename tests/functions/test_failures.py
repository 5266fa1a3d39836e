"""A job that did not succeed says why over HTTP, whatever its agent sends. [JOB-1]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.jobs.failures import MAX_LINES, MEANINGS, Kind
from tests.functions.service import WORKER_TOKEN, Answer, Service, refused
from tests.functions.stage import Stage

TOLD: dict[str, Any] = {
    "kind": "out_of_memory",
    "evidence": {"oom_kills": 2, "signal": 9, "memory_limit_bytes": None, "unheard_of": "x"},
    "task": 0,
    "task_name": "build",
    "lines": ["Killed"],
}


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


def finish(stage: Stage, **body: Any) -> Answer:
    path = f"/v1/agent/jobs/{stage.job}/finish"
    answer = stage.service.ask("POST", path, {"result": "failed", **body}, token=WORKER_TOKEN, as_=None)
    stage.service.twin.run()
    return answer


def shown(stage: Stage) -> Any:
    return stage.service.ask("GET", f"/v1/jobs/{stage.job}").json["failure"]


def test_it_is_shown_when_the_job_has_settled(stage: Stage) -> None:
    assert shown(stage) is None
    finish(stage, failure=TOLD)
    meaning = MEANINGS[Kind.OUT_OF_MEMORY]
    assert shown(stage) == {
        "kind": "out_of_memory",
        "what": meaning.what,
        "advice": meaning.advice,
        "evidence": {"oom_kills": 2, "signal": 9},
        "task": {"index": 0, "name": "build"},
        "lines": ["Killed"],
        "lines_of": "job",
    }


def test_an_agent_that_says_no_more_than_its_exit_code(stage: Stage) -> None:
    finish(stage, exit_code=3)
    assert (shown(stage)["kind"], shown(stage)["evidence"], shown(stage)["task"]) == ("exited", {"exit_code": 3}, None)


@pytest.mark.parametrize("kind", ["worker_lost", "no such kind", ""])
def test_what_is_not_an_agents_to_tell_is_passed_over(stage: Stage, kind: str) -> None:
    finish(stage, exit_code=3, failure={**TOLD, "kind": kind})
    assert shown(stage)["kind"] == "exited"


def test_what_is_too_much_is_cut(stage: Stage) -> None:
    finish(stage, failure={**TOLD, "lines": ["x" * 2000] * 99, "task_name": "n" * 9999})
    assert len(shown(stage)["lines"]) == MAX_LINES
    assert len(str(shown(stage))) < 10_000


def test_a_job_that_succeeded_has_none_whatever_its_agent_says(stage: Stage) -> None:
    finish(stage, result="succeeded", failure=TOLD)
    assert shown(stage) is None


@pytest.mark.parametrize("odd", ["x", [], {}, {"kind": 7}, {**TOLD, "lines": "x"}, {**TOLD, "evidence": 1}])
def test_what_has_no_shape_is_refused(stage: Stage, odd: Any) -> None:
    refused(finish(stage, failure=odd), 400, "bad-request")
