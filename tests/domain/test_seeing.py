"""When a unit is looked for in its driver's list, and what follows from what was seen."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from penstock.domain.units import visibility
from penstock.domain.units.retries import EARLY
from penstock.domain.units.units import MAX_SEARCHES, Search, Unit, UnitState, Visibility
from penstock.domain.units.visibility import SEARCH_LATE, SEARCH_SECONDS, SearchResult
from tests.domain.helpers import NOW, SECOND, unit

HERE, NOT_HERE, DOWN = SearchResult(listed=True), SearchResult(), SearchResult(failure="RateLimited: slow down")


def made(**changes: object) -> Unit:
    return unit(**{"seen": Visibility(), "made": NOW, **changes})


def gone(**changes: object) -> Unit:
    return made(state=UnitState.GONE, **changes)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (made(seen=None), None),
        (gone(seen=None), None),
        (made(made=None), None),
        (made(), "there"),
        (made(state=UnitState.READY), "there"),
        (made(state=UnitState.DIRTY), None),
        (made(seen=Visibility(there=Search(found=NOW))), None),
        (made(seen=Visibility(there=Search(tries=MAX_SEARCHES))), None),
        (made(seen=Visibility(there=Search(tries=MAX_SEARCHES - 1))), "there"),
        (gone(), "gone"),
        (gone(made=None), "gone"),
        (gone(seen=Visibility(there=Search(found=NOW))), "gone"),
        (gone(seen=Visibility(gone=Search(found=NOW))), None),
        (gone(seen=Visibility(gone=Search(tries=MAX_SEARCHES))), None),
    ],
)
def test_one_looks_after_it_was_made_and_after_it_was_destroyed(found: Unit, wanted: str | None) -> None:
    assert visibility.expected(found) == wanted


@pytest.mark.parametrize(("phase", "sight"), [(made(), HERE), (gone(), NOT_HERE)])
def test_what_was_looked_for_is_found_and_noted(phase: Unit, sight: SearchResult) -> None:
    told = visibility.record_search(phase, sight, NOW)
    look = told.seen.gone if phase.state is UnitState.GONE else told.seen.there  # type: ignore[union-attr]
    assert look == Search(found=NOW)
    assert visibility.expected(told) is None
    assert told.journal.entries[-1].what.startswith("its factory ")
    assert ("with our tags" in told.journal.entries[-1].what) is (sight is HERE)


@pytest.mark.parametrize(("phase", "sight"), [(made(), NOT_HERE), (gone(), HERE), (made(), DOWN), (gone(), DOWN)])
def test_a_list_may_lag_or_not_be_had_so_one_looks_again_for_a_minute(phase: Unit, sight: SearchResult) -> None:
    """No list that could not be had says that a unit is gone."""
    told, now = phase, NOW
    for tries in range(1, MAX_SEARCHES + 1):
        assert visibility.expected(told)
        told = visibility.record_search(told, sight, now)
        look = told.seen.gone if phase.state is UnitState.GONE else told.seen.there  # type: ignore[union-attr]
        assert look == Search(None, tries, now + SEARCH_SECONDS * SECOND, sight.failure)
        now += timedelta(seconds=SEARCH_SECONDS)
    assert visibility.expected(told) is None
    assert now - NOW > timedelta(minutes=1)
    assert told.journal == phase.journal


def test_no_search_is_due_or_lost_for_a_unit_that_is_not_searched_for() -> None:
    for found in (made(seen=None), gone(seen=None)):
        assert not visibility.is_search_due(found, NOW)
        assert not visibility.is_search_lost(found, NOW + 2 * SEARCH_LATE)


def test_what_is_not_looked_for_cannot_be_seen() -> None:
    for found in (made(seen=None), made(state=UnitState.DIRTY)):
        with pytest.raises(ValueError, match="unit w-1 is not looked for"):
            visibility.record_search(found, HERE, NOW)


@pytest.mark.parametrize(
    ("again", "due"),
    [(None, True), (NOW, True), (NOW + EARLY, True), (NOW + EARLY + SECOND, False), (NOW - SECOND, True)],
)
def test_a_message_that_comes_before_its_time_is_another(again: datetime | None, due: bool) -> None:
    assert visibility.is_search_due(made(seen=Visibility(there=Search(again=again, tries=1))), NOW) is due
    assert visibility.is_search_due(gone(seen=Visibility(gone=Search(again=again, tries=1))), NOW) is due
    assert not visibility.is_search_due(made(seen=Visibility(there=Search(again=again, tries=MAX_SEARCHES))), NOW)


@pytest.mark.parametrize(
    ("found", "lost"),
    [
        (made(made=NOW - SEARCH_LATE), False),
        (made(made=NOW - SEARCH_LATE - SECOND), True),
        (made(made=NOW - 2 * SEARCH_LATE, seen=Visibility(there=Search(again=NOW - SEARCH_LATE))), False),
        (made(seen=Visibility(there=Search(again=NOW - SEARCH_LATE - SECOND))), True),
        (gone(since=NOW - SEARCH_LATE), False),
        (gone(made=NOW - 2 * SEARCH_LATE, since=NOW - SEARCH_LATE), False),
        (gone(made=None, since=NOW - SEARCH_LATE - SECOND), True),
        (made(made=NOW - 2 * SEARCH_LATE, state=UnitState.DIRTY), False),
        (made(made=None), False),
    ],
)
def test_a_look_that_does_not_come_was_lost(found: Unit, lost: bool) -> None:
    assert visibility.is_search_lost(found, NOW) is lost
