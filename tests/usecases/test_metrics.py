"""What is counted where it happens, and what the sweep tells of how things stand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock import usecases
from penstock.domain import metrics
from penstock.domain.commands import Hello
from penstock.domain.jobs import outcome
from penstock.domain.jobs.jobs import Result
from penstock.domain.metrics import Fold, Level
from penstock.domain.pools.pools import Claim, Slot, SlotState
from penstock.domain.units.units import UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, NoCapacity, Unknown
from penstock.kernel.rows import Change, Replace
from penstock.ports import NotYet, Order
from penstock.system import current_site
from penstock.testing.metrics import WrongMetric
from penstock.testing.twin import Twin
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import cancel
from penstock.usecases.site import apply
from penstock.usecases.telemetry import gauges
from penstock.usecases.units import advance, drivers, maintenance
from penstock.usecases.workers import agents
from tests.usecases.steps import TOKEN, finish, hello, job_of, run_to_end, submit, sweep, worker_of
from tests.usecases.strays import STRAY, WELL, regular
from tests.usecases.warm import SITE as WARM
from tests.usecases.warm import worker_at_rest


def site_of(twin: Twin, text: str) -> Twin:
    apply.apply(twin.on, "admin", text, "site.toml")
    twin.run()
    return twin


def test_a_job_is_counted_at_each_of_its_stations_once(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    twin.pass_time(40)
    hello(twin, job)
    finish(twin, job)
    told = twin.metrics
    assert told.of(metrics.JOBS_SUBMITTED, target="linux") == [1]
    assert told.of(metrics.JOBS_SETTLED) == told.of(metrics.JOBS_SETTLED, target="linux", outcome="succeeded") == [1]
    assert told.of(metrics.BOOT_OUTCOMES) == told.of(metrics.BOOT_OUTCOMES, outcome="success") == [1]
    assert told.of(metrics.ATTEMPTS_LOST) == []
    assert [round(value) for value in told.of(metrics.BOOTED_AFTER, target="linux")] == [40]
    assert [round(value) for value in told.of(metrics.STARTED_AFTER, target="linux")] == [40]
    calls = told.told["DriverCalls"]
    found = {(by["maker"], by["operation"], by["result"]): sum(values) for by, values in _by(calls) if sum(values)}
    assert found == {
        ("factory/hand", "create", "ok"): 1,
        ("factory/hand", "destroy", "ok"): 1,
        ("well/locks", "create", "ok"): 1,
        ("well/locks", "destroy", "ok"): 1,
    }


def _by(told: dict[Any, list[float]]) -> list[tuple[dict[str, str], list[float]]]:
    return [(dict(key), values) for key, values in told.items()]


def test_a_repeated_request_is_one_job(twin: Twin, ada: User) -> None:
    from penstock.domain.commands import SubmitJob
    from penstock.usecases.jobs import submit as submitting

    for _ in range(2):
        submitting.submit(twin.on, ada, SubmitJob("#!/bin/sh\n"), "the key")
    assert twin.metrics.of(metrics.JOBS_SUBMITTED) == [1]


def test_a_hello_that_comes_again_starts_nothing_twice(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    twin.pass_time(3)
    hello(twin, job)
    worker = worker_of(twin, job).id
    agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    assert len(twin.metrics.of(metrics.STARTED_AFTER)) == len(twin.metrics.of(metrics.BOOTED_AFTER)) == 1
    assert twin.metrics.of(metrics.BOOT_OUTCOMES) == [1]


def test_who_waits_is_counted_when_granted(twin: Twin, ada: User) -> None:
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    twin.pass_time(90)
    run_to_end(twin, first)
    assert [round(value) for value in twin.metrics.of(metrics.GRANTED_AFTER, pool="resource/bench")] == [0, 90]
    run_to_end(twin, second)


class Loses:
    """A store whose next commits lose their race, a kind of row at a time."""

    def __init__(self, twin: Twin, kind: str, times: int) -> None:
        self._commit, self._kind, self.left = twin.store.commit, kind, times

    def __call__(self, changes: Sequence[Change]) -> bool:
        rows = [getattr(change, "row", None) or getattr(change, "was", None) for change in changes]
        if self.left and any(row is not None and row.kind == self._kind for row in rows):
            self.left -= 1
            return False
        return self._commit(changes)


@pytest.mark.parametrize("kind", ["job", "claim", "unit", "slot", "lease"])
def test_who_lost_the_race_counts_nothing(twin: Twin, ada: User, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def life() -> None:
        job = submit(twin, ada, resources=["bench"])
        twin.run()
        for _ in range(8):
            sweep(twin, 46)
            if worker_of_is_made(twin, job):
                break
        hello(twin, job)
        finish(twin, job)
        for _ in range(8):
            sweep(twin, 46)

    monkeypatch.setattr(twin.store, "commit", Loses(twin, kind, 3))
    life()
    for metric in (metrics.JOBS_SUBMITTED, metrics.JOBS_SETTLED, metrics.BOOT_OUTCOMES):
        assert twin.metrics.of(metric) == [1], metric.name
    for name in ("GrantedAfter", "GoneAfter", "BootedAfter"):
        assert [len(values) for values in twin.metrics.told[name].values()] == [1] * (1 + (name != "BootedAfter")), name


def worker_of_is_made(twin: Twin, job: str) -> bool:
    return bool(twin.drivers.hand.made) and worker_of(twin, job).creation.made is not None


def test_only_one_of_two_concurrent_destroys_is_counted(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    hand, destroy = twin.drivers.hand, twin.drivers.hand.destroy
    worker = worker_of(twin, job).id

    def meanwhile(unit: str, now: Any) -> Any:
        hand.destroy = destroy  # type: ignore[method-assign]
        twin.pass_time(7)
        advance.advance(twin.on, worker)
        return destroy(unit, now)

    hand.destroy = meanwhile  # type: ignore[method-assign]
    finish(twin, job)
    assert len(twin.metrics.of(metrics.GONE_AFTER, maker="factory/hand")) == 1
    assert twin.metrics.of(metrics.DRIVER_CALLS, operation="destroy") == [1, 1]


def no_hello(twin: Twin, job: str) -> None:
    twin.pass_time(700)


def silent(twin: Twin, job: str) -> None:
    hello(twin, job)
    twin.pass_time(200)


def recycled(twin: Twin, job: str) -> None:
    root = User(name="root", privileges=("admin",), created=twin.world.now(), version=1)
    maintenance.recycle(twin.on, root, UnitKind.WORKER, worker_of(twin, job).id, "broken")


@pytest.mark.parametrize(
    ("lose", "cause", "boot"),
    [(no_hello, "no_hello", "failed"), (silent, "silent", "success"), (recycled, "recycled", "aborted")],
)
def test_a_lost_attempt_is_counted_once_by_its_cause(
    twin: Twin, ada: User, lose: Callable[[Twin, str], None], cause: str, boot: str
) -> None:
    job = submit(twin, ada)
    twin.run()
    lose(twin, job)
    sweep(twin)
    assert job_of(twin, job).attempt == 2
    assert twin.metrics.of(metrics.ATTEMPTS_LOST) == twin.metrics.of(metrics.ATTEMPTS_LOST, cause=cause) == [1]
    assert twin.metrics.of(metrics.BOOT_OUTCOMES) == twin.metrics.of(metrics.BOOT_OUTCOMES, outcome=boot) == [1]
    share = twin.metrics.told["BootFailures"].get(frozenset({("target", "linux")}), [])
    assert share == {"failed": [100], "success": [0], "aborted": []}[boot]
    assert twin.metrics.of(metrics.JOBS_SETTLED) == []


def test_a_second_attempt_says_nothing_of_how_long_a_job_waits(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    no_hello(twin, job)
    sweep(twin)
    hello(twin, job)
    assert twin.metrics.of(metrics.STARTED_AFTER) == []


def test_a_worker_that_vanished_is_counted_with_its_state(twin: Twin, ada: User) -> None:
    site_of(twin, WELL)
    regular(twin, 11)
    job = submit(twin, ada)
    twin.run()
    regular(twin, 4)
    twin.drivers.hand.made.clear()
    regular(twin, 11)
    assert twin.metrics.of(metrics.UNITS_VANISHED, maker="factory/hand", state="creating") == [1]
    assert twin.metrics.of(metrics.ATTEMPTS_LOST, cause="vanished") == [1]
    assert twin.metrics.of(metrics.BOOT_OUTCOMES, outcome="disappeared") == [1]
    assert max(twin.metrics.of(metrics.MISSING, maker="factory/hand")) == 1
    assert job_of(twin, job).attempt == 2


@pytest.mark.parametrize(
    ("error", "result"),
    [(Misconfigured("no image"), "Misconfigured"), (Unknown("?", "Odd"), "Unknown"), (NotYet(1), "yield")],
)
def test_a_call_is_counted_by_what_came_of_it(twin: Twin, ada: User, error: Any, result: str) -> None:
    twin.drivers.hand.says = [error]
    submit(twin, ada)
    twin.run()
    assert twin.metrics.of(metrics.DRIVER_CALLS, operation="create", result=result) == [1]


def test_a_driver_that_breaks_in_a_way_of_its_own_counts_as_unknown(twin: Twin) -> None:
    def broken() -> list[str]:
        raise ValueError("no such thing")

    twin.drivers.hand.list = broken  # type: ignore[method-assign]
    sweep(twin)
    assert twin.metrics.of(metrics.DRIVER_CALLS, operation="list", result="Unknown") == [1]
    assert twin.metrics.last(metrics.UNLISTED, maker="factory/hand") == 1
    assert twin.metrics.last(metrics.UNLISTED, maker="well/locks") == 0


def test_warm_units_are_hits_and_misses_and_evictions(ada: User) -> None:
    twin = site_of(Twin(), WARM)
    worker_at_rest(twin, ada)
    of = twin.metrics.of
    assert of(metrics.WARM_HAND_OVERS, pool="target/linux", result="miss") == [1]
    submit(twin, ada, target="linux")
    twin.run()
    assert of(metrics.WARM_HAND_OVERS, result="hit") == of(metrics.WARM_HAND_OVERS, pool="target/linux", result="hit")
    assert of(metrics.WARM_HAND_OVERS, result="hit") == [1]
    assert of(metrics.EVICTIONS) == []


def test_a_unit_that_makes_room_is_an_eviction(ada: User) -> None:
    twin = site_of(Twin(), WARM)
    worker_at_rest(twin, ada)
    for _ in range(2):
        submit(twin, ada, target="other")
    twin.run()
    assert twin.metrics.of(metrics.EVICTIONS) == twin.metrics.of(metrics.EVICTIONS, pool="target/other") == [1]


def test_a_resource_that_is_cleaned_is_a_call_of_its_well(ada: User) -> None:
    twin = site_of(Twin(), WARM)
    job = submit(twin, ada, target="other", resources=["db"])
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert twin.metrics.of(metrics.DRIVER_CALLS, maker="well/spring", operation="clean", result="ok") == [1]


def test_the_sweep_tells_a_zero_of_everything_that_the_site_knows(twin: Twin) -> None:
    sweep(twin)
    site = current_site(twin.on)
    for metric in metrics.METRICS:
        told = twin.metrics.told[metric.name]
        for by in metric.combinations(site, Level.POOLS):
            assert (frozenset(by.items()) in told) == (metric.fold is not Fold.EACH), (metric.name, by)


def test_a_site_that_was_never_applied_is_told_of_too() -> None:
    twin = Twin()
    sweep(twin)
    assert twin.metrics.last(metrics.DRIVER_CALLS, result="ok") == 0
    assert twin.metrics.last(metrics.SWEEPS) == 1


def test_nothing_is_read_for_a_site_of_which_nothing_is_told(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin.metrics, "wants", lambda metric: False)
    sweep(twin)
    assert not twin.metrics.told["PoolHeld"]
    assert not twin.metrics.told["Units"]
    assert not twin.metrics.told["Strays"]


def test_the_sweep_tells_who_waits_and_what_pools_have(twin: Twin, ada: User) -> None:
    for _ in range(2):
        submit(twin, ada, resources=["bench"])
    twin.run()
    sweep(twin, 605)
    last = twin.metrics.last
    assert last(metrics.JOBS_WAITING) == 1
    assert round(last(metrics.OLDEST_WAIT, pool="resource/bench")) == 605
    assert twin.metrics.of(metrics.OLDEST_WAIT_PERCENT) == pytest.approx([100 * 605 / (7 * 24 * 3600)], rel=0.01)
    told = [last(metric, pool="resource/bench") for metric in POOLS]
    assert told == [1, 1, 0, 1]
    assert [last(metric, pool="resource/licence") for metric in POOLS] == [2, 0, 2, 0]


POOLS = (metrics.POOL_LIMIT, metrics.POOL_HELD, metrics.POOL_FREE, metrics.POOL_WAITING)


def test_all_slots_of_a_large_pool_are_told(twin: Twin) -> None:
    for number in range(1500):
        for state in (SlotState.HELD, SlotState.FREE):
            slot = Slot(pool="target/linux", name=f"{state}-{number}", state=state)
            twin.store.rows[slot.key] = slot
    before = len([row for row in twin.store.rows.values() if isinstance(row, Slot) and row.pool == "target/linux"])
    sweep(twin)
    told = [twin.metrics.last(metric, pool="target/linux") for metric in (metrics.POOL_HELD, metrics.POOL_FREE)]
    assert (told[0], sum(told)) == (1500, before)


@pytest.mark.parametrize("seconds", [60, 0], ids=["in time", "too late"])
def test_who_waits_longest_is_told_however_many_are_served_first(twin: Twin, ada: User, seconds: int) -> None:
    """As far as there is time to look: the queue of those with a higher priority has no end."""
    for _ in range(2):
        submit(twin, ada, resources=["bench"])
    twin.run()
    last = next(row for row in twin.store.rows.values() if isinstance(row, Claim))
    for number in range(1500):
        first = replace(last, job=f"J{number}", priority=last.priority + 1, since=twin.world.now())
        twin.store.rows[first.key] = first
    twin.store.rows[last.key] = replace(last, since=twin.world.now() - timedelta(hours=3))
    until = twin.world.now() + timedelta(seconds=seconds)
    gauges.report_pools(twin.on, current_site(twin.on), [], ["resource/bench"], until)
    assert twin.metrics.of(metrics.OLDEST_WAIT, pool="resource/bench") == ([3 * 3600] if seconds else [])
    assert twin.metrics.last(metrics.POOL_WAITING, pool="resource/bench") == 1501


def test_a_claim_that_came_while_the_sweep_went_on_waits_for_no_time_yet(twin: Twin, ada: User) -> None:
    """Not for less than none, which would fail the sweep before it has told the rest."""
    for _ in range(2):
        submit(twin, ada, resources=["bench"])
    twin.run()
    waiting = next(row for row in twin.store.rows.values() if isinstance(row, Claim))
    twin.store.rows[waiting.key] = replace(waiting, since=twin.world.now() + timedelta(hours=1))
    sweep(twin)
    assert twin.metrics.last(metrics.OLDEST_WAIT, pool="resource/bench") == 0


def test_an_amount_is_told_as_what_is_used(ada: User) -> None:
    twin = site_of(Twin(), WARM)
    submit(twin, ada, target="other")
    twin.run()
    sweep(twin)
    assert [twin.metrics.last(metric, pool="quota/vcpus") for metric in POOLS] == [8, 4, 4, 0]


def test_a_job_in_several_queues_waits_once(ada: User) -> None:
    twin = site_of(Twin(), WARM)
    for _ in range(3):
        submit(twin, ada, target="other")
    twin.run()
    sweep(twin)
    assert twin.metrics.last(metrics.JOBS_WAITING) == 1
    assert twin.metrics.last(metrics.POOL_WAITING, pool="quota/vcpus") == 1
    assert twin.metrics.last(metrics.POOL_WAITING, pool="target/other") == 1


def test_the_sweep_tells_how_units_are(twin: Twin, ada: User, root: User) -> None:
    booting, held = (submit(twin, ada) for _ in range(2))
    twin.run()
    maintenance.hold(twin.on, root, UnitKind.WORKER, worker_of(twin, held).id, "to look", 7200)
    sweep(twin, 300)

    def told(state: str) -> float:
        return sum(twin.metrics.of(metrics.UNITS, kind="worker", maker="factory/hand", state=state))

    assert (told("creating"), told("held"), told("ready")) == (1, 1, 0)
    assert [round(value) for value in twin.metrics.of(metrics.OLDEST_HOLD, maker="factory/hand")] == [300]
    assert job_of(twin, booting).attempt == 1


def test_the_sweep_tells_how_long_a_unit_waits_to_be_destroyed(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    twin.drivers.hand.destroy = lambda unit, now: NotYet(900)  # type: ignore[method-assign, assignment, return-value]
    finish(twin, job)
    sweep(twin, 600)
    assert [round(value) for value in twin.metrics.of(metrics.OLDEST_DIRTY, maker="factory/hand")] == [600]
    assert twin.metrics.of(metrics.GONE_AFTER) == []


def test_units_are_told_when_they_were_read_and_not_as_none_in_between(twin: Twin, ada: User) -> None:
    submit(twin, ada)
    twin.run()
    for _ in range(4):
        sweep(twin, 60)
    whole, zero = {("kind", "worker"), ("state", "creating")}, twin.metrics.told["Units"]
    assert zero[frozenset({*whole, ("maker", "factory/hand")})] == [1, 1]
    assert zero[frozenset(whole)] == [0, 0]


def test_a_destroyed_unit_is_not_counted_although_it_is_still_listed(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    gone = worker_of(twin, job)
    gauges.report_units(twin.on, current_site(twin.on), {UnitKind.WORKER: [gone]})
    assert gone.state is UnitState.GONE
    assert twin.metrics.of(metrics.UNITS) == []


def test_cool_downs_are_told_while_they_last(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [NoCapacity("none")]
    submit(twin, ada)
    twin.run()
    sweep(twin, 60)
    by = frozenset({("maker", "factory/hand"), ("cause", "capacity")})
    assert twin.metrics.told["CoolDowns"][by][-1] == 1
    twin.drivers.hand.says = [NotYet(900)]
    sweep(twin, 200)
    assert twin.metrics.told["CoolDowns"][by][-1] == 0


def test_strays_are_told_until_they_are_destroyed(twin: Twin) -> None:
    regular(twin, 11)
    twin.drivers.hand.made["w-stray"] = STRAY
    regular(twin, 12)
    of = twin.metrics.of
    assert max(of(metrics.STRAYS, maker="factory/hand")) == 1
    assert of(metrics.STRAYS_DESTROYED, maker="factory/hand") == [1]
    assert twin.metrics.last(metrics.STRAYS, maker="factory/hand") == 0
    assert of(metrics.DRIVER_CALLS, operation="destroy", result="ok") == [1]


@pytest.mark.usefixtures("by_flow")
def test_a_sweep_tells_of_itself(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(twin, ada)
    twin.queues.messages.clear()
    twin.flows.executions.clear()
    monkeypatch.setattr(twin.flows, "start", lambda *given: twin.pass_time(3) or 1 / 0)
    twin.pass_time(90)
    usecases_sweep.sweep(twin.on)
    of = twin.metrics.of
    assert (of(metrics.SWEEPS), of(metrics.OVERDUE_ROWS), of(metrics.FAILED_NUDGES)) == ([1], [1], [1])
    assert of(metrics.SWEEP_TIME) == [3]


def test_a_sweep_goes_on_when_nothing_can_be_told(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin.metrics, "wants", lambda metric: 1 / 0)
    assert sweep(twin).failed == 0
    assert twin.metrics.last(metrics.SWEEPS) == 1


def test_a_script_that_fails_is_no_fault_of_ours(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    finish(twin, job, Result.FAILED)
    assert twin.metrics.of(metrics.JOBS_SETTLED, outcome="failed") == [1]
    assert twin.metrics.of(metrics.ATTEMPTS_LOST) == []


def test_every_metric_of_the_table_is_told_somewhere() -> None:
    """One that nobody tells would be a line on a dashboard that is always empty."""
    package = Path(usecases.__file__).parent
    used: set[str] = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "metrics":
                used.add(node.attr)
    inside = {
        node.name: {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        for node in ast.parse(Path(metrics.__file__).read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    while more := {name for event in used & inside.keys() for name in inside[event]} - used:
        used |= more
    names = {name: value for name, value in vars(metrics).items() if value in metrics.METRICS}
    assert len(names) == len(metrics.METRICS)
    assert names.keys() <= used


def test_an_id_or_an_unknown_dimension_is_noticed(twin: Twin) -> None:
    """The watcher of these tests can fail."""
    for by in ({}, {"target": "linux", "more": "x"}, {"target": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}):
        with pytest.raises(WrongMetric):
            twin.metrics.add(metrics.JOBS_SUBMITTED, **by)
    with pytest.raises(WrongMetric):
        twin.metrics.add(metrics.JOBS_SETTLED, target="linux", outcome="exploded")
    assert Order("w-1", "linux", "1").id not in str(dict(twin.metrics.told))


@pytest.mark.usefixtures("by_flow")
def test_what_the_sweep_ends_is_counted_as_such(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome, "MAX_SPARED", 0)
    stuck = submit(twin, ada, retries=0)
    twin.queues.messages.clear()
    for seconds in (61, 61, 600):
        twin.pass_time(seconds)
        usecases_sweep.sweep(twin.on)
        twin.queues.messages.clear()
    assert job_of(twin, stuck).is_settled
    assert twin.metrics.of(metrics.ATTEMPTS_LOST) == twin.metrics.of(metrics.ATTEMPTS_LOST, cause="flow") == [1]
    assert twin.metrics.of(metrics.JOBS_SETTLED) == twin.metrics.of(metrics.JOBS_SETTLED, outcome="errored") == [1]


def test_a_script_that_neither_ends_nor_stops_is_overdue(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    running = job_of(twin, job)
    twin.store.commit([Replace(running, replace(running, due=twin.world.now()))])
    usecases_sweep.nudge(twin.on, "job", running.key)
    assert twin.metrics.of(metrics.ATTEMPTS_LOST) == twin.metrics.of(metrics.ATTEMPTS_LOST, cause="overdue") == [1]


def test_an_attempt_that_got_nothing_yet_has_no_worker_that_boots(twin: Twin, ada: User, root: User) -> None:
    holder, waiter = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    cancel.cancel(twin.on, ada, waiter)
    twin.run()
    assert twin.metrics.of(metrics.JOBS_SETTLED, outcome="cancelled") == [1]
    assert twin.metrics.of(metrics.BOOT_OUTCOMES) == []
    assert not job_of(twin, holder).is_settled
