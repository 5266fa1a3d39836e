"""Grants and releases of slots do not write their pool's row; a lowered limit is kept all the same. [SLOT-1]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.pools import capacity
from penstock.domain.pools.pools import HoldTimes, Pool, Slot, SlotState, collection, pool_key
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import TRIES
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.pools import resize
from penstock.usecases.site import apply
from penstock.usecases.units import release
from tests.usecases.races import Died
from tests.usecases.steps import finish, hello, run_to_end, slots, submit

LINUX = "target/linux"


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", site_toml(targets={"linux": {"limit": 2}, "default": "linux"}), "site.toml")
    made.run()
    return made


def version(twin: Twin) -> int:
    row = twin.store.get(pool_key(LINUX), Pool)
    assert row
    return row.version


def times(twin: Twin) -> HoldTimes | None:
    return twin.store.get(HoldTimes(pool=LINUX).key, HoldTimes)


def test_neither_a_grant_nor_a_release_writes_the_row(twin: Twin, ada: User) -> None:
    before = version(twin)
    made = [submit(twin, ada) for _ in range(3)]
    for job in made:
        run_to_end(twin, job)
    assert version(twin) == before


def test_one_holder_in_so_many_is_counted(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def draw(count: int) -> int:
        drawn.append(count)
        return 1 if count == release.SAMPLED else 0

    monkeypatch.setattr(twin.world, "draw", draw)
    run_to_end(twin, submit(twin, ada))
    assert times(twin) is None
    assert drawn.count(release.SAMPLED) == 1
    monkeypatch.setattr(twin.world, "draw", lambda count: 0)
    run_to_end(twin, submit(twin, ada))
    found = times(twin)
    assert found
    assert found.holds == 1


def test_a_time_whose_race_is_lost_is_lost(twin: Twin, ada: User) -> None:
    run_to_end(twin, submit(twin, ada))
    commit, lost = twin.store.commit, []

    def losing(changes: Sequence[Change]) -> bool:
        if any(isinstance(change, Replace) and isinstance(change.row, HoldTimes) for change in changes):
            lost.append(1)
            return False
        return commit(changes)

    twin.store.commit = losing  # type: ignore[method-assign]
    run_to_end(twin, submit(twin, ada))
    found = times(twin)
    assert found
    assert (found.holds, lost) == (1, [1])


def test_a_slot_that_came_back_to_a_lowered_pool_is_granted_to_nobody(twin: Twin, ada: User) -> None:
    """SLOT-1: two are held, one of them is withdrawn, and the other one comes back while somebody waits."""
    first, second = submit(twin, ada), submit(twin, ada)
    twin.run()
    for job in (first, second):
        hello(twin, job)
    apply.resize(twin.on, LINUX, 1)
    twin.run()
    withdrawn = next(slot for slot in held(twin) if slot.withdrawn)
    stays = next(slot for slot in held(twin) if not slot.withdrawn)
    finish(twin, str(stays.job))
    assert slots(twin, LINUX, SlotState.FREE) == [stays.name]
    waits = submit(twin, ada)
    twin.run()
    assert [(slot.name, slot.withdrawn) for slot in held(twin)] == [(withdrawn.name, False)]
    assert slots(twin, LINUX, SlotState.OFF) == [stays.name]
    finish(twin, str(withdrawn.job))
    assert [slot.job for slot in held(twin)] == [waits]


def free(twin: Twin) -> int:
    return len(twin.store.find(collection(LINUX), "free#", Slot, limit=10_000))


def held(twin: Twin) -> list[Slot]:
    return twin.store.find(collection(LINUX), "held#", Slot)


def test_a_slot_is_read_before_the_row_that_says_whether_it_may_be_granted(twin: Twin, ada: User) -> None:
    """SLOT-1: the limit is lowered, and the resize done, between the two reads."""
    first, second = submit(twin, ada), submit(twin, ada)
    twin.run()
    for job in (first, second):
        hello(twin, job)
    third = submit(twin, ada)
    find, came = twin.store.find, []

    def lowers(pk: str, prefix: str, *how: Any, **more: Any) -> Any:
        found = find(pk, prefix, *how, **more)
        if not came and pk == collection(LINUX) and prefix == "free#cold#":
            came.append(1)
            apply.resize(twin.on, LINUX, 1)
            resize.resize(twin.on, LINUX)
            stays = next(slot for slot in held(twin) if not slot.withdrawn)
            finish(twin, str(stays.job))
        return found

    twin.store.find = lowers  # type: ignore[method-assign]
    twin.run()
    assert came
    assert len(held(twin)) == 1
    assert third not in [slot.job for slot in held(twin)]


def test_growing_beside_releases_wastes_no_commits(twin: Twin, ada: User) -> None:
    """P7: each release made the rest of the plan void, and the resize went on with it."""
    jobs = [submit(twin, ada) for _ in range(2)]
    twin.run()
    for job in jobs:
        hello(twin, job)
    commit, made, refused = twin.store.commit, [], []

    def beside(changes: Sequence[Change]) -> bool:
        is_new = any(isinstance(change, Create) and isinstance(change.row, Slot) for change in changes)
        if is_new and len(made) % 5 == 0 and jobs:
            twin.store.commit = commit  # type: ignore[method-assign]
            finish(twin, jobs.pop())
            twin.store.commit = beside  # type: ignore[method-assign]
        done = commit(changes)
        (made if done else refused).append(len(changes))
        return done

    apply.resize(twin.on, LINUX, 1002)
    twin.queues.messages.clear()
    twin.store.commit = beside  # type: ignore[method-assign]
    resize.resize(twin.on, LINUX)
    assert free(twin) == 1002
    assert not refused
    assert len(made) == 1000 / resize.NEW_SLOTS + 1


def test_a_resize_that_loses_a_race_reads_again_and_goes_on(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resize, "NEW_SLOTS", 10)
    commit = twin.store.commit
    refused: list[bool] = []

    def refusing(changes: Sequence[Change]) -> bool:
        is_refused = len(refused) < 30 and len(refused) % 2 == 0
        refused.append(is_refused)
        return not is_refused and commit(changes)

    apply.resize(twin.on, LINUX, 200)
    twin.store.commit = refusing  # type: ignore[method-assign]
    resize.resize(twin.on, LINUX)
    row = twin.store.get(pool_key(LINUX), Pool)
    assert row
    assert row.due is None
    assert free(twin) == 200
    assert sum(refused) == 15, "more than it tries in a row; each that was made counts them anew"


def test_a_resize_that_died_leaves_its_pool_due(twin: Twin) -> None:
    """SLOT-1: what it moved so far is not what the row says, and the sweep ends it."""
    apply.resize(twin.on, LINUX, 200)
    twin.queues.messages.clear()
    row = twin.store.get(pool_key(LINUX), Pool)
    assert row
    settled = Replace(row, Pool(name=LINUX, limit=200))
    assert twin.store.commit([settled]), "as if it was done, and another one has something to move"
    commit, made = twin.store.commit, []

    def dies(changes: Sequence[Change]) -> bool:
        if made:
            raise Died
        made.append(changes)
        return commit(changes)

    twin.store.commit = dies  # type: ignore[method-assign]
    with pytest.raises(Died):
        resize.resize(twin.on, LINUX)
    found = twin.store.get(pool_key(LINUX), Pool)
    assert found
    assert found.due is not None


def test_a_resize_whose_end_is_always_refused_is_left_to_the_sweep(twin: Twin) -> None:
    """All slots are right already: only the row still says that it is due, and somebody else writes it each time."""
    row = twin.store.get(pool_key(LINUX), Pool)
    assert row
    assert twin.store.commit([Replace(row, replace(row, due=twin.world.now()))])
    tries: list[object] = []
    commit, pause, pauses = twin.store.commit, twin.world.pause, []

    def refusing(changes: Sequence[Change]) -> bool:
        if not any(isinstance(change, Replace) and isinstance(change.row, Pool) for change in changes):
            return commit(changes)
        tries.append(changes)
        assert len(tries) <= TRIES
        return False

    def pausing(number: int) -> None:
        pauses.append(number)
        pause(number)

    twin.store.commit = refusing  # type: ignore[method-assign]
    twin.world.pause = pausing  # type: ignore[method-assign]
    resize.resize(twin.on, LINUX)
    assert len(tries) == TRIES
    assert pauses == list(range(TRIES))


@pytest.mark.parametrize(("lost", "taken"), [(0, 0), (2, 2), (9, 3)])
def test_a_plan_says_how_many_commits_it_took(twin: Twin, lost: int, taken: int) -> None:
    row = twin.store.get(pool_key(LINUX), Pool)
    assert row
    new = capacity.fit(
        replace(row, limit=2 + 2 * resize.NEW_SLOTS + 1), twin.store.find(collection(LINUX), "free#", Slot)
    )
    commit, made = twin.store.commit, []

    def losing(changes: Sequence[Change]) -> bool:
        made.append(changes)
        return len(made) <= lost and commit(changes)

    twin.store.commit = losing  # type: ignore[method-assign]
    assert resize._apply_plan(twin.on, row, new) == taken
