"""What was read is stale when it is written: short stories of two who do not know of each other. [SLOT-1] [SLOT-3]"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from penstock.domain.pools.pools import Slot, SlotState
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Create
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel
from penstock.usecases.pools import resize, scheduler
from penstock.usecases.site import apply
from tests.usecases.conftest import SITE
from tests.usecases.steps import run_to_end, slots, submit
from tests.usecases.watched import WatchedStore

pytestmark = pytest.mark.usefixtures("by_flow")

Fits = Callable[[Sequence[Change]], bool]


@pytest.fixture
def watched() -> Twin:
    """A twin whose rows are looked at after every commit."""
    made = Twin()
    made.store = WatchedStore()
    made.store.operator = True
    object.__setattr__(made.on, "store", made.store)
    apply.apply(made.on, "root", SITE, "site.toml")
    made.run()
    return made


def before(twin: Twin, fits: Fits, other: Callable[[], object]) -> list[str]:
    """Let another function run whole before the first commit that fits; what is returned says whether it came to it."""
    commit = twin.store.commit
    came: list[str] = []

    def racing(changes: Sequence[Change]) -> bool:
        if not came and fits(changes):
            came.append("yes")
            other()
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]
    return came


def takes(pool: str) -> Fits:
    """A commit by which a slot of a pool is taken."""
    return lambda changes: any(
        isinstance(each, Create) and isinstance(each.row, Slot) and each.row.pool == pool and each.row.state == "held"
        for each in changes
    )


def test_a_slot_that_was_taken_and_given_back_in_between_is_not_taken_as_it_was(watched: Twin, ada: User) -> None:
    """SLOT-3: it is free again, at the same place, and with another fence."""
    first = submit(watched, ada, resources=["bench"])

    def another() -> None:
        urgent = submit(watched, ada, resources=["bench"], priority=9)
        scheduler.acquire(watched.on, urgent, 1, 1, "urgent")
        apply.pause(watched.on, "resource/bench", paused=True)
        cancel.cancel(watched.on, ada, urgent)
        watched.run()

    came = before(watched, takes("resource/bench"), another)
    watched.run()
    assert came
    apply.pause(watched.on, "resource/bench", paused=False)
    run_to_end(watched, first)
    assert slots(watched, "resource/bench", SlotState.FREE) == ["bench-1"]


def test_a_resize_that_is_told_twice_makes_a_slot_once(watched: Twin, ada: User) -> None:
    """SLOT-1: also when the slot that the other made is taken already."""
    waiting = [submit(watched, ada) for _ in range(4)]
    watched.run()

    def makes(changes: Sequence[Change]) -> bool:
        return any(isinstance(each, Create) and isinstance(each.row, Slot) for each in changes)

    apply.resize(watched.on, "target/linux", 3)
    came = before(watched, makes, lambda: resize.resize(watched.on, "target/linux"))
    watched.run()
    assert came
    assert len(slots(watched, "target/linux", SlotState.HELD)) == 3
    for job in waiting:
        run_to_end(watched, job)
    assert len(slots(watched, "target/linux", SlotState.FREE)) == 3
