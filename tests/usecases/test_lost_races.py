"""Whoever lost a race pauses a little, reads again, and does what it was to do. [SLOT-1]"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.domain.pools.pools import SlotState, Warm
from penstock.testing.twin import Twin
from penstock.usecases.pools import resize
from penstock.usecases.site import apply
from penstock.usecases.units import prewarm
from tests.usecases.exact import pool_row, put
from tests.usecases.prewarmed import LINUX, NONE, a_twin, existing
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import slots

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
