"""A host that the site divides otherwise while a job runs on it, and a controller that switches it. [JOB-2]"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units.power import PowerOrder, power_key
from penstock.domain.units.units import UnitState, unit_key
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.site import apply as site_apply
from penstock.usecases.workers import power
from tests.controllers.benches import FaultyBenches
from tests.controllers.switched import ADA, NAMES, after, order_of, posts, site
from tests.usecases.lab_hosts import IMAGE, SHARED, Bench, Part, apply, host_of, states
from tests.usecases.races import before_the_next_get
from tests.usecases.steps import job_of, submit, worker_of

HALVES = {"parts": 2}
QUARTERS = {"parts": 4}


@pytest.fixture
def benches() -> Iterator[FaultyBenches]:
    made = FaultyBenches(*NAMES)
    yield made
    made.end()


def divide(twin: Twin, benches: FaultyBenches, share: object, *names: str) -> None:
    """The site divides its one host so, or these; not at all with None."""
    given = {"driver": "hosts", "url": benches.url, "secret": "env:RACK", "timeout": "1s", "image": IMAGE}
    target = SHARED | {"names": list(names or ["bench-7"]), "share": share}
    found = {key: value for key, value in target.items() if value is not None}
    apply(twin, site_toml(factories={"lab": given | {"power": {"idle": "10m"}}}, targets={"lab": found}))


def waits(twin: Twin, cpus: int = 1) -> str:
    job = submit(twin, ADA, target="lab", machine={"cpus": cpus}, retries=0)
    twin.run()
    return job


def begins(twin: Twin, job: str) -> Bench:
    """The agent of a job's worker, which says hello."""
    number = worker_of(twin, job).lease.slot.partition("/")[2]
    found = Part(twin, "bench-7", int(number)) if number else Bench(twin)
    assert found.do() == "work"
    assert found.hello() == job
    return found


def changed(benches: FaultyBenches, before: object, share: object) -> tuple[Twin, str, Bench]:
    """A job runs on a slot that the host has no more; all that it has now is nobody's."""
    twin = site(benches)
    divide(twin, benches, before)
    jobs = [waits(twin) for _ in range(4 if before else 1)]
    Bench(twin).ask()
    found = {job: begins(twin, job) for job in jobs}
    *others, job = sorted(jobs, key=lambda job: worker_of(twin, job).lease.slot)
    for other in others:
        found[other].report(other)
        assert found[other].clean().do == "forget"
    divide(twin, benches, share)
    Bench(twin).ask()
    return twin, job, found[job]


def works(twin: Twin, agent: Bench, job: str, times: int, *, is_there: bool) -> None:
    """The job's agent is heard, and that of its host, if it is there."""
    for _ in range(times):
        twin.pass_time(40)
        if is_there:
            Bench(twin).ask()
        agent.beat(job)
        after(twin, 1)


CHANGES = pytest.mark.parametrize(
    ("before", "share"), [(QUARTERS, HALVES), (QUARTERS, None), (None, QUARTERS)], ids=["fewer", "whole", "shared"]
)


@CHANGES
@pytest.mark.parametrize("is_there", [True, False])
def test_it_is_not_switched_off_under_the_job(
    benches: FaultyBenches, before: object, share: object, is_there: bool
) -> None:
    """Whether its own agent is there, and all that it has now is free, or silent, and all of it is away."""
    twin, job, agent = changed(benches, before, share)
    works(twin, agent, job, 40, is_there=is_there)
    assert posts(benches) == ["bench-7/on"]
    assert job_of(twin, job).state is State.RUNNING


def test_it_is_idle_from_when_the_job_has_ended(benches: FaultyBenches) -> None:
    twin, job, agent = changed(benches, QUARTERS, HALVES)
    works(twin, agent, job, 40, is_there=True)
    agent.report(job)
    assert agent.clean().do == "forget"
    for switched in (["bench-7/on"], ["bench-7/on", "bench-7/off"]):
        for _ in range(8):
            Bench(twin).ask()
            after(twin, 55)
        assert posts(benches) == switched


def about_to_go(benches: FaultyBenches) -> tuple[Twin, Pool]:
    """The host, with two parts, was idle for so long that it is to be switched off now."""
    twin = site(benches)
    divide(twin, benches, HALVES)
    for _ in range(11):
        Bench(twin).ask()
        after(twin, 55)
    twin.pass_time(60)
    pool = twin.store.get(pool_key("target/lab"), Pool)
    assert pool
    return twin, pool


def test_one_that_gets_more_parts_while_it_is_switched_off_stays_on(benches: FaultyBenches) -> None:
    """SLOT-1: they would stay free, and be granted, while the host goes off."""
    twin, pool = about_to_go(benches)
    before_the_next_get(twin, PowerOrder, lambda: divide(twin, benches, QUARTERS))
    power.switch_idle_off(twin.on, pool)
    assert (order_of(twin).is_on, host_of(twin).away) == (True, None)
    assert [states(twin)[f"bench-7/{part}"] for part in (1, 2, 3, 4)] == ["free"] * 4


@pytest.mark.parametrize("change", ["none", "it is paused", "it is gone"])
def test_none_of_a_pool_that_changed_since_is_switched_off(benches: FaultyBenches, change: str) -> None:
    """An operator pauses it, or the site has it no more, after the sweep found it."""
    twin, pool = about_to_go(benches)
    match change:
        case "it is paused":
            site_apply.pause(twin.on, pool.name, paused=True)
        case "it is gone":
            del twin.store.rows[pool.key]
    power.switch_idle_off(twin.on, pool)
    assert order_of(twin).is_on is (change != "none")


def silent(benches: FaultyBenches, before: object, share: object) -> tuple[Twin, str, Bench]:
    """The host's own agent fell silent, after the host did not come for once: the next order may cost it its power."""
    twin, job, agent = changed(benches, before, share)
    works(twin, agent, job, 8, is_there=False)
    assert host_of(twin).away
    twin.store.rows[power_key("bench-7")] = replace(order_of(twin), missed=1)
    return twin, job, agent


@CHANGES
def test_one_that_did_not_come_is_not_switched_on_under_the_job(
    benches: FaultyBenches, before: object, share: object
) -> None:
    """One that did not come may be switched off first."""
    twin, job, _ = silent(benches, before, share)
    waits(twin)
    assert posts(benches) == ["bench-7/on"]
    assert job_of(twin, job).state is State.RUNNING


def test_once_the_job_is_lost_it_is_switched_on_for_who_waits(benches: FaultyBenches) -> None:
    """Only the host's agent can remove what the job left on a part, and it can't without power."""
    twin, job, _ = silent(benches, QUARTERS, None)
    waits(twin)
    after(twin, 45, times=5)
    assert job_of(twin, job).is_settled
    assert (order_of(twin).serial, "bench-7/on") == (2, posts(benches)[-1])


def test_it_is_not_switched_on_to_clean_a_part_while_the_whole_of_it_is_in_use(benches: FaultyBenches) -> None:
    """What was a part has something that a job left, and the job on the whole of it must not lose its power. Nor must
    the host, while its controller cleans all of it; unless there is none any more.
    """
    twin, job, _ = silent(benches, None, QUARTERS)
    whole = worker_of(twin, job)
    ended = replace(whole, state=UnitState.DIRTY)
    left = replace(ended, id=f"{whole.id[:-4]}left", lease=replace(whole.lease, slot="bench-7/1"))
    for after_that, serial in ((whole, 1), (ended, 1), (replace(ended, maker="gone"), 2)):
        twin.store.rows[unit_key(whole.id)] = after_that
        power.switch_on_to_clean(twin.on, left)
        assert order_of(twin).serial == serial


@pytest.mark.parametrize(("before", "share"), [(QUARTERS, None), (None, QUARTERS)], ids=["whole", "shared"])
def test_another_is_switched_on_while_somebody_has_it_as_it_was(
    benches: FaultyBenches, before: object, share: object
) -> None:
    """QUEUE-1: it is there, but gives nothing yet."""
    twin, _, _ = changed(benches, before, share)
    divide(twin, benches, share, "bench-7", "bench-8")
    waits(twin)
    assert posts(benches) == ["bench-7/on", "bench-8/on"]


@pytest.mark.parametrize(("share", "orders"), [(HALVES, []), (QUARTERS, ["bench-7/on"])])
def test_it_is_not_switched_on_for_a_job_that_wants_more_parts_than_it_has(
    benches: FaultyBenches, share: object, orders: list[str]
) -> None:
    """It came when the host had as many."""
    twin = site(benches)
    divide(twin, benches, QUARTERS)
    site_apply.pause(twin.on, "target/lab", paused=True)
    waits(twin, 4)
    divide(twin, benches, share)
    site_apply.pause(twin.on, "target/lab", paused=False)
    twin.run()
    after(twin, 60)
    assert posts(benches) == orders
