"""A step of a unit does what the rows ask for, and no more: whom it tells, and when it is due. [UNIT-1] [UNIT-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.errors import Misconfigured
from penstock.domain.jobs import Job, Result, State, job_key
from penstock.domain.leases import Lease, LeaseState
from penstock.domain.units import UnitState
from penstock.domain.users import User
from penstock.ports import NotYet
from penstock.usecases import jobs, units
from tests.twin.world import START, Twin
from tests.usecases.exact import (
    Flows,
    drop,
    lease_of,
    lease_of_or_none,
    put,
    running,
    sent,
    unit_of,
)
from tests.usecases.steps import live
from tests.usecases.test_one_job import finish, hello, job_of, submit, told, worker_of


@pytest.mark.parametrize(("after", "is_lost"), [(-1, False), (0, True)])
def test_a_worker_is_lost_at_its_deadline_and_not_before(twin: Twin, ada: User, after: int, is_lost: bool) -> None:
    job = running(twin, ada)
    put(twin, worker_of(twin, job), due=twin.world.now() - timedelta(seconds=after))
    flows = Flows(twin)
    units.advance(twin.on, worker_of(twin, job).id)
    found = job_of(twin, job)
    assert (found.report is not None and found.report.result is Result.LOST) is is_lost
    assert flows.succeeded == [found.run_token if is_lost else lease_of(twin, job, 0).token]
    assert sum("was lost" in line for line in told(twin, job)) == is_lost


def test_a_worker_that_is_lost_after_its_report_only_has_its_flow_answered(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    flows = Flows(twin)
    finish(twin, job)
    before = told(twin, job)
    twin.pass_time(1000)
    units.advance(twin.on, worker_of(twin, job).id)
    assert told(twin, job) == before
    assert len(flows.succeeded) == 2
    assert job_of(twin, job).report.result is Result.SUCCEEDED  # type: ignore[union-attr]


def test_a_worker_that_is_lost_before_its_flow_asks_answers_nobody(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, job_of(twin, job), run_token=None)
    flows = Flows(twin)
    twin.pass_time(1000)
    units.advance(twin.on, worker_of(twin, job).id)
    assert flows.succeeded == []


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
    units.advance(twin.on, worker.id)
    assert flows.succeeded == []
    assert not lines
    found = twin.store.get(job_key(job), Job)
    assert found is None or found.report is None


LATE: dict[str, dict[str, Any]] = {
    "dirty": {"state": UnitState.DIRTY},
    "no due": {"due": None},
    "heard": {"due": START + timedelta(days=1)},
    "settled": {"state": State.SETTLED},
    "next attempt": {"attempt": 2},
}


@pytest.mark.parametrize("what", ["lease gone", "lease over", "job gone", "unit moved"])
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
            if what == "lease gone":
                drop(twin, lease_of(twin, job, 1))
            elif what == "lease over":
                put(twin, lease_of(twin, job, 1), state=LeaseState.RELEASED)
            elif what == "job gone":
                drop(twin, job_of(twin, job))
            else:
                put(twin, unit, tries=7)
            return __import__("penstock.ports").ports.Ready()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.drivers, "well", lambda *given: Well())
        units.advance(twin.on, unit.id)
    assert unit_of(twin, job, 1).state is UnitState.CREATING
    assert flows.succeeded == []


def test_a_unit_that_is_there_answers_the_step_that_waits_for_it(twin: Twin, ada: User) -> None:
    job = running(twin, ada, resources=["bench"])
    flows = Flows(twin)
    for order in (0, 1):
        units.advance(twin.on, unit_of(twin, job, order).id)
    assert flows.succeeded == [lease_of(twin, job, order).token for order in (0, 1)]
    drop(twin, lease_of(twin, job, 1))
    units.advance(twin.on, unit_of(twin, job, 1).id)
    assert len(flows.succeeded) == 2


def test_a_worker_that_is_made_is_not_made_again(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    twin.drivers.hand.made.clear()
    units.advance(twin.on, worker_of(twin, job).id)
    assert not twin.drivers.hand.made
    hello(twin, job)
    put(twin, worker_of(twin, job), made=None)
    units.advance(twin.on, worker_of(twin, job).id)
    assert not twin.drivers.hand.made


def test_a_worker_that_is_not_made_in_time_is_asked_for_again_and_not_lost(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [NotYet(900)]
    job = submit(twin, ada)
    twin.run()
    twin.pass_time(2000)
    flows = Flows(twin)
    units.advance(twin.on, worker_of(twin, job).id)
    assert flows.failed == []
    assert worker_of(twin, job).made


def test_a_resource_is_never_lost_for_its_silence(twin: Twin, ada: User) -> None:
    job = running(twin, ada, resources=["bench"])
    unit = unit_of(twin, job, 1)
    put(twin, unit, due=twin.world.now())
    flows = Flows(twin)
    units.advance(twin.on, unit.id)
    assert flows.succeeded == [lease_of(twin, job, 1).token]
    assert job_of(twin, job).report is None


def test_a_unit_that_is_gone_is_not_touched(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    worker = worker_of(twin, job).id
    finish(twin, job)
    gone = worker_of(twin, job)
    put(twin, gone, state=UnitState.GONE, due=twin.world.now(), made=None)
    rows = dict(twin.store.rows)
    units.advance(twin.on, worker)
    assert twin.store.rows == rows


def test_what_a_driver_cannot_do_is_told_once_for_each_reason(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [NotYet(5, None), *[Misconfigured("no image")] * 2, NotYet(5, "it boots")]
    job = submit(twin, ada)
    for _ in range(4):
        twin.run()
        twin.pass_time(61)
    twin.run()
    lines = [line for line in told(twin, job) if "yet:" in line]
    assert [line.partition("yet: ")[2] for line in lines] == ["Misconfigured: no image", "it boots"]
    assert all("cannot give linux" in line for line in lines)
    twin.drivers.hand.destroy = lambda unit, now: NotYet(5, "it hangs")  # type: ignore[method-assign]
    jobs.cancel(twin.on, ada, job)
    twin.run()
    assert any("cannot put back linux yet: it hangs" in line for line in told(twin, job))
    assert not any("is clean" in line for line in told(twin, job))


def test_looks_are_sent_to_whoever_makes_the_unit_for_the_time_that_was_said(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.drivers.hand.says = [NotYet(7, "it boots")]
    while not live(twin, job):
        assert twin.deliver()
    worker = worker_of(twin, job).id
    sent(twin)
    units.advance(twin.on, worker)
    (message,) = twin.queues.messages
    assert (message[0] - twin.world.now(), message[1]) == (timedelta(seconds=7), "factory")
    units.advance(twin.on, worker)
    assert worker_of(twin, job).made


def test_a_look_that_lost_its_race_sends_nothing(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    while not live(twin, job):
        assert twin.deliver()
    sent(twin)
    (worker,) = live(twin, job)
    lines = told(twin, job)

    def create(order: Any) -> NotYet:
        put(twin, worker, tries=5)
        return NotYet(5, "it boots")

    twin.drivers.hand.create = create  # type: ignore[method-assign]
    units.advance(twin.on, worker.id)
    assert not sent(twin)
    assert told(twin, job) == lines


@pytest.mark.parametrize("state", list(LeaseState))
def test_what_cannot_be_had_fails_the_step_that_waits_for_it(twin: Twin, ada: User, state: LeaseState) -> None:
    from penstock.domain.errors import Unsatisfiable

    job = submit(twin, ada)
    while not live(twin, job):
        assert twin.deliver()
    put(twin, lease_of(twin, job, 0), state=state)
    flows = Flows(twin)
    twin.drivers.hand.says = [Unsatisfiable("no such image")] * 2
    units.advance(twin.on, worker_of(twin, job).id)
    waits = state in (LeaseState.GRANTED, LeaseState.READY)
    assert [each[1:] for each in flows.failed] == [("Unsatisfiable", "no such image")] * waits
    drop(twin, lease_of(twin, job, 0))
    units.advance(twin.on, worker_of(twin, job).id)
    assert len(flows.failed) == waits


def test_a_driver_is_given_what_it_needs_and_what_is_no_more_is_left_out(twin: Twin, ada: User) -> None:
    given: list[Any] = []

    class Well:
        def create(self, order: Any) -> Any:
            given.append(order)
            return NotYet(5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.drivers, "well", lambda *told: Well())
        patch.setattr(twin.drivers, "objections", lambda *told: [])
        job = submit(twin, ada, resources={"x": {"type": "bench"}, "y": {"type": "licence"}})
        twin.run()
        unit = unit_of(twin, job, 1)
        put(
            twin, job_of(twin, job), needs=tuple(replace(need, options={"of": need.order}) for need in needs(twin, job))
        )
        put(twin, unit_of(twin, job, 1), type="bench", order=1)
        units.advance(twin.on, unit.id)
        put(twin, unit_of(twin, job, 1), type="no more")
        units.advance(twin.on, unit.id)
        put(twin, job_of(twin, job), needs=())
        units.advance(twin.on, unit.id)
        drop(twin, job_of(twin, job))
        units.advance(twin.on, unit.id)
    assert [order.options for order in given[-4:]] == [{"of": 1}, {"of": 1}, {}, {}]
    assert all((order.key, order.url) == ("", "") for order in given)


def needs(twin: Twin, job: str) -> Any:
    return job_of(twin, job).needs


def test_the_order_for_a_worker_has_its_key(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    (order,) = twin.drivers.hand.made.values()
    assert order.key == units.bootstrap_key(twin.on.signing_key(), worker_of(twin, job).id)
    assert order.url == "http://here"


def test_a_release_that_was_done_already_tells_nothing(twin: Twin, ada: User) -> None:
    """UNIT-2: while the driver destroyed it, another handler did, and freed the slot."""
    job = running(twin, ada)
    destroy, (worker,) = twin.drivers.hand.destroy, live(twin, job)
    again = [True]

    def slow(unit: str, now: Any) -> Any:
        if again:
            again.clear()
            units.advance(twin.on, worker.id)
        return destroy(unit, now)

    twin.drivers.hand.destroy = slow  # type: ignore[method-assign]
    finish(twin, job)
    assert sum("is clean after" in line for line in told(twin, job)) == 1
    assert worker_of(twin, job).state is UnitState.GONE


def test_a_unit_whose_row_went_while_it_was_destroyed_frees_nothing(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    (worker,) = live(twin, job)
    destroy = twin.drivers.hand.destroy

    def last(unit: str, now: Any) -> Any:
        twin.store.rows.pop(worker.key, None)
        return destroy(unit, now)

    twin.drivers.hand.destroy = last  # type: ignore[method-assign]
    finish(twin, job)
    assert not any("is clean after" in line for line in told(twin, job))


@pytest.mark.parametrize("state", [None, LeaseState.RELEASED])
def test_a_unit_whose_lease_is_over_already_is_destroyed_all_the_same(
    twin: Twin, ada: User, state: LeaseState | None
) -> None:
    job = running(twin, ada)
    destroy, left = twin.drivers.hand.destroy, list[Lease | None]()

    def then(unit: str, now: Any) -> Any:
        if state:
            put(twin, lease_of(twin, job, 0), state=state)
        else:
            drop(twin, lease_of(twin, job, 0))
        left.append(lease_of_or_none(twin, job, 0))
        return destroy(unit, now)

    twin.drivers.hand.destroy = then  # type: ignore[method-assign]
    finish(twin, job)
    assert worker_of(twin, job).state is UnitState.GONE
    assert not any("is clean after" in line for line in told(twin, job))
    assert left == [lease_of_or_none(twin, job, 0)]
