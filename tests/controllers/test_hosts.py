"""Hosts that a controller cleans from outside, and what happens if it cannot. [UNIT-1] [UNIT-2] [JOB-2] [SLOT-3]"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Outcome
from penstock.domain.pools.pools import Slot, SlotState
from penstock.domain.units.units import CleanProof, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.drivers import MAKER, Registry
from penstock.drivers.factories.hosts import HostsFactory
from penstock.kernel.errors import Misconfigured, RateLimited, Refused, Unknown, Unsatisfiable
from penstock.kernel.rows import Create
from penstock.ports import NotYet, UnitContext
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep
from penstock.usecases.units import maintenance
from penstock.usecases.workers import presence
from tests.controllers.benches import FaultyBenches
from tests.usecases.lab_hosts import LEASE, Bench, apply, host_of, states
from tests.usecases.steps import finish, hello, job_of, submit, worker_of
from tests.wells.faulty import ANYBODY
from tests.wells.service import NOW, SURROUNDINGS

ADA = User(name="ada", created=START)
ROOT = User(name="root", privileges=("admin",), created=START)
GOOD = {"url": "https://lab.example.com/penstock", "secret": "secretsmanager:penstock/lab"}


@pytest.fixture
def benches() -> Iterator[FaultyBenches]:
    made = FaultyBenches("bench-7", "bench-8")
    yield made
    made.end()


def factory(benches: FaultyBenches, host: str = "bench-7", fence: int = 3) -> HostsFactory:
    given = {"url": benches.url, "secret": "env:RACK", "timeout": "1s"}
    made = HostsFactory(given, {**SURROUNDINGS, MAKER: "lab"})
    return made.with_context(UnitContext(host, fence)) if host else made


# The driver


def test_settings_are_those_of_a_controller_or_none() -> None:
    assert HostsFactory.complaints({}) == HostsFactory.complaints(GOOD) == []
    assert any("no_such" in each for each in HostsFactory.complaints({"no_such": 1}))
    assert any("secret" in each for each in HostsFactory.complaints({"url": GOOD["url"]}))
    with pytest.raises(Misconfigured, match="secret"):
        HostsFactory({"url": GOOD["url"]}, {MAKER: "lab"})
    assert isinstance(Registry({}).factory("hosts", {}).destroy("w-1", NOW), NotYet)


def test_a_host_is_clean_when_its_status_says_so_too(benches: FaultyBenches) -> None:
    """UNIT-2"""
    done = factory(benches).destroy("w-1", NOW)
    assert isinstance(done, CleanProof)
    assert "written with helios-2.0" in done.checked
    assert "its status agrees, with fence 3" in done.checked
    assert benches.written == {"bench-7": 3}
    assert [method for method, _ in benches.asked] == ["POST", "GET"]


def test_without_a_host_nobody_is_asked(benches: FaultyBenches) -> None:
    """A stray has none."""
    assert isinstance(factory(benches, "").destroy("w-1", NOW), NotYet)
    assert not benches.asked


def test_what_takes_a_while_is_waited_for_and_the_job_stops_by_itself_meanwhile(benches: FaultyBenches) -> None:
    benches.on("POST", lambda asked: asked.say(202, {"reason": "its disk is written"}, Retry_After="90"))
    assert factory(benches).destroy("w-1", NOW) == NotYet(90, "its disk is written", stops_itself=True)


def test_a_call_for_an_older_lease_changes_nothing(benches: FaultyBenches) -> None:
    """SLOT-3"""
    factory(benches, fence=8).destroy("w-2", NOW)
    late = factory(benches, fence=7).destroy("w-1", NOW)
    assert isinstance(late, NotYet)
    assert "another lease" in str(late.reason)
    assert benches.written == {"bench-7": 8}


@pytest.mark.parametrize("odd", ANYBODY)
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_nothing_odd_is_taken_for_a_proof(benches: FaultyBenches, method: str, odd: str) -> None:
    """UNIT-2"""
    fault, error = ANYBODY[odd]
    benches.on(method, fault)
    if error is Unknown:
        done = factory(benches).destroy("w-1", NOW)
        assert isinstance(done, NotYet)
        assert done.stops_itself
        assert "its controller failed" in str(done.reason)
    else:
        with pytest.raises(error):
            factory(benches).destroy("w-1", NOW)
    benches.let_go.set()


@pytest.mark.parametrize("lie", [{"state": "ready"}, {"fence": 2}, {"digest": "another"}])
def test_who_contradicts_itself_gives_no_proof(benches: FaultyBenches, lie: dict[str, Any]) -> None:
    """UNIT-2"""
    benches.on("GET", lambda asked: asked.say(200, {**benches.service.status("bench-7"), **lie}))
    with pytest.raises(Unsatisfiable, match="but its status is"):
        factory(benches).destroy("w-1", NOW)


def test_a_controller_that_wants_to_be_left_alone_is(benches: FaultyBenches) -> None:
    benches.on("POST", lambda asked: asked.say(429, {}, Retry_After="60"))
    with pytest.raises(RateLimited):
        factory(benches).destroy("w-1", NOW)


def test_it_is_asked_for_hosts_and_nothing_else(benches: FaultyBenches) -> None:
    from tests.controllers.lab import factory as making

    with pytest.raises(Misconfigured, match="405"):
        making(benches.url).list()


# The whole


def site(benches: FaultyBenches) -> Twin:
    """Two hosts that the controller cleans, of which bench-7 is present."""
    made = Twin()
    plugged = made.drivers.factory
    given = {"url": benches.url, "secret": "env:RACK", "timeout": "1s"}

    def plug(driver: str, settings: Any, name: str = "") -> Any:
        return HostsFactory(settings, {**SURROUNDINGS, MAKER: name}) if settings else plugged(driver, settings, name)

    made.drivers.factory = plug  # type: ignore[method-assign]
    lab = {"factory": "lab", "names": ["bench-7", "bench-8"]}
    apply(made, site_toml(factories={"lab": {"driver": "hosts", **given}}, targets={"lab": lab}))
    return made


def ended(twin: Twin, bench: Bench) -> str:
    """A job ran on a bench, whose agent has not said anything since."""
    job = submit(twin, ADA, target="lab")
    twin.run()
    assert bench.do() == "work"
    assert bench.hello() == job
    bench.report(job)
    return job


def after(twin: Twin, seconds: int, times: int = 1) -> None:
    for _ in range(times):
        twin.pass_time(seconds)
        sweep.sweep(twin.on)
        twin.run()


def test_a_host_is_written_anew_between_two_jobs_and_comes_back_as_another_machine(benches: FaultyBenches) -> None:
    """UNIT-2: its slot is away until an agent connects, which has nothing of the one before, and need not wait."""
    twin = site(benches)
    bench = Bench(twin)
    bench.ask()
    commit, came = twin.store.commit, list[SlotState]()

    def seen(changes: Any) -> bool:
        done = commit(changes)
        came.extend(each.row.state for each in changes if done and isinstance(each, Create) and type(each.row) is Slot)
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.store, "commit", seen)
        job = ended(twin, bench)
    assert came == [SlotState.HELD, SlotState.AWAY], "never free, not even for a moment"
    worker = worker_of(twin, job)
    assert worker.state is UnitState.GONE
    assert "written with helios-2.0" in str(worker.cleaning.proof)
    assert benches.written == {"bench-7": worker.lease.fence}
    assert states(twin) == {"bench-7": "away", "bench-8": "away"}
    assert host_of(twin).away is not None
    waits = submit(twin, ADA, target="lab")
    twin.run()
    anew = Bench(twin, session="n")
    assert anew.do() == "wait"
    assert anew.do() == "work"
    assert anew.hello() == waits
    with pytest.raises(Refused, match="another agent"):
        bench.ask()


def test_an_agent_that_was_not_written_over_forgets_its_worker(benches: FaultyBenches) -> None:
    """A controller may clean in place, and keep the agent's files."""
    twin = site(benches)
    bench = Bench(twin)
    bench.ask()
    ended(twin, bench)
    bench.stage = "ended"
    assert bench.do() == "forget"
    assert states(twin)["bench-7"] == "free"


def test_the_word_of_a_host_frees_nothing_while_its_controller_has_not_cleaned_it(benches: FaultyBenches) -> None:
    """UNIT-2: whoever was root on it can say anything."""
    twin = site(benches)
    bench = Bench(twin)
    bench.ask()
    benches.on("POST", lambda asked: asked.say(202, {"reason": "its disk is written"}, Retry_After="60"))
    job = ended(twin, bench)
    assert bench.clean().do == "wait"
    assert bench.do(stage="ended", trouble="the disk is full") == "wait"
    assert states(twin)["bench-7"] == "held"
    assert worker_of(twin, job).state is UnitState.DIRTY
    benches.faults.clear()
    after(twin, 61)
    assert worker_of(twin, job).state is UnitState.GONE
    assert bench.do() == "forget"
    assert states(twin)["bench-7"] == "free"


def test_a_host_that_goes_silent_in_a_job_is_written_anew_and_the_job_goes_on_elsewhere(
    benches: FaultyBenches,
) -> None:
    """JOB-2: nobody has to walk to the machine."""
    twin = site(benches)
    one, two = Bench(twin), Bench(twin, "bench-8")
    one.ask()
    job = submit(twin, ADA, target="lab")
    twin.run()
    assert one.do() == "work"
    assert one.hello() == job
    two.ask()
    for _ in range(6):
        after(twin, LEASE // 2)
        two.ask()
    assert benches.written.keys() == {"bench-7"}
    assert two.worker
    assert two.hello() == job
    two.report(job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_a_controller_that_is_down_does_not_keep_the_jobs_next_attempt(benches: FaultyBenches) -> None:
    """JOB-2: the agent stops the job by itself when its lease is over, whatever the controller says."""
    twin = site(benches)
    one, two = Bench(twin), Bench(twin, "bench-8")
    one.ask()
    job = submit(twin, ADA, target="lab")
    twin.run()
    assert one.do() == "work"
    one.hello()
    two.ask()
    benches.on("POST", lambda asked: asked.raw(502, b"<html>"))
    for _ in range(8):
        after(twin, LEASE // 2)
        two.ask()
    assert two.worker
    assert two.hello() == job
    assert states(twin)["bench-7"] == "held"


@pytest.mark.parametrize("code", ["unsatisfiable", ""])
def test_a_host_that_cannot_be_written_is_kept_by_itself_and_shown_until_it_is_repaired(
    benches: FaultyBenches, code: str
) -> None:
    """UNIT-1: it keeps its slot, and gets no job; another host does."""
    twin = site(benches)
    bench = Bench(twin)
    bench.ask()
    benches.on("POST", lambda asked: asked.say(422, {"code": code, "detail": "its disk does not answer"}))
    job = ended(twin, bench)
    after(twin, 601, times=3)
    worker = worker_of(twin, job)
    assert worker.state is UnitState.QUARANTINED
    assert "its disk does not answer" in str(worker.step.reason)
    assert states(twin)["bench-7"] == "held"
    assert bench.do() == "wait"
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    benches.faults.clear()
    maintenance.release(twin.on, ROOT, UnitKind.WORKER, worker.id)
    after(twin, 61)
    assert benches.written == {"bench-7": worker.lease.fence}
    assert states(twin)["bench-7"] == "away"
    assert bench.do() == "forget"


def test_a_broken_host_is_kept_before_anything_is_written(benches: FaultyBenches) -> None:
    """UNIT-1: somebody may want to see it as it is."""
    twin = site(benches)
    bench = Bench(twin)
    bench.ask()
    job = submit(twin, ADA, target="lab")
    twin.run()
    assert bench.do() == "work"
    bench.hello()
    unit = worker_of(twin, job)
    twin.store.rows[unit.key] = replace(unit, health=replace(unit.health, broken="its memory is"))
    bench.report(job)
    assert worker_of(twin, job).state is UnitState.QUARANTINED
    assert benches.written == {}


def test_a_host_that_signs_off_while_its_slot_is_given_back_is_away(benches: FaultyBenches) -> None:
    """JOB-2: nothing is granted on a machine whose agent has gone, also if it goes between two reads."""
    twin = site(benches)
    bench = Bench(twin)
    bench.ask()
    benches.on("POST", lambda asked: asked.say(202, {}, Retry_After="60"))
    ended(twin, bench)
    benches.faults.clear()
    commit, left, came = twin.store.commit, iter([True]), list[SlotState]()

    def leaves_first(changes: Any) -> bool:
        slots = [each.row.state for each in changes if isinstance(each, Create) and isinstance(each.row, Slot)]
        if slots and next(left, False):
            presence.sign_off(twin.on, host_of(twin))
        done = commit(changes)
        came.extend(slots if done else ())
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence, "mark_cleaned", lambda on, name: None)  # as if the agent came back behind it
        patch.setattr(twin.store, "commit", leaves_first)
        after(twin, 61)
    assert next(left, None) is None
    assert came == [SlotState.AWAY], "not even for a moment"
    assert states(twin)["bench-7"] == "away"


def test_a_worker_that_is_no_host_and_a_resource_mark_nobody(benches: FaultyBenches) -> None:
    """The proofs of other drivers, one of them for a slot with the name of a host."""
    twin = site(benches)
    text = site_toml(
        factories={"hand": "hand", "lab": "hosts"},
        targets={"default": {"factory": "hand", "limit": 1}, "lab": {"factory": "lab", "names": ["bench-7"]}},
        wells={"hand": "hand"},
        resources={"bench": {"well": "hand", "names": ["bench-7"]}},
    )
    apply(twin, text)
    Bench(twin).ask()
    seen = list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence, "mark_cleaned", lambda on, name: seen.append(name))
        job = submit(twin, ADA, resources=["bench"])
        twin.run()
        hello(twin, job)
        finish(twin, job)
        after(twin, 61, times=2)
    assert seen == []
    assert states(twin, "target/default") == {"1": "free"}
    assert states(twin, "resource/bench") == {"bench-7": "free"}


def test_a_host_whose_factory_the_site_has_no_more_is_free_by_its_own_word(benches: FaultyBenches) -> None:
    """Nobody else could say it."""
    twin = site(benches)
    bench = Bench(twin)
    bench.ask()
    benches.on("POST", lambda asked: asked.say(202, {}, Retry_After="60"))
    job = ended(twin, bench)
    apply(twin, site_toml(targets={"linux": {"limit": 1}}))
    assert bench.clean().do == "forget"
    assert worker_of(twin, job).state is UnitState.GONE
