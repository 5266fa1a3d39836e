"""Whoever lost a race pauses a little, reads again, and does what it was to do. [SLOT-1]"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.domain.pools.pools import Slot, SlotName, SlotState, Warm
from penstock.domain.site.site import Shape
from penstock.domain.units.units import STEP_WITHIN, UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Create
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel, settle
from penstock.usecases.pools import resize
from penstock.usecases.site import apply
from penstock.usecases.units import advance, prewarm
from tests.usecases.exact import pool_row, put, site, unit_of
from tests.usecases.prewarmed import LINUX, NONE, a_twin, existing
from tests.usecases.races import after_the_next_commit, before_the_next_commit
from tests.usecases.steps import slots, submit

DB = "resource/db"


def _pauses(twin: Twin) -> bool:
    apply.pause(twin.on, DB, paused=True)
    return pool_row(twin, DB).paused


def _resizes(twin: Twin) -> bool:
    resize.resize(twin.on, DB)
    return len(slots(twin, DB, SlotState.FREE)) == 3


def _fills(twin: Twin) -> bool:
    prewarm.fill(twin.on, LINUX)
    return len(existing(twin)) == 1


@pytest.mark.parametrize(("pool", "act"), [(DB, _pauses), (DB, _resizes), (LINUX, _fills)])
def test_whoever_lost_a_race_pauses_and_does_it_then(pool: str, act: Callable[[Twin], bool]) -> None:
    twin = a_twin(NONE)
    put(twin, pool_row(twin, DB), limit=3)
    put(twin, pool_row(twin, LINUX), warm=Warm(least=1))
    paused = list[int]()
    twin.world.pause = paused.append  # type: ignore[method-assign]
    before_the_next_commit(twin, lambda: put(twin, pool_row(twin, pool), broken=1))
    assert act(twin)
    assert paused[0] == 0


def test_a_pool_of_more_slots_than_one_read_finds_by_itself_is_resized() -> None:
    twin = a_twin(NONE)
    apply.resize(twin.on, DB, 1001)
    twin.run()
    assert pool_row(twin, DB).due is None


def test_new_slots_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10,000 there are fifty million pairs, and the function has a minute until its first commit."""
    twin = a_twin(NONE)
    compared = list[object]()
    monkeypatch.setattr(Create, "__eq__", lambda self, other: bool(compared.append(other)))
    apply.resize(twin.on, DB, 101)
    twin.run()
    assert len(slots(twin, DB, SlotState.FREE)) == 101
    assert len(compared) < 101


def test_a_pool_is_resized_however_many_names_it_had() -> None:
    """A slot stays when its name is taken out: over the years there may be more of them than a pool may have."""
    twin = a_twin(NONE)
    apply.set_pool(twin.on, DB, Shape(1, ("first",)))
    twin.run()
    for at in range(10_001):
        name = SlotName(pool=DB, name=f"old-{at}")
        assert twin.store.commit([Create(name), Create(Slot(pool=DB, name=name.name, state=SlotState.OFF))])
    apply.set_pool(twin.on, DB, Shape(1, ("new",)))
    twin.run()
    assert pool_row(twin, DB).due is None
    assert slots(twin, DB, SlotState.FREE) == ["new"]


def test_a_late_resource_is_not_ready_if_its_attempt_ends_while_its_well_is_asked(ada: User) -> None:
    """Whoever asks late locks the unit. That it is locked says nothing of its lease. [SLOT-3] [UNIT-2]"""
    resources = {"db": {"well": "shelf", "limit": 1}}
    twin = site(site_toml(targets={"default": {}}, wells={"shelf": "lock"}, resources=resources))
    job = submit(twin, ada, resources=["db"])
    twin.run()
    made = unit_of(twin, job, 1)
    late = twin.world.now() - 2 * STEP_WITHIN
    asked = replace(made.creation, made=None)
    put(twin, made, state=UnitState.CREATING, since=late, step=replace(made.step, next_look=late), creation=asked)

    def end() -> None:
        assert unit_of(twin, job, 1).step.busy, "it is locked"
        cancel.cancel(twin.on, ada, job)
        settle.settle(twin.on, job, 1, "Cancelled", None)
        assert unit_of(twin, job, 1).state is UnitState.DIRTY

    after_the_next_commit(twin, end)
    advance.advance(twin.on, made.id)
    assert unit_of(twin, job, 1).state is UnitState.DIRTY
    twin.run()
    assert slots(twin, DB, SlotState.FREE) == ["1"]
