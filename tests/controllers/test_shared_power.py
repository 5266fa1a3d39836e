"""Hosts that jobs share, and a controller that switches them on and off, and cleans none of them. [SLOT-1] [JOB-2]"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from tests.controllers.benches import FaultyBenches
from tests.controllers.switched import ADA, NAMES, after, posts, site, text
from tests.usecases.lab_hosts import IMAGE, SHARED, Bench, Part, apply, states
from tests.usecases.steps import submit, worker_of


@pytest.fixture
def benches() -> Iterator[FaultyBenches]:
    made = FaultyBenches(*NAMES)
    yield made
    made.end()


def lab(benches: FaultyBenches, **changes: object) -> Twin:
    """Two hosts with four parts each, both away."""
    twin = site(benches)
    given = {"driver": "hosts", "url": benches.url, "secret": "env:RACK", "timeout": "1s", "image": IMAGE}
    apply(twin, site_toml(factories={"lab": given | {"power": {"idle": "10m"}}}, targets={"lab": SHARED | changes}))
    return twin


def order(twin: Twin, count: int, cpus: int) -> list[str]:
    jobs = [submit(twin, ADA, target="lab", machine={"cpus": cpus}) for _ in range(count)]
    twin.run()
    return jobs


def test_as_many_hosts_are_switched_on_as_the_jobs_fill(benches: FaultyBenches) -> None:
    twin = lab(benches)
    jobs = order(twin, 3, 1)
    assert posts(benches) == ["bench-7/on"]
    more = order(twin, 1, 2)
    assert posts(benches) == ["bench-7/on", "bench-8/on"]
    for name in ("bench-7", "bench-8"):
        Bench(twin, name).ask()
    assert len({worker_of(twin, job).lease.slot.partition("/")[0] for job in (*jobs, *more)}) == 2


def test_a_host_is_switched_off_when_all_its_parts_were_free_for_long(benches: FaultyBenches) -> None:
    twin = lab(benches)
    (job,) = order(twin, 1, 1)
    host = Bench(twin)
    host.ask()
    name, _, number = worker_of(twin, job).lease.slot.partition("/")
    part = Part(twin, name, int(number))
    assert part.do() == "work"
    assert part.hello() == job
    for _ in range(15):
        twin.pass_time(45)
        assert part.do() == "wait"
        part.beat(job)
        after(twin, 1)
    assert posts(benches) == ["bench-7/on"], "one of its parts is had"
    part.report(job)
    assert part.clean().do == "forget", "no controller cleans a part of it"
    after(twin, 1)
    for _ in range(14):
        twin.pass_time(45)
        host.ask()
        after(twin, 1)
    assert posts(benches) == ["bench-7/on", "bench-7/off"]
    assert {state for slot, state in states(twin).items() if slot.startswith("bench-7/")} == {"away"}


def test_a_host_that_jobs_share_no_more_serves_them_whole(benches: FaultyBenches) -> None:
    """Its parts go as they fall free, and then it has one slot again."""
    twin = lab(benches)
    (job,) = order(twin, 1, 1)
    host = Bench(twin)
    assert host.ask().parts == 4
    name, _, number = worker_of(twin, job).lease.slot.partition("/")
    part = Part(twin, name, int(number))
    assert part.do() == "work"
    apply(twin, text(benches, True, names=["bench-7"], image=IMAGE))
    assert (host.ask().parts, host.ask().busy) == (None, (int(number),))
    assert part.hello() == job
    part.report(job)
    assert part.clean().do == "forget"
    assert host.ask().busy is None
    mine = {slot: state for slot, state in states(twin).items() if slot.startswith("bench-7")}
    assert {slot for slot, state in mine.items() if state == "free"} == {"bench-7"}
    assert set(mine.values()) == {"free", "off"}


def test_of_many_parts_all_are_looked_at(benches: FaultyBenches) -> None:
    """Also where they are more than one read has: all hosts that were idle for long enough go off together."""
    names = [*NAMES, "bench-91", "bench-92"]
    for name in names[3:]:
        benches.service.hosts[name] = dict(benches.service.hosts["bench-9"])
    twin = lab(benches, names=names, share={"parts": 32})
    found = [Bench(twin, name) for name in names]
    for _ in range(16):
        for host in found:
            host.ask()
        after(twin, 45)
        if posts(benches):
            break
    assert sorted(posts(benches)) == sorted(f"{name}/off" for name in names)
