"""A host that the site moves to another target while a job runs on it, and a controller that switches it. [JOB-2]"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units.hosts import host_key
from penstock.domain.units.power import PowerOrder, power_key
from penstock.domain.units.units import UnitState
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.site import apply as site_apply
from penstock.usecases.workers import power
from tests.controllers.benches import FaultyBenches
from tests.controllers.switched import ADA, after, order_of, posts, site
from tests.usecases.lab_hosts import IMAGE, SHARED, Bench, Part, apply, host_of, states
from tests.usecases.steps import job_of, submit, worker_of


@pytest.fixture
def benches() -> Iterator[FaultyBenches]:
    made = FaultyBenches("bench-7", "bench-70", "bench-8")
    yield made
    made.end()


def targets(twin: Twin, benches: FaultyBenches, old: Sequence[str], new: Sequence[str], *, shared: bool) -> None:
    """Which hosts two targets of one factory have."""
    made = {"driver": "hosts", "url": benches.url, "secret": "env:RACK", "timeout": "1s", "image": IMAGE}
    each = SHARED if shared else {"factory": "lab"}
    found = {name: each | {"names": list(names)} for name, names in (("old", old), ("new", new))}
    apply(twin, site_toml(factories={"lab": made | {"power": {"idle": "10m"}}}, targets=found))


def moved(benches: FaultyBenches, *, shared: bool) -> tuple[Twin, str, Bench]:
    """A job runs on bench-7, which was switched on for it, and has another target since; its own agent is silent."""
    twin = site(benches)
    targets(twin, benches, ["bench-7", "bench-70"], ["bench-8"], shared=shared)
    job = waits_for(twin, "old")
    Bench(twin).ask()
    number = worker_of(twin, job).lease.slot.partition("/")[2]
    bench = Part(twin, "bench-7", int(number)) if number else Bench(twin)
    assert bench.do() == "work"
    assert bench.hello() == job
    targets(twin, benches, ["bench-70"], ["bench-7", "bench-8"], shared=shared)
    works(twin, bench, job, 6)
    assert host_of(twin).away
    return twin, job, bench


def to_be_cleaned(benches: FaultyBenches) -> tuple[Twin, Bench]:
    """A job left something on bench-7. Only its next target has a controller, so its agent has to clean up."""
    twin = site(benches)
    apply(twin, yard_and_lab(benches, ["bench-7", "bench-70"], ["bench-8"]))
    bench = Bench(twin)
    bench.ask()
    job = waits_for(twin, "old")
    assert bench.do() == "work"
    assert bench.hello() == job
    apply(twin, yard_and_lab(benches, ["bench-70"], ["bench-7", "bench-8"]))
    bench.report(job)
    bench.stage = "ended"
    return twin, bench


def yard_and_lab(benches: FaultyBenches, old: Sequence[str], new: Sequence[str]) -> str:
    lab = {"driver": "hosts", "url": benches.url, "secret": "env:RACK", "timeout": "1s", "power": {"idle": "10m"}}
    found = {
        name: {"factory": made, "names": names} for name, made, names in (("old", "yard", old), ("new", "lab", new))
    }
    return site_toml(factories={"yard": "hosts", "lab": lab}, targets=found)


def last_of_all(twin: Twin) -> None:
    """The other host of the next target failed more often, so that a job that waits has bench-7 switched on first."""
    twin.store.rows[power_key("bench-8")] = PowerOrder(host="bench-8", is_on=True, since=START, missed=2)


def waits_for(twin: Twin, target: str) -> str:
    job = submit(twin, ADA, target=target, retries=0)
    twin.run()
    return job


def works(twin: Twin, bench: Bench, job: str, times: int) -> None:
    """Its worker's agent is there, as long as the host's own is not heard of."""
    for _ in range(times):
        twin.pass_time(45)
        bench.beat(job)
        after(twin, 1)


@pytest.mark.parametrize("shared", [False, True])
def test_it_is_not_switched_off_by_its_next_target(benches: FaultyBenches, shared: bool) -> None:
    twin, job, bench = moved(benches, shared=shared)
    works(twin, bench, job, 20)
    assert posts(benches) == ["bench-7/on"]
    assert job_of(twin, job).state is State.RUNNING


@pytest.mark.parametrize("shared", [False, True])
def test_it_is_not_switched_on_for_who_waits_for_its_next_target(benches: FaultyBenches, shared: bool) -> None:
    """One that did not come may be switched off first. Another host serves who waits, even one that failed more."""
    twin, job, bench = moved(benches, shared=shared)
    twin.store.rows[power_key("bench-7")] = was = replace(order_of(twin), missed=1)
    twin.store.rows[power_key("bench-8")] = replace(was, host="bench-8", missed=2)
    waits_for(twin, "new")
    works(twin, bench, job, 2)
    assert posts(benches) == ["bench-7/on", "bench-8/on"]
    assert job_of(twin, job).state is State.RUNNING


@pytest.mark.parametrize("is_readable", [True, False])
def test_nor_while_it_is_not_known_who_has_it(benches: FaultyBenches, is_readable: bool) -> None:
    """A row that cannot be read, or was left out by a read of many, tells nothing. Another host serves who waits."""
    key = host_key("bench-7")
    twin, job, bench = moved(benches, shared=False)
    twin.store.rows[power_key("bench-7")] = replace(order_of(twin), missed=1)
    last_of_all(twin)
    rows_at = twin.store.rows_at
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.store, "rows_at", lambda keys: {at: row for at, row in rows_at(keys).items() if at != key})
        patch.setattr(twin.store, "unreadable", set() if is_readable else {key})
        waits_for(twin, "new")
        assert posts(benches) == ["bench-7/on", "bench-8/on"]
    works(twin, bench, job, 2)
    assert (order_of(twin).serial, job_of(twin, job).state) == (1, State.RUNNING)


def test_when_nobody_has_it_any_more_its_next_target_switches_it_off(benches: FaultyBenches) -> None:
    """Its worker is lost, and the controller cleans up."""
    twin, _, _ = moved(benches, shared=False)
    after(twin, 60, times=20)
    assert posts(benches) == ["bench-7/on", "bench-7/off"]
    assert host_of(twin).pool == "target/old"


def test_a_host_that_comes_while_its_last_pool_is_read_stays_on(benches: FaultyBenches) -> None:
    """JOB-2: it may begin on the next job at once."""
    twin, _, _ = moved(benches, shared=False)
    after(twin, 60, times=5)
    assert states(twin, "target/old")["bench-7"] != "held"
    twin.pass_time(600)
    find = twin.store.find

    def comes(pk: str, prefix: str, *how: Any, **more: Any) -> Any:
        found = find(pk, prefix, *how, **more)
        if prefix.startswith("held#bench-7"):
            twin.store.find = find  # type: ignore[method-assign]
            Bench(twin).ask()
        return found

    twin.store.find = comes  # type: ignore[method-assign]
    pool = twin.store.get(pool_key("target/new"), Pool)
    assert pool
    power.switch_idle_off(twin.on, pool)
    twin.run()
    assert (host_of(twin).pool, host_of(twin).away) == ("target/new", None)
    assert (posts(benches), order_of(twin).is_shut) == (["bench-7/on"], False)


def test_when_nobody_has_it_any_more_it_is_switched_on_for_who_waits_for_the_next(benches: FaultyBenches) -> None:
    """It did not come again since, so it still counts for its last target."""
    twin, _, _ = moved(benches, shared=False)
    after(twin, 60, times=20)
    waits_for(twin, "new")
    assert posts(benches)[2:] == ["bench-7/on"]


def test_one_that_only_its_agent_can_clean_is_switched_on_for_who_waits_for_its_next_target(
    benches: FaultyBenches,
) -> None:
    """UNIT-1: it lost its power before its agent had cleaned up, and nobody else cleans it."""
    twin, bench = to_be_cleaned(benches)
    after(twin, 60, times=6)
    assert host_of(twin).away
    job = waits_for(twin, "new")
    after(twin, 60)
    assert "bench-7/on" in posts(benches)
    assert bench.clean().do == "forget"
    bench.ask()
    assert bench.do() == "work"
    assert bench.hello() == job


def test_so_it_is_at_once_and_not_only_when_its_driver_is_asked_whether_it_is_clean(benches: FaultyBenches) -> None:
    """QUEUE-1: that may be in 15 minutes."""
    twin, _ = to_be_cleaned(benches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power, "switch_on_to_clean", lambda *told: None)
        after(twin, 60, times=6)
        assert host_of(twin).away
        waits_for(twin, "new")
    assert posts(benches) == ["bench-7/on"]


def test_one_whose_agent_is_cleaning_up_is_not_switched_on_for_who_waits_for_its_next_target(
    benches: FaultyBenches,
) -> None:
    """It is on. Another is switched on instead, even one that failed more often."""
    twin, bench = to_be_cleaned(benches)
    last_of_all(twin)
    assert bench.do() == "clean"
    waits_for(twin, "new")
    assert posts(benches) == ["bench-8/on"]


def test_one_that_its_controller_is_cleaning_is_not_switched_on_for_who_waits_for_its_next_target(
    benches: FaultyBenches,
) -> None:
    """UNIT-2: it has no agent while its disk is written, and an order could have it switched off meanwhile."""
    twin, job, bench = moved(benches, shared=False)
    last_of_all(twin)
    benches.on("POST", lambda asked: asked.path.endswith("/clean") and asked.say(202, {}, Retry_After="60"))
    bench.report(job)
    waits_for(twin, "new")
    after(twin, 60, times=20)
    assert worker_of(twin, job).state is UnitState.DIRTY
    assert (order_of(twin).serial, "bench-8/on" in posts(benches)) == (1, True)


def test_one_that_only_its_agent_can_clean_is_switched_on_although_nobody_waits(benches: FaultyBenches) -> None:
    """UNIT-1: what its last worker still has, such as a quota, may be what others wait for."""
    twin, bench = to_be_cleaned(benches)
    after(twin, 60, times=20)
    assert "bench-7/on" in posts(benches)
    assert bench.clean().do == "forget"


@pytest.mark.parametrize("paused", ["old", "new"])
def test_not_while_the_target_that_it_has_now_is_paused_or_the_last(benches: FaultyBenches, paused: str) -> None:
    """An operator works at it."""
    twin, _ = to_be_cleaned(benches)
    site_apply.pause(twin.on, f"target/{paused}", paused=True)
    after(twin, 60, times=20)
    assert posts(benches) == []


@pytest.mark.parametrize("paused", ["old", "new"])
def test_nor_one_with_a_part_to_be_cleaned(benches: FaultyBenches, paused: str) -> None:
    """Once the pause is over, it is."""
    twin, job, _ = moved(benches, shared=True)
    site_apply.pause(twin.on, f"target/{paused}", paused=True)
    after(twin, 60, times=20)
    assert worker_of(twin, job).state is UnitState.DIRTY
    assert posts(benches) == ["bench-7/on"]
    site_apply.pause(twin.on, f"target/{paused}", paused=False)
    after(twin, 60, times=20)
    assert posts(benches)[:2] == ["bench-7/on"] * 2


def test_no_other_is_switched_on_while_one_that_nobody_has_is_about_to_come(benches: FaultyBenches) -> None:
    """Its agent hears of its next target when it asks again."""
    twin = site(benches)
    apply(twin, yard_and_lab(benches, ["bench-7", "bench-70"], ["bench-8"]))
    bench = Bench(twin)
    bench.ask()
    last_of_all(twin)
    apply(twin, yard_and_lab(benches, ["bench-70"], ["bench-7", "bench-8"]))
    job = waits_for(twin, "new")
    assert posts(benches) == []
    bench.ask()
    assert bench.do() == "work"
    assert bench.hello() == job


def test_a_worker_on_a_host_with_a_longer_name_is_not_on_it(benches: FaultyBenches) -> None:
    twin = site(benches)
    targets(twin, benches, ["bench-7", "bench-70"], ["bench-8"], shared=False)
    Bench(twin).ask()
    Bench(twin).ask(leaving=True)
    other = Bench(twin, "bench-70")
    other.ask()
    job = waits_for(twin, "old")
    assert other.do() == "work"
    assert other.hello() == job
    targets(twin, benches, ["bench-70"], ["bench-7"], shared=False)
    waits_for(twin, "new")
    assert posts(benches) == ["bench-7/on"]
