"""Canaries: jobs that show, again and again, whether a target or a resource type works, and what follows when not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain import metrics
from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job, Result
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.probes.canaries import Canary, canary_key
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Delete, Replace, key_of
from penstock.testing.twin import Twin
from penstock.usecases import cooldowns
from penstock.usecases.jobs import submit
from penstock.usecases.jobs.holds import units_of
from penstock.usecases.probes import canaries
from penstock.usecases.site import apply
from penstock.usecases.units import broken
from penstock.usecases.users import users
from penstock.usecases.workers import agents
from tests.rows import changed
from tests.usecases.races import Died, before_the_next_commit
from tests.usecases.steps import dies_after_the_report, finish, hello, job_of, sweep, worker_of
from tests.usecases.warm import unit_of

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


def site_of(text: str) -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", text, "site.toml")
    made.run()
    return made


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    told = apply.apply(made.on, "admin", SITE, "site.toml")
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
    assert (job_of(twin, job).owner, job_of(twin, job).request.target, job_of(twin, job).request.tags) == (
        "canary", "linux", {"penstock-canary": LINUX},
    )  # fmt: skip
    assert [need.type for need in job_of(twin, of(twin, DB).job or "").request.needs if need.order] == ["db"]
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


def test_a_canary_is_submitted_once_however_often_it_is_tried(twin: Twin) -> None:
    """Whoever died between the job and its note finds the same job."""
    commit = twin.store.commit

    def dies(changes: Sequence[Change]) -> bool:
        if any(key_of(change) == canary_key(LINUX) for change in changes):
            raise Died
        return commit(changes)

    twin.store.commit = dies  # type: ignore[method-assign]
    with pytest.raises(Died):
        canaries.advance(twin.on, canary_key(LINUX))
    twin.store.commit = commit  # type: ignore[method-assign]
    assert not of(twin).is_out
    canaries.advance(twin.on, canary_key(LINUX))
    assert [row.id for row in jobs(twin)] == [of(twin).job]


def test_no_second_canary_is_submitted_while_one_waits(twin: Twin) -> None:
    apply.pause(twin.on, LINUX, paused=True)
    job = out(twin)
    sweep(twin, 3 * HOUR)
    assert (of(twin).job, of(twin).is_out) == (job, True)


def test_the_worker_that_it_fails_on_is_broken_and_three_in_a_row_stop_the_target() -> None:
    twin = site_of(ONLY_LINUX)
    for failures in (1, 2, 3):
        job = round_trip(twin, LINUX, Result.FAILED)
        assert of(twin).failures == failures
        assert f"canary job {job} failed on it" in (unit_of(twin, worker_of(twin, job).id).health.broken or "")
    (row,) = [row for row in cooldowns.cooldowns_of(twin.on, "factory/hand") if row.cause == "broken"]
    assert "3 in a row; the last: canary job" in row.why


def test_the_next_that_succeeds_opens_it_again() -> None:
    twin = site_of(ONLY_LINUX)
    for _ in range(3):
        round_trip(twin, LINUX, Result.FAILED)
    twin.world.time += timedelta(minutes=31)
    round_trip(twin, LINUX, Result.SUCCEEDED)
    assert [row for row in cooldowns.cooldowns_of(twin.on, "factory/hand") if row.cause == "broken"] == []
    assert of(twin).failures == 0


def test_a_resource_that_exists_already_is_quarantined_and_the_worker_is_not_blamed() -> None:
    twin = site_of(ONLY_DB)
    twin.drivers.quarantining = True
    job = out(twin, DB)
    caller = hello(twin, job)
    agents.report_finished(twin.on, caller, Result.TIMED_OUT, "it took too long", None)
    twin.run()
    sweep(twin)
    worker = unit_of(twin, caller.unit.id)
    assert (worker.state, worker.health.broken) == (UnitState.GONE, None)
    (apart,) = [unit for unit in twin.store.rows.values() if getattr(unit, "state", "") is UnitState.QUARANTINED]
    assert "canary job" in str(apart.step.reason)


def test_a_canary_whose_worker_is_broken_shows_nothing_of_the_resource_also_when_its_agent_reports_again() -> None:
    """Only the first report counts. What failed is the machine, and maybe not what was tested on it."""
    twin = site_of(ONLY_DB)
    caller = hello(twin, out(twin, DB))
    (db,) = [unit for unit in units_of(twin.on, caller.job) if unit.lease.pool == DB]
    for why in ("its fan stands still", ""):
        with dies_after_the_report(twin):
            agents.report_finished(twin.on, caller, Result.FAILED, "the script ended", 1, why)
        assert unit_of(twin, db.id).health.broken is None
    assert unit_of(twin, caller.unit.id).health.broken == "its fan stands still"


def test_a_canary_of_a_target_whose_worker_is_broken_keeps_what_its_agent_found() -> None:
    twin = site_of(ONLY_LINUX)
    caller = hello(twin, out(twin))
    agents.report_finished(twin.on, caller, Result.FAILED, "the script ended", 1, "its fan stands still")
    assert unit_of(twin, caller.unit.id).health.broken == "its fan stands still"


def test_resources_that_are_made_are_made_no_more_after_three() -> None:
    twin = site_of(ONLY_DB)
    for _ in range(3):
        round_trip(twin, DB, Result.FAILED)
    assert [row.cause for row in cooldowns.cooldowns_of(twin.on, "well/spring")] == ["broken"]
    twin.world.time += timedelta(minutes=31)
    round_trip(twin, DB, Result.SUCCEEDED)
    assert cooldowns.cooldowns_of(twin.on, "well/spring") == []


@pytest.mark.parametrize("result", [Result.FAILED, Result.SUCCEEDED])
def test_a_job_of_anybody_else_breaks_nothing(twin: Twin, result: Result) -> None:
    user = users.create(twin.on, "ada", ["target.lab"])
    job = submit.submit(twin.on, user, SubmitJob("#!/bin/sh", target="linux"), None)
    twin.run()
    hello(twin, job)
    finish(twin, job, result)
    assert worker_of(twin, job).health.broken is None


def test_what_the_site_has_no_longer_is_not_sent(twin: Twin) -> None:
    apply.apply(twin.on, "admin", SITE.split("[wells")[0].split("[targets.linux.canary]")[0], "site.toml")
    sweep(twin, 3 * HOUR)
    assert jobs(twin) == []
    assert canaries.list_canaries(twin.on) == []
    with pytest.raises(Refused, match="canary"):
        canaries.send(twin.on, LINUX)
    apply.apply(twin.on, "admin", SITE, "site.toml")
    assert out(twin)


def test_a_canary_that_cannot_be_submitted_shows_why_and_is_tried_again(twin: Twin) -> None:
    none = SITE.replace('limit = 2\nprivilege = "target', 'limit = 0\nprivilege = "target')
    apply.apply(twin.on, "admin", none, "site.toml")
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
    assert [row.pool for row in canaries.list_canaries(twin.on)] == [DB, LINUX]


def test_one_whose_job_has_settled_is_not_out_any_more(twin: Twin) -> None:
    """What the sweep would note within minutes, an operator need not wait for."""
    job = round_trip(twin, LINUX, Result.FAILED)
    before = of(twin)
    twin.store.commit([Replace(before, replace(before, is_out=True, failures=0, outcome=None))])
    sent = canaries.send(twin.on, LINUX)
    assert sent.is_out
    assert sent.job != job
    assert (sent.outcome, sent.failures) == ("failed", 1)


def test_an_operator_whose_call_died_asks_again_and_finds_the_same_job(twin: Twin) -> None:
    """The job is submitted, and the function dies before that is noted."""
    before = round_trip(twin, LINUX, Result.SUCCEEDED)
    commit = twin.store.commit

    def dies(changes: Sequence[Change]) -> bool:
        if any(isinstance(change, Replace) and getattr(change.row, "is_out", False) for change in changes):
            raise Died
        return commit(changes)

    twin.store.commit = dies  # type: ignore[method-assign]
    with pytest.raises(Died):
        canaries.send(twin.on, LINUX)
    twin.store.commit = commit  # type: ignore[method-assign]
    twin.pass_time(1)
    sent = canaries.send(twin.on, LINUX)
    assert [row.id for row in jobs(twin) if row.provenance.canary == LINUX] == [before, sent.job]


def test_nobody_can_be_created_whose_jobs_they_would_be(twin: Twin) -> None:
    with pytest.raises(Refused) as refused:
        users.create(twin.on, "canary", [])
    assert (refused.value.status, refused.value.code) == (409, "user-exists")


def counted_twice() -> tuple[Twin, Unit]:
    """Two canaries have failed, and the third is on its worker."""
    twin = site_of(ONLY_LINUX)
    round_trip(twin, LINUX, Result.FAILED)
    round_trip(twin, LINUX, Result.FAILED)
    twin.world.time = max(twin.world.time, of(twin).due or twin.world.now())
    worker = hello(twin, out(twin)).unit
    assert in_a_row(twin) == 2
    return twin, unit_of(twin, worker.id)


def in_a_row(twin: Twin) -> int:
    pool = twin.store.get(pool_key(LINUX), Pool)
    assert pool is not None
    return pool.broken


def test_who_works_ends_the_row() -> None:
    twin, worker = counted_twice()
    broken.mark_working(twin.on, worker)
    assert in_a_row(twin) == 0
    commits = twin.store.commits
    broken.mark_working(twin.on, worker)
    assert twin.store.commits == commits


@pytest.mark.parametrize("changes", [{"state": UnitState.DIRTY}, {"fence": 99}, None])
@pytest.mark.parametrize("at", ["before it is read", "before it is written"])
def test_whose_lease_has_ended_meanwhile_says_nothing_of_its_target(changes: dict[str, Any] | None, at: str) -> None:
    """SLOT-3: a write with an old fence changes nothing."""
    twin, worker = counted_twice()

    def ends() -> None:
        row = unit_of(twin, worker.id)
        assert twin.store.commit([Replace(row, changed(row, **changes)) if changes else Delete(row)])

    if at == "before it is read":
        ends()
    else:
        before_the_next_commit(twin, ends)
    broken.mark_working(twin.on, worker)
    assert in_a_row(twin) == 2


def test_a_pool_that_is_gone_counts_nothing() -> None:
    twin, worker = counted_twice()
    pool = twin.store.get(pool_key(LINUX), Pool)
    assert pool is not None
    assert twin.store.commit([Delete(pool)])
    broken.mark_working(twin.on, worker)


def test_who_was_counted_meanwhile_stays_counted() -> None:
    twin, worker = counted_twice()

    def counted() -> None:
        pool = twin.store.get(pool_key(LINUX), Pool)
        assert pool is not None
        assert twin.store.commit([Replace(pool, replace(pool, broken=3))])

    before_the_next_commit(twin, counted)
    broken.mark_working(twin.on, worker)
    assert in_a_row(twin) == 3


def failing(twin: Twin) -> dict[str, float]:
    """What the sweep told at last of each canary that the site has."""
    told = twin.metrics.told[metrics.CANARIES_FAILING.name]
    return {dict(by)["pool"]: values[-1] for by, values in told.items() if by}


def test_while_one_is_failing_the_sweep_tells_so() -> None:
    twin = site_of(ONLY_LINUX)
    round_trip(twin, LINUX, Result.FAILED)
    sweep(twin)
    assert failing(twin) == {LINUX: 1}
    sweep(twin, HOUR)
    assert of(twin).is_out
    assert failing(twin) == {LINUX: 1}, "the next is on its way, and has shown nothing yet"
    hello(twin, of(twin).job or "")
    finish(twin, of(twin).job or "")
    sweep(twin, 121)
    sweep(twin)
    assert failing(twin) == {LINUX: 0}


def test_a_canary_that_was_removed_from_the_site_is_reported_no_more() -> None:
    twin = site_of(ONLY_LINUX)
    round_trip(twin, LINUX, Result.FAILED)
    sweep(twin)
    apply.apply(twin.on, "admin", ONLY_DB, "site.toml")
    told = len(twin.metrics.of(metrics.CANARIES_FAILING, pool=LINUX))
    sweep(twin)
    assert (len(twin.metrics.of(metrics.CANARIES_FAILING, pool=LINUX)), failing(twin)[DB]) == (told, 0)
    assert told
