"""Canaries: jobs that show, again and again, whether a target or a resource type works, and what follows when not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

import pytest

from penstock.domain.canaries import Canary, canary_key
from penstock.domain.errors import Refused
from penstock.domain.jobs import Job, Result
from penstock.domain.rows import Change, key_of
from penstock.domain.units import UnitState
from penstock.usecases import agents, canaries, configuring, cooling, submitting, users
from penstock.wire import SubmitJob
from tests.twin.world import Twin
from tests.usecases.steps import sweep
from tests.usecases.test_one_job import finish, hello, job_of, worker_of
from tests.usecases.test_warm import unit_of

SITE = """
[factories.hand]
driver = "hand"
[targets.linux]
factory = "hand"
limit = 2
privilege = "target.lab"
[targets.linux.canary]
every = "1h"
script = "df -h /work"
timeout = "5m"
[wells.spring]
driver = "hand"
[resources.db]
well = "spring"
limit = 2
privilege = "resource.db"
[resources.db.canary]
every = "2h"
script = "psql -c 'select 1'"
target = "linux"
"""
LINUX, DB = "target/linux", "resource/db"
HOUR = 3600


ONLY_LINUX = SITE.split("[resources.db.canary]")[0]
ONLY_DB = re.sub(r"(?s)\[targets.linux.canary\].*?(?=\[wells)", "", SITE)


class Died(BaseException):
    """The handler is no more."""


def site_of(text: str) -> Twin:
    made = Twin()
    configuring.apply(made.on, "admin", text, "site.toml")
    made.run()
    return made


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    told = configuring.apply(made.on, "admin", SITE, "site.toml")
    assert {"canary of target/linux: new", "canary of resource/db: new"} <= set(told)
    made.run()
    return made


def of(twin: Twin, pool: str = LINUX) -> Canary:
    found = twin.store.get(canary_key(pool), Canary)
    assert found is not None
    return found


def out(twin: Twin, pool: str = LINUX) -> str:
    """The job of a canary that is sent now."""
    sweep(twin)
    job = of(twin, pool).job
    assert job is not None
    assert of(twin, pool).is_out
    return job


def jobs(twin: Twin) -> list[Job]:
    return [row for row in twin.store.rows.values() if isinstance(row, Job)]


def round_trip(twin: Twin, pool: str, result: Result) -> str:
    """A canary is sent and comes back; the id of its job."""
    twin.world.time = max(twin.world.time, (of(twin, pool).due or twin.world.now()))
    job = out(twin, pool)
    sweep(twin)  # what is probed for, is made a moment later
    hello(twin, job)
    finish(twin, job, result)
    sweep(twin, 121)
    return job


def test_each_is_sent_when_it_is_due_and_not_again_before(twin: Twin) -> None:
    job = out(twin)
    assert (job_of(twin, job).owner, job_of(twin, job).target, job_of(twin, job).tags) == (
        "canary", "linux", {"penstock-canary": LINUX},
    )  # fmt: skip
    assert [need.type for need in job_of(twin, of(twin, DB).job or "").needs if need.order] == ["db"]
    assert len(jobs(twin)) == 2
    hello(twin, job)
    finish(twin, job)
    sweep(twin, 121)
    assert (of(twin).is_out, of(twin).outcome, of(twin).failures) == (False, "succeeded", 0)
    sweep(twin, 1000)
    assert len(jobs(twin)) == 2
    sweep(twin, HOUR)
    assert of(twin).job != job
    assert len(jobs(twin)) == 3


def test_it_is_sent_once_however_often_one_tries(twin: Twin) -> None:
    """Whoever died between the job and its note finds the same job."""
    commit = twin.store.commit

    def dies(changes: Sequence[Change]) -> bool:
        if any(key_of(change) == canary_key(LINUX) for change in changes):
            raise Died
        return commit(changes)

    twin.store.commit = dies  # type: ignore[method-assign]
    with pytest.raises(Died):
        canaries.nudge(twin.on, canary_key(LINUX))
    twin.store.commit = commit  # type: ignore[method-assign]
    assert not of(twin).is_out
    canaries.nudge(twin.on, canary_key(LINUX))
    assert [row.id for row in jobs(twin)] == [of(twin).job]


def test_one_that_waits_is_not_followed_by_another(twin: Twin) -> None:
    configuring.pause(twin.on, LINUX, paused=True)
    job = out(twin)
    sweep(twin, 3 * HOUR)
    assert (of(twin).job, of(twin).is_out) == (job, True)


def test_the_worker_that_it_fails_on_is_broken_and_three_in_a_row_stop_the_target() -> None:
    twin = site_of(ONLY_LINUX)
    for failures in (1, 2, 3):
        job = round_trip(twin, LINUX, Result.FAILED)
        assert of(twin).failures == failures
        assert f"canary job {job} failed on it" in (unit_of(twin, worker_of(twin, job).id).broken or "")
    (row,) = [row for row in cooling.rows(twin.on, "factory/hand") if row.cause == "broken"]
    assert "3 in a row; the last: canary job" in row.why


def test_the_next_that_succeeds_opens_it_again() -> None:
    twin = site_of(ONLY_LINUX)
    for _ in range(3):
        round_trip(twin, LINUX, Result.FAILED)
    twin.world.time += timedelta(minutes=31)
    round_trip(twin, LINUX, Result.SUCCEEDED)
    assert [row for row in cooling.rows(twin.on, "factory/hand") if row.cause == "broken"] == []
    assert of(twin).failures == 0


def test_a_resource_that_exists_already_is_quarantined_and_the_worker_is_not_blamed() -> None:
    twin = site_of(ONLY_DB)
    twin.drivers.quarantining = True
    job = out(twin, DB)
    caller = hello(twin, job)
    agents.finish(twin.on, caller, Result.TIMED_OUT, "it took too long", None)
    twin.run()
    sweep(twin)
    worker = unit_of(twin, caller.unit.id)
    assert (worker.state, worker.broken) == (UnitState.GONE, None)
    (apart,) = [unit for unit in twin.store.rows.values() if getattr(unit, "state", "") is UnitState.QUARANTINED]
    assert "canary job" in str(apart.reason)


def test_resources_that_are_made_are_made_no_more_after_three() -> None:
    twin = site_of(ONLY_DB)
    for _ in range(3):
        round_trip(twin, DB, Result.FAILED)
    assert [row.cause for row in cooling.rows(twin.on, "well/spring")] == ["broken"]
    twin.world.time += timedelta(minutes=31)
    round_trip(twin, DB, Result.SUCCEEDED)
    assert cooling.rows(twin.on, "well/spring") == []


@pytest.mark.parametrize("result", [Result.FAILED, Result.SUCCEEDED])
def test_a_job_of_anybody_else_breaks_nothing(twin: Twin, result: Result) -> None:
    user = users.create(twin.on, "ada", ["target.lab"])
    job = submitting.submit(twin.on, user, SubmitJob("#!/bin/sh", target="linux"), None)
    twin.run()
    hello(twin, job)
    finish(twin, job, result)
    assert worker_of(twin, job).broken is None


def test_what_the_site_has_no_longer_is_not_sent(twin: Twin) -> None:
    configuring.apply(twin.on, "admin", SITE.split("[wells")[0].split("[targets.linux.canary]")[0], "site.toml")
    sweep(twin, 3 * HOUR)
    assert jobs(twin) == []
    assert canaries.listed(twin.on) == []
    with pytest.raises(Refused, match="canary"):
        canaries.send(twin.on, LINUX)
    configuring.apply(twin.on, "admin", SITE, "site.toml")
    assert out(twin)


def test_one_that_cannot_be_submitted_says_why_and_is_tried_again(twin: Twin) -> None:
    none = SITE.replace('limit = 2\nprivilege = "target', 'limit = 0\nprivilege = "target')
    configuring.apply(twin.on, "admin", none, "site.toml")
    twin.run()
    sweep(twin)
    assert (of(twin).is_out, of(twin).outcome) == (False, "refused")
    assert of(twin).reason
    assert of(twin).due == (of(twin).since or twin.world.now()) + timedelta(hours=1)


def test_an_operator_sends_one_now_unless_it_is_out(twin: Twin) -> None:
    round_trip(twin, LINUX, Result.SUCCEEDED)
    sent = canaries.send(twin.on, LINUX)
    assert sent.is_out
    with pytest.raises(Refused) as refused:
        canaries.send(twin.on, LINUX)
    assert (refused.value.status, refused.value.code) == (409, "canary-is-out")
    assert [row.pool for row in canaries.listed(twin.on)] == [DB, LINUX]
    assert canaries.send(twin.on, LINUX) if not of(twin).is_out else True


def test_nobody_can_be_created_whose_jobs_they_would_be(twin: Twin) -> None:
    with pytest.raises(Refused) as refused:
        users.create(twin.on, "canary", [])
    assert (refused.value.status, refused.value.code) == (409, "user-exists")
