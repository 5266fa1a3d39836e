"""When a driver's call counts as late, and when as one that left no answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.units import retries, units
from penstock.domain.units.prewarm import new_unit
from penstock.domain.units.units import (
    CLEAN_WITHIN,
    STEP_WITHIN,
    CleanProof,
    ResourceAccess,
    Unit,
    UnitKind,
    UnitState,
    hello,
    mark_gone,
    mark_made,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)
UNIT = new_unit("u-1", UnitKind.RESOURCE, "spring", "db", NOW)


def next_look(unit: Unit, time: datetime) -> Unit:
    return replace(unit, step=replace(unit.step, next_look=time))


def busy(unit: Unit, until: datetime) -> Unit:
    return replace(unit, step=replace(unit.step, busy=until))


@pytest.mark.parametrize("expected", [NOW, NOW + timedelta(hours=1)])
def test_a_step_is_late_when_its_message_is_long_overdue(expected: datetime) -> None:
    unit = UNIT if expected == NOW else next_look(UNIT, expected)
    assert not units.is_late(unit, expected + STEP_WITHIN - SECOND)
    assert units.is_late(unit, expected + STEP_WITHIN)


def test_a_message_of_a_state_that_is_over_is_not_expected() -> None:
    unit = next_look(UNIT, NOW - timedelta(hours=1))
    assert not units.is_late(unit, NOW + STEP_WITHIN - SECOND)


def test_a_renewal_is_late_only_after_it_was_due_and_only_of_what_is_leased() -> None:
    renews = NOW + timedelta(hours=1)
    lent = replace(UNIT, access=ResourceAccess(renews=renews))
    ready = replace(lent, state=UnitState.READY)
    assert not units.is_late(ready, renews + STEP_WITHIN - SECOND)
    assert units.is_late(ready, renews + STEP_WITHIN)
    assert units.is_late(lent, NOW + STEP_WITHIN)


def test_a_call_left_no_answer_when_its_function_can_live_no_more() -> None:
    asked, over = busy(UNIT, NOW + CLEAN_WITHIN), NOW + CLEAN_WITHIN
    assert retries.unanswered(UNIT, over) is None
    assert retries.unanswered(asked, over - SECOND) is None
    assert retries.unanswered(asked, over) == NOW


def test_an_answer_for_a_state_that_is_over_is_not_missed() -> None:
    asked = busy(UNIT, NOW + CLEAN_WITHIN)
    assert retries.unanswered(replace(asked, since=NOW + SECOND), NOW + CLEAN_WITHIN) is None


def test_what_is_made_said_hello_or_is_gone_waits_for_no_call() -> None:
    asked = busy(UNIT, NOW + CLEAN_WITHIN)
    assert mark_made(asked, NOW, SECOND).step.busy is None
    assert hello(asked, "hash", NOW, SECOND).step.busy is None
    assert mark_gone(asked, CleanProof("it", NOW, "all"), NOW).step.busy is None
