"""Outputs: how many there may be, and for whom. [SLOT-3] [ART-1]"""

from __future__ import annotations

import pytest

from penstock.domain import limits
from penstock.domain.errors import Refused
from penstock.domain.jobs import Job, Result
from penstock.domain.outputs import Output
from penstock.domain.rows import Change, Check
from penstock.domain.users import User
from penstock.usecases import agents, outputs
from penstock.wire.agent import AgentFile
from tests.twin.world import Twin
from tests.usecases.test_one_job import TOKEN, finish, hello, job_of, submit


def running(twin: Twin, ada: User) -> Job:
    job = submit(twin, ada)
    twin.run()
    return hello(twin, job).job


def files(count: int = 1) -> list[AgentFile]:
    return [AgentFile(f"/work/{number}", 1, "0" * 64) for number in range(count)]


def rows(twin: Twin) -> list[Output]:
    return [row for row in twin.store.rows.values() if isinstance(row, Output)]


def arrive(twin: Twin) -> list[str]:
    """The bytes of every output are there."""
    for row in rows(twin):
        twin.objects.objects[row.object_name] = b"x"
    return [row.id for row in rows(twin)]


def test_a_job_keeps_no_more_outputs_than_it_is_told(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    for _ in range(limits.OUTPUTS // limits.OUTPUTS_PER_CALL):
        outputs.begin(twin.on, job, files(limits.OUTPUTS_PER_CALL))
    with pytest.raises(Refused, match="at most 1000 outputs"):
        outputs.begin(twin.on, job, files())


def test_an_output_that_has_arrived_is_committed_once(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    with pytest.raises(Refused, match="0 of 1 bytes have arrived"):
        outputs.commit(twin.on, job, [rows(twin)[0].id])
    names = arrive(twin)
    outputs.commit(twin.on, job, names)
    outputs.commit(twin.on, job, names)
    assert rows(twin)[0].is_committed


def test_an_agent_whose_attempt_is_over_names_no_outputs(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    finish(twin, job.id)
    with pytest.raises(Refused, match="no longer wanted"):
        outputs.begin(twin.on, job, files())
    assert rows(twin) == []


def test_an_output_is_not_committed_for_an_attempt_that_ends_meanwhile(twin: Twin, ada: User) -> None:
    """SLOT-3: the attempt is settled between the agent's authentication and the commit of its output."""
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    names, commit = arrive(twin), twin.store.commit

    def late(changes: list[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        assert any(isinstance(change, Check) for change in changes)
        finish(twin, job.id)
        return commit(changes)

    twin.store.commit = late  # type: ignore[method-assign]
    with pytest.raises(Refused, match="no longer wanted"):
        outputs.commit(twin.on, job, names)
    assert not rows(twin)[0].is_committed


def test_a_heartbeat_is_no_reason_to_refuse_an_output(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    commit = twin.store.commit

    def beating(changes: list[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        agents.heartbeat(twin.on, agents.authenticate(twin.on, job.id, TOKEN))
        return commit(changes)

    twin.store.commit = beating  # type: ignore[method-assign]
    assert outputs.begin(twin.on, job, files())["uploads"]


def test_an_output_that_expired_meanwhile_is_not_said_to_be_committed(twin: Twin, ada: User) -> None:
    """ART-1: the bytes went with the row; the agent must hear of it."""
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    (name,) = arrive(twin)
    size = twin.objects.size

    def expiring(object_name: str) -> int | None:
        found = size(object_name)
        twin.pass_time(86_400)
        outputs.expire(twin.on, job.id, name)
        return found

    twin.objects.size = expiring  # type: ignore[method-assign]
    with pytest.raises(Refused, match="output"):
        outputs.commit(twin.on, job, [name])


def test_the_outcome_of_a_finished_job_stands(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    finish(twin, job.id, Result.FAILED)
    assert job_of(twin, job.id).reason == "the script ended"
