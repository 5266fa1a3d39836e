"""A merge gate: what a grant takes when many claim at once is counted anew, in virtual time."""

from __future__ import annotations

import pytest

from tests.figures import contention, price
from tests.figures.contention import Case, Figures, Storm
from tests.figures.report import Budgets

CASE = Case(200, 200, contention.FUNCTIONS)


def test_a_grant_in_a_storm_takes_no_more_than_is_committed() -> None:
    found = Storm(CASE).claim()
    assert (found.granted, found.failed) == (CASE.claims, 0)
    allowed = price.allowed()[contention.STORM]
    assert {name: each for name, each in contention.counts(found).items() if each > allowed[name]} == {}


def figures(seconds: float = 2.0, lost: float = 0.1, granted: int = 1000, failed: int = 0, **of: object) -> Figures:
    case = Case(**{"claims": 1000, "slots": 1000, "functions": contention.FUNCTIONS, **of})
    return Figures(case, granted, seconds, 5.0, 2.0, lost, 4.0, 9.0, failed)


@pytest.mark.parametrize(
    ("found", "is_kept"),
    [
        (figures(), True),
        (figures(seconds=2.7), False),
        (figures(lost=0.51), False),
        (figures(granted=999), False),
        (figures(failed=1), False),
        (figures(is_throttled=True, seconds=6.6), True),
        (figures(is_throttled=True, seconds=6.7), False),
        (figures(is_throttled=True, failed=1), False),
        (figures(slots=10, seconds=99), True),
        (figures(slots=10, lost=0.51), False),
        (figures(slots=10, failed=1), False),
        (figures(slots=10, is_throttled=True, seconds=99, lost=9), True),
        (figures(slots=10, is_throttled=True, granted=999), False),
        (figures(targets=10, slots=100, seconds=10), True),
        (figures(targets=10, slots=100, seconds=10.1), False),
        (figures(targets=10, slots=100, lost=0.51), False),
        (figures(targets=10, slots=100, is_throttled=True, seconds=99), True),
        (figures(functions=5, failed=1), True),
    ],
)
def test_the_command_says_when_a_budget_is_not_kept(found: Figures, is_kept: bool) -> None:
    budgets = Budgets()
    contention.check(budgets, found)
    assert budgets.kept is is_kept
