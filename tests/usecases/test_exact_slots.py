"""A slot that comes back goes where the limit says, and what it taught is remembered. [SLOT-1] [UNIT-2]"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import pytest

from penstock.domain.pools.pools import HoldTimes, Pool, Slot, collection
from penstock.domain.site.site import Shape
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Replace
from penstock.system import TRIES
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.pools import resize
from penstock.usecases.site import apply
from tests.usecases.exact import drop, pool_row, running, site
from tests.usecases.races import before_the_next_write_of
from tests.usecases.steps import finish, submit, worker_of
from tests.usecases.warm import SITE as WARM
from tests.usecases.warm import unit_of, worker_at_rest

pytestmark = pytest.mark.usefixtures("by_flow")

SITE = site_toml(
    targets={"linux": {"limit": 3}, "default": {"limit": 9}},
    wells={"locks": "lock"},
    resources={
        "rack": {"well": "locks", "names": ["rack-1", "rack-2", "rack-3"]},
        "pair": {"well": "locks", "limit": 3, "uses": {"desk": 2}},
        "desk": {"well": "locks", "limit": 4},
    },
)


@pytest.fixture
def twin() -> Twin:
    return site(SITE)


def at(twin: Twin, pool: str, state: str) -> dict[str, bool]:
    """Names of slots, and whether each is withdrawn."""
    return {slot.name: slot.withdrawn for slot in twin.store.find(collection(pool), f"{state}#", Slot)}


def holders(twin: Twin, ada: User, target: str, count: int) -> dict[str, str]:
    """Jobs by the slot that their worker has."""
    found = [running(twin, ada, target=target) for _ in range(count)]
    return {worker_of(twin, job).lease.slot: job for job in found}


def hold_times(twin: Twin, pool: str) -> HoldTimes:
    return twin.store.get(HoldTimes(pool=pool).key, HoldTimes) or HoldTimes(pool=pool)


def test_a_slot_that_comes_back_goes_for_one_that_is_withdrawn(twin: Twin, ada: User) -> None:
    """It is free until somebody wants it: then a resize lets the other one stay instead."""
    jobs = holders(twin, ada, "linux", 3)
    apply.resize(twin.on, "target/linux", 2)
    twin.run()
    (withdrawn,) = (name for name, is_so in at(twin, "target/linux", "held").items() if is_so)
    first, second = (name for name in jobs if name != withdrawn)
    finish(twin, jobs[first])
    submit(twin, ada, target="linux")
    twin.run()
    assert at(twin, "target/linux", "held") == {withdrawn: False, second: False}
    assert list(at(twin, "target/linux", "off")) == [first]
    finish(twin, jobs[second])
    assert at(twin, "target/linux", "held") == {withdrawn: False, second: False}, "it went to who waited"


def test_a_withdrawn_slot_that_comes_back_is_off_and_the_others_stay_withdrawn(twin: Twin, ada: User) -> None:
    jobs = holders(twin, ada, "linux", 3)
    apply.resize(twin.on, "target/linux", 1)
    twin.run()
    first, second = (name for name, is_so in at(twin, "target/linux", "held").items() if is_so)
    finish(twin, jobs[first])
    assert at(twin, "target/linux", "held")[second]
    assert list(at(twin, "target/linux", "off")) == [first]
    assert not at(twin, "target/linux", "free")


def test_a_named_slot_goes_for_no_other(twin: Twin, ada: User) -> None:
    """What is withdrawn there is that thing, and not how many there are."""
    found = [running(twin, ada, resources=["rack"]) for _ in range(3)]
    jobs = {slot.name: str(slot.job) for slot in twin.store.find(collection("resource/rack"), "held#", Slot)}
    assert sorted(jobs.values()) == sorted(found)
    apply.set_pool(twin.on, "resource/rack", Shape(2, ("rack-1", "rack-2")))
    twin.run()
    finish(twin, jobs["rack-1"])
    assert list(at(twin, "resource/rack", "free")) == ["rack-1"]
    assert at(twin, "resource/rack", "held") == {"rack-2": False, "rack-3": True}
    finish(twin, jobs["rack-3"])
    assert list(at(twin, "resource/rack", "off")) == ["rack-3"]


def test_a_unit_whose_own_second_slot_is_withdrawn_gives_back_both(twin: Twin, ada: User) -> None:
    job = running(twin, ada, resources=["pair"])
    apply.resize(twin.on, "resource/desk", 1)
    twin.run()
    assert sorted(at(twin, "resource/desk", "held").values()) == [False, True]
    finish(twin, job)
    assert (len(at(twin, "resource/desk", "free")), len(at(twin, "resource/desk", "off"))) == (1, 3)


def test_a_slot_of_a_pool_that_the_site_has_no_more_comes_back(twin: Twin, ada: User) -> None:
    job = running(twin, ada, target="linux")
    drop(twin, pool_row(twin, "target/linux"))
    finish(twin, job)
    assert worker_of(twin, job).state is UnitState.GONE
    assert len(at(twin, "target/linux", "free")) == 3


def test_a_pool_learns_how_long_its_slots_were_leased(twin: Twin, ada: User) -> None:
    job = running(twin, ada, target="linux")
    twin.pass_time(100)
    finish(twin, job)
    times = hold_times(twin, "target/linux")
    assert (times.holds, round(times.mean_hold)) == (1, 100)


def test_of_two_releases_at_once_one_time_is_counted_and_none_is_written_over(twin: Twin, ada: User) -> None:
    """Also the first: then neither has found a row."""
    for _ in range(2):
        first = running(twin, ada, target="linux")
        twin.pass_time(900)
        second = running(twin, ada, target="linux")
        twin.pass_time(100)
        before_the_next_write_of(twin, HoldTimes, partial(finish, twin, second))
        finish(twin, first)
    times = hold_times(twin, "target/linux")
    assert (times.holds, round(times.mean_hold)) == (2, 100), "of those that came first"


def test_a_pool_learns_nothing_of_a_slot_that_was_idle(ada: User) -> None:
    twin = site(WARM)
    agent = worker_at_rest(twin, ada)
    before = hold_times(twin, "target/linux")
    apply.apply(twin.on, "admin", WARM.replace("max = 1", "max = 0"), "site.toml")
    twin.run()
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    assert hold_times(twin, "target/linux") == before


def test_slots_that_are_new_are_made_forty_at_a_time_and_the_pool_stays_due_from_the_first_on(ada: User) -> None:
    """A function that dies in between leaves a pool that the sweep finds at the same time. [SLOT-1]"""
    twin, dues = site(site_toml(targets={"default": {"limit": 1}})), list[datetime | None]()
    commit = twin.store.commit

    def noting(changes: Sequence[Change]) -> bool:
        rows = (change.row for change in changes if isinstance(change, Replace))
        dues.extend(row.due for row in rows if isinstance(row, Pool))
        twin.pass_time(1)
        return commit(changes)

    apply.resize(twin.on, "target/default", 100)
    twin.store.commit = noting  # type: ignore[method-assign]
    resize.resize(twin.on, "target/default")
    assert len(at(twin, "target/default", "free")) == 100
    assert (len(dues), len({*dues[:-1]}), dues[-1]) == (4, 1, None), "three times 40 at most, and that it is done"


def test_refusals_that_do_not_end_leave_the_rest_to_the_sweep_and_commits_in_between_do_not_count(ada: User) -> None:
    count = TRIES + 2
    twin = site(site_toml(targets={"linux": {"limit": count}, "default": "linux"}))
    apply.resize(twin.on, "target/linux", 0)
    twin.run()
    commit, refused = twin.store.commit, list[bool]()

    def refusing(changes: Sequence[Change]) -> bool:
        """Every second commit is refused."""
        refused.append(not (refused and refused[-1]))
        return not refused[-1] and commit(changes)

    apply.resize(twin.on, "target/linux", count)
    twin.store.commit = refusing  # type: ignore[method-assign]
    resize.resize(twin.on, "target/linux")
    twin.store.commit = commit  # type: ignore[method-assign]
    assert len(at(twin, "target/linux", "free")) == count


def test_how_long_a_worker_that_is_kept_was_leased_is_recorded_for_its_pool(ada: User) -> None:
    made = site(WARM)
    worker_at_rest(made, ada)
    found = hold_times(made, "target/linux")
    assert found.version


def test_the_row_of_a_pool_of_which_nothing_was_learned_is_not_written(twin: Twin, ada: User) -> None:
    """Whoever gives back at the same time is not refused for it. [QUEUE-1]"""
    job = running(twin, ada, target="linux")
    before = pool_row(twin, "target/linux")
    finish(twin, job)
    twin.run()
    assert pool_row(twin, "target/linux") == before
    assert at(twin, "target/linux", "held") == {}
