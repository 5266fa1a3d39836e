"""What exists outside and what our rows say are compared both ways, and neither is believed at once. UNIT-1 JOB-1"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Outcome, State, job_key
from penstock.domain.pools.pools import Claim, collection
from penstock.domain.units.comparison import COMPARE_EVERY, Comparison, comparison_key
from penstock.domain.units.units import UnitKind, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Unknown
from penstock.kernel.rows import Change, Create, Replace
from penstock.testing.twin import Twin
from penstock.usecases import cooldowns
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from penstock.usecases.workers.agents import Caller
from tests.usecases.steps import (
    assert_all_is_put_back,
    finish,
    hello,
    job_of,
    live,
    run_to_end,
    submit,
    sweep,
    told,
    worker_of,
)
from tests.usecases.strays import STRAY, WELL, compare_all, compared, regular


@pytest.fixture
def long(twin: Twin) -> Twin:
    """A site whose silences last so long that only a comparison can notice in time; and its sweeps are regular."""
    apply.apply(twin.on, "admin", WELL, "site.toml")
    twin.run()
    regular(twin, 11)
    return twin


def test_a_stray_is_destroyed_when_it_was_seen_twice_some_minutes_apart(twin: Twin) -> None:
    regular(twin, 11)
    twin.drivers.hand.create(STRAY)
    (at,) = regular(twin, 20)
    assert 5 <= at <= 9
    assert not twin.drivers.hand.made


def test_a_list_that_has_a_machine_twice_has_it_once(twin: Twin) -> None:
    """Two machines for one worker are its driver's business: it is asked once to destroy what it has of it."""
    hand, asked = twin.drivers.hand, []
    destroy = hand.destroy
    hand.list = lambda: [STRAY.id, STRAY.id]  # type: ignore[method-assign]
    hand.destroy = lambda unit, now: (asked.append(unit), destroy(unit, now))[1]  # type: ignore[method-assign]
    regular(twin, 17)
    assert set(asked) == {STRAY.id}
    assert len(asked) <= 3, "once each time that it is compared"


def test_two_machines_of_a_worker_that_is_wanted_stay(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    unit = worker_of(twin, job).id
    twin.drivers.hand.list = lambda: [unit, unit]  # type: ignore[method-assign]
    assert regular(twin, 30, lambda: agents.heartbeat(twin.on, caller)) == []
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_a_unit_that_is_made_while_the_list_is_read_is_no_stray(twin: Twin, ada: User) -> None:
    """The list comes first: whatever it shows has had its row for as long. And nobody destroys what just got one."""
    regular(twin, 11)
    hand = twin.drivers.hand
    plain, found = hand.list, []

    def slow() -> Iterable[str]:
        found.append(submit(twin, ada))
        twin.run()
        return plain()

    hand.list = slow  # type: ignore[method-assign]
    regular(twin, 4)
    hand.list = plain  # type: ignore[method-assign]
    assert worker_of(twin, found[0]).id in hand.made
    assert not compared(twin).strays


def hide(twin: Twin, ada: User) -> tuple[Caller, Any]:
    """A worker that runs, whose row is not there, as where our own writes lag."""
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    return caller, twin.store.rows.pop(worker_of(twin, job).key)


def test_a_row_that_comes_late_saves_its_machine(twin: Twin, ada: User) -> None:
    regular(twin, 11)
    caller, row = hide(twin, ada)
    regular(twin, 4)
    assert list(compared(twin).strays) == [row.key.pk.partition("#")[2]]
    twin.store.rows[row.key] = replace(row, due=twin.world.now() + timedelta(minutes=2))
    assert regular(twin, 20, lambda: agents.heartbeat(twin.on, caller)) == []
    finish(twin, caller.job.id)
    assert job_of(twin, caller.job.id).end.outcome is Outcome.SUCCEEDED


def test_a_row_that_comes_in_the_last_moment_saves_it_too(twin: Twin, ada: User) -> None:
    """It is looked for once more before anything is destroyed."""
    regular(twin, 11)
    caller, row = hide(twin, ada)
    regular(twin, 4)
    assert compared(twin).strays
    commit = twin.store.commit

    def just_before(changes: Sequence[Change]) -> bool:
        if any(isinstance(change, Replace) and isinstance(change.row, Comparison) for change in changes):
            twin.store.rows.setdefault(row.key, replace(row, due=twin.world.now() + timedelta(minutes=9)))
        return commit(changes)

    twin.pass_time(290)
    twin.store.commit = just_before  # type: ignore[method-assign]
    assert compare_all(twin).strays == 0
    assert worker_of(twin, caller.job.id).id in twin.drivers.hand.made


def test_after_an_outage_of_ours_nothing_is_destroyed_for_a_while(twin: Twin) -> None:
    regular(twin, 11)
    twin.drivers.hand.create(STRAY)
    twin.pass_time(3 * 3600)
    (at,) = regular(twin, 20)
    assert at >= 9


def test_the_very_first_sweep_is_one_after_an_outage(twin: Twin) -> None:
    twin.drivers.hand.create(STRAY)
    (at,) = regular(twin, 20)
    assert at >= 9


def test_a_failed_list_of_a_driver_changes_nothing(long: Twin, ada: User) -> None:
    """A view that could not be loaded acts on nothing; and not on the others either."""
    job = submit(long, ada)
    long.run()
    hello(long, job)
    hand = long.drivers.hand
    regular(long, 4)
    hand.create(STRAY)
    hand.list = lambda: (_ for _ in ["w-1"] if failing())  # type: ignore[method-assign]
    assert regular(long, 30) == []
    assert job_of(long, job).state is State.RUNNING
    row = compared(long)
    assert row.failures >= 9
    assert row.why == "Misconfigured: no leave to list"
    assert row.at < row.tried
    (counted,) = cooldowns.failures(long.on, "factory/hand")
    assert (counted.code, counted.count) == ("Misconfigured", row.failures)
    well = long.store.get(comparison_key("well/hand"), Comparison)
    assert well
    assert well.failures == 0


def failing() -> bool:
    raise Misconfigured("no leave to list")


def test_a_driver_that_breaks_in_a_way_of_its_own_stops_no_other(twin: Twin) -> None:
    twin.drivers.hand.list = lambda: 1 / 0  # type: ignore[method-assign,assignment,return-value]
    assert sweep(twin).unlisted == 1
    assert compared(twin).why == "Unknown: the driver raised ZeroDivisionError: division by zero"
    assert [row.code for row in cooldowns.failures(twin.on, "factory/hand")] == ["Unknown:ZeroDivisionError"]
    well = twin.store.get(comparison_key("well/locks"), Comparison)
    assert well
    assert well.at


def test_lists_are_read_every_few_minutes_and_not_each_time(twin: Twin) -> None:
    asked = []
    twin.drivers.hand.list = lambda: asked.append(1) or []  # type: ignore[method-assign,func-returns-value]
    regular(twin, 30)
    assert len(asked) == 10


def test_what_cannot_be_destroyed_is_tried_again(twin: Twin) -> None:
    hand = twin.drivers.hand
    regular(twin, 11)
    hand.create(STRAY)
    destroy, said = hand.destroy, [Unknown("odd"), Unknown("odd")]

    def failing_twice(unit: str, now: object) -> object:
        if said:
            raise said.pop()
        return destroy(unit, now)  # type: ignore[arg-type]

    hand.destroy = failing_twice  # type: ignore[method-assign,assignment]
    regular(twin, 20)
    assert not hand.made


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "booting"])
def test_a_worker_whose_machine_vanished_is_lost(long: Twin, ada: User, is_running: bool) -> None:
    """JOB-1: its attempt is lost, and the next one follows."""
    job = submit(long, ada)
    long.run()
    if is_running:
        hello(long, job)
    regular(long, 4)
    first = worker_of(long, job)
    long.drivers.hand.made.clear()
    regular(long, 6)
    assert worker_of(long, job).id == first.id, "not at once"
    regular(long, 8)
    assert worker_of(long, job).id != first.id
    assert any("does not list it any more" in line for line in told(long, job))
    run_to_end(long, job)
    assert (job_of(long, job).end.outcome, job_of(long, job).attempt) == (Outcome.SUCCEEDED, 2)


def test_an_agent_that_speaks_is_alive_whatever_the_list_says(long: Twin, ada: User) -> None:
    job = submit(long, ada)
    long.run()
    caller: Caller = hello(long, job)
    regular(long, 4)
    listed, long.drivers.hand.list = long.drivers.hand.list, lambda: []  # type: ignore[method-assign]
    for _ in range(30):
        long.pass_time(59)
        agents.heartbeat(long.on, caller)
        long.pass_time(0)
        sweep(long, 0)
    assert job_of(long, job).state is State.RUNNING
    assert compared(long).missing == {}
    long.drivers.hand.list = listed  # type: ignore[method-assign]
    finish(long, job)
    assert job_of(long, job).end.outcome is Outcome.SUCCEEDED


def test_an_agent_that_speaks_in_the_last_moment_is_alive_too(long: Twin, ada: User) -> None:
    """JOB-1: between the comparison and what follows from it."""
    job = submit(long, ada)
    long.run()
    caller = hello(long, job)
    regular(long, 4)
    long.drivers.hand.list = lambda: []  # type: ignore[method-assign]
    regular(long, 6)
    assert compared(long).missing
    commit = long.store.commit

    def speaks(changes: Sequence[Change]) -> bool:
        done = commit(changes)
        if any(isinstance(change, Replace) and isinstance(change.row, Comparison) for change in changes):
            agents.heartbeat(long.on, caller)
        return done

    long.store.commit = speaks  # type: ignore[method-assign]
    regular(long, 20)
    assert job_of(long, job).state is State.RUNNING


def test_a_resource_that_vanished_loses_the_attempt_that_has_it(long: Twin, ada: User) -> None:
    job = submit(long, ada, resources=["bench"])
    long.run()
    hello(long, job)
    regular(long, 4)
    (first,) = [unit for unit in live(long, job) if unit.is_a is UnitKind.RESOURCE]
    long.drivers.basin.made.clear()
    regular(long, 15)
    found = long.store.get(unit_key(first.id), type(first))
    assert found
    assert found.state is UnitState.GONE
    run_to_end(long, job)
    assert (job_of(long, job).end.outcome, job_of(long, job).attempt) == (Outcome.SUCCEEDED, 2)


def test_a_kept_unit_that_vanished_is_not_lent(long: Twin, ada: User) -> None:
    apply.apply(long.on, "admin", WELL.replace("well = ", 'warm = { max = 1, idle = "2h" }\nwell = '), "site.toml")
    long.run()
    job = submit(long, ada, resources=["bench"])
    long.run()
    run_to_end(long, job)
    regular(long, 4)
    (idle,) = [unit for unit in live(long, job) if unit.state is UnitState.IDLE and unit.lease.order]
    long.drivers.basin.made.clear()
    regular(long, 15)
    found = long.store.get(unit_key(idle.id), type(idle))
    assert found
    assert found.state is UnitState.GONE


def test_a_well_that_lists_nothing_loses_nothing(long: Twin, ada: User) -> None:
    """A lock exists nowhere outside."""
    job = submit(long, ada, resources=["bench"])
    long.run()
    caller = hello(long, job)
    long.drivers.basin.list = lambda: []  # type: ignore[method-assign]
    regular(long, 30, lambda: agents.heartbeat(long.on, caller))
    assert job_of(long, job).state is State.RUNNING


def test_one_of_two_concurrent_sweeps_acts_on_a_comparison(twin: Twin) -> None:
    regular(twin, 11)
    hand, plain = twin.drivers.hand, twin.drivers.hand.list
    hand.create(STRAY)
    regular(twin, 4)
    twin.pass_time(290)
    found: list[int] = []

    def meanwhile() -> Iterable[str]:
        hand.list = plain  # type: ignore[method-assign]
        twin.pass_time(COMPARE_EVERY.total_seconds())  # until then, another sweep does not ask
        found.append(compare_all(twin).strays)
        return [STRAY.id]

    hand.list = meanwhile  # type: ignore[method-assign]
    found.append(compare_all(twin).strays)
    assert found == [1, 0]


@pytest.mark.parametrize("order", [0, 1], ids=["worker", "resource"])
def test_a_unit_of_an_attempt_that_is_over_is_put_back(long: Twin, ada: User, order: int) -> None:
    """UNIT-1: it ends with its lease, in one commit. Should it ever not, as after a restored backup, this finds it."""
    job = submit(long, ada, resources=["bench"])
    long.run()
    hello(long, job)
    unit = next(unit for unit in live(long, job) if unit.lease.order == order)
    finish(long, job)
    regular(long, 3)
    gone = long.store.get(unit.key, type(unit))
    assert gone
    long.store.commit([Replace(gone, replace(unit, due=None))])
    regular(long, 16)
    found = long.store.get(unit.key, type(unit))
    assert found
    assert found.state in (UnitState.GONE, UnitState.DIRTY)
    assert found.step.reason == "its attempt is over"


def test_a_job_whose_worker_is_gone_settles_by_its_deadline(twin: Twin, ada: User) -> None:
    """JOB-1: whatever became of its worker's row."""
    job = submit(twin, ada, retries=0)
    twin.run()
    hello(twin, job)
    unit = worker_of(twin, job)
    twin.store.commit([Replace(unit, replace(unit, state=UnitState.GONE, due=None))])
    sweep(twin, 5 * 3600)
    sweep(twin)
    assert job_of(twin, job).end.outcome is Outcome.ERRORED
    assert "neither finished nor stopped" in str(job_of(twin, job).end.reason)


def test_a_claim_of_an_attempt_that_is_over_is_dropped(twin: Twin, ada: User) -> None:
    """QUEUE-1: it would stand before others."""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    other = submit(twin, ada, resources=["bench"])
    twin.run()
    (claim,) = twin.store.find(collection("resource/bench"), "wait#", Claim)
    run_to_end(twin, job)
    run_to_end(twin, other)
    twin.store.commit([Create(claim)])
    sweep(twin)
    assert not twin.store.find(collection("resource/bench"), "wait#", Claim)
    assert twin.store.get(job_key(other), type(job_of(twin, other)))
    assert_all_is_put_back(twin)
