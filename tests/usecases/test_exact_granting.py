"""What a grant takes, whom it has served, and which unit it never hands over. [SLOT-1] [QUEUE-1] [JOB-2]"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.pools.grants import WINDOW
from penstock.domain.pools.pools import Lease, LeaseState
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs import flow, settle
from penstock.usecases.pools import scheduler, serving
from penstock.usecases.site import apply
from tests.usecases.exact import (
    all_units,
    drop,
    lease_of,
    pool_row,
    put,
    running,
    sent,
    site,
)
from tests.usecases.races import before_the_next_write_of
from tests.usecases.steps import finish, hello, job_of, live, submit, told
from tests.usecases.warm import SITE as WARM
from tests.usecases.warm import unit_of, worker_at_rest

pytestmark = pytest.mark.usefixtures("by_flow")

QUOTAS = site_toml(
    targets={"default": {"limit": 4, "uses": {"cores": 2}}},
    wells={"locks": "lock"},
    resources={"bench": {"well": "locks", "limit": 1}},
    quotas={"cores": 6},
)
DESKS = site_toml(
    targets={"default": {"limit": 9}},
    wells={"spring": "hand"},
    resources={
        "desk": {"well": "spring", "limit": 2, "warm": {"max": 2}},
        "pair": {"well": "spring", "limit": 1, "uses": {"desk": 2}},
    },
)


def served(twin: Twin, ask: Callable[[], object]) -> list[str]:
    """The pools that the scheduler is asked to serve, until all is done."""
    schedule, found = twin.queues.schedule, list[str]()

    def noting(message: Mapping[str, Any]) -> None:
        if message["do"] == "serve":
            found.extend(message["pools"])
        schedule(message)

    twin.queues.schedule = noting  # type: ignore[method-assign]
    ask()
    twin.run()
    return found


def test_a_grant_has_only_those_served_that_wait_behind_it_elsewhere(ada: User) -> None:
    twin = site(QUOTAS)
    assert served(twin, lambda: submit(twin, ada)) == []
    first, *_ = (submit(twin, ada, resources=["bench"]) for _ in range(3))
    twin.run()
    hello(twin, first)
    assert served(twin, lambda: finish(twin, first)) == ["resource/bench"], "and nobody waits for what else came back"


def test_a_grant_that_leaves_nobody_waiting_has_nobody_served(ada: User) -> None:
    """Three have all the cores; the fourth, which waits in both queues, gets what the first gives back."""
    twin = site(QUOTAS)
    first, *_, last = (submit(twin, ada) for _ in range(4))
    twin.run()
    hello(twin, first)
    asked = served(twin, lambda: finish(twin, first))
    assert live(twin, last)
    assert asked == ["target/default", "quota/cores"], "once, by what came back"


def test_as_many_as_have_room_are_granted_without_a_sweep(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than one call grants. [QUEUE-1]"""
    twin = site(site_toml(targets={"default": {"limit": 1}}))
    monkeypatch.setattr(serving, "ROUNDS", 1)
    jobs = [submit(twin, ada) for _ in range(3 * WINDOW)]
    twin.run()
    apply.resize(twin.on, "target/default", len(jobs))
    twin.run()
    assert all(live(twin, job) for job in jobs)


@pytest.mark.parametrize(("resources", "queue"), [([], "factory"), (["bench"], "well")])
def test_whoever_makes_what_was_granted_is_asked_to(ada: User, resources: list[str], queue: str) -> None:
    """They are different functions, and each may do no more than its own."""
    twin = site(QUOTAS)
    job = submit(twin, ada, resources=resources)
    while not live(twin, job):
        assert twin.deliver()
    (unit,) = live(twin, job)
    assert (queue, {"unit": unit.id}) in sent(twin)


def test_a_removed_pool_grants_nothing_and_notifies_nobody(ada: User) -> None:
    twin = site(QUOTAS)
    job = submit(twin, ada)
    drop(twin, pool_row(twin, "quota/cores"))
    twin.run()
    assert not all_units(twin)
    lines = told(twin, job)
    waits = "the job waits for quota/cores, which is new in the site's configuration and comes within minutes"
    assert lines == [f"job {job} accepted: a worker of default", waits]
    drop(twin, pool_row(twin, "target/default"))
    serving.serve(twin.on, ["target/default"])
    assert told(twin, job) == lines


def test_no_read_asks_the_store_for_zero_rows(ada: User) -> None:
    """DynamoDB refuses a read of no rows: a pool of which nobody wants a slot is not asked for any."""
    twin = site(WARM)
    find = twin.store.find

    def strict(*given: Any, limit: int | None = 1000, **named: Any) -> Any:
        assert limit is None or limit > 0
        return find(*given, limit=limit, **named)

    twin.store.find = strict  # type: ignore[method-assign]
    worker_at_rest(twin, ada)
    apply.pause(twin.on, "target/linux", paused=True)
    job = submit(twin, ada, target="linux")
    twin.run()
    assert not live(twin, job)


@pytest.mark.parametrize("what", ["not kept", "silent", "other uses", "other maker"])
def test_a_warm_unit_that_does_not_fit_any_more_is_not_handed_over(ada: User, what: str) -> None:
    twin = site(WARM)
    agent = worker_at_rest(twin, ada)
    unit = unit_of(twin, agent.worker)
    if what == "not kept":
        put(twin, pool_row(twin, "target/linux"), warm=None)
    elif what == "other maker":
        put(twin, unit, maker="other")
    job = submit(twin, ada, target="linux")
    if what == "other uses":
        needs = tuple(replace(need, uses={"quota/vcpus": 2}) for need in job_of(twin, job).request.needs)
        put(twin, job_of(twin, job), needs=needs)
    if what == "silent":
        put(twin, unit_of(twin, agent.worker), due=twin.world.now())
    twin.run()
    (given,) = (unit for unit in live(twin, job) if unit.state is UnitState.CREATING)
    assert given.id != agent.worker


def test_a_next_attempt_waits_for_a_worker_and_for_no_resource(twin: Twin, ada: User) -> None:
    """JOB-2: one that was lost before it had a worker may start while its bench is put back."""
    job = submit(twin, ada, resources=["bench"])
    while not live(twin, job):
        assert twin.deliver()
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    assert lease_of(twin, job, 1).state is LeaseState.RELEASING
    flow.start(twin.on, job)
    assert (job, 2) in twin.flows.executions


def test_a_warm_unit_that_takes_nothing_else_makes_room_too(ada: User) -> None:
    """QUEUE-1: its slot is wanted by a type that takes two such slots for itself."""
    twin = site(DESKS)
    first = running(twin, ada, resources=["desk"])
    finish(twin, first)
    (desk,) = (unit for unit in all_units(twin) if unit.lease.order)
    assert desk.state is UnitState.IDLE
    job = submit(twin, ada, resources=["pair"])
    twin.run()
    assert unit_of(twin, desk.id).state is UnitState.GONE
    assert lease_of(twin, job, 1).state is LeaseState.READY


def test_a_step_that_asks_again_while_it_is_granted_is_answered_by_its_new_token(twin: Twin, ada: User) -> None:
    """JOB-1: the flow waits with the token that it gave last, and no answer to another reaches it."""
    apply.resize(twin.on, "target/linux", 0)
    job = submit(twin, ada)
    twin.run()
    before_the_next_write_of(
        twin,
        Lease,
        lambda: scheduler.acquire(twin.on, job, 1, 0, "another token"),
        when=lambda lease: lease.state is LeaseState.GRANTED,
    )
    apply.resize(twin.on, "target/linux", 1)
    while lease_of(twin, job, 0).state is LeaseState.WAITING:
        assert twin.deliver()
    assert lease_of(twin, job, 0).token == "another token"
