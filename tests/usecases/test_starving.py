"""The sweep whatever is overdue: what nobody can move on hides nothing else, and costs little. Point by point.

How late that makes others at a hundred thousand rows is told by `python -m tests.figures.sweeping`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from penstock.domain import metrics
from penstock.domain.artifacts.artifacts import Artifact, id_of, stray
from penstock.domain.artifacts.retention import Retention
from penstock.domain.jobs.jobs import Outcome
from penstock.domain.metrics import Metric
from penstock.domain.pools.pools import Claim, Pool
from penstock.domain.units.units import Unit, UnitKind, UnitLease, UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Create, Key, Look, Replace, exact_look, key_of, shard_of
from penstock.testing.twin import START, Twin
from penstock.usecases import overdue, sweep
from penstock.usecases.artifacts import expire
from penstock.usecases.isolation import Isolation
from penstock.usecases.jobs import cancel
from penstock.usecases.overdue import LITTLE, PARTS, Walk
from penstock.usecases.pools import scheduler, serving
from penstock.usecases.workers import agents
from tests.usecases.steps import TOKEN, finish, hello, job_of, submit, worker_of

HOUR = timedelta(hours=1)


def a_unit(number: int, due: datetime) -> Unit:
    """A worker of a factory whose function always fails."""
    lease = UnitLease(job="", attempt=1, order=0, pool="target/none", slot=str(number), fence=1)
    return Unit(
        id=f"w-{number}", is_a=UnitKind.WORKER, maker="cloud", type="none", state=UnitState.DIRTY, since=due, due=due,
        lease=lease,
    )  # fmt: skip


def in_shard(shard: str, count: int, due: datetime) -> list[Unit]:
    """So many units that share a shard of the due index."""
    found = (a_unit(number, due) for number in range(10_000))
    return list(islice((unit for unit in found if shard_of(unit) == shard), count))


def asked(twin: Twin) -> list[str]:
    """The units whose functions were asked for a step, which takes the messages away."""
    found = [message["unit"] for _, _, message in twin.queues.messages if "unit" in message]
    twin.queues.messages = type(twin.queues.messages)(each for each in twin.queues.messages if "unit" not in each[2])
    return found


def take_sweeps(twin: Twin) -> None:
    """Take the messages of the sweep, and leave all others."""
    others = [each for each in twin.queues.messages if each[1] != "sweep"]
    messages = [each for each in twin.queues.messages if each[1] == "sweep"]
    twin.queues.messages.clear()
    for _, queue, message in messages:
        twin.take(queue, message)
    twin.queues.messages.extendleft(reversed(others))


def writes_of_the_index(twin: Twin) -> list[str]:
    """The kinds of the rows whose entry in the due index a write made, moved or removed."""
    kinds: list[str] = []
    write = twin.store._write

    def counted(change: Change) -> None:
        before = twin.store.rows.get(key_of(change))
        write(change)
        after = twin.store.rows.get(key_of(change))
        if (before and before.indexed) != (after and after.indexed):
            kinds.append(before.kind if before else after.kind if after else "")

    twin.store._write = counted  # type: ignore[method-assign]
    return kinds


def test_a_short_job_writes_the_index_when_it_begins(twin: Twin) -> None:
    """Its later deadlines, and the time until which it is kept, are behind its first, so the index keeps that."""
    kinds = writes_of_the_index(twin)
    job = submit(twin, User(name="ada", created=START))
    twin.run()
    hello(twin, job)
    finish(twin, job)
    twin.run()
    assert job_of(twin, job).is_settled
    assert (kinds.count("job"), kinds.count("unit")) == (1, 2)


def test_a_job_that_is_over_leaves_the_shards_of_those_that_run(twin: Twin) -> None:
    """What is left to do for it is nothing that anybody waits for: it holds up no job that is cancelled."""
    job = submit(twin, User(name="ada", created=START))
    twin.run()
    hello(twin, job)
    finish(twin, job)
    look = job_of(twin, job).indexed
    assert look
    assert (look.shard.partition(".")[0], look.at < twin.world.now() + 24 * HOUR) == ("job", True)
    twin.world.time = look.at
    sweep.sweep(twin.on)
    until = job_of(twin, job).end.kept_until
    assert until
    look = job_of(twin, job).indexed
    assert look == exact_look(job_of(twin, job)) == Look(until)
    assert look.shard.partition(".")[0] == "kept"
    twin.world.time = until
    sweep.sweep(twin.on)
    assert job_of(twin, job).end.outputs_gone == until


def test_a_job_whose_time_is_over_before_its_entry_moved_is_moved_first(twin: Twin) -> None:
    job = submit(twin, User(name="ada", created=START))
    twin.run()
    hello(twin, job)
    finish(twin, job)
    until = job_of(twin, job).end.kept_until
    assert until
    twin.world.time = until
    Walk(twin.on, sweep.nudge, until + HOUR, until + HOUR).take(twin.on.store.shards(later=False))
    look = job_of(twin, job).indexed
    assert look == Look(until)
    assert look.shard.partition(".")[0] == "kept"
    assert job_of(twin, job).end.outputs_gone is None


def test_a_worker_in_contact_is_never_looked_at_and_seldom_writes_the_index(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submit(twin, User(name="ada", created=START))
    twin.run()
    hello(twin, job)
    caller = agents.authenticate(twin.on, job, TOKEN)
    looked: list[Key] = []
    monkeypatch.setattr(twin.store, "look_later", lambda due, look, was: looked.append(due.key))
    kinds = writes_of_the_index(twin)
    for second in range(0, 3600, 15):
        agents.heartbeat(twin.on, caller)
        if second % 60 == 0:
            sweep.sweep(twin.on)
        twin.pass_time(15)
    assert worker_of(twin, job).key not in looked
    assert 3600 / 120 <= kinds.count("unit") <= 3600 / 60


def test_a_row_of_which_nothing_comes_is_nudged_more_and_more_rarely(twin: Twin) -> None:
    unit = a_unit(1, twin.world.now())
    twin.store.commit([Create(unit)])
    start, times = twin.world.now(), []
    for minute in range(61):
        twin.world.time = start + timedelta(minutes=minute)
        nudged = sweep.sweep(twin.on).nudged
        assert asked(twin) == [unit.id] * nudged
        times += [minute] * nudged
    assert times == [0, 1, 3, 7, 14, 28, 42, 56]
    assert twin.store.get(unit.key, Unit) == replace(unit, version=1)


def test_a_step_that_is_taken_makes_the_next_nudge_prompt_again(twin: Twin) -> None:
    unit = a_unit(1, twin.world.now())
    twin.store.commit([Create(unit)])
    for _ in range(4):
        twin.pass_time(3600)
        sweep.sweep(twin.on)
    assert asked(twin) == [unit.id] * 4
    was = twin.store.get(unit.key, Unit)
    assert was
    twin.store.commit([Replace(was, replace(was, due=twin.world.now() + timedelta(seconds=30)))])
    twin.pass_time(31)
    sweep.sweep(twin.on)
    assert asked(twin) == [unit.id]
    assert twin.store.rows[unit.key].indexed == Look(twin.world.now() + timedelta(seconds=50), 1)


def test_a_row_whose_deadline_moved_is_not_nudged_and_is_found_at_its_time(twin: Twin) -> None:
    now = twin.world.now()
    twin.store.commit([Create(a_unit(1, now))])
    was = twin.store.get(a_unit(1, now).key, Unit)
    assert was
    twin.store.commit([Replace(was, replace(was, due=now + HOUR))])
    done = sweep.sweep(twin.on)
    assert (done.overdue, done.nudged, asked(twin)) == (0, 0, [])
    assert twin.store.rows[was.key].indexed == Look(now + HOUR)
    twin.pass_time(3600)
    assert sweep.sweep(twin.on).nudged == 1


def test_a_row_that_changes_while_the_sweep_looks_is_left_to_the_next(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever changed it may have made it due earlier: only its own time may be in the index then."""
    now = twin.world.now()
    twin.store.commit([Create(a_unit(1, now))])
    real = twin.store.rows_at

    def rows_at(keys: Any) -> Any:
        found = real(keys)
        for row in found.values():
            twin.store.commit([Replace(row, row)])
        return found

    monkeypatch.setattr(twin.store, "rows_at", rows_at)
    done = sweep.sweep(twin.on)
    assert (done.overdue, done.failed, asked(twin)) == (0, 0, [])


def test_a_row_that_is_no_longer_due_is_no_matter(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index lags: it still has a row that was finished, and one that is gone."""
    rows = [a_unit(number, twin.world.now()) for number in (1, 2)]
    twin.store.commit([Create(row) for row in rows])
    stale = {shard: list(twin.store.overdue(shard, twin.world.now())) for shard in twin.store.shards(later=False)}
    monkeypatch.setattr(twin.store, "overdue", lambda shard, now, **_: stale.get(shard, []))
    one = twin.store.get(rows[0].key, Unit)
    assert one
    twin.store.commit([Replace(one, replace(one, due=None))])
    del twin.store.rows[rows[1].key]
    done = sweep.sweep(twin.on)
    assert (done.overdue, done.failed, asked(twin)) == (0, 0, [])


def test_a_row_that_cannot_be_read_costs_itself_only(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = in_shard("unit.0", 2, twin.world.now())
    twin.store.commit([Create(one), Create(two)])
    real = twin.store.rows_at
    monkeypatch.setattr(
        twin.store, "rows_at", lambda keys: {key: row for key, row in real(keys).items() if key != one.key}
    )
    done = sweep.sweep(twin.on)
    assert (done.overdue, done.nudged, done.failed, asked(twin)) == (2, 1, 1, [two.id])
    assert twin.metrics.last(metrics.FAILED_NUDGES) == 1
    done = sweep.sweep(twin.on)
    assert (done.overdue, done.failed) == (0, 0)  # it has moved on


def test_a_nudge_that_fails_moves_on_too(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(unit: str, is_worker: bool, after: int = 0) -> None:
        raise ValueError("a queue that is not there")

    twin.store.commit([Create(a_unit(1, twin.world.now()))])
    monkeypatch.setattr(twin.queues, "advance", failing)
    assert [sweep.sweep(twin.on).failed for _ in range(2)] == [1, 0]


def test_a_shard_that_cannot_be_read_costs_itself_only(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,), (two,) = (in_shard(shard, 1, twin.world.now()) for shard in ("unit.0", "unit.1"))
    twin.store.commit([Create(one), Create(two)])
    real = twin.store.overdue

    def throttled(shard: str, now: datetime, **how: Any) -> Any:
        if shard == "unit.0":
            raise ValueError("throttled")
        return real(shard, now, **how)

    monkeypatch.setattr(twin.store, "overdue", throttled)
    assert sweep.sweep(twin.on).failed == 2, "the shard, and the comparison, which needs all units"
    assert asked(twin) == [two.id]


@pytest.mark.parametrize("count", [LITTLE, LITTLE + 1])
def test_much_of_a_shard_goes_on_by_messages(twin: Twin, count: int) -> None:
    units = in_shard("unit.3", count, twin.world.now())
    twin.store.commit([Create(unit) for unit in units])
    start = twin.world.now()
    done = sweep.sweep(twin.on)
    messages = [message for _, queue, message in twin.queues.messages if queue == "sweep"]
    if count == LITTLE:
        assert (done.nudged, messages) == (count, [])
    else:
        until = (start + timedelta(minutes=1)).isoformat()
        assert done.nudged == 0
        assert messages == [{"shard": "unit.3", "part": part, "until": until} for part in range(PARTS)]
    take_sweeps(twin)
    assert sorted(asked(twin)) == sorted(unit.id for unit in units)


def flooded(twin: Twin) -> list[Unit]:
    units = in_shard("unit.3", LITTLE + 1, twin.world.now())
    twin.store.commit([Create(unit) for unit in units])
    sweep.sweep(twin.on)
    return units


def test_a_message_that_comes_twice_nudges_nobody_twice(twin: Twin) -> None:
    units = flooded(twin)
    for message in list(twin.queues.messages):
        twin.queues.messages.append(message)
    take_sweeps(twin)
    assert sorted(asked(twin)) == sorted(unit.id for unit in units)


def test_a_message_takes_its_part_and_no_other(twin: Twin) -> None:
    units = flooded(twin)
    message = next(message for _, _, message in twin.queues.messages if message["part"] == 2)
    sweep.go_on(twin.on, message, twin.world.now() + HOUR)
    mine = [unit.id for unit in units if overdue.part_of(unit.key) == 2]
    assert 0 < len(mine) < len(units)
    assert sorted(asked(twin)) == sorted(mine)


def test_a_message_that_comes_after_the_next_sweep_does_nothing(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    units = flooded(twin)
    messages = [message for _, _, message in twin.queues.messages]
    twin.queues.messages.clear()
    twin.pass_time(60)
    with monkeypatch.context() as patch:
        patch.setattr(twin.store, "overdue", lambda shard, now, **_: pytest.fail("nothing is read"))
        for message in messages:
            assert sweep.go_on(twin.on, message, twin.world.now() + HOUR) == 0
    assert asked(twin) == []
    sweep.sweep(twin.on)  # which finds them all again
    take_sweeps(twin)
    assert sorted(asked(twin)) == sorted(unit.id for unit in units)


def slow(twin: Twin, seconds: float) -> Callable[..., None]:
    """A nudge that takes so long."""

    def nudge(on: Any, kind: str, key: Key) -> None:
        twin.queues.advance(key.pk.partition("#")[2], is_worker=True)
        twin.pass_time(seconds)

    return nudge


@pytest.mark.parametrize(("until", "taken"), [(5, 5), (100, 6)])
def test_a_part_ends_when_its_time_is_over(twin: Twin, monkeypatch: pytest.MonkeyPatch, until: int, taken: int) -> None:
    """The time of the call that takes it, or of its message: whichever is over first."""
    units = [unit for unit in in_shard("unit.3", 100, twin.world.now()) if overdue.part_of(unit.key) == 1][:10]
    twin.store.commit([Create(unit) for unit in units])
    monkeypatch.setattr(sweep, "nudge", slow(twin, 1))
    end = twin.world.now() + timedelta(seconds=6)
    message = {"shard": "unit.3", "part": 1, "until": end.isoformat()}
    sweep.go_on(twin.on, message, twin.world.now() + timedelta(seconds=until))
    assert len(asked(twin)) == taken


def test_a_sweep_whose_time_is_over_leaves_the_rest_to_messages(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shard that it was at, and all after it, though it never saw them."""
    one, two = in_shard("unit.3", 2, twin.world.now())
    other = next(iter(in_shard("unit.4", 1, twin.world.now())))
    twin.store.commit([Create(unit) for unit in (one, two, other)])
    walk = Walk(twin.on, slow(twin, 10), twin.world.now() + timedelta(seconds=5), twin.world.now() + HOUR)
    walk.take(["unit.3", "unit.4", "unit.5"])
    assert len(asked(twin)) == 1
    assert [(m["shard"], m["part"]) for _, _, m in twin.queues.messages] == [
        (shard, part) for shard in ("unit.3", "unit.4", "unit.5") for part in range(PARTS)
    ]


def test_a_sweep_has_its_time_for_rows_and_for_deletions_each(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    now = twin.world.now()
    strays = [stray(id_of(f"J{at}", "A"), 0, now) for at in range(3)]
    twin.store.commit([*map(Create, in_shard("unit.3", 3, now)), *map(Create, strays)])
    monkeypatch.setattr(sweep, "nudge", slow(twin, 15))
    monkeypatch.setattr(expire, "nudge", slow(twin, 15))
    sweep.sweep(twin.on)
    assert len(asked(twin)) == 4
    left = (now + timedelta(minutes=1)).isoformat()
    assert {message["until"] for _, _, message in twin.queues.messages} == {left}


def test_what_nobody_waits_for_goes_on_by_messages_too(twin: Twin) -> None:
    now = twin.world.now()
    found = (stray(id_of(f"J{at}", "A"), 0, now) for at in range(500))
    strays = [row for row in found if shard_of(row) == "artifact.0"][: LITTLE + 1]
    twin.store.commit([Create(row) for row in strays])
    assert expire.expire_overdue(twin.on).moved == 0
    take_sweeps(twin)
    assert not any(twin.store.get(row.key, Artifact) for row in strays)


def test_a_thousand_stuck_units_hide_no_cancelled_job(twin: Twin) -> None:
    """P2: five hundred rows that stayed due were all that a sweep saw."""
    job = submit(twin, User(name="ada", created=START))
    twin.run()
    hello(twin, job)
    for at in range(0, 1000, 100):
        twin.store.commit([Create(a_unit(number, START)) for number in range(at, at + 100)])
    cancel.cancel(twin.on, User(name="ada", created=START), job)
    due = job_of(twin, job).due
    assert due
    twin.world.time = due
    sweep.sweep(twin.on)
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED


def pools(twin: Twin, count: int) -> list[str]:
    """The names of so many pools that somebody waits for: there are no others."""
    names = [f"quota/q{number:04d}" for number in range(count)]
    for name in names:
        claim = Claim(pool=name, job="01J", attempt=1, step=0, count=1, pools=(name,), priority=0, since=START)
        twin.store.commit([Create(Pool(name=name, limit=1)), Create(claim)])
    return names


@pytest.fixture
def bare() -> Twin:
    """A twin without a site, and so without pools."""
    return Twin()


@pytest.fixture
def served(bare: Twin, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pools that are served, each of which takes a second."""
    names: list[str] = []

    def serve(on: Any, pools: Sequence[str]) -> None:
        names.extend(pools)
        bare.pass_time(1)

    monkeypatch.setattr(serving, "serve", serve)
    return names


def test_of_very_many_pools_each_is_served_once(bare: Twin, monkeypatch: pytest.MonkeyPatch, served: list[str]) -> None:
    monkeypatch.setattr(sweep, "POOLS", 3)
    names, start = pools(bare, 8), bare.world.now()
    found, waited_for = sweep.serve_all(bare.on, Isolation())
    assert [pool.name for pool in found] == names[:3]
    assert sorted(waited_for) == sorted(served) == names[:3]
    until = (start + timedelta(minutes=1)).isoformat()
    assert [message for _, _, message in bare.queues.messages] == [
        {"pools": [names[2], names[5]], "until": until},
        {"pools": [names[5], names[7]], "until": until},
    ]
    take_sweeps(bare)
    assert sorted(served) == names


def test_a_pool_that_nobody_waits_for_is_not_served(bare: Twin, served: list[str]) -> None:
    bare.store.commit([Create(Pool(name="quota/none", limit=1))])
    assert sweep.serve_all(bare.on, Isolation())[1] == served == []


def test_each_minute_another_pool_is_the_first(bare: Twin, served: list[str]) -> None:
    """So that none is for ever behind others that take all the time."""
    names, first = pools(bare, 30), set()
    for _ in range(30):
        now = bare.world.now()
        sweep.serve_all(bare.on, Isolation())
        assert len(served) == 20  # those of twenty seconds
        first |= {served[0]}
        served.clear()
        bare.world.time = now + timedelta(minutes=1)
    assert first == set(names)


def test_a_message_about_pools_has_its_time(bare: Twin, served: list[str]) -> None:
    names, now = pools(bare, 30), bare.world.now()
    message = {"pools": ["", names[-1]], "until": (now + timedelta(seconds=10)).isoformat()}
    sweep.go_on(bare.on, message, now + timedelta(seconds=7))
    assert len(served) == 7
    sweep.go_on(bare.on, message, now + HOUR)
    assert len(served) == 10


def test_who_waits_is_reported_by_whoever_looks(bare: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    names, now = pools(bare, 3), bare.world.now()
    monkeypatch.setattr(scheduler, "freed", lambda *_: [])
    message = {"pools": [names[0], names[1]], "until": (now + HOUR).isoformat()}
    sweep.go_on(bare.on, message, now + HOUR)
    for metric in (metrics.POOL_WAITING, metrics.POOL_LIMIT):
        assert bare.metrics.last(metric, pool=names[1]) == 1
        assert list(bare.metrics.told[metric.name]) == [frozenset({("pool", names[1])})]


def test_what_a_message_could_not_move_on_is_counted(bare: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(on: Any, pools: Sequence[str]) -> None:
        raise ValueError("a pool that cannot be")

    monkeypatch.setattr(serving, "serve", failing)
    names, now = pools(bare, 2), bare.world.now()
    message = {"pools": [names[0], names[1]], "until": (now + HOUR).isoformat()}
    assert sweep.go_on(bare.on, message, now + HOUR) == 1
    assert bare.metrics.last(metrics.FAILED_NUDGES) == 1


@pytest.mark.parametrize("count", [1, LITTLE + 1])
def test_how_late_the_sweep_comes_is_told(twin: Twin, count: int) -> None:
    """Of rows that it never came to before: of the others it is their pause."""
    now = twin.world.now()
    twin.store.commit([Create(unit) for unit in in_shard("unit.3", count, now)])
    twin.pass_time(90)
    assert late(twin, lambda: sweep.sweep(twin.on)) == [90, 0]
    assert count > LITTLE or told(twin, metrics.OVERDUE_ROWS) == [1, 0]
    assert max(late(twin, lambda: take_sweeps(twin)), default=90) == 90
    twin.pass_time(3600)
    assert late(twin, lambda: sweep.sweep(twin.on)) == [0, 0]


def test_how_late_a_part_of_a_shard_is_is_told_of_the_sweep(twin: Twin) -> None:
    unit = a_unit(1, twin.world.now())
    twin.store.commit([Create(unit)])
    twin.pass_time(90)
    message = {"shard": shard_of(unit), "until": (twin.world.now() + HOUR).isoformat()}
    for part in range(PARTS):
        sweep.go_on(twin.on, {**message, "part": part}, twin.world.now() + HOUR)
    assert (max(told(twin, metrics.SWEEP_LATE)), metrics.TIDY_LATE.name in twin.metrics.told) == (90, False)


def told(twin: Twin, metric: Metric) -> list[float]:
    """What was told of a metric: in a sweep the last is the zero that keeps it from missing."""
    return twin.metrics.told[metric.name][frozenset()]


def late(twin: Twin, act: Callable[[], object]) -> list[float]:
    """What an act tells of how late the sweep is."""
    before = len(told(twin, metrics.SWEEP_LATE))
    act()
    return told(twin, metrics.SWEEP_LATE)[before:]


def test_how_late_deletions_are_is_told_apart(twin: Twin) -> None:
    now = twin.world.now()
    doomed = stray(id_of("J1", "A1"), 0, now)
    twin.store.commit([Create(doomed)])
    twin.pass_time(90)
    message = {"shard": shard_of(doomed), "until": (twin.world.now() + HOUR).isoformat()}
    for part in range(PARTS):
        sweep.go_on(twin.on, {**message, "part": part}, twin.world.now() + HOUR)
    assert max(twin.metrics.told[metrics.TIDY_LATE.name][frozenset()]) == 90
    assert metrics.SWEEP_LATE.name not in twin.metrics.told
    assert metrics.OVERDUE_ROWS.name not in twin.metrics.told


def test_an_unknown_message_does_nothing(twin: Twin) -> None:
    rows = dict(twin.store.rows)
    for message in ({}, {"shard": "unit.0"}, {"until": "2100-01-01T00:00:00+00:00"}):
        assert sweep.go_on(twin.on, message, twin.world.now() + HOUR) == 0
    assert twin.store.rows == rows


def test_a_deletion_moves_its_entry_only_if_its_first_nudge_came_to_nothing(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nudge writes or deletes the row itself. One that fails is looked at more and more rarely, like any other."""
    monkeypatch.setattr(expire, "nudge", lambda on, kind, key: None)
    start = twin.world.now()
    row = Retention(job="J1", until=start)
    twin.store.commit([Create(row)])
    looks = []
    for seconds in (0, 89, 1, 60):
        twin.pass_time(seconds)
        sweep.sweep(twin.on)
        looks.append(twin.store.rows[row.key].indexed)
    moved = [Look(start + timedelta(seconds=140), 1), Look(start + timedelta(seconds=250), 2)]
    assert looks == [Look(start), Look(start), *moved]
