"""Who knows that there is none, and that nothing of its own is there, asks nobody. [UNIT-1]"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain import metrics
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import DriverError, NoCapacity, Shortage, Unknown
from penstock.kernel.rows import Change, Create, Replace
from penstock.ports import Order
from penstock.testing.fake import Cloud, FakeDriver, Faults
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases import cooldowns
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.units import maintenance
from tests.usecases.exact import sent, site, unit_of
from tests.usecases.races import Died, before_the_next_commit
from tests.usecases.steps import job_of, submit, told, worker_of

NONE = Faults(short=("fake/all",))
HOUR = timedelta(hours=1)
WELL = site_toml(
    targets={"default": {"limit": 1}},
    wells={"spring": "hand"},
    resources={"db": {"well": "spring", "limit": 1}},
)


@pytest.fixture
def cloud(twin: Twin) -> Cloud:
    """A cloud that has none of anything."""
    made = Cloud(twin.world.now, faults=NONE)
    twin.drivers.hand = FakeDriver({}, {}, made)  # type: ignore[assignment]
    return made


def go_on(twin: Twin, seconds: int) -> None:
    for _ in range(seconds // 10):
        twin.pass_time(10)
        twin.run()


def keep_cool(twin: Twin, maker: str = "factory/hand", until: timedelta = HOUR) -> None:
    """What there is none of stays so for an hour, and nobody probes."""
    for row in cooldowns.cooldowns_of(twin.on, maker):
        twin.store.commit([Replace(row, replace(row, until=twin.world.now() + until, probe=None))])


def bare(twin: Twin, ada: User) -> str:
    """A job whose worker has been looked for, and for which there is no way."""
    job = submit(twin, ada)
    twin.run()
    assert worker_of(twin, job).creation.bare is None, "a way was tried, and who tries may have an answer lost"
    keep_cool(twin)
    look_again(twin, job)
    assert worker_of(twin, job).creation.bare == twin.world.now()
    return job


def look_again(twin: Twin, job: str) -> Unit:
    """The next look of a job's worker, whenever it was to come."""
    twin.take("factory", {"unit": worker_of(twin, job).id})
    return worker_of(twin, job)


def test_an_existing_machine_is_searched_once_and_then_not_before_an_alternative_opens(
    twin: Twin, ada: User, cloud: Cloud
) -> None:
    job = bare(twin, ada)
    before = dict(cloud.calls)
    counted = len(twin.metrics.of(metrics.DRIVER_CALLS, operation="create"))
    go_on(twin, 3000)
    assert cloud.calls == before, "for most of an hour"
    assert len(twin.metrics.of(metrics.DRIVER_CALLS, operation="create")) == counted
    assert "no capacity for fake/all" in jobs.explain(twin.on, job_of(twin, job)).summary
    assert any("no capacity for fake/all" in line for line in told(twin, job))
    (failure,) = cooldowns.failures(twin.on, "factory/hand")
    assert failure.count == 2, "of calls that were made"
    cloud.faults = Faults()
    go_on(twin, 900)
    assert worker_of(twin, job).creation.made
    assert worker_of(twin, job).creation.bare is None
    assert len(cloud.machines) == 1


def test_what_it_waits_for_is_looked_at_when_the_first_cool_down_ends(twin: Twin, ada: User, cloud: Cloud) -> None:
    job = bare(twin, ada)
    (row,) = cooldowns.cooldowns_of(twin.on, "factory/hand")
    twin.store.commit([Replace(row, replace(row, until=twin.world.now() + timedelta(seconds=100)))])
    unit = look_again(twin, job)
    assert unit.due
    assert 100 < (unit.due - twin.world.now()).total_seconds() <= 131


@pytest.mark.parametrize("is_lost", [False, True], ids=["died before its answer", "answer lost"])
def test_create_checks_for_an_existing_machine_even_without_an_alternative(
    twin: Twin, ada: User, cloud: Cloud, is_lost: bool
) -> None:
    """UNIT-1: what was asked for is written before, so that an answer that never came is known to be missing."""
    job = bare(twin, ada)
    cloud.faults = Faults(lost=float(is_lost))
    for row in cooldowns.cooldowns_of(twin.on, "factory/hand"):
        twin.store.commit([Replace(row, replace(row, until=twin.world.now()))])
    with pytest.MonkeyPatch.context() as patch, nullcontext() if is_lost else pytest.raises(Died):
        patch.setattr(FakeDriver, "create", FakeDriver.create if is_lost else dies(FakeDriver.create))
        look_again(twin, job)
    assert len(cloud.machines) == 1
    assert (worker_of(twin, job).creation.bare, worker_of(twin, job).creation.made) == (None, None)
    cloud.faults = NONE
    keep_cool(twin)
    assert look_again(twin, job).creation.made
    assert len(cloud.machines) == 1


def dies(create: Any) -> Any:
    def created(self: FakeDriver, order: Order) -> None:
        create(self, order)
        raise Died

    return created


def test_who_loses_the_race_to_ask_does_not(twin: Twin, ada: User, cloud: Cloud) -> None:
    """Its lease may have ended meanwhile, and then nobody may begin to make it. It is looked at anew, and soon."""
    job = bare(twin, ada)
    cloud.faults = Faults()
    for row in cooldowns.cooldowns_of(twin.on, "factory/hand"):
        twin.store.commit([Replace(row, replace(row, until=twin.world.now()))])
    commit = twin.store.commit

    def beaten(changes: Sequence[Change]) -> bool:
        return not any(isinstance(row, Unit) for each in changes if (row := getattr(each, "row", None))) and commit(
            changes
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.store, "commit", beaten)
        twin.queues.messages.clear()
        look_again(twin, job)
    assert not cloud.machines
    due, queue, message = twin.queues.messages[-1]
    assert (due - twin.world.now(), queue, message["unit"]) == (
        timedelta(seconds=1),
        "factory",
        worker_of(twin, job).id,
    )


def test_what_is_let_go_before_it_is_asked_for_is_not_made(twin: Twin, ada: User, cloud: Cloud) -> None:
    """UNIT-1: its job is cancelled, and it is gone: nobody would destroy what was made of it after that."""
    job = bare(twin, ada)
    cloud.faults = Faults()
    keep_cool(twin, until=timedelta(0))

    def cancelled() -> None:
        cancel.cancel(twin.on, ada, job)
        twin.run()

    before_the_next_commit(twin, cancelled)
    look_again(twin, job)
    assert not cloud.machines
    assert worker_of(twin, job).state is UnitState.GONE


def test_a_well_that_lost_the_race_to_ask_looks_anew_itself(ada: User) -> None:
    twin, maker = site(WELL), "well/spring"
    cloud = Cloud(twin.world.now, faults=NONE)
    twin.drivers.basin = FakeDriver({}, {}, cloud)  # type: ignore[assignment]
    job = submit(twin, ada, resources=["db"])
    twin.run()
    unit = unit_of(twin, job, 1)
    keep_cool(twin, maker)
    twin.take("well", {"unit": unit.id})
    assert unit_of(twin, job, 1).creation.bare
    cloud.faults = Faults()
    keep_cool(twin, maker, timedelta(0))
    sent(twin)
    before_the_next_commit(twin, lambda: maintenance.drain(twin.on, ada, unit.is_a, unit.id, "away with it"))
    twin.take("well", {"unit": unit.id})
    assert not cloud.machines
    assert sent(twin) == [("well", {"unit": unit.id})]


@pytest.mark.parametrize("error", [Unknown("no answer"), NoCapacity("none")], ids=lambda error: type(error).__name__)
def test_only_who_looked_knows_that_nothing_is_there(twin: Twin, ada: User, cloud: Cloud, error: DriverError) -> None:
    job = submit(twin, ada)
    twin.run()
    keep_cool(twin)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeDriver, "create", lambda *_: (_ for _ in ()).throw(error))
        look_again(twin, job)
    assert bool(worker_of(twin, job).creation.bare) is isinstance(error, NoCapacity)


def test_a_driver_that_cannot_tell_is_asked_each_time(twin: Twin, ada: User) -> None:
    hand = twin.drivers.hand
    hand.says = [NoCapacity("none", [Shortage("here", "none")]) for _ in range(9)]
    job = submit(twin, ada)
    twin.run()
    for _ in range(3):
        keep_cool(twin)
        look_again(twin, job)
    assert (len(hand.says), worker_of(twin, job).creation.bare) == (5, None)


def test_a_worker_that_was_known_to_have_nothing_is_let_go_at_once(twin: Twin, ada: User, cloud: Cloud) -> None:
    """Lists lag; but nobody has asked for it since its driver looked, which is long ago."""
    job = bare(twin, ada)
    cloud.faults = replace(NONE, unseen=60)
    go_on(twin, 600)
    cancel.cancel(twin.on, ada, job)
    twin.run()
    assert worker_of(twin, job).state is UnitState.GONE


def test_a_probe_that_finds_no_way_after_all_lets_the_next_one_try(twin: Twin, ada: User, cloud: Cloud) -> None:
    job = bare(twin, ada)
    (row,) = cooldowns.cooldowns_of(twin.on, "factory/hand")
    other = replace(row, scope="of another factory's type", until=twin.world.now(), version=0)
    assert twin.store.commit([Create(other)])
    before = dict(cloud.calls)
    look_again(twin, job)
    assert cloud.calls == before
    found = {each.scope: each.probe for each in cooldowns.cooldowns_of(twin.on, "factory/hand")}
    assert found[other.scope] is None
