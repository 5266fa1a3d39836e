"""All units are found by one of two indexes: those that are due by that, the others by the listing of their kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from penstock.domain.units.units import Unit, UnitKind, UnitLease, UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Create, shard_of
from penstock.testing.twin import START, Twin
from penstock.usecases.units import listing
from tests.usecases.exact import drop, put, running
from tests.usecases.steps import finish, worker_of

SOON = START + timedelta(hours=1)


def unit(number: int, is_a: UnitKind = UnitKind.WORKER, due: datetime | None = SOON) -> Unit:
    id = f"{'w' if is_a is UnitKind.WORKER else 'r'}-{number:026d}"
    lease = UnitLease(job="J1", attempt=1, order=0, pool="target/default", slot=id, fence=1)
    return Unit(
        id=id, is_a=is_a, maker="hand", type="default", state=UnitState.READY, since=START, due=due, lease=lease
    )  # fmt: skip


def store(twin: Twin, rows: Sequence[Unit]) -> None:
    for row in rows:
        assert twin.store.commit([Create(row)])


def every(twin: Twin, is_a: UnitKind = UnitKind.WORKER) -> list[str]:
    return sorted(row.id for row in listing.every(twin.on, is_a))


def pages(twin: Twin, limit: int, is_a: UnitKind = UnitKind.WORKER) -> list[list[str]]:
    """Each page's ids."""
    found, page = [], ""
    while True:
        units, further = listing.read_page(twin.on, is_a, page, limit)
        found.append([each.id for each in units])
        if further is None:
            return found
        page = further


def test_a_unit_is_in_one_index_as_long_as_it_exists(twin: Twin, ada: User) -> None:
    job = running(twin, ada, resources=["bench"])
    for row in [row for row in twin.store.rows.values() if isinstance(row, Unit)]:
        assert (row.indexed is None) != (row.place is None)
    assert len(every(twin)) == len(every(twin, UnitKind.RESOURCE)) == 1
    finish(twin, job)
    twin.run()
    gone = [row for row in twin.store.rows.values() if isinstance(row, Unit)]
    assert {(row.state, row.indexed, row.place) for row in gone} == {(UnitState.GONE, None, None)}
    assert every(twin) == every(twin, UnitKind.RESOURCE) == []


def test_a_worker_writes_no_listing_on_its_way(twin: Twin, ada: User) -> None:
    """That would be one partition of an index for all of them, which takes a thousand writes a second."""
    job = running(twin, ada)
    assert worker_of(twin, job).place is None
    put(twin, worker_of(twin, job), due=None)
    assert worker_of(twin, job).place
    assert len(every(twin)) == 1


@pytest.mark.parametrize("is_a", UnitKind)
def test_all_of_a_kind_are_found_and_no_other(twin: Twin, is_a: UnitKind) -> None:
    rows = [unit(number, kind, SOON if number % 3 else None) for number in range(250) for kind in UnitKind]
    store(twin, rows)
    mine = [row.id for row in rows if row.is_a is is_a]
    assert every(twin, is_a) == mine
    assert sorted(id for page in pages(twin, 40, is_a) for id in page) == mine
    assert pages(twin, 1000, is_a) == [mine]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 20, 21, 100])
def test_pages_are_full_but_for_the_last_and_have_each_unit_once(twin: Twin, limit: int) -> None:
    rows = [unit(number, due=SOON if number % 4 else None) for number in range(20)]
    store(twin, rows)
    assert len({shard_of(row) for row in rows}) > 4
    found = pages(twin, limit)
    assert sorted(id for page in found for id in page) == [row.id for row in rows]
    assert {len(page) for page in found[:-1]} <= {limit}
    assert all(page == sorted(page) for page in found)


def test_no_unit_is_on_the_last_page(twin: Twin) -> None:
    assert pages(twin, 10) == [[]]


def test_a_unit_that_is_gone_meanwhile_is_left_out(twin: Twin) -> None:
    store(twin, [unit(1), unit(2), unit(3)])
    entries = {shard: list(twin.store.overdue(shard, listing.WHENEVER)) for shard in listing.SHARDS}
    put(twin, twin.store.rows[unit(2).key], state=UnitState.GONE, due=None)
    drop(twin, unit(3))
    twin.store.overdue = lambda shard, now, **_: entries[shard]  # type: ignore[method-assign]
    assert every(twin) == [unit(1).id]
    assert pages(twin, 10) == [[unit(1).id]]


def test_a_unit_that_moves_to_the_other_index_meanwhile_is_found_once(twin: Twin) -> None:
    store(twin, [unit(1, due=None)])
    found = listing.every(twin.on, UnitKind.WORKER)
    assert next(found).id == unit(1).id
    put(twin, twin.store.rows[unit(1).key], due=SOON)
    assert list(found) == []


def test_one_that_is_due_has_no_place_whatever_its_kind() -> None:
    for is_a in UnitKind:
        assert unit(1, is_a).place is None
        assert unit(1, is_a, None).place == (f"{is_a}s", unit(1, is_a).id)
        assert replace(unit(1, is_a, None), state=UnitState.GONE).place is None
