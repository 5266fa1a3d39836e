"""A step of a unit does what the rows ask for, and no more: whom it tells, and when it is due. [UNIT-1] [UNIT-2]"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Job, Result, State, job_key
from penstock.domain.units.units import UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Change
from penstock.ports import NotYet, Ready
from penstock.testing.twin import START, Twin
from penstock.usecases.pools import scheduler
from penstock.usecases.units import advance, maintenance
from tests.usecases.exact import (
    Flows,
    drop,
    lease_of,
    pool_row,
    put,
    running,
    sent,
    site,
    unit_of,
)
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import dies_after_the_report, finish, hello, job_of, live, submit, sweep, told, worker_of
from tests.usecases.warm import SITE as WARM
from tests.usecases.warm import unit_of as unit_by_id
from tests.usecases.warm import worker_at_rest


@pytest.mark.usefixtures("by_flow")
@pytest.mark.parametrize(("after", "is_lost"), [(-1, False), (0, True)])
def test_a_worker_is_lost_at_its_deadline_and_not_before(twin: Twin, ada: User, after: int, is_lost: bool) -> None:
    job = running(twin, ada)
    put(twin, worker_of(twin, job), due=twin.world.now() - timedelta(seconds=after))
    flows = Flows(twin)
    advance.advance(twin.on, worker_of(twin, job).id)
    found = job_of(twin, job)
    assert [past.outcome for past in found.history.attempts] == ["lost"] * is_lost
    assert flows.succeeded == ([] if is_lost else [lease_of(twin, job, 0).token])
    assert (
        sum(line.endswith("was lost: nothing was heard from its agent in time") for line in told(twin, job)) == is_lost
    )


@pytest.mark.parametrize(("is_first", "broken"), [(True, 1), (False, 0)])
def test_only_a_machine_that_never_spoke_is_one_that_does_not_boot(ada: User, is_first: bool, broken: int) -> None:
    """One that has had a job has booted: its target's image is not to blame for its silence."""
    twin = site(WARM)
    agent = None if is_first else worker_at_rest(twin, ada)
    job = submit(twin, ada, target="linux", retries=0)
    twin.run()
    worker = worker_of(twin, job).id
    assert agent is None or worker == agent.worker
    for _ in range(20):
        sweep(twin)
    assert job_of(twin, job).is_settled
    gone = unit_by_id(twin, worker)
    assert (gone.state, gone.health.is_unheard) == (UnitState.GONE, is_first)
    assert pool_row(twin, "target/linux").broken == broken


@pytest.mark.usefixtures("by_flow")
def test_a_worker_that_says_hello_while_its_attempt_is_given_up_stays_ready(twin: Twin, ada: User) -> None:
    """UNIT-1: it is written back as one that never said hello only if that is still so."""
    job = submit(twin, ada)
    twin.run()
    twin.pass_time(2000)
    commit = twin.store.commit

    def after_hello(changes: Sequence[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        hello(twin, job)
        return commit(changes)

    failed: list[Any] = []
    twin.flows.fail = lambda *given: failed.append(given)  # type: ignore[method-assign]
    twin.store.commit = after_hello  # type: ignore[method-assign]
    advance.advance(twin.on, worker_of(twin, job).id)
    twin.run()
    assert job_of(twin, job).state is State.RUNNING
    assert failed == []
    found = worker_of(twin, job)
    assert (found.state, found.step.reason) == (UnitState.READY, None)


def test_a_worker_that_is_lost_after_its_report_has_its_attempt_ended_as_it_said(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    with dies_after_the_report(twin):
        finish(twin, job)
    before = told(twin, job)
    twin.pass_time(1000)
    advance.advance(twin.on, worker_of(twin, job).id)
    assert [line.partition(":")[0] for line in told(twin, job)[len(before) :]] == ["settled"]
    assert job_of(twin, job).run.report.result is Result.SUCCEEDED  # type: ignore[union-attr]


@pytest.mark.parametrize("what", ["gone", "dirty", "no due", "heard", "settled", "next attempt", "no job"])
def test_a_worker_that_was_not_lost_after_all_loses_nothing(twin: Twin, ada: User, what: str) -> None:
    """What is read first says that it is silent; what is read for the decision says otherwise."""
    job = running(twin, ada)
    twin.pass_time(1000)
    worker = worker_of(twin, job)
    get = twin.store.get

    def late(key: Any, kind: type[Any]) -> Any:
        twin.store.get = get  # type: ignore[method-assign]
        found = get(key, kind)
        if what == "gone":
            drop(twin, worker)
        elif what in ("dirty", "no due", "heard"):
            put(twin, worker, **LATE[what])
        elif what == "no job":
            drop(twin, job_of(twin, job))
        else:
            put(twin, job_of(twin, job), **LATE[what])
        return found

    twin.store.get = late  # type: ignore[method-assign]
    flows, lines = Flows(twin), len(told(twin, job)) if what == "never" else 0
    twin.store.get = late  # type: ignore[method-assign]
    advance.advance(twin.on, worker.id)
    assert flows.succeeded == []
    assert not lines
    found = twin.store.get(job_key(job), Job)
    assert found is None or found.run.report is None


LATE: dict[str, dict[str, Any]] = {
    "dirty": {"state": UnitState.DIRTY},
    "no due": {"due": None},
    "heard": {"due": START + timedelta(days=1)},
    "settled": {"state": State.SETTLED},
    "next attempt": {"attempt": 2},
}


@pytest.mark.usefixtures("by_flow")
@pytest.mark.parametrize("what", ["lease over", "job gone", "unit moved"])
def test_a_resource_that_is_made_too_late_is_not_handed_over(twin: Twin, ada: User, what: str) -> None:
    """UNIT-1: while its well made it, its lease ended, or somebody else went on with it."""
    job = submit(twin, ada, resources=["bench"])
    while not live(twin, job):
        assert twin.deliver()
    sent(twin)
    (unit,) = live(twin, job)
    flows = Flows(twin)

    class Well:
        def create(self, order: Any) -> Any:
            if what == "lease over":
                put(twin, unit, state=UnitState.DIRTY)
            elif what == "job gone":
                drop(twin, job_of(twin, job))
            else:
                put(twin, unit, tries=7)
            return Ready()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.drivers, "well", lambda *given: Well())
        advance.advance(twin.on, unit.id)
    assert unit_of(twin, job, 1).state is (UnitState.DIRTY if what == "lease over" else UnitState.CREATING)
    assert flows.succeeded == []


def acquiring_bench(twin: Twin, ada: User) -> str:
    """A job whose bench is about to be made."""
    job = submit(twin, ada, resources=["bench"])
    while not live(twin, job):
        assert twin.deliver()
    sent(twin)
    return job


def make_bench(twin: Twin, job: str, meanwhile: Callable[[], object]) -> None:
    """Let the bench's well make it; then `meanwhile` runs, just before the answer is written."""

    class Well:
        def create(self, order: Any) -> Ready:
            before_the_next_commit(twin, meanwhile)
            return Ready()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.drivers, "well", lambda *given: Well())
        advance.advance(twin.on, unit_of(twin, job, 1).id)


@pytest.mark.usefixtures("by_flow")
def test_a_resource_that_is_held_just_before_it_is_ready_stays_held(twin: Twin, ada: User, root: User) -> None:
    """UNIT-3"""
    job = acquiring_bench(twin, ada)
    bench = unit_of(twin, job, 1).id
    make_bench(twin, job, lambda: maintenance.hold(twin.on, root, UnitKind.RESOURCE, bench, "looking", 3600))
    found = unit_of(twin, job, 1)
    assert found.hold
    assert found.hold.reason == "looking"


@pytest.mark.usefixtures("by_flow")
def test_a_step_that_is_repeated_just_before_its_resource_is_ready_is_answered_with_its_new_token(
    twin: Twin, ada: User
) -> None:
    job, flows = acquiring_bench(twin, ada), Flows(twin)
    make_bench(twin, job, lambda: scheduler.acquire(twin.on, job, 1, 1, "another token"))
    assert flows.succeeded == ["another token"]


@pytest.mark.usefixtures("by_flow")
def test_a_unit_that_is_there_answers_the_step_that_waits_for_it(twin: Twin, ada: User) -> None:
    job = running(twin, ada, resources=["bench"])
    flows = Flows(twin)
    for order in (0, 1):
        advance.advance(twin.on, unit_of(twin, job, order).id)
    assert flows.succeeded == [lease_of(twin, job, order).token for order in (0, 1)]
    drop(twin, lease_of(twin, job, 1))
    advance.advance(twin.on, unit_of(twin, job, 1).id)
    assert len(flows.succeeded) == 2


def test_a_worker_that_is_made_is_not_made_again(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    twin.drivers.hand.made.clear()
    advance.advance(twin.on, worker_of(twin, job).id)
    assert not twin.drivers.hand.made
    hello(twin, job)
    put(twin, worker_of(twin, job), made=None)
    advance.advance(twin.on, worker_of(twin, job).id)
    assert not twin.drivers.hand.made


def test_create_is_repeated_for_a_late_worker_that_is_not_lost(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [NotYet(900)]
    job = submit(twin, ada)
    twin.run()
    twin.pass_time(2000)
    flows = Flows(twin)
    advance.advance(twin.on, worker_of(twin, job).id)
    assert flows.failed == []
    assert worker_of(twin, job).creation.made


@pytest.mark.usefixtures("by_flow")
def test_a_resource_is_never_lost_for_its_silence(twin: Twin, ada: User) -> None:
    job = running(twin, ada, resources=["bench"])
    unit = unit_of(twin, job, 1)
    put(twin, unit, due=twin.world.now())
    flows = Flows(twin)
    advance.advance(twin.on, unit.id)
    assert flows.succeeded == [lease_of(twin, job, 1).token]
    assert job_of(twin, job).run.report is None


def test_a_unit_that_is_gone_is_not_touched(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    worker = worker_of(twin, job).id
    finish(twin, job)
    gone = worker_of(twin, job)
    put(twin, gone, state=UnitState.GONE, due=twin.world.now(), made=None)
    rows = dict(twin.store.rows)
    advance.advance(twin.on, worker)
    assert twin.store.rows == rows
