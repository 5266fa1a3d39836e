"""An end is written and told once, to those whom it concerns. [JOB-1] [JOB-2]"""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.pools.pools import Claim, LeaseState
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import settle
from penstock.usecases.units import advance
from tests.usecases.exact import (
    commits,
    drop,
    lease_of,
    put,
    running,
    sent,
    site,
    unit_of,
)
from tests.usecases.steps import finish, job_of, live, submit, told
from tests.usecases.warm import SITE as WARM


def test_a_second_end_writes_and_tells_nothing(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    finish(twin, job)
    lines, written = told(twin, job), commits(twin)
    settle.settle(twin.on, job, 1, "Lost", "again")
    assert (told(twin, job), written, sent(twin)) == (lines, [], [])


def test_an_attempt_that_is_followed_by_another_says_so(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    assert "attempt 1 lost: its flow ended; attempt 2 follows" in told(twin, job)
    assert not any("settled" in line for line in told(twin, job))


@pytest.mark.parametrize(("late", "ends"), [(-1, False), (0, True), (None, False)])
def test_the_sweep_ends_only_what_is_due_when_its_end_is_written(
    twin: Twin, ada: User, late: int | None, ends: bool
) -> None:
    job = running(twin, ada, retries=0)
    now = twin.world.now()
    put(twin, job_of(twin, job), due=None if late is None else now - timedelta(seconds=late))
    settle.settle(twin.on, job, 1, "Lost", "overdue", overdue=now)
    assert job_of(twin, job).is_settled is ends
    assert job_of(twin, job).flow.stop_from == (1 if ends else None)


def test_the_first_flow_that_is_to_be_stopped_is_not_forgotten(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, job_of(twin, job), attempt=2, stop_from=1, due=START)
    settle.settle(twin.on, job, 2, "Lost", "overdue", overdue=twin.world.now())
    assert job_of(twin, job).flow.stop_from == 1


def test_an_end_without_the_sweep_stops_no_flow(twin: Twin, ada: User) -> None:
    job = running(twin, ada, retries=0)
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    assert job_of(twin, job).flow.stop_from is None


def test_an_end_writes_only_what_changes(twin: Twin, ada: User) -> None:
    """What is over already, or was put back, is not written again: a lease and a unit have one end."""
    job = running(twin, ada, resources=["bench"])
    put(twin, lease_of(twin, job, 1), state=LeaseState.RELEASED)
    put(twin, unit_of(twin, job, 1), state=UnitState.DIRTY)
    rows = {key: row.version for key, row in twin.store.rows.items()}
    settle.settle(twin.on, job, 1, "Cancelled", "")
    for row in (lease_of(twin, job, 1), unit_of(twin, job, 1)):
        assert row.version == rows[row.key]


@pytest.mark.parametrize("waits", [True, False])
def test_the_end_leaves_the_queues_that_it_waits_in_and_serves_those(twin: Twin, ada: User, waits: bool) -> None:
    other = running(twin, ada, resources=["bench"])
    job = submit(twin, ada, resources=["bench", "licence"]) if waits else other
    twin.run()
    sent(twin)
    settle.settle(twin.on, job, 1, "Unsatisfiable", "")
    served = [name for _, message in sent(twin) if message.get("do") == "serve" for name in message["pools"]]
    assert served == ["resource/bench"] * waits
    assert [row for row in twin.store.rows.values() if isinstance(row, Claim)] == []


def test_an_end_whose_claim_is_gone_is_an_end(twin: Twin, ada: User) -> None:
    running(twin, ada, resources=["bench"])
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    for row in [row for row in twin.store.rows.values() if isinstance(row, Claim)]:
        drop(twin, row)
    settle.settle(twin.on, job, 1, "Unsatisfiable", "")
    assert job_of(twin, job).is_settled


def test_the_turn_goes_to_the_worker_then_to_resources_then_to_the_next_attempt(twin: Twin, ada: User) -> None:
    job = running(twin, ada, resources=["bench"])
    worker, bench = (unit_of(twin, job, order).id for order in (0, 1))
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    assert sent(twin) == [("factory", {"unit": worker})]
    advance.advance(twin.on, worker)
    assert ("well", {"unit": bench}) in sent(twin)
    settle.start_release(twin.on, job, 1)
    assert sent(twin) == [("well", {"unit": bench}), ("schedule", {"do": "start", "job": job})]
    advance.advance(twin.on, bench)
    sent(twin)
    settle.start_release(twin.on, job, 1)
    assert sent(twin) == [("schedule", {"do": "start", "job": job})]


@pytest.mark.parametrize(
    ("has_secrets", "check", "revokes"), [(True, "tests", True), (True, "", False), (False, "tests", False)]
)
def test_tokens_are_revoked_only_for_a_job_that_a_check_shows_and_that_has_secrets(
    twin: Twin, ada: User, has_secrets: bool, check: str, revokes: bool
) -> None:
    """SEC-1: tokens for GitHub are among the secrets of such a job, and no other job has any."""
    job = running(twin, ada)
    finish(twin, job)
    put(twin, job_of(twin, job), has_secrets=has_secrets, check=check)
    sent(twin)
    settle.job_settled(twin.on, job_of(twin, job))
    revocation = ("schedule", {"do": "github", "message": {"revoke": job}})
    assert sent(twin) == [revocation] * revokes


def test_only_the_present_attempt_ends(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    before = job_of(twin, job)
    settle.settle(twin.on, job, 2, "Lost", "of another attempt")
    assert job_of(twin, job) == before


def test_a_resource_is_kept_also_when_its_worker_was_lost(ada: User) -> None:
    """UNIT-2: its well cleans it, whatever the worker did; the worker is only destroyed."""
    twin = site(WARM)
    job = running(twin, ada, target="linux", resources=["db"])
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    states = {unit.lease.order: unit.state for unit in live(twin, job)}
    assert states == {0: UnitState.DIRTY, 1: UnitState.CLEANING}


def test_a_job_that_waited_waits_for_nothing_after_its_end(twin: Twin, ada: User) -> None:
    """JOB-1: or its lease would be granted to nobody."""
    running(twin, ada, resources=["bench"])
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    assert lease_of(twin, job, 1).state is LeaseState.WAITING
    settle.settle(twin.on, job, 1, "Unsatisfiable", "no more")
    assert lease_of(twin, job, 1).state is LeaseState.RELEASED
