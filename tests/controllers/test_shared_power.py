"""Hosts that jobs share, and a controller that switches them on and off, and cleans none of them. [SLOT-1] [JOB-2]"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.pools.pools import pool_key
from penstock.domain.units.hosts import host_key
from penstock.domain.units.power import PowerOrder, power_key
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.kernel.rows import Key
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel
from penstock.usecases.pools import scheduler
from penstock.usecases.site import apply as site_apply
from penstock.usecases.units import maintenance
from penstock.usecases.workers import power
from tests.controllers.benches import FaultyBenches
from tests.controllers.switched import ADA, NAMES, after, order_of, posts, site, text
from tests.usecases.lab_hosts import IMAGE, SHARED, Bench, Part, apply, host_of, states
from tests.usecases.steps import job_of, submit, worker_of

ROOT = User(name="root", privileges=("admin",), created=START)


@pytest.fixture
def benches() -> Iterator[FaultyBenches]:
    made = FaultyBenches(*NAMES)
    yield made
    made.end()


def lab(benches: FaultyBenches, **changes: object) -> Twin:
    """Two hosts with four parts each, both away."""
    twin = site(benches)
    change(twin, benches, {"power": {"idle": "10m"}}, **changes)
    return twin


def change(twin: Twin, benches: FaultyBenches, power: Mapping[str, object], **changes: object) -> None:
    given = {"driver": "hosts", "url": benches.url, "secret": "env:RACK", "timeout": "1s", "image": IMAGE}
    apply(twin, site_toml(factories={"lab": {**given, **power}}, targets={"lab": SHARED | changes}))


def order(twin: Twin, count: int, cpus: int) -> list[str]:
    jobs = [submit(twin, ADA, target="lab", machine={"cpus": cpus}, retries=0) for _ in range(count)]
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


def begun(benches: FaultyBenches, **changes: object) -> tuple[Twin, str, Part]:
    """A job runs on a part of bench-7, which was switched on for it."""
    twin = lab(benches, **changes)
    (job,) = order(twin, 1, 1)
    Bench(twin).ask()
    part = Part(twin, "bench-7", int(worker_of(twin, job).lease.slot.partition("/")[2]))
    assert part.do() == "work"
    assert part.hello() == job
    return twin, job, part


def lost(benches: FaultyBenches) -> tuple[Twin, Unit]:
    """The host lost its power, and with it the job."""
    twin, _, part = begun(benches)
    after(twin, 45, times=6)
    assert host_of(twin).away
    return twin, unit_at(twin, part.worker)


def unit_at(twin: Twin, name: str) -> Unit:
    found = twin.store.get(unit_key(name), Unit)
    assert found
    return found


def cleaned(twin: Twin, worker: str) -> UnitState:
    """The host boots, and its agent does as it is told."""
    Bench(twin).ask()
    part = Part(twin, "bench-7", int(unit_at(twin, worker).lease.slot.partition("/")[2]))
    part.worker = worker
    assert part.clean().do == "forget"
    return unit_at(twin, worker).state


def test_a_host_that_lost_its_power_is_switched_on_to_clean_up(benches: FaultyBenches) -> None:
    """UNIT-1: nobody waits for it; but what the job left is there, and its parts are had."""
    twin, unit = lost(benches)
    assert unit.state is UnitState.DIRTY
    assert posts(benches) == ["bench-7/on"] * 2
    assert cleaned(twin, unit.id) is UnitState.GONE


def test_it_is_asked_for_again_if_it_does_not_come(benches: FaultyBenches) -> None:
    twin, unit = lost(benches)
    after(twin, 60, times=30)
    assert posts(benches)[1:] == ["bench-7/on"] * 3
    assert order_of(twin).missed == 2
    assert cleaned(twin, unit.id) is UnitState.GONE
    assert order_of(twin).missed == 0


def test_a_host_that_runs_a_job_is_not_switched_while_its_agent_is_away(benches: FaultyBenches) -> None:
    """JOB-2: one that did not come may be switched off first. Who waits gets another host."""
    twin, job, part = begun(benches)
    twin.store.rows[power_key("bench-7")] = replace(order_of(twin), missed=1)
    for _ in range(8):
        twin.pass_time(45)
        part.beat(job)
        after(twin, 1)
    assert host_of(twin).away
    order(twin, 1, 1)
    assert posts(benches) == ["bench-7/on", "bench-8/on"]
    assert job_of(twin, job).state is State.RUNNING


def test_so_it_is_where_nobody_knows_who_has_the_other_parts(
    benches: FaultyBenches, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin, job, part = begun(benches, names=["bench-7"])
    for _ in range(8):
        twin.pass_time(45)
        part.beat(job)
        after(twin, 1)
    order(twin, 1, 1)
    stocks = scheduler.read_stocks(twin.on, "target/lab")
    unknown = {name: replace(stock, had=None) for name, stock in stocks.items()}
    power.switch_on(twin.on, "target/lab", unknown)
    twin.run()
    assert posts(benches) == ["bench-7/on"]


@pytest.mark.parametrize(
    "why", ["an operator holds it", "the pool is paused", "nobody switches", "it is there", "it is no host any more"]
)
def test_a_host_stays_as_it_is(benches: FaultyBenches, why: str) -> None:
    """UNIT-3: an operator looks at what the job left; or works at the hosts; or there is nothing to switch."""
    twin, _, part = begun(benches)
    match why:
        case "an operator holds it":
            maintenance.hold(twin.on, ROOT, UnitKind.WORKER, part.worker, "to see", 7200)
        case "the pool is paused":
            site_apply.pause(twin.on, "target/lab", paused=True)
        case "nobody switches":
            change(twin, benches, {})
        case "it is no host any more":
            change(twin, benches, {"power": True}, names=["bench-8"])
    for _ in range(40):
        if why == "it is there":
            Bench(twin).ask()
        after(twin, 60)
    assert unit_at(twin, part.worker).state is UnitState.DIRTY
    assert (posts(benches), order_of(twin).serial) == (["bench-7/on"], 1)


def dirty(benches: FaultyBenches) -> tuple[Twin, Unit, Part]:
    """The worker of a host's part is lost, and that of another part is at work, while the host's agent is silent."""
    twin, _, part = begun(benches)
    (other,) = order(twin, 1, 1)
    Bench(twin).ask()
    second = Part(twin, "bench-7", int(worker_of(twin, other).lease.slot.partition("/")[2]))
    assert second.do() == "work"
    assert second.hello() == other
    for _ in range(8):
        twin.pass_time(45)
        second.beat(other)
        after(twin, 1)
    lost = unit_at(twin, part.worker)
    assert (lost.state, host_of(twin).away is None) == (UnitState.DIRTY, False)
    return twin, lost, second


def test_a_host_is_not_switched_on_to_clean_one_part_while_another_is_in_use(benches: FaultyBenches) -> None:
    """JOB-2: until that worker is lost too."""
    twin, lost, _ = dirty(benches)
    power.switch_on_to_clean(twin.on, lost)
    assert order_of(twin).serial == 1
    after(twin, 45, times=5)
    power.switch_on_to_clean(twin.on, lost)
    assert order_of(twin).serial == 2


def test_nor_for_the_next_job_while_an_operator_holds_what_is_left(benches: FaultyBenches) -> None:
    """UNIT-3: what the operator looks at could lose its power."""
    twin, job, part = begun(benches, names=["bench-7"])
    cancel.cancel(twin.on, ADA, job)
    maintenance.hold(twin.on, ROOT, UnitKind.WORKER, part.worker, "to see", 7200)
    after(twin, 45, times=6)
    assert (unit_at(twin, part.worker).state, host_of(twin).away is None) == (UnitState.DIRTY, False)
    order(twin, 1, 1)
    assert order_of(twin).serial == 1


def test_what_is_no_part_of_a_host_switches_none(benches: FaultyBenches) -> None:
    """A host of its own is cleaned by its controller; and a resource may have the name of a host's part."""
    twin, unit = lost(benches)
    serial = order_of(twin).serial
    twin.store.rows[power_key("bench-7")] = at_rest = replace(order_of(twin), due=None, again=None)
    whole = replace(unit, lease=replace(unit.lease, slot="bench-7"))
    for other in (whole, replace(unit, is_a=UnitKind.RESOURCE)):
        power.switch_on_to_clean(twin.on, other)
        assert order_of(twin) == at_rest
    power.switch_on_to_clean(twin.on, unit)
    assert order_of(twin).serial == serial + 1


@pytest.mark.parametrize("gone", [host_key("bench-7"), pool_key("target/lab")])
def test_what_is_gone_meanwhile_is_not_switched(benches: FaultyBenches, gone: Key) -> None:
    twin, unit = lost(benches)
    twin.store.rows[power_key("bench-7")] = at_rest = replace(order_of(twin), due=None, again=None)
    del twin.store.rows[gone]
    power.switch_on_to_clean(twin.on, unit)
    assert order_of(twin) == at_rest


@pytest.mark.parametrize("known", [True, False])
def test_who_has_a_host_is_read_only_where_it_matters(
    benches: FaultyBenches, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Of a host that is away, by a server that does not know it; and of each worker there, no other."""
    twin, lost, second = dirty(benches)
    Bench(twin, "bench-8").ask()
    order(twin, 1, 4)  # on bench-8, all of it
    order(twin, 1, 1)
    stocks = scheduler.read_stocks(twin.on, "target/lab")
    stocks = {name: replace(stock, had=stock.had if known else None) for name, stock in stocks.items()}
    held, units = reads(twin, monkeypatch)
    power.switch_on(twin.on, "target/lab", stocks)
    assert held == ([] if known else ["held#"])
    assert set(units) == {lost.id, second.worker}


def reads(twin: Twin, patch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """What is read from now on: the prefixes of held slots, and the ids of units that are read together."""
    held: list[str] = []
    units: list[str] = []
    find, rows_at = twin.store.find, twin.store.rows_at

    def found(pk: str, prefix: str, *how: Any, **more: Any) -> Any:
        held.extend([prefix] if prefix.startswith("held#") else [])
        return find(pk, prefix, *how, **more)

    def rows(keys: Sequence[Key]) -> Any:
        units.extend(key.pk.partition("#")[2] for key in keys if key.pk.startswith("unit#"))
        return rows_at(keys)

    patch.setattr(twin.store, "find", found)
    patch.setattr(twin.store, "rows_at", rows)
    return held, units


@pytest.mark.parametrize("missed", [None, 0, 1])
def test_hosts_that_nobody_shares_are_not_asked_who_has_them(
    benches: FaultyBenches, monkeypatch: pytest.MonkeyPatch, missed: int | None
) -> None:
    """Unless one did not come when it was switched on the last time: the next order may cost it its power."""
    twin = site(benches)
    if missed is not None:
        was = PowerOrder(host="bench-7", is_on=True, since=START, missed=missed, version=1)
        twin.store.rows[was.key] = was
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power, "switch_on", lambda *told: None)
        submit(twin, ADA, target="lab")
        twin.run()
    held, units = reads(twin, monkeypatch)
    power.switch_on(twin.on, "target/lab", scheduler.read_stocks(twin.on, "target/lab"))
    assert (held, units) == (["held#"] if missed else [], [])
    assert order_of(twin, "bench-8" if missed else "bench-7").serial == 1, "others are tried before one that failed"


def test_nor_is_anybody_while_all_hosts_are_there(benches: FaultyBenches, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = lab(benches)
    for name in ("bench-7", "bench-8"):
        Bench(twin, name).ask()
    order(twin, 3, 4)
    stocks = scheduler.read_stocks(twin.on, "target/lab")
    held, units = reads(twin, monkeypatch)
    power.switch_on(twin.on, "target/lab", {name: replace(stock, had=None) for name, stock in stocks.items()})
    assert (held, units) == ([], [])
