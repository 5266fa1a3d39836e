"""Every move of a unit is in the table of `domain/units/lifecycle.py`, and every move in the table is made. [UNIT-1]"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from penstock.domain.units.lifecycle import STAGES, may_move
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Unsatisfiable
from penstock.kernel.rows import Change, key_of
from penstock.testing.store import MemoryStore
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel
from penstock.usecases.site import apply
from penstock.usecases.units import maintenance, quarantine
from tests.usecases.steps import finish, hello, submit, sweep, worker_of
from tests.usecases.warm import SITE, unit_of, worker_at_rest

ROOT = User(name="root", privileges=("admin",), created=START)
Move = tuple[UnitState, UnitState]
State = UnitState


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> set[Move]:
    """The moves that commits have made."""
    found: set[Move] = set()
    real = MemoryStore.commit

    def commit(store: MemoryStore, changes: Sequence[Change]) -> bool:
        before = {key_of(change): store.rows.get(key_of(change)) for change in changes}
        done = real(store, changes)
        for key, was in before.items() if done else ():
            now = store.rows.get(key)
            if isinstance(was, Unit) and isinstance(now, Unit) and was.state is not now.state:
                found.add((was.state, now.state))
        return done

    monkeypatch.setattr(MemoryStore, "commit", commit)
    return found


def runs(twin: Twin, ada: User) -> str:
    job = submit(twin, ada, target="other", resources=["db"])
    twin.run()
    hello(twin, job)
    return job


def a_job_that_ends_well(twin: Twin, ada: User) -> None:
    finish(twin, runs(twin, ada))


def a_job_that_is_cancelled_before_its_worker_is_there(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="other")
    twin.run()
    cancel.cancel(twin.on, ada, job)
    twin.run()


def a_worker_that_is_kept_lent_again_and_retired(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    job = submit(twin, ada, target="linux")
    twin.run()
    agent.hello()
    agent.finish(job)
    agent.hello()
    assert unit_of(twin, agent.worker).state is State.IDLE
    for _ in range(15):
        sweep(twin, 61)


def a_worker_whose_agent_does_not_say_that_it_is_clean(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="linux")
    twin.run()
    hello(twin, job)
    finish(twin, job)
    sweep(twin, 181)


def stuck(twin: Twin, ada: User) -> Unit:
    job = runs(twin, ada)
    twin.drivers.hand.stuck = Unsatisfiable("its disk is gone")
    finish(twin, job)
    for _ in range(15):
        sweep(twin, 61)
    return worker_of(twin, job)


def a_worker_in_quarantine_that_is_released(twin: Twin, ada: User) -> None:
    worker = stuck(twin, ada)
    maintenance.release(twin.on, ROOT, UnitKind.WORKER, worker.id)


def a_worker_in_quarantine_that_is_removed_by_hand(twin: Twin, ada: User) -> None:
    worker = stuck(twin, ada)
    quarantine.confirm_removed(twin.on, ROOT, UnitKind.WORKER, worker.id, "sold")


STORIES: Sequence[Callable[[Twin, User], None]] = (
    a_job_that_ends_well,
    a_job_that_is_cancelled_before_its_worker_is_there,
    a_worker_that_is_kept_lent_again_and_retired,
    a_worker_whose_agent_does_not_say_that_it_is_clean,
    a_worker_in_quarantine_that_is_released,
    a_worker_in_quarantine_that_is_removed_by_hand,
)


def test_these_stories_make_every_move_of_the_table_and_no_other(moves: set[Move], ada: User) -> None:
    for story in STORIES:
        made = Twin()
        apply.apply(made.on, "admin", SITE, "site.toml")
        made.run()
        story(made, ada)
    assert moves == {(state, after) for state, stage in STAGES.items() for after in stage.to}


def test_every_state_is_in_the_table_and_only_the_last_is_final() -> None:
    assert list(STAGES) == list(State)
    assert [state for state, stage in STAGES.items() if not stage.to] == [State.GONE]
    assert all(stage.by and stage.due for stage in STAGES.values())


@pytest.mark.parametrize("state", State)
def test_staying_is_no_move_and_nothing_comes_back(state: State) -> None:
    assert may_move(state, state)
    assert not may_move(State.GONE, state) or state is State.GONE
    assert not may_move(State.DIRTY, State.IDLE), "UNIT-2: what is dirty is never lent again"
