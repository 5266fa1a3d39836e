"""Exactly what a comparison reads, writes and leaves alone. [UNIT-1]"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock import listings
from penstock.domain.units import comparison
from penstock.domain.units.comparison import SWEEP_KEY, Comparison, LastSweep
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured
from penstock.kernel.rows import Create
from penstock.testing.twin import Twin
from penstock.usecases import cooldowns
from penstock.usecases.units import reconcile
from tests.usecases.exact import drop, put, running
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import job_of, worker_of
from tests.usecases.strays import STRAY, compare_all, compared, regular

MOMENT = timedelta(milliseconds=1)


def remember(twin: Twin, *, resumed: timedelta = comparison.GRACE, **change: Any) -> None:
    """A factory's comparison is due again, and the sweep was back `resumed` ago."""
    now = twin.world.now()
    last = LastSweep(at=now - timedelta(minutes=1), resumed=now - resumed)
    row = Comparison(maker="factory/hand", tried=now - comparison.COMPARE_EVERY)
    assert twin.store.commit([Create(last), Create(replace(row, **change))])


@pytest.mark.parametrize(("early", "strays"), [(timedelta(0), 1), (MOMENT, 0)], ids=["over", "not yet"])
def test_the_quiet_after_an_outage_is_over_when_it_was_as_long_as_it_has_to(
    twin: Twin, early: timedelta, strays: int
) -> None:
    twin.drivers.hand.create(STRAY)
    first = twin.world.now() - comparison.STRAY_AFTER
    remember(twin, resumed=comparison.GRACE - early, strays={STRAY.id: first})
    assert compare_all(twin).strays == strays


def test_that_a_sweep_runs_is_recorded_before_anything_is_listed(twin: Twin) -> None:
    """A list may take long; that is no outage."""
    recorded: list[LastSweep | None] = []

    def noting() -> list[str]:
        recorded.append(twin.store.get(SWEEP_KEY, LastSweep))
        return []

    twin.drivers.hand.list = noting  # type: ignore[method-assign]
    compare_all(twin)
    assert [row is not None for row in recorded] == [True]


@pytest.mark.parametrize("is_first", [True, False], ids=["the first", "a later one"])
def test_the_later_of_two_sweeps_is_recorded(twin: Twin, is_first: bool) -> None:
    """Who comes late does not set the time back, as if there had been an outage."""
    if not is_first:
        compare_all(twin)

    def later() -> None:
        twin.pass_time(60)
        compare_all(twin)

    before_the_next_commit(twin, later)
    compare_all(twin)
    row = twin.store.get(SWEEP_KEY, LastSweep)
    assert row
    assert row.at == twin.world.now()


@pytest.mark.parametrize("error", [Misconfigured("no leave"), KeyError("odd")])
def test_whatever_a_driver_raises_when_it_lists_is_logged_and_counted(
    twin: Twin, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    found = []

    def breaking() -> Iterable[str]:
        raise error

    twin.drivers.hand.list = breaking  # type: ignore[method-assign]
    monkeypatch.setattr(reconcile.log, "warning", lambda *_, extra: found.append(extra["maker"]))
    compare_all(twin)
    assert found == ["factory/hand"]
    assert [row.count for row in cooldowns.failures(twin.on, "factory/hand")] == [1]


@pytest.mark.parametrize("is_first", [True, False], ids=["the first", "a later one"])
@pytest.mark.parametrize("is_failing", [True, False], ids=["failing", "listing"])
def test_the_first_of_two_concurrent_comparisons_is_stored(twin: Twin, is_first: bool, is_failing: bool) -> None:
    """What the other found would be forgotten: here, since when a stray is there."""
    hand, plain = twin.drivers.hand, twin.drivers.hand.list
    if not is_first:
        regular(twin, 4)
        twin.pass_time(240)
    hand.create(STRAY)

    def meanwhile() -> Iterable[str]:
        hand.list = plain  # type: ignore[method-assign]
        twin.pass_time(comparison.COMPARE_EVERY.total_seconds())  # until then, another sweep does not ask
        compare_all(twin)
        if is_failing:
            raise Misconfigured("no leave to list")
        return []

    hand.list = meanwhile  # type: ignore[method-assign]
    compare_all(twin)
    assert list(compared(twin).strays) == [STRAY.id]
    assert compared(twin).failures == 0


def test_what_another_comparison_has_just_found_did_not_vanish(twin: Twin, ada: User) -> None:
    """Whose comparison is stored acts upon it, and nobody upon what was found before. [JOB-1]"""
    unit, hand = worker_of(twin, running(twin, ada)), twin.drivers.hand
    twin.pass_time(3600)
    remember(twin, seen=(unit.id,), missing={unit.id: comparison.Missing(twin.world.now() - timedelta(hours=1), 5)})
    plain = hand.list

    def meanwhile() -> Iterable[str]:
        hand.list = plain  # type: ignore[method-assign]
        twin.pass_time(comparison.COMPARE_EVERY.total_seconds())
        compare_all(twin)
        return []

    hand.list = meanwhile  # type: ignore[method-assign]
    before = worker_of(twin, unit.lease.job)
    compare_all(twin)
    assert worker_of(twin, unit.lease.job) == before


def test_units_are_read_page_by_page_to_the_last(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "PAGE", 2)
    unit = worker_of(twin, running(twin, ada))
    ids = [unit.id, "w-2", "w-3"]
    twin.store.commit([Create(replace(unit, id=id, version=0)) for id in ids[1:]])
    twin.pass_time(3600)
    remember(twin, seen=tuple(ids))
    twin.drivers.hand.list = lambda: []  # type: ignore[method-assign]
    listed, after = twin.store.listed, list[str]()

    def noting(*given: Any, **named: Any) -> list[Any]:
        after.append(named["after"])
        assert len(after) < 9, "the pages never end"
        return listed(*given, **named)

    monkeypatch.setattr(twin.store, "listed", noting)
    compare_all(twin)
    assert sorted(compared(twin).missing) == sorted(ids)


def test_a_machine_whose_row_is_not_listed_yet_is_no_stray(twin: Twin, ada: User) -> None:
    """The listing may lag; the row does not."""
    unit = worker_of(twin, running(twin, ada))
    twin.store.listed = lambda *_, **__: []  # type: ignore[method-assign]
    compare_all(twin)
    assert not compared(twin).strays
    assert compared(twin).seen == (unit.id,)


def unwanted(twin: Twin, ada: User) -> Unit:
    """A worker that nobody wants since long."""
    job = running(twin, ada)
    drop(twin, job_of(twin, job))
    put(twin, worker_of(twin, job), since=twin.world.now() - timedelta(hours=1))
    return worker_of(twin, job)


@pytest.mark.parametrize("is_quiet", [True, False], ids=["quiet", "as always"])
def test_in_the_quiet_after_an_outage_nothing_is_put_back_either(twin: Twin, ada: User, is_quiet: bool) -> None:
    unit = unwanted(twin, ada)
    remember(twin, resumed=timedelta(0) if is_quiet else comparison.GRACE)
    compare_all(twin)
    assert (worker_of(twin, unit.lease.job) == unit) is is_quiet


def test_a_comparison_acts_upon_the_units_of_its_own_maker_alone(twin: Twin, ada: User) -> None:
    """What another lists, or could not list, is another comparison's business."""
    put(twin, unwanted(twin, ada), maker="other")
    (unit,) = (row for row in twin.store.rows.values() if isinstance(row, Unit))
    remember(twin)
    twin.drivers.hand.list = lambda: []  # type: ignore[method-assign]
    compare_all(twin)
    assert worker_of(twin, unit.lease.job) == unit


def test_what_is_listed_after_its_unit_is_gone_is_destroyed_at_once(twin: Twin, ada: User) -> None:
    """It had its row, which says that nobody has it any more: there is none to wait for."""
    unit = worker_of(twin, running(twin, ada))
    put(twin, unit, state=UnitState.GONE)
    remember(twin)
    assert unit.id in twin.drivers.hand.made
    assert compare_all(twin).strays == 1
    assert unit.id not in twin.drivers.hand.made
