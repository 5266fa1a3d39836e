"""Somebody else moves between any two reads of a step, whatever their order: nothing is lost. [SLOT-1] [JOB-1]

A step reads several rows, one after the other. It is safe because the row that its commit names is read first; a step
that reads it last decides by old rows and commits over new ones. So the whole of another step runs after each read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Outcome
from penstock.domain.pools import grants
from penstock.domain.pools.pools import LeaseState, Slot, SlotState, collection
from penstock.domain.units.units import UnitKind
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs import flow, settle
from penstock.usecases.pools import resize, scheduler, serving
from penstock.usecases.site import apply
from tests.usecases.exact import site
from tests.usecases.steps import assert_all_is_put_back, finish, hello, job_of, live, submit, sweep

pytestmark = pytest.mark.usefixtures("by_flow")

BENCH = "resource/bench"

READS = 24
"""More than any of these steps reads: the last ones find nothing left to disturb."""


def after_read(twin: Twin, number: int, act: Callable[[], object]) -> list[bool]:
    """Let `act` run whole, once, after so many reads of the store. Returns a list that is not empty when it has."""
    store, count, done = twin.store, [0], list[bool]()
    plain = {name: getattr(store, name) for name in ("get", "find")}

    def reading(name: str) -> Any:
        def read(*given: Any, **how: Any) -> Any:
            found = plain[name](*given, **how)
            count[0] += 1
            if count[0] == number:
                for each in plain:
                    setattr(store, each, plain[each])
                done.append(True)
                act()
            return found

        return read

    for name in plain:
        setattr(store, name, reading(name))
    return done


def as_it_was(twin: Twin) -> None:
    for name in ("get", "find"):
        twin.store.__dict__.pop(name, None)


@pytest.mark.parametrize("number", range(1, READS))
@pytest.mark.parametrize("is_new", [True, False], ids=["its claim is new", "its claim waited"])
def test_a_claim_that_is_granted_while_its_job_is_settled_is_given_back(
    twin: Twin, ada: User, number: int, is_new: bool
) -> None:
    """JOB-1: a settled job has no granted lease, or nobody would ever put it back."""
    first = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, first)
    if is_new:
        finish(twin, first)
        second = submit(twin, ada, resources=["bench"])
    else:
        second = submit(twin, ada, resources=["bench"])
        twin.run()
        finish_silently(twin, first)
    after_read(twin, number, twin.run)
    settle.settle(twin.on, second, 1, "Unsatisfiable", "no more")
    as_it_was(twin)
    assert job_of(twin, second).end.outcome is Outcome.FAILED
    states = {lease.state for lease in flow.leases_of(twin.on, job_of(twin, second))}
    assert not states & {LeaseState.WAITING, LeaseState.GRANTED, LeaseState.READY}
    twin.run()
    sweep(twin)
    assert_all_is_put_back(twin)


def finish_silently(twin: Twin, job: str) -> None:
    """The agent reports the end; nothing that follows from it has run yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin, "run", lambda *_: None)
        finish(twin, job)


@pytest.mark.parametrize("number", range(1, READS))
@pytest.mark.parametrize(("limit", "meanwhile"), [(2, 1), (1, 2), (2, 0), (2, 3)])
def test_a_limit_that_changes_and_comes_back_while_its_pool_is_resized_holds(
    twin: Twin, number: int, limit: int, meanwhile: int
) -> None:
    """SLOT-1: the pool has as many slots as it may, also if the message of the last change is lost."""
    pool = "resource/licence"
    apply.resize(twin.on, pool, limit, "root")
    twin.run()

    def change() -> None:
        apply.resize(twin.on, pool, meanwhile, "root")
        twin.run()
        apply.resize(twin.on, pool, limit, "root")
        twin.queues.messages.clear()

    done = after_read(twin, number, change)
    resize.resize(twin.on, pool)
    as_it_was(twin)
    if not done:
        change()
    twin.queues.messages.clear()
    sweep(twin, 120)
    usable = [
        slot
        for state in (SlotState.FREE, SlotState.HELD)
        for slot in twin.store.find(collection(pool), f"{state}#", Slot)
    ]
    assert len(usable) == limit
    assert not any(slot.withdrawn for slot in usable)


@pytest.mark.parametrize("number", range(1, READS))
def test_what_comes_back_after_its_pool_was_paused_is_granted_to_nobody(twin: Twin, ada: User, number: int) -> None:
    """SLOT-1: a slot that is seen as free is seen no later than what its pool may grant."""
    first = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, first)
    second = submit(twin, ada, resources=["bench"])
    twin.run()

    def pause() -> None:
        apply.pause(twin.on, BENCH, paused=True)
        finish(twin, first)
        twin.run()

    done = after_read(twin, number, pause)
    serving.serve(twin.on, [BENCH])
    as_it_was(twin)
    if done:
        assert [lease.state for lease in flow.leases_of(twin.on, job_of(twin, second))] == [LeaseState.WAITING]
    else:
        assert number > 1


SHARED = site_toml(
    targets={"default": {"limit": 4}},
    wells={"spring": "hand"},
    resources={
        "licence": {"well": "spring", "limit": 2},
        "sandbox": {"well": "spring", "limit": 1, "uses": {"licence": 1}, "warm": {"max": 1, "idle": "1h"}},
    },
)


@pytest.mark.parametrize("number", range(1, READS))
def test_a_slot_that_is_seen_as_free_and_as_a_warm_units_is_taken_once(ada: User, number: int) -> None:
    """SLOT-1: between the two reads a unit took it, had its lease, and was kept with it."""
    twin = site(SHARED)

    def is_used_and_kept() -> None:
        first = submit(twin, ada, resources=["sandbox"])
        twin.run()
        if any(unit.is_a is UnitKind.WORKER for unit in live(twin, first)):  # nobody was granted anything before
            hello(twin, first)
            finish(twin, first)

    job = submit(twin, ada, resources=["licence", "sandbox"])
    after_read(twin, number, is_used_and_kept)
    twin.run()
    as_it_was(twin)
    sweep(twin, 120)
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_what_is_free_is_read_before_its_pools_row(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """SLOT-1: a limit that was lowered before a slot came back is seen then. A grant does not name the row."""
    job = job_of(twin, submit(twin, ada, resources=["bench"]))
    order: list[str] = []
    find = twin.store.find

    def told(pk: str, prefix: str, kind: type[Any], **how: Any) -> list[Any]:
        order.append(prefix or "row")
        return find(pk, prefix, kind, **how)

    monkeypatch.setattr(twin.store, "find", told)
    assert scheduler.look(twin.on, grants.claims(job, 1, twin.world.now()))
    assert order == ["free#cold#", "row"]
