"""A host that jobs share from now on, or no longer: nothing of it is granted before its last division is unused.

[JOB-2] [QUEUE-1]
"""

from __future__ import annotations

import pytest

from penstock.domain.jobs.jobs import Outcome
from penstock.domain.pools import capacity
from penstock.domain.pools.pools import Pool, Slot, SlotState, collection, pool_key
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs import jobs
from penstock.usecases.pools import resize
from tests.usecases.lab_hosts import IMAGE, SHARED, Bench, Part, apply, lab, states
from tests.usecases.steps import job_of, submit, sweep, worker_of


def site(*, share: object = False, names: tuple[str, ...] = ("bench-7",)) -> str:
    target = {**SHARED, "names": list(names), "share": share}
    return site_toml(factories={"lab": {"driver": "hosts", "image": IMAGE}}, targets={"lab": target})


def order(twin: Twin, user: User) -> str:
    job = submit(twin, user, target="lab")
    twin.run()
    return job


def part_of(twin: Twin, job: str) -> Part:
    host, _, number = worker_of(twin, job).lease.slot.partition("/")
    return Part(twin, host, int(number))


def is_granted(twin: Twin, job: str) -> bool:
    return any(slot.job == job for slot in twin.store.find(collection("target/lab"), f"{SlotState.HELD}#", Slot))


def is_due(twin: Twin) -> bool:
    pool = twin.store.get(pool_key("target/lab"), Pool)
    assert pool
    return pool.due is not None


def at_work(text: str, ada: User) -> tuple[Twin, Bench, str]:
    """A host that works for a whole job."""
    twin = lab(text)
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada)
    assert bench.do() == "work"
    assert bench.hello() == job
    return twin, bench, job


def test_a_host_that_is_shared_from_now_on_gives_no_part_before_its_last_job_is_cleaned_up(ada: User) -> None:
    twin, bench, first = at_work(site(), ada)
    apply(twin, site(share=True))
    assert states(twin) == {"bench-7": "held"}
    waits = order(twin, ada)
    assert not is_granted(twin, waits)
    why = jobs.explain(twin.on, job_of(twin, waits))
    assert f"held are bench-7 by {first}" in why.summary
    assert str(why.unblocks[0]) == f"bench-7 is given back by {first}"
    bench.report(first)
    assert not is_granted(twin, waits), "it is not clean yet"
    bench.clean()
    assert is_granted(twin, waits)
    assert part_of(twin, waits).run() == waits
    assert states(twin) == {"bench-7": "off", **{f"bench-7/{number}": "free" for number in range(1, 5)}}
    assert job_of(twin, waits).end.outcome is Outcome.SUCCEEDED


def test_a_host_that_is_shared_no_longer_is_granted_once_all_its_parts_are_free(ada: User) -> None:
    twin = lab(site(share=True))
    Bench(twin).ask()
    first = [part_of(twin, order(twin, ada)) for _ in range(2)]
    running = [(part, part.ask() and part.hello()) for part in first]
    apply(twin, site())
    waits = order(twin, ada)
    assert [str(each) for each in jobs.explain(twin.on, job_of(twin, waits)).unblocks] == [
        f"{part.name}/{part.part} is given back by {job}" for part, job in running
    ]
    for part, job in running:
        assert not is_granted(twin, waits)
        part.report(job)
        part.clean()
    assert is_granted(twin, waits)
    assert not is_due(twin)
    assert Bench(twin).run() == waits


def test_a_host_of_one_division_asks_for_no_resize_when_it_is_given_back(ada: User) -> None:
    """That would be a message, and its reads, for each job of each host."""
    twin, bench, first = at_work(site(), ada)
    bench.report(first)
    asked: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.queues, "schedule", asked.append)
        bench.clean()
    assert states(twin) == {"bench-7": "free"}
    assert asked == []


def test_the_sweep_makes_its_slots_if_the_message_is_lost(ada: User) -> None:
    """QUEUE-1"""
    twin, bench, first = at_work(site(), ada)
    apply(twin, site(share=True))
    for _ in range(3):
        bench.ask()
        bench.beat(first)
        sweep(twin, 60)
    assert states(twin) == {"bench-7": "held"}
    waits = order(twin, ada)
    bench.report(first)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.queues, "schedule", lambda message: None)
        bench.clean()
    assert not is_granted(twin, waits)
    sweep(twin, 60)
    assert is_granted(twin, waits)


def test_a_site_that_takes_it_back_finds_the_host_as_it_was(ada: User) -> None:
    twin, bench, first = at_work(site(), ada)
    apply(twin, site(share=True))
    apply(twin, site())
    bench.report(first)
    bench.clean()
    assert states(twin) == {"bench-7": "free"}


def test_the_other_hosts_of_a_target_are_divided_at_once(ada: User) -> None:
    twin, _, _ = at_work(site(), ada)
    apply(twin, site(share=True, names=("bench-7", "bench-8")))
    Bench(twin, "bench-8").ask()
    assert is_granted(twin, order(twin, ada))


def test_a_part_that_was_granted_beside_the_whole_host_stays(ada: User) -> None:
    """As an older version did; what is free of the host goes until the whole is given back."""
    twin, bench, first = at_work(site(), ada)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capacity, "in_transition", lambda pool, slots: set())
        apply(twin, site(share=True))
        assert is_granted(twin, order(twin, ada))
    resize.resize(twin.on, "target/lab")
    assert sorted(states(twin).values()) == ["held", "held", "off", "off", "off"]
    bench.report(first)
    bench.clean()
    assert sorted(states(twin).values()) == ["free", "free", "free", "held", "off"]
