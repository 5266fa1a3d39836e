"""A job gets more time: its owner asks, its agent learns it, and the site has a bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel, extending, holds
from penstock.usecases.workers import agents
from tests.usecases.exact import running
from tests.usecases.steps import TOKEN, dies_after_the_report, finish, job_of, submit, sweep, told

DAY = 24 * 3600


def heartbeat(twin: Twin, job: str) -> int | None:
    return agents.heartbeat(twin.on, agents.authenticate(twin.on, job, TOKEN)).timeout_seconds


def test_its_agent_learns_it_and_the_sweep_waits_for_as_long(twin: Twin, ada: User) -> None:
    job = running(twin, ada, timeout=300)
    before = job_of(twin, job)
    assert heartbeat(twin, job) is None
    extending.extend_job(twin.on, ada, job, "30m")
    assert heartbeat(twin, job) == job_of(twin, job).limits.timeout >= 1800
    assert told(twin, job)[-1] == f"ada gave it more time: its timeout is {job_of(twin, job).limits.timeout} s"
    for _ in range(20):
        heartbeat(twin, job)
        sweep(twin)
    assert before.due
    assert twin.world.now() > before.due
    assert job_of(twin, job).state is State.RUNNING
    finish(twin, job)
    with pytest.raises(Refused, match="has ended") as refused:
        extending.extend_job(twin.on, ada, job, "30m")
    assert refused.value.status == 409


def test_a_job_that_waits_has_it_from_its_start(twin: Twin, ada: User) -> None:
    first, second = (submit(twin, ada, resources=["bench"], timeout=60) for _ in range(2))
    twin.run()
    assert extending.extend_job(twin.on, ada, second, 120).limits.timeout == 120
    assert extending.extend_job(twin.on, ada, second, 60).limits.timeout == 120
    cancel.cancel(twin.on, ada, second)
    twin.run()
    assert job_of(twin, first).limits.timeout == 60


def test_who_asks_for_no_more_than_there_is_says_nothing_in_the_log(twin: Twin, ada: User) -> None:
    job = running(twin, ada, timeout=300)
    before = told(twin, job)
    assert extending.extend_job(twin.on, ada, job, 60).limits.timeout == 300
    assert told(twin, job) == before
    extending.extend_job(twin.on, ada, job, 301)
    assert len(told(twin, job)) == len(before) + 1


def test_the_site_has_a_bound(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    with pytest.raises(Refused, match="longer than 86400 s in all") as refused:
        extending.extend_job(twin.on, ada, job, DAY + 1)
    assert (refused.value.status, refused.value.faults[0].where) == (422, "for")
    twin.pass_time(1)
    with pytest.raises(Refused, match=r"limits\.timeout_most"):
        extending.extend_job(twin.on, ada, job, DAY)


def test_who_may_not_and_what_cannot_be(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    with pytest.raises(Refused) as refused:
        extending.extend_job(twin.on, replace(ada, name="eve"), job, 60)
    assert refused.value.status == 404
    with pytest.raises(Refused) as refused:
        extending.extend_job(twin.on, ada, job, "soon")
    assert (refused.value.status, refused.value.faults[0].where) == (400, "for")
    cancel.cancel(twin.on, ada, job)
    with pytest.raises(Refused, match="is being cancelled"):
        extending.extend_job(twin.on, ada, job, 60)


def test_once_the_script_has_ended_there_is_nothing_to_extend_or_to_hold(twin: Twin, ada: User) -> None:
    """Also while its end is written, but nothing of it was put back."""
    job = running(twin, ada)
    with dies_after_the_report(twin):
        finish(twin, job)
    assert not job_of(twin, job).is_settled
    with pytest.raises(Refused, match="has ended"):
        extending.extend_job(twin.on, ada, job, 60)
    with pytest.raises(Refused, match="has ended"):
        holds.request(twin.on, ada, job, "look", None, whatever=True)
