"""A slot has one holder, and an old one can do nothing. [SLOT-1] [SLOT-3]"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.commands import AgentLine, Hello
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, Slot, SlotState, collection, pool_key
from penstock.domain.site.site import Shape
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Replace
from penstock.testing.twin import Twin
from penstock.usecases.pools import resize, scheduler
from penstock.usecases.pools import resize as pools_resize
from penstock.usecases.site import apply
from penstock.usecases.units import advance, drivers
from penstock.usecases.workers import agents
from tests.usecases.steps import (
    TOKEN,
    dies_after_the_report,
    finish,
    hello,
    job_of,
    live,
    run_to_end,
    slots,
    submit,
    sweep,
    told,
    worker_of,
)

pytestmark = pytest.mark.usefixtures("by_flow")


def watch_pools(twin: Twin) -> None:
    """Check after every commit that no slot is there twice and that nothing is granted beyond the limit. [SLOT-1]"""
    commit = twin.store.commit
    before: dict[str, int] = {"target/linux": len(slots(twin, "target/linux", SlotState.HELD))}

    def checked(changes: Sequence[Any]) -> bool:
        done = commit(changes)
        rows = list(twin.store.rows.values())
        names = [(row.pool, row.name) for row in rows if isinstance(row, Slot)]
        assert len(names) == len(set(names)), "a slot is there twice"
        for pool in (row for row in rows if isinstance(row, Pool)):
            held = sum(isinstance(row, Slot) and row.pool == pool.name and bool(row.job) for row in rows)
            assert held <= max(pool.limit, before.get(pool.name, 0)), f"{pool.name} has {held} of {pool.limit}"
            before[pool.name] = held
        return done

    twin.store.commit = checked  # type: ignore[method-assign]


def between(twin: Twin, number: int, other: Callable[[], None]) -> Callable[[], bool]:
    """Let another function run whole just before a commit with this number, until told: did it come to that?"""
    commit, count, ran = twin.store.commit, itertools.count(), []

    def racing(changes: Sequence[Any]) -> bool:
        if next(count) == number:
            twin.store.commit = commit  # type: ignore[method-assign]
            ran.append(True)
            other()
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]

    def disarm() -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        return bool(ran)

    return disarm


def limit(twin: Twin, most: int) -> Callable[[], None]:
    def resize() -> None:
        apply.resize(twin.on, "target/linux", most)
        pools_resize.resize(twin.on, "target/linux")

    return resize


RACES = {
    "raised and raised": (3, 4), "raised and lowered": (4, 1), "lowered and raised": (1, 4),
    "closed and raised": (0, 3), "lowered and lowered": (1, 0), "raised and closed": (5, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", RACES)
def test_resizes_that_race_never_make_a_slot_twice_or_exceed_a_limit(
    ada: User, name: str, fresh: Callable[[], Twin]
) -> None:
    """SLOT-1: a resize, in whose middle another one, a claim and a release run, at every one of its commits."""
    first, second = RACES[name]
    for number in itertools.count():
        twin = fresh()
        running, waiting = submit(twin, ada), [submit(twin, ada) for _ in range(4)]
        twin.run()
        hello(twin, running)
        watch_pools(twin)
        came_to_it = between(twin, number, lambda twin=twin, job=running: (limit(twin, second)(), finish(twin, job)))  # type: ignore[misc]
        limit(twin, first)()
        raced = came_to_it()
        if not raced:
            finish(twin, running)
        twin.run()
        for _ in range(3):
            sweep(twin, 46)
        pool = twin.store.get(pool_key("target/linux"), Pool)
        assert pool
        assert len(slots_that_are_on(twin)) == pool.limit, (number, name)
        assert pool.due is None
        if not raced:
            assert number > 1
            return
        assert all(job_of(twin, job).state is State.ACQUIRING for job in waiting)


def test_a_resize_is_not_done_while_another_one_still_moves_slots(twin: Twin, ada: User) -> None:
    """SLOT-1: a pool that is not due has as many slots as its limit, so no more is granted than that."""
    limit(twin, 2)()
    submit(twin, ada)
    twin.run()
    held = next(slot for slot in slots_of(twin) if slot.state is SlotState.HELD)
    apply.resize(twin.on, "target/linux", 1)
    twin.queues.messages.clear()
    was_closed = Replace(held, replace(held, withdrawn=True))
    assert twin.store.commit([was_closed]), "a resize to 0 came as far as this before the limit was raised to 1"

    def takes_the_other_slot() -> None:
        """A grant that was decided before the limit was lowered."""
        free = next(slot for slot in slots_of(twin) if slot.state is SlotState.FREE)
        assert twin.store.commit(pools.move(free, replace(free, state=SlotState.HELD, fence=free.fence + 1)))

    commit, count = twin.store.commit, itertools.count()

    def racing(changes: Sequence[Any]) -> bool:
        number, done = next(count), False
        if number == 0:
            with_commit(twin, commit, takes_the_other_slot)
        if number != 1:
            return commit(changes)

        def first_the_other(theirs: Sequence[Any]) -> bool:
            nonlocal done
            done = commit(changes)
            twin.store.commit = commit  # type: ignore[method-assign]
            made = commit(theirs)
            pool = twin.store.get(pool_key("target/linux"), Pool)
            assert pool
            assert pool.due or len(slots_that_are_on(twin)) == pool.limit
            return made

        with_commit(twin, first_the_other, lambda: resize.resize(twin.on, "target/linux"))
        return done

    with_commit(twin, racing, lambda: resize.resize(twin.on, "target/linux"))
    assert len(slots_that_are_on(twin)) == 1
    assert next(count) >= 2


def with_commit(twin: Twin, commit: Any, call: Callable[[], None]) -> None:
    before: Any = twin.store.commit
    twin.store.commit = commit  # type: ignore[method-assign]
    call()
    twin.store.commit = before  # type: ignore[method-assign]


def slots_that_are_on(twin: Twin) -> list[Slot]:
    return [slot for slot in slots_of(twin) if slot.state is not SlotState.OFF and not slot.withdrawn]


@pytest.mark.parametrize("waits", [False, True])
def test_a_grant_that_was_decided_before_others_held_the_slot_is_decided_again(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    """SLOT-3: between a server's read and its commit the slot is held by another job and given back."""
    monkeypatch.setattr(scheduler, "DIRECT_TRIES", 0 if waits else 1)
    limit(twin, 1)()
    late = submit(twin, ada)

    def hold_and_give_back() -> None:
        early = submit(twin, ada, priority=5)
        twin.run()
        hello(twin, early)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scheduler, "freed", lambda *_: [])
            finish(twin, early)

    came_to_it = between(twin, 2 if waits else 0, hold_and_give_back)
    twin.run()
    assert came_to_it()
    slot = next(slot for slot in slots_of(twin) if slot.job)
    assert (slot.job, slot.fence) == (late, 2)


def slots_of(twin: Twin) -> list[Slot]:
    return [row for row in twin.store.rows.values() if isinstance(row, Slot) and row.pool == "target/linux"]


def test_lowering_a_limit_takes_nothing_from_a_holder(twin: Twin, ada: User) -> None:
    """SLOT-1: more than the limit may be held only by who held it before; no more is granted until it fits."""
    made = [submit(twin, ada) for _ in range(4)]
    twin.run()
    limit(twin, 1)()
    for job in made[:2]:
        hello(twin, job)
    watch_pools(twin)
    finish(twin, made[0])
    assert len(slots(twin, "target/linux", SlotState.HELD)) == 1
    finish(twin, made[1])
    run_to_end(twin, made[2])
    run_to_end(twin, made[3])
    assert len(slots(twin, "target/linux", SlotState.FREE)) == 1


@pytest.mark.parametrize("which", [0, -1])
def test_a_pool_is_not_above_its_limit_any_longer_than_it_is(twin: Twin, ada: User, which: int) -> None:
    """Nobody has to wait for it for that to be seen: nothing is kept or made ahead of need from it meanwhile."""
    made = [submit(twin, ada) for _ in slots(twin, "target/linux", SlotState.FREE)]
    twin.run()
    limit(twin, len(made) - 1)()
    assert apply.find(twin.on, "target/linux").over
    run_to_end(twin, made[which])
    sweep(twin)
    pool = apply.find(twin.on, "target/linux")
    assert (pool.over, pool.due) == (False, None)


def test_fences_only_grow(twin: Twin, ada: User) -> None:
    """SLOT-3: each holder of a slot has a higher fence, also after the slot was withdrawn and came back."""
    seen: list[int] = []
    for _ in range(3):
        job = submit(twin, ada, resources=["bench"])
        twin.run()
        seen += [slot.fence for slot in twin.store.find(collection("resource/bench"), "held#", Slot)]
        run_to_end(twin, job)
        for most, names in ((0, ()), (1, ("bench-1",))):
            apply.set_pool(twin.on, "resource/bench", Shape(most, names))
            twin.run()
    assert seen == [1, 2, 3]


def test_an_agent_whose_lease_has_ended_changes_nothing(twin: Twin, ada: User) -> None:
    """SLOT-3: a write with an old fence changes nothing: hello, heartbeat and finish of an old attempt."""
    job = submit(twin, ada)
    twin.run()
    old, worker = hello(twin, job), worker_of(twin, job)
    sweep(twin, 121)
    assert job_of(twin, job).attempt == 2
    hello_again = Hello(worker.id, drivers.bootstrap_key(twin.on.signing_key(), worker.id), TOKEN)
    rows = dict(twin.store.rows)
    for call in (
        lambda: agents.hello(twin.on, hello_again),
        lambda: agents.heartbeat(twin.on, old),
        lambda: agents.report_finished(twin.on, old, Result.SUCCEEDED, "late", 0),
        lambda: agents.authenticate(twin.on, job, TOKEN),
    ):
        with pytest.raises(Refused) as refused:
            call()
        assert refused.value.status in (403, 410)
    assert twin.store.rows == rows
    hello(twin, job)
    finish(twin, job, Result.FAILED)
    assert job_of(twin, job).end.outcome is Outcome.FAILED


def test_a_late_cleaning_of_an_old_holder_frees_nothing(twin: Twin, ada: User) -> None:
    """SLOT-3 and UNIT-2: a message about a unit that is gone leaves its slot's next holder alone."""
    first = submit(twin, ada, resources=["bench"])
    twin.run()
    old = [unit.id for unit in live(twin, first)]
    run_to_end(twin, first)
    second = submit(twin, ada, resources=["bench"])
    twin.run()
    rows = dict(twin.store.rows)
    for unit in old:
        advance.advance(twin.on, unit)
    assert twin.store.rows == rows
    run_to_end(twin, second)


def test_lines_of_an_agent_that_was_given_up_are_not_taken(twin: Twin, ada: User) -> None:
    """SLOT-3: what an agent says after its attempt was reported lost is not added to the log."""
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    with dies_after_the_report(twin):
        agents.report_finished(twin.on, caller, Result.SUCCEEDED, "done", 0)
    caller = agents.authenticate(twin.on, job, TOKEN)
    line = AgentLine("2026-01-01T00:00:00Z", "stdout", "late")
    agents.append_events(twin.on, caller, 1, agents.parse_lines([line]))
    assert "late" not in told(twin, job)
