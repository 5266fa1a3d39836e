"""The sweep counts what pools have, hour by hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.pools.pools import Slot, SlotState
from penstock.domain.pools.series import HOUR, Counts, Hour
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change
from penstock.testing.twin import START, Twin
from penstock.usecases.isolation import Isolation
from penstock.usecases.pools import serving
from penstock.usecases.site import apply
from penstock.usecases.sweep import go_on
from penstock.usecases.telemetry import gauges, series
from tests.usecases.steps import hello, run_to_end, submit, sweep
from tests.usecases.warm import SITE as WARM

BENCH, LINUX = "resource/bench", "target/linux"
LATER = timedelta(minutes=1)


def hours(twin: Twin, pool: str) -> list[Hour]:
    now = twin.world.now()
    return list(series.hours(twin.on, pool, now - timedelta(days=1), now))


def last(twin: Twin, pool: str) -> Counts:
    return hours(twin, pool)[-1].now


def test_jobs_hold_and_wait_and_units_without_jobs_are_idle(twin: Twin, ada: User) -> None:
    sweep(twin)
    assert (last(twin, BENCH), last(twin, LINUX)) == (Counts(0, 0, 0), Counts(0, 0, 0))
    for _ in range(3):
        submit(twin, ada, resources=["bench"])
    twin.run()
    twin.pass_time(60)
    sweep(twin)
    assert last(twin, BENCH) == Counts(1, 0, 2)
    assert last(twin, LINUX) == Counts(1, 0, 0)
    assert hours(twin, BENCH)[-1].limit == 1


@pytest.mark.parametrize("state", [SlotState.HELD, SlotState.IDLE, SlotState.FREE])
def test_a_slot_with_a_unit_and_no_job_is_idle(twin: Twin, state: SlotState) -> None:
    slot = Slot(pool=LINUX, name="99", state=state, unit="w-1", count=2)
    twin.store.rows[slot.key] = slot
    free = Slot(pool=LINUX, name="98", state=SlotState.FREE)
    twin.store.rows[free.key] = free
    assert series.count(twin.on, apply.find(twin.on, LINUX)) == Counts(0, 2, 0)


def test_all_slots_of_a_large_pool_are_counted(twin: Twin) -> None:
    for number in range(6000):
        slot = Slot(pool=LINUX, name=f"many-{number}", state=SlotState.HELD, job=f"J{number}")
        twin.store.rows[slot.key] = slot
    assert series.count(twin.on, apply.find(twin.on, LINUX)) == Counts(6000, 0, 0)


def test_of_an_amount_it_is_how_much(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "root", WARM, "site.toml")
    twin.run()
    for _ in range(3):
        submit(twin, ada, target="linux")
    twin.run()
    assert series.count(twin.on, apply.find(twin.on, "quota/vcpus")) == Counts(8, 0, 1)
    assert series.count(twin.on, apply.find(twin.on, LINUX)) == Counts(2, 0, 1)


def test_an_hour_in_which_nothing_changes_is_one_write_for_each_pool(twin: Twin) -> None:
    sweep(twin)
    before = rows(twin)
    for _ in range(10):
        twin.pass_time(60)
        sweep(twin)
    assert rows(twin) == before
    twin.pass_time(3600)
    sweep(twin)
    assert len(rows(twin)) == 2 * len(before)


def rows(twin: Twin) -> list[Hour]:
    return [row for row in twin.store.rows.values() if isinstance(row, Hour)]


def test_what_another_sweep_counted_meanwhile_stands(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = apply.find(twin.on, BENCH)
    failures = Isolation()
    series.record(twin.on, [pool], failures, twin.world.now() + LATER)
    submit(twin, ada, resources=["bench"])
    twin.run()
    twin.pass_time(60)
    commit, other = twin.store.commit, []

    def late(changes: Sequence[Change]) -> bool:
        monkeypatch.setattr(twin.store, "commit", commit)
        twin.pass_time(60)
        series.record(twin.on, [pool], failures, twin.world.now() + LATER)
        other.append(hours(twin, BENCH)[-1])
        return commit(changes)

    monkeypatch.setattr(twin.store, "commit", late)
    series.record(twin.on, [pool], failures, twin.world.now() + LATER)
    assert hours(twin, BENCH) == other
    assert (other[0].now, other[0].at, failures.failed) == (Counts(1, 0, 0), twin.world.now(), 0)


def test_a_pool_that_cannot_be_counted_keeps_no_other_from_it(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = series.count

    def broken(on: Any, pool: Any) -> Counts:
        if pool.name == BENCH:
            raise ValueError("broken")
        return counted(on, pool)

    monkeypatch.setattr(series, "count", broken)
    failures = Isolation()
    series.record(twin.on, list(apply.every_pool(twin.on)), failures, twin.world.now() + LATER)
    assert failures.failed == 1
    assert (hours(twin, BENCH), len(hours(twin, LINUX))) == ([], 1)


def test_when_its_time_is_over_the_rest_is_left_to_the_next(twin: Twin) -> None:
    series.record(twin.on, list(apply.every_pool(twin.on)), Isolation(), twin.world.now())
    assert rows(twin) == []


def test_no_pool_is_always_behind_others_that_take_all_the_time(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes half of the time that there is, so the first two of each minute are counted."""
    pools = list(apply.every_pool(twin.on))
    assert len(pools) >= 3
    counted, real = list[list[str]](), series.count

    def slow(on: Any, pool: Any) -> Counts:
        twin.pass_time(1)
        counted[-1].append(pool.name)
        return real(on, pool)

    monkeypatch.setattr(series, "count", slow)
    begin = twin.world.now()
    for minute in range(len(pools)):
        twin.world.time = begin + minute * LATER
        counted.append([])
        series.record(twin.on, pools, Isolation(), twin.world.now() + timedelta(seconds=2))
    names = [pool.name for pool in pools]
    assert sorted(found[0] for found in counted) == sorted(names)
    assert sorted(found[1] for found in counted) == sorted(names)
    assert {row.pool for row in rows(twin)} == set(names)


def test_a_count_that_comes_minutes_later_stands_from_then_on(twin: Twin, ada: User) -> None:
    """What was counted before stands until then, so means and peaks need no count each minute."""
    pool = apply.find(twin.on, BENCH)
    series.record(twin.on, [pool], Isolation(), twin.world.now() + LATER)
    submit(twin, ada, resources=["bench"])
    twin.run()
    twin.world.time += 7 * LATER
    series.record(twin.on, [pool], Isolation(), twin.world.now() + LATER)
    (row,) = hours(twin, BENCH)
    assert row.since < START + LATER
    assert row.at == twin.world.now()
    assert (row.sums, row.now, row.most) == (Counts(0, 0, 0), Counts(1, 0, 0), Counts(1, 0, 0))


def test_pools_that_are_left_to_messages_are_counted_too(twin: Twin) -> None:
    names = [pool.name for pool in apply.every_pool(twin.on)]
    until = (twin.world.now() + LATER).isoformat()
    go_on(twin.on, {"pools": ["", names[-1]], "until": until}, twin.world.now() + LATER)
    assert {row.pool for row in rows(twin)} == set(names)


def test_a_pool_is_counted_after_it_was_served(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the sweep itself grants is counted at once, and not a minute later."""
    order: list[str] = []
    for module, name in ((serving, "serve"), (series, "count")):
        monkeypatch.setattr(module, name, noting(order, name, getattr(module, name)))
    submit(twin, ada, resources=["bench"])
    submit(twin, ada, resources=["bench"])
    twin.run()
    order.clear()
    until = (twin.world.now() + LATER).isoformat()
    for step in (
        lambda: go_on(twin.on, {"pools": ["", "z"], "until": until}, twin.world.now() + LATER),
        lambda: sweep(twin),
    ):
        step()
        assert order.index("count") > len(order) - 1 - order[::-1].index("serve")
        assert {"serve", "count"} == set(order)
        order.clear()


def test_pools_are_counted_also_when_metrics_fail(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(gauges, "report_pools", broken)
    until = (twin.world.now() + LATER).isoformat()
    with pytest.raises(ValueError, match="broken"):
        go_on(twin.on, {"pools": ["", "z"], "until": until}, twin.world.now() + LATER)
    assert rows(twin)


def noting(order: list[str], name: str, was: Any) -> Any:
    def call(*words: Any, **more: Any) -> Any:
        order.append(name)
        return was(*words, **more)

    return call


def test_hours_are_read_from_one_time_to_another(twin: Twin) -> None:
    for _ in range(5):
        sweep(twin)
        twin.pass_time(3600)
    first = START.replace(minute=0, second=0, microsecond=0)

    def starts(since: float, until: float) -> list[float]:
        found = series.hours(twin.on, LINUX, first + since * HOUR, first + until * HOUR)
        return [(row.start - first) / HOUR for row in found]

    assert starts(0, 9) == [0, 1, 2, 3, 4]
    assert starts(1.5, 3.5) == [1, 2, 3]
    assert starts(2, 2) == [2]
    assert starts(-5, -1) == []
    assert starts(-3000, -2999) == starts(3000, 3001) == []


@pytest.mark.parametrize("days", [-0.1, 32.1])
def test_what_is_not_kept_is_refused(twin: Twin, days: float) -> None:
    since = twin.world.now() - timedelta(days=3)
    with pytest.raises(Refused):
        series.hours(twin.on, LINUX, since, since + timedelta(days=days))
    assert series.hours(twin.on, LINUX, since, since + timedelta(days=32)) == []


def test_a_job_that_ended_holds_nothing(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    sweep(twin)
    run_to_end(twin, job)
    twin.pass_time(60)
    sweep(twin)
    (row,) = hours(twin, BENCH)
    assert (row.now.held, row.most.held) == (0, 1)
