"""A driver is asked for what is needed, told of when it cannot, and what it put back is freed once. [UNIT-1]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.pools.pools import HoldTimes, LeaseState
from penstock.domain.site.site import SITE_KEY, SiteText
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Unreached
from penstock.ports import NotYet, Order
from penstock.system import System, current_site
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel
from penstock.usecases.logs import logs
from penstock.usecases.units import advance, drivers
from penstock.usecases.units.release import WORTH_TELLING
from tests.usecases.exact import (
    Flows,
    commits,
    drop,
    lease_of,
    put,
    running,
    sent,
    site,
    unit_of,
)
from tests.usecases.steps import finish, job_of, live, submit, told, worker_of
from tests.usecases.warm import SITE as WARM
from tests.usecases.warm import Agent, worker_at_rest
from tests.usecases.warm import unit_of as unit_of_id


def test_what_a_driver_cannot_do_is_told_once_for_each_reason(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [NotYet(5, None), *[Misconfigured("no image")] * 2, NotYet(5, "it boots")]
    job = submit(twin, ada)
    for _ in range(6):
        twin.run()
        twin.pass_time(601)
    twin.run()
    lines = [line for line in told(twin, job) if "yet:" in line]
    assert [line.partition("yet: ")[2] for line in lines] == ["Misconfigured: no image", "it boots"]
    assert all("cannot give linux" in line for line in lines)
    twin.drivers.hand.destroy = lambda unit, now: NotYet(5, "it hangs")  # type: ignore[method-assign]
    cancel.cancel(twin.on, ada, job)
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
    advance.advance(twin.on, worker)
    (message,) = twin.queues.messages
    assert (message[0] - twin.world.now(), message[1]) == (timedelta(seconds=7), "factory")
    advance.advance(twin.on, worker)
    assert worker_of(twin, job).creation.made


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
    advance.advance(twin.on, worker.id)
    assert not sent(twin)
    assert told(twin, job) == lines


@pytest.mark.usefixtures("by_flow")
@pytest.mark.parametrize("state", list(LeaseState))
def test_what_cannot_be_had_fails_the_step_that_waits_for_it(twin: Twin, ada: User, state: LeaseState) -> None:
    from penstock.kernel.errors import Unsatisfiable

    job = submit(twin, ada)
    while not live(twin, job):
        assert twin.deliver()
    put(twin, lease_of(twin, job, 0), state=state)
    flows = Flows(twin)
    twin.drivers.hand.says = [Unsatisfiable("no such image")] * 2
    advance.advance(twin.on, worker_of(twin, job).id)
    waits = state in (LeaseState.GRANTED, LeaseState.READY)
    assert [each[1:] for each in flows.failed] == [("Unsatisfiable", "no such image")] * waits
    drop(twin, lease_of(twin, job, 0))
    advance.advance(twin.on, worker_of(twin, job).id)
    assert len(flows.failed) == waits


@pytest.mark.usefixtures("by_flow")
def test_a_driver_is_given_what_it_needs_and_what_is_no_more_is_left_out(twin: Twin, ada: User) -> None:
    given: list[Any] = []

    class Well:
        def create(self, order: Any) -> Any:
            given.append(order)
            return NotYet(5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.drivers, "well", lambda *told: Well())
        patch.setattr(twin.drivers, "makes_nothing", lambda driver: False)
        patch.setattr(twin.drivers, "objections", lambda *told: [])
        job = submit(twin, ada, resources={"x": {"type": "bench"}, "y": {"type": "licence"}})
        twin.run()
        unit = unit_of(twin, job, 1)
        put(
            twin, job_of(twin, job), needs=tuple(replace(need, options={"of": need.order}) for need in needs(twin, job))
        )
        put(twin, unit_of(twin, job, 1), type="bench", order=1)
        advance.advance(twin.on, unit.id)
        put(twin, unit_of(twin, job, 1), type="no more")
        advance.advance(twin.on, unit.id)
        put(twin, job_of(twin, job), needs=())
        advance.advance(twin.on, unit.id)
        drop(twin, job_of(twin, job))
        advance.advance(twin.on, unit.id)
    assert [order.options for order in given[-4:]] == [{"of": 1}, {"of": 1}, {}, {}]
    secrets = {order.id: drivers.lease_secret(twin.on.signing_key(), unit_of(twin, job, 1)) for order in given[-4:]}
    assert {order.id: order.key for order in given[-4:]} == secrets
    assert not any(order.url for order in given)


def needs(twin: Twin, job: str) -> Any:
    return job_of(twin, job).request.needs


def test_the_order_for_a_worker_has_its_key(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    (order,) = twin.drivers.hand.made.values()
    assert order.key == drivers.bootstrap_key(twin.on.signing_key(), worker_of(twin, job).id)
    assert order.url == "http://here"


def test_a_release_that_was_done_already_tells_nothing(twin: Twin, ada: User) -> None:
    """UNIT-2: while the driver destroyed it, another handler did, and freed the slot."""
    job = running(twin, ada)
    destroy, (worker,) = twin.drivers.hand.destroy, live(twin, job)
    again = [True]

    def slow(unit: str, now: Any) -> Any:
        if again:
            again.clear()
            advance.advance(twin.on, worker.id)
        return destroy(unit, now + WORTH_TELLING)

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
        return destroy(unit, now + WORTH_TELLING)

    twin.drivers.hand.destroy = last  # type: ignore[method-assign]
    finish(twin, job)
    assert not any("is clean after" in line for line in told(twin, job))


def test_a_unit_whose_lease_is_over_already_is_destroyed_all_the_same(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    destroy = twin.drivers.hand.destroy

    def then(unit: str, now: Any) -> Any:
        put(twin, worker_of(twin, job), is_over=True)
        return destroy(unit, now + WORTH_TELLING)

    twin.drivers.hand.destroy = then  # type: ignore[method-assign]
    finish(twin, job)
    assert worker_of(twin, job).state is UnitState.GONE
    assert not any("is clean after" in line for line in told(twin, job))


def test_a_release_that_was_done_already_writes_nothing(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    destroy, (worker,) = twin.drivers.hand.destroy, live(twin, job)
    left: list[Unit] = []

    def slow(unit: str, now: Any) -> Any:
        if not left:
            left.append(worker)
            advance.advance(twin.on, worker.id)
            left.append(worker_of(twin, job))
        return destroy(unit, now)

    twin.drivers.hand.destroy = slow  # type: ignore[method-assign]
    finish(twin, job)
    assert left[-1].state is UnitState.GONE
    assert worker_of(twin, job) == left[-1]


@pytest.mark.usefixtures("by_flow")
def test_an_unfinished_well_is_called_again_through_its_queue(twin: Twin, ada: User) -> None:
    """And each need by its own order, with the settings of its type."""
    given: list[Order] = []

    class Well:
        def create(self, order: Order) -> NotYet:
            given.append(order)
            return NotYet(5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.drivers, "well", lambda *told: Well())
        job = submit(twin, ada, resources=["licence"])
        twin.run()
        assert [queue for _, queue, _ in twin.queues.messages] == ["well"]
        needs = [replace(need, options={"of": need.order}) for need in job_of(twin, job).request.needs]
        for ordered in (needs, needs[::-1]):
            put(twin, job_of(twin, job), needs=tuple(ordered))
            advance.advance(twin.on, unit_of(twin, job, 1).id)
        site_now = current_site(twin.on)
        licence = replace(site_now.resources["licence"], settings={"colour": "green"})
        patch.setattr(advance, "current_site", lambda on: replace(site_now, resources={"licence": licence}))
        advance.advance(twin.on, unit_of(twin, job, 1).id)
    assert [order.options for order in given[1:]] == [{"of": 1}] * 3
    assert given[-1].settings == {"colour": "green"}


def test_a_look_that_learns_nothing_new_writes_and_sends_nothing(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [NotYet(60, "it boots"), NotYet(60, "it boots"), NotYet(60, "nearly"), NotYet(60, None)]
    job = submit(twin, ada)
    twin.run()
    (message,) = sent(twin)
    assert message[0] == "factory"
    written, worker = commits(twin), worker_of(twin, job).id
    advance.advance(twin.on, worker)
    assert not written
    for _ in range(2):
        advance.advance(twin.on, worker)
    assert not sent(twin)
    assert [line.partition("yet: ")[2] for line in told(twin, job) if "yet: " in line] == ["it boots", "nearly"]


@pytest.mark.usefixtures("by_flow")
def test_a_new_machine_that_says_no_hello_is_told_of_as_new(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    flows = Flows(twin)
    twin.pass_time(3600)
    advance.advance(twin.on, worker_of(twin, job).id)
    assert [each[2].endswith("did not say hello in time after it was made") for each in flows.failed] == [True]


@pytest.mark.parametrize(("left", "reason"), [(0, "idle for as long as it may be"), (1, "nothing was heard")])
def test_an_idle_unit_is_destroyed_for_its_age_or_its_silence(ada: User, left: int, reason: str) -> None:
    twin = site(WARM)
    agent = worker_at_rest(twin, ada)
    now = twin.world.now()
    put(twin, unit_of_id(twin, agent.worker), due=now, until=now + timedelta(seconds=left))
    advance.advance(twin.on, agent.worker)
    assert reason in str(unit_of_id(twin, agent.worker).step.reason)


def test_a_unit_is_destroyed_later_while_nobody_can_read_the_site(twin: Twin, ada: User) -> None:
    """UNIT-1: it stays in the ledger, and says why."""
    worker = worker_of(twin, running(twin, ada))
    row = twin.store.get(SITE_KEY, SiteText)
    assert row
    put(twin, row, toml="[factories")
    put(twin, worker, state=UnitState.DIRTY)
    advance.advance(twin.on, worker.id)
    found = unit_of_id(twin, worker.id)
    assert (found.state, found.step.tries) == (UnitState.DIRTY, 1)
    assert "Misconfigured" in str(found.step.reason)


@pytest.mark.parametrize("kind", UnitKind)
def test_a_maker_that_the_site_has_no_more_is_named(twin: Twin, kind: UnitKind) -> None:
    named = {UnitKind.WORKER: "factory", UnitKind.RESOURCE: "well"}[kind]
    with pytest.raises(Misconfigured, match=f"the site has no {named} 'gone' any more"):
        drivers.driver_named(twin.on, current_site(twin.on), kind, "gone")


@pytest.mark.parametrize("order", [0, 1])
def test_a_driver_is_asked_as_what_it_is_whether_it_quarantines(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch, order: int
) -> None:
    job = running(twin, ada, resources=["bench"])
    asked: list[str] = []
    monkeypatch.setattr(type(twin.drivers), "quarantines", lambda drivers, kind, driver: not asked.append(kind))
    assert drivers.quarantines(twin.on, current_site(twin.on), unit_of(twin, job, order))
    assert asked == [("factory", "well")[order]]


def test_a_site_is_parsed_once(twin: Twin) -> None:
    """A warm function mostly reads the same text again, and a big one takes a second."""
    assert current_site(twin.on) is current_site(twin.on)


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_line_about_cleaning_holds_up_nobody(ada: User, monkeypatch: pytest.MonkeyPatch, *, is_kept: bool) -> None:
    """A line only tells: what others reckon with is written before it, and who waits is served."""
    twin = site(WARM)
    job, other, waits = (submit(twin, ada, target="linux" if is_kept else "other") for _ in range(3))
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    assert live(twin, other)
    assert not live(twin, waits)
    destroy = twin.drivers.hand.destroy
    monkeypatch.setattr(twin.drivers.hand, "destroy", lambda unit, now: destroy(unit, now + WORTH_TELLING))

    def append(on: System, job: str, attempt: int, text: str, *more: object, **how: object) -> None:
        if "is clean after" in text:
            raise Unreached(text)

    monkeypatch.setattr(logs, "append", append)
    end = agent.finish if not is_kept else lambda _: agent.hello()
    if is_kept:
        agent.finish(job)
        twin.pass_time(WORTH_TELLING.total_seconds())
    with pytest.raises(Unreached):
        end(job)
    times = twin.store.get(HoldTimes(pool=worker_of(twin, job).lease.pool).key, HoldTimes)
    assert times
    assert times.holds == 1
    twin.run()
    assert live(twin, waits)
