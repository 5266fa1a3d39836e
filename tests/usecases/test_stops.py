"""Stops of the whole site, factories and wells: nothing new is granted, and what runs goes on. [UNIT-3]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain import metrics
from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.pools.stops import Stop, stop_key
from penstock.domain.units.units import Unit, UnitKind, UnitLease, UnitState
from penstock.domain.users.audit import Entry, Wanted
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create, Key, Row
from penstock.system import System
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import jobs
from penstock.usecases.site import apply, stops
from penstock.usecases.units import maintenance
from penstock.usecases.users import audit
from tests.usecases.exact import commits, put, sent, site
from tests.usecases.races import after_the_next_commit, before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, submit, sweep, told, worker_of
from tests.usecases.warm import unit_of, worker_at_rest

WARM = {"min": 0, "max": 2, "idle": "1h"}


def text(*targets: str, two: str = "two") -> str:
    """A site whose targets are linux, of factory `one`, mac, of `two`, and others of `one`."""
    return site_toml(
        factories={"one": "hand", two: "hand"},
        targets={
            "linux": {"factory": "one", "limit": 2, "warm": WARM},
            "mac": {"factory": two, "limit": 2},
            **{name: {"factory": "one", "limit": 1} for name in targets},
            "default": "linux",
        },
        wells={"locks": "lock", "spares": "lock"},
        resources={"bench": {"well": "locks", "names": ["bench-1"]}},
    )


TEXT = text()


@pytest.fixture
def twin() -> Twin:
    return site(TEXT)


def pool(twin: Twin, name: str) -> Pool:
    found = twin.store.get(pool_key(name), Pool)
    assert found
    return found


def paused(twin: Twin) -> list[str]:
    return [each.name for each in apply.every_pool(twin.on) if each.is_paused]


def deeds(twin: Twin) -> list[Entry]:
    return audit.list_entries(twin.on, Wanted(), 100, "")[0]


def test_while_the_site_is_paused_jobs_run_on_and_others_wait_and_know_why(twin: Twin, ada: User) -> None:
    running = submit(twin, ada)
    twin.run()
    hello(twin, running)
    stops.stop(twin.on, "root", "site", "the network is rebuilt")
    waiting = [submit(twin, ada, target=target) for target in ("linux", "mac")]
    twin.run()
    assert paused(twin) == ["resource/bench", "target/linux", "target/mac"]
    assert [job_of(twin, job).state for job in waiting] == [State.ACQUIRING] * 2
    why = jobs.explain(twin.on, job_of(twin, waiting[1]))
    assert "target/mac is paused with the whole site by root at " in why.summary
    assert ": the network is rebuilt; position 1 in the queue" in why.summary
    assert str(why.unblocks[0]) == "root or another operator resumes the whole site"
    finish(twin, running)
    assert job_of(twin, running).end.outcome is Outcome.SUCCEEDED
    stops.lift(twin.on, "root", "site")
    twin.run()
    assert [worker_of(twin, job).state for job in waiting] == [UnitState.CREATING] * 2
    assert paused(twin) == []
    assert [(entry.did, entry.what, entry.detail) for entry in deeds(twin)][:2] == [
        ("resume", "site", ""),
        ("pause", "site", "the network is rebuilt"),
    ]


def test_a_factory_that_is_disabled_stops_its_own_targets_only(twin: Twin, ada: User) -> None:
    stops.stop(twin.on, "root", "factory/one", "no image")
    jobs = [submit(twin, ada, target=target) for target in ("linux", "mac")]
    twin.run()
    assert paused(twin) == ["target/linux"]
    assert job_of(twin, jobs[0]).state is State.ACQUIRING
    assert worker_of(twin, jobs[1]).state is UnitState.CREATING


def test_a_well_that_is_disabled_stops_its_resource_types_only(twin: Twin) -> None:
    stops.stop(twin.on, "root", "well/locks", "inventory")
    assert paused(twin) == ["resource/bench"]


def test_several_stops_and_a_pause_are_lifted_each_by_itself(twin: Twin) -> None:
    stops.stop(twin.on, "root", "factory/one", "no image")
    stops.stop(twin.on, "bert", "site", "a move")
    apply.pause(twin.on, "target/linux", paused=True, by="carl", reason="slow")
    linux = pool(twin, "target/linux")
    assert [(each.scope, each.by) for each in linux.stops] == [("factory/one", "root"), ("site", "bert")]
    assert linux.paused_by
    assert linux.paused_by.by == "carl"
    stops.lift(twin.on, "root", "site")
    assert paused(twin) == ["target/linux"]
    apply.pause(twin.on, "target/linux", paused=False)
    assert pool(twin, "target/linux").is_paused
    stops.lift(twin.on, "root", "factory/one")
    assert paused(twin) == []


def test_a_drained_factory_loses_what_is_idle_at_once_and_the_rest_after_its_job(twin: Twin, ada: User) -> None:
    job, other = submit(twin, ada), submit(twin, ada, target="mac")
    twin.run()
    hello(twin, other)
    hello(twin, job)
    idle, busy = worker_at_rest(twin, ada), worker_of(twin, job).id
    stops.stop(twin.on, "root", "factory/one", "a new image", drains=True)
    twin.run()
    assert unit_of(twin, idle.worker).state is UnitState.GONE
    assert unit_of(twin, busy).state is UnitState.READY
    assert str(unit_of(twin, busy).drain).startswith("drained by root")
    finish(twin, job)
    sweep(twin)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert unit_of(twin, busy).state is UnitState.GONE
    assert worker_of(twin, other).drain is None
    assert (deeds(twin)[0].did, deeds(twin)[0].what) == ("drain", "factory one")


def test_a_pool_that_is_new_or_changes_its_factory_follows(twin: Twin) -> None:
    stops.stop(twin.on, "root", "factory/one", "no image")
    apply.apply(twin.on, "root", text("new", two="one"), "site.toml")
    assert paused(twin) == ["target/linux", "target/mac", "target/new"]
    apply.apply(twin.on, "root", TEXT, "site.toml")
    assert paused(twin) == ["target/linux"]
    assert pool(twin, "target/new").limit == 0, "what left the site grants nothing anyway"


def test_a_stop_is_brought_to_the_pools_once_more_and_then_nothing_is_due(twin: Twin) -> None:
    stops.stop(twin.on, "root", "site", "a move")
    row = twin.store.get(stop_key("site"), Stop)
    assert row
    assert (row.is_spread, row.due) == (True, twin.on.world.now() + timedelta(minutes=1))
    was = pool(twin, "target/mac")
    twin.store.rows[was.key] = replace(was, stops=())  # the list of pools lacked it
    sweep(twin)
    assert pool(twin, "target/mac").is_paused
    row = twin.store.get(stop_key("site"), Stop)
    assert row
    assert row.due is None
    assert [each.scope for each in stops.list_stops(twin.on)] == ["site"]
    stops.lift(twin.on, "root", "site")
    assert stops.find(twin.on, "site") is None
    sweep(twin)
    assert stops.list_stops(twin.on) == []
    assert paused(twin) == []


def test_what_its_function_did_not_finish_the_sweep_does(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(stops, "spread", lambda *given: None)
        stops.stop(twin.on, "root", "site", "a move")
    assert paused(twin) == []
    sweep(twin)
    assert paused(twin) == ["resource/bench", "target/linux", "target/mac"]


def test_what_takes_too_long_goes_on_with_the_sweep(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(twin)  # the site's rollout ends
    with monkeypatch.context() as patch:
        patch.setattr(stops, "WITHIN", timedelta(0))
        stops.stop(twin.on, "root", "site", "a move")
        assert paused(twin) == []
        twin.pass_time(61)
        usecases_sweep.sweep(twin.on)
        assert "site" in [message.get("stop") for _, _, message in twin.queues.messages]
    twin.run()
    assert paused(twin) == ["resource/bench", "target/linux", "target/mac"]


def stop_of(twin: Twin, scope: str) -> Stop:
    found = twin.store.get(stop_key(scope), Stop)
    assert found
    return found


def units_of(twin: Twin) -> list[Unit]:
    return [row for row in twin.store.rows.values() if isinstance(row, Unit)]


def many_units(twin: Twin, count: int, well: str = "locks") -> None:
    """Resources of a well: every third is in the listing, and the others in all shards of the due index."""
    for row in [
        Unit(
            id=f"r-{number:026d}", is_a=UnitKind.RESOURCE, maker=well, type="bench", state=UnitState.READY,
            since=twin.world.now(), due=None if number % 3 == 0 else twin.world.now() + timedelta(days=9),
            lease=UnitLease(job=f"J{number}", attempt=1, order=1, pool="resource/bench", slot="bench-1", fence=1),
        )
        for number in range(count)
    ]:  # fmt: skip
        assert twin.store.commit([Create(row)])


def each_read_takes(twin: Twin, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Each read of several units takes so long."""
    rows_at, listed = twin.store.rows_at, twin.store.listed

    def slowly(keys: Sequence[Key]) -> Mapping[Key, Row]:
        twin.pass_time(seconds if any(key.sk == "unit" for key in keys) else 0)
        return rows_at(keys)

    def listed_slowly(name: str, *given: Any, **how: Any) -> list[Any]:
        twin.pass_time(seconds if name == "resources" else 0)
        return listed(name, *given, **how)

    monkeypatch.setattr(twin.store, "rows_at", slowly)
    monkeypatch.setattr(twin.store, "listed", listed_slowly)


def messages_of_a_stop(twin: Twin) -> list[dict[str, Any]]:
    return [message for queue, message in sent(twin) if queue == "sweep" and "stop" in message]


def test_a_drain_of_more_units_than_can_be_read_in_one_call_ends(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call goes on behind what the one before it reached."""
    many_units(twin, 120)
    each_read_takes(twin, monkeypatch, 4)
    stops.stop(twin.on, "root", "well/locks", "they are worn", drains=True)
    message, calls = {"stop": "well/locks"}, 0
    while message:
        usecases_sweep.go_on(twin.on, message, twin.world.now() + timedelta(minutes=9))
        calls, message = calls + 1, next(iter(messages_of_a_stop(twin)), {})
        assert calls < 20
    assert calls > 1
    assert [unit.drain is not None for unit in units_of(twin)] == [True] * 120
    assert stop_of(twin, "well/locks").is_spread


def each_drain_fails_of(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Some units cannot be drained."""
    drain = maintenance.drain_with_maker

    def faulty(on: System, unit: Unit, *given: Any) -> None:
        assert int(unit.id[2:]) not in numbers, "it is too large"
        drain(on, unit, *given)

    monkeypatch.setattr(maintenance, "drain_with_maker", faulty)


def test_a_unit_that_cannot_be_drained_costs_only_itself(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted, and the drain stays due: also where a later call comes to the end."""
    many_units(twin, 120)
    with monkeypatch.context() as patch:
        each_drain_fails_of(patch, 0, 119)
        each_read_takes(twin, patch, 4)
        stops.stop(twin.on, "root", "well/locks", "they are worn", drains=True)
        message = {"stop": "well/locks"}
        while message:
            usecases_sweep.go_on(twin.on, message, twin.world.now() + timedelta(minutes=9))
            message = next(iter(messages_of_a_stop(twin)), {})
    assert sorted(int(unit.id[2:]) for unit in units_of(twin) if not unit.drain) == [0, 119]
    assert not stop_of(twin, "well/locks").is_spread
    assert sum(twin.metrics.of(metrics.FAILED_NUDGES)) == 3, "the first call, the one that begins anew, and the last"
    sweep(twin, 121)
    assert all(unit.drain for unit in units_of(twin))
    assert stop_of(twin, "well/locks").is_spread


def test_a_pool_that_cannot_be_stopped_costs_only_itself(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = stops._fit

    def faulty(on: System, name: str, *given: Any) -> None:
        assert name != "resource/bench", "it is too large"
        fit(on, name, *given)

    with monkeypatch.context() as patch:
        patch.setattr(stops, "_fit", faulty)
        stops.stop(twin.on, "root", "site", "a move")
    assert paused(twin) == ["target/linux", "target/mac"]
    sweep(twin)
    assert paused(twin) == ["resource/bench", "target/linux", "target/mac"]


@pytest.mark.parametrize("again", ["lifted", "another reason"])
def test_a_message_of_a_stop_that_was_replaced_since_does_nothing(
    twin: Twin, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """It would take for brought what was brought to the other wish. Who replaced it begins from the beginning."""
    many_units(twin, 120)
    with monkeypatch.context() as patch:
        each_read_takes(twin, patch, 4)
        stops.stop(twin.on, "root", "well/locks", "they are worn", drains=True)
        usecases_sweep.go_on(twin.on, {"stop": "well/locks"}, twin.world.now())
        (message,) = messages_of_a_stop(twin)
        patch.setattr(stops, "WITHIN", timedelta(0))
        if again == "lifted":
            stops.lift(twin.on, "root", "well/locks")
        else:
            stops.stop(twin.on, "root", "well/locks", "they are quite worn", drains=True)
    before = dict(twin.store.rows)
    usecases_sweep.go_on(twin.on, message, twin.world.now())
    assert (dict(twin.store.rows), messages_of_a_stop(twin)) == (before, [])
    twin.pass_time(61)
    sweep(twin)
    assert bool(pool(twin, "resource/bench").stops) is (again != "lifted")


def test_pools_that_are_left_are_brought_before_units(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    many_units(twin, 3)
    with monkeypatch.context() as patch:
        patch.setattr(stops, "WITHIN", timedelta(0))
        stops.stop(twin.on, "root", "well/locks", "they are worn", drains=True)
        usecases_sweep.go_on(twin.on, {"stop": "well/locks"}, twin.world.now())
        (message,) = messages_of_a_stop(twin)
    assert not pool(twin, "resource/bench").stops
    usecases_sweep.go_on(twin.on, message, twin.world.now())
    assert pool(twin, "resource/bench").stops
    assert all(unit.drain for unit in units_of(twin))


def test_a_pool_that_gets_a_drained_well_has_what_was_made_meanwhile_drained(twin: Twin) -> None:
    """Before it carries the stop, something may be granted. A site that changes no such pool begins no drain anew."""
    stops.stop(twin.on, "root", "well/spares", "they are sold", drains=True)
    sweep(twin, 121)
    row = stop_of(twin, "well/spares")
    assert row.due is None
    apply.apply(twin.on, "root", text("new"), "site.toml")
    assert stop_of(twin, "well/spares") == row
    after_the_next_commit(twin, lambda: many_units(twin, 3, "spares"))
    apply.apply(twin.on, "root", TEXT.replace('well = "locks"', 'well = "spares"'), "site.toml")
    assert pool(twin, "resource/bench").is_paused
    for _ in range(2):
        sweep(twin, 121)
    assert [unit.drain is not None for unit in units_of(twin)] == [True] * 3
    assert (stop_of(twin, "well/spares").is_spread, stop_of(twin, "well/spares").due) == (True, None)


def test_a_stop_that_is_lifted_meanwhile_is_brought_to_no_further_pool(twin: Twin) -> None:
    def lift() -> None:
        before_the_next_commit(twin, lambda: stops.lift(twin.on, "bert", "site"))

    before_the_next_commit(twin, lift)
    stops.stop(twin.on, "root", "site", "a move")
    assert paused(twin) == []
    sweep(twin, 121)
    assert stops.list_stops(twin.on) == []


@pytest.mark.parametrize(
    ("scope", "status"), [("factory/three", 404), ("well/one", 404), ("target/linux", 404), ("", 404)]
)
def test_only_what_there_is_is_stopped(twin: Twin, scope: str, status: int) -> None:
    for ask in (lambda: stops.stop(twin.on, "root", scope, "why"), lambda: stops.lift(twin.on, "root", scope)):
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.status == status


@pytest.mark.parametrize("reason", ["", " ", "two\nlines", "x" * 1000])
def test_a_stop_needs_a_reason_that_can_be_read(twin: Twin, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        stops.stop(twin.on, "root", "site", reason)
    assert refused.value.status == 400
    assert stops.list_stops(twin.on) == []


def test_a_factory_that_left_the_site_can_be_enabled(twin: Twin) -> None:
    stops.stop(twin.on, "root", "factory/two", "it is sold")
    apply.apply(twin.on, "root", text(two="one"), "site.toml")
    stops.lift(twin.on, "root", "factory/two")
    sweep(twin)
    assert stops.list_stops(twin.on) == []


def test_lifting_what_is_not_stopped_writes_nothing(twin: Twin) -> None:
    written = commits(twin)
    stops.lift(twin.on, "root", "site")
    assert written == []


def test_a_drain_leaves_what_is_held_until_its_hold_ends(twin: Twin, ada: User, root: User) -> None:
    idle = worker_at_rest(twin, ada)
    maintenance.hold(twin.on, root, UnitKind.WORKER, idle.worker, "to look at it", 3600)
    stops.stop(twin.on, "root", "factory/one", "a new image", drains=True)
    twin.run()
    assert unit_of(twin, idle.worker).state is UnitState.IDLE
    maintenance.release(twin.on, root, UnitKind.WORKER, idle.worker)
    twin.run()
    assert unit_of(twin, idle.worker).state is UnitState.GONE


def test_a_drain_of_all_leaves_what_an_operator_drained_or_what_is_apart_as_it_is(
    twin: Twin, ada: User, root: User
) -> None:
    jobs = [submit(twin, ada), submit(twin, ada)]
    twin.run()
    own, apart = (worker_of(twin, job) for job in jobs)
    maintenance.drain(twin.on, root, UnitKind.WORKER, own.id, "it is slow")
    put(twin, apart, state=UnitState.QUARANTINED)
    stops.stop(twin.on, "bert", "factory/one", "a new image", drains=True)
    drain = unit_of(twin, own.id).drain
    assert drain
    assert (drain.by, drain.reason) == ("root", "it is slow")
    assert unit_of(twin, apart.id).drain is None
    maintenance.drain_with_maker(twin.on, own, "bert", "a new image")  # the list of units was read before
    assert len([line for line in told(twin, jobs[0]) if "is drained by" in line]) == 1


def test_a_drain_of_all_passes_over_what_is_gone_by_then(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    unit = worker_of(twin, job)
    put(twin, unit, state=UnitState.GONE)
    written = commits(twin)
    maintenance.drain_with_maker(twin.on, unit, "root", "a new image")
    del twin.store.rows[unit.key]
    maintenance.drain_with_maker(twin.on, unit, "root", "a new image")
    assert written == []


def test_a_drain_of_all_tells_a_job_that_has_one_of_them(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    stops.stop(twin.on, "root", "factory/one", "a new image", drains=True)
    assert any("is drained by root" in line and "a new image" in line for line in told(twin, job))
