"""A claim, a grant and a run do what the rows ask for, and no more. [QUEUE-1] [SLOT-2]"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.pools.pools import Claim, Lease, LeaseState
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Change
from penstock.ports import NotYet
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs import flow, settle
from penstock.usecases.pools import scheduler
from penstock.usecases.site import apply
from penstock.usecases.units import advance
from tests.usecases.exact import (
    Flows,
    all_units,
    commits,
    drop,
    lease_of,
    lease_of_or_none,
    pool_row,
    put,
    running,
    sent,
)
from tests.usecases.steps import job_of, live, submit, told

pytestmark = pytest.mark.usefixtures("by_flow")

TWO = {"a": {"type": "licence"}, "b": {"type": "licence"}}


@pytest.mark.parametrize(("order", "queue"), [(0, "factory"), (1, "well")])
def test_a_repeated_step_sends_its_maker_another_message(twin: Twin, ada: User, order: int, queue: str) -> None:
    twin.drivers.hand.says = [NotYet(5)] * 9
    job = submit(twin, ada, resources=["bench"])
    while lease_of_or_none(twin, job, order) is None or lease_of(twin, job, order).state is not LeaseState.GRANTED:
        assert twin.deliver()
    sent(twin)
    scheduler.acquire(twin.on, job, 1, order, "another token")
    assert sent(twin) == [(queue, {"unit": lease_of(twin, job, order).unit})]
    assert lease_of(twin, job, order).token == "another token"
    written = commits(twin)
    scheduler.acquire(twin.on, job, 1, order, "another token")
    assert not written


def test_a_complete_step_is_answered_without_messages_to_makers(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    sent(twin)
    flows = Flows(twin)
    scheduler.acquire(twin.on, job, 1, 1, "again")
    assert flows.succeeded == ["again"]
    assert not sent(twin)


def test_a_step_of_two_is_answered_when_both_are_there(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=TWO)
    while not live(twin, job):
        assert twin.deliver()
    first, second = live(twin, job)
    sent(twin)
    flows = Flows(twin)
    advance.advance(twin.on, first.id)
    assert flows.succeeded == []
    advance.advance(twin.on, second.id)
    assert len(flows.succeeded) == 1
    flow.answer_step(twin.on, [])
    assert len(flows.succeeded) == 1


def test_a_claim_to_a_pool_that_the_site_has_no_more_fails(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"])
    apply.apply(twin.on, "ada", site_toml(), "site.toml")
    drop(twin, pool_row(twin, "resource/bench"))
    flows = Flows(twin)
    scheduler.acquire(twin.on, job, 1, 1, "token")
    assert [each[:2] for each in flows.failed] == [("token", "Unsatisfiable")]


@pytest.mark.parametrize("how", ["cancelled", "settled", "gone"])
def test_a_job_that_ends_while_it_claims_claims_nothing(twin: Twin, ada: User, how: str) -> None:
    job = submit(twin, ada, resources=["bench"])
    flows = Flows(twin)
    commit = twin.store.commit

    def first(changes: Sequence[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        if how == "cancelled":
            put(twin, job_of(twin, job), cancelled_by="ada")
        elif how == "settled":
            put(twin, job_of(twin, job), state=State.SETTLED)
        else:
            drop(twin, job_of(twin, job))
        return commit(changes)

    twin.store.commit = first  # type: ignore[method-assign]
    scheduler.acquire(twin.on, job, 1, 1, "token")
    assert [each[:2] for each in flows.failed] == [("token", "Cancelled" if how == "cancelled" else "Stale")]
    assert not [row for row in twin.store.rows.values() if isinstance(row, Claim | Lease)]


def test_what_a_job_waits_for_is_told_once_and_only_when_it_waits(twin: Twin, ada: User) -> None:
    first, second = submit(twin, ada, resources=["bench"]), submit(twin, ada, resources=["bench"])
    twin.run()
    assert not any("waits" in line for line in told(twin, first)), told(twin, first)
    assert sum(f"bench-1 by {first}" in line for line in told(twin, second)) == 1, told(twin, second)


@pytest.mark.parametrize("gone", ["lease", "job"])
def test_a_claim_that_is_gone_before_it_is_told_of_tells_nothing(twin: Twin, ada: User, gone: str) -> None:
    submit(twin, ada, resources=["bench"])
    twin.run()
    job = submit(twin, ada, resources=["bench"])
    with pytest.MonkeyPatch.context() as patch:
        rows = (lambda: lease_of(twin, job, 1)) if gone == "lease" else (lambda: job_of(twin, job))
        patch.setattr(scheduler, "_ask_if_first", lambda *_: drop(twin, rows()))
        twin.run()
    assert not [line for line in told(twin, job) if "wait" in line]


def test_a_claim_that_nobody_waits_with_is_dropped(twin: Twin, ada: User) -> None:
    """Its leases are over, or its job is no more: also then it leaves its queue."""
    submit(twin, ada, resources=["bench"])
    twin.run()
    for gone in ("state", "leases", "job"):
        job = submit(twin, ada, resources=["bench"])
        twin.run()
        if gone == "state":
            put(twin, lease_of(twin, job, 1), state=LeaseState.RELEASED)
        else:
            drop(twin, lease_of(twin, job, 1) if gone == "leases" else job_of(twin, job))
    apply.resize(twin.on, "resource/licence", 3)
    for unit in live(twin, next(iter({unit.lease.job for unit in all_units(twin)}))):
        if unit.lease.order:
            put(twin, unit, state=UnitState.DIRTY)
            advance.advance(twin.on, unit.id)
    twin.run()
    assert not [row for row in twin.store.rows.values() if isinstance(row, Claim)]
    assert not [unit for unit in all_units(twin) if unit.lease.order and unit.state is not UnitState.GONE]


def test_a_flow_is_started_for_a_queued_job_alone(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.flows.executions.clear()
    put(twin, job_of(twin, job), state=State.ACQUIRING)
    assert not flow.start(twin.on, job)
    assert not twin.flows.executions


def test_a_next_attempt_waits_until_its_last_worker_is_gone(twin: Twin, ada: User) -> None:
    """JOB-2: whoever asks for its flow; one whose last attempt had no worker waits for nobody."""
    job = running(twin, ada)
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    flow.start(twin.on, job)
    assert (job, 2) not in twin.flows.executions
    for state in (LeaseState.RELEASED, None):
        twin.flows.executions.clear()
        if state:
            put(twin, lease_of(twin, job, 0), state=state)
        else:
            drop(twin, lease_of(twin, job, 0))
        flow.start(twin.on, job)
        assert (job, 2) in twin.flows.executions
