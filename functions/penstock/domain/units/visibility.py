"""When to believe a provider's list of machines, which may lag behind. [UNIT-1]

`wait_for_absence`: a driver that found nothing reports how far its data may lag. That time counts from the last moment
at which something may have been made, since a machine that waited for capacity is launched long after it was ordered.

`expected` and below: searching the list for a unit, that it is there after it was made, and not there after it was
destroyed. Only the worker of a factory test is searched for, repeatedly for a minute. Nothing waits for a search, and
whoever asks for the test's progress repeats a lost one, so searches need no due time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil

from penstock.domain.units.retries import BACK_OFF, EARLY
from penstock.domain.units.units import CleanProof, Search, Unit, UnitState, Visibility, add_entry
from penstock.kernel.frozen import dataclass

CALL_WITHIN = timedelta(minutes=2)
"""How long a call that makes something may take. No function of a factory or well lives longer."""

NOT_LISTED_YET = "what was just made may not be listed yet"


def wait_for_absence(unit: Unit, proof: CleanProof) -> int:
    """After how many seconds to check again, because a proof from lagging data comes too early; 0 if it is accepted."""
    left = _believed(unit, timedelta(seconds=proof.lag)) - proof.time
    return max(0, ceil(min(left, BACK_OFF).total_seconds()))


def _believed(unit: Unit, lag: timedelta) -> datetime:
    """From when absence is believed: `lag` after the last moment at which something may have been made.

    The time of making is written after its call, so that call has ended. Without one, a call may still be running: it
    started at the latest when the driver last found nothing of the unit, or would have been recorded.
    """
    return unit.creation.made + lag if unit.creation.made else (unit.creation.bare or unit.since) + CALL_WITHIN + lag


SEARCH_SECONDS = 5
"""Seconds between two searches."""

SEARCH_LATE = timedelta(seconds=15)
"""How long after its time a search counts as lost."""


@dataclass(frozen=True)
class SearchResult:
    """The result of one search: whether the unit was listed, or why the list could not be read."""

    listed: bool = False
    failure: str | None = None


def expected(unit: Unit) -> str | None:
    """What the search expects: the unit is `there`, or `gone`; None when there is nothing to search for."""
    if unit.seen is None:
        return None
    if unit.state is UnitState.GONE:
        return None if unit.seen.gone.is_over else "gone"
    is_there = unit.creation.made is not None and unit.state in (UnitState.CREATING, UnitState.READY)
    return "there" if is_there and not unit.seen.there.is_over else None


def is_search_due(unit: Unit, now: datetime) -> bool:
    """Whether a search is due now. A message that comes earlier belongs to another one."""
    again = _look(unit).again
    return expected(unit) is not None and (again is None or again <= now + EARLY)


def is_search_lost(unit: Unit, now: datetime) -> bool:
    """Whether the message for the next search must have been lost."""
    look = _look(unit)
    since = look.again or (unit.since if unit.state is UnitState.GONE else unit.creation.made)
    return expected(unit) is not None and since is not None and since + SEARCH_LATE < now


def record_search(unit: Unit, sight: SearchResult, now: datetime) -> Unit:
    """A unit after one search."""
    wanted = expected(unit)
    if wanted is None or unit.seen is None:
        raise ValueError(f"unit {unit.id} is not looked for")
    was = _look(unit)
    if sight.failure is None and sight.listed is (wanted == "there"):
        found = Search(found=now, tries=was.tries)
        said = "its factory lists it, with our tags" if sight.listed else "its factory does not list it any more"
        return add_entry(replace(unit, seen=replace(unit.seen, **{wanted: found})), now, said)
    told = Search(tries=was.tries + 1, again=now + timedelta(seconds=SEARCH_SECONDS), why=sight.failure)
    return replace(unit, seen=replace(unit.seen, **{wanted: told}))


def _look(unit: Unit) -> Search:
    seen = unit.seen or Visibility()
    return seen.gone if unit.state is UnitState.GONE else seen.there
