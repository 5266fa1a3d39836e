"""When it can be believed that nothing is left of a unit: what is outside shows itself late. [UNIT-1]

A driver that found nothing says by how much what it looked at may be behind. That counts from the last moment at which
something may have been made: who waited for capacity was launched long after it was ordered.

Looking for a unit in what its driver lists: that it is there after it was made, and not after it was destroyed.

Only for the worker of a job that proves a factory. A provider's list may lag, so one looks again, for a minute. Nothing
waits for a look, and a lost one is made up for by whoever asks how far the test is: so it needs no due time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil

from penstock.domain.units.retries import BACK_OFF, EARLY
from penstock.domain.units.units import CleanProof, Search, Unit, UnitState, Visibility, add_entry

CALL_WITHIN = timedelta(minutes=2)
"""How long a call that makes something may be under way. No function of a factory or well lives longer."""

NOT_LISTED_YET = "what was just made may not be listed yet"


def wait_for_absence(unit: Unit, proof: CleanProof) -> int:
    """In how many seconds it is looked for again, as the proof comes too early; 0 when it is believed."""
    left = _believed(unit, timedelta(seconds=proof.lag)) - proof.time if proof.lag else timedelta()
    return max(0, ceil(min(left, BACK_OFF).total_seconds()))


def _believed(unit: Unit, lag: timedelta) -> datetime:
    """From when on absence is believed. Nobody begins to make what is made, nor what no lease wants any more.

    When it was made is written after the call, so that this one is over; of what is not known to be, one may be under
    way. It is when that began after its driver had found nothing of it: then it would have been written before.
    """
    return unit.made + lag if unit.made else (unit.bare or unit.since) + CALL_WITHIN + lag


SEARCH_SECONDS = 5
"""Seconds between two looks."""

SEARCH_LATE = timedelta(seconds=15)
"""How long after its time a look counts as lost."""


@dataclass(frozen=True)
class SearchResult:
    """What one look saw: whether the unit was listed, or why nothing could be."""

    listed: bool = False
    failure: str | None = None


def expected(unit: Unit) -> str | None:
    """What one looks for: that the unit is `there`, or `gone`; None while there is nothing to look for, or no more."""
    if unit.seen is None:
        return None
    if unit.state is UnitState.GONE:
        return None if unit.seen.gone.is_over else "gone"
    is_there = unit.made is not None and unit.state in (UnitState.CREATING, UnitState.READY)
    return "there" if is_there and not unit.seen.there.is_over else None


def is_search_due(unit: Unit, now: datetime) -> bool:
    """Whether it is time to look; a message that comes earlier is another."""
    again = _look(unit).again
    return expected(unit) is not None and (again is None or again <= now + EARLY)


def is_search_lost(unit: Unit, now: datetime) -> bool:
    """Whether the message that asks for the next look must have been lost."""
    look = _look(unit)
    since = look.again or (unit.since if unit.state is UnitState.GONE else unit.made)
    return expected(unit) is not None and since is not None and since + SEARCH_LATE < now


def record_search(unit: Unit, sight: SearchResult, now: datetime) -> Unit:
    """A unit after one look for what its phase says."""
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
