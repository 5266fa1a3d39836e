"""An empty list is believed when nothing can have been made for so long as lists may lag. [UNIT-1]"""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.units import visibility
from penstock.domain.units.retries import BACK_OFF
from penstock.domain.units.units import CleanProof, Unit, UnitState
from penstock.domain.units.visibility import CALL_WITHIN
from tests.domain.helpers import NOW
from tests.domain.helpers import unit as a_unit

LAG = 60
SECOND = timedelta(seconds=1)


def proof(after: timedelta, lag: int = LAG) -> CleanProof:
    return CleanProof("ec2", NOW + after, "nothing", lag)


def dirty(made: timedelta | None = None) -> Unit:
    """A unit that was given up now, ten minutes after it was ordered."""
    born = NOW - timedelta(minutes=10)
    return a_unit(state=UnitState.DIRTY, born=born, since=NOW, made=None if made is None else NOW - made)


@pytest.mark.parametrize(
    ("unit", "believed"),
    [
        (dirty(), CALL_WITHIN + LAG * SECOND),
        (dirty(made=0 * SECOND), LAG * SECOND),
        (dirty(made=20 * SECOND), 40 * SECOND),
    ],
    ids=["not known to be made", "made at once before", "made a while before"],
)
def test_it_is_believed_when_nothing_was_made_for_as_long_as_lists_lag(unit: Unit, believed: timedelta) -> None:
    assert visibility.wait_for_absence(unit, proof(believed)) == 0
    assert visibility.wait_for_absence(unit, proof(believed - SECOND)) == 1
    assert visibility.wait_for_absence(unit, proof(believed - SECOND / 1000)) == 1, "not a moment too early"


def test_what_nobody_asked_for_since_its_driver_found_nothing_is_believed_from_then_on() -> None:
    bare = a_unit(state=UnitState.DIRTY, since=NOW, bare=NOW - CALL_WITHIN)
    assert visibility.wait_for_absence(bare, proof(LAG * SECOND)) == 0
    assert visibility.wait_for_absence(bare, proof((LAG - 1) * SECOND)) == 1


def test_it_is_looked_for_again_and_again_meanwhile() -> None:
    assert visibility.wait_for_absence(dirty(), proof(timedelta())) == BACK_OFF.total_seconds()


def test_what_was_made_long_ago_and_what_is_seen_at_once_is_believed_at_once() -> None:
    assert visibility.wait_for_absence(dirty(made=timedelta(hours=1)), proof(timedelta())) == 0
    assert visibility.wait_for_absence(dirty(made=timedelta()), proof(timedelta(), lag=0)) == 0
