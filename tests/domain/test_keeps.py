"""What a job had is held when its script has ended: when that is so, what of it, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.domain.jobs import holds
from penstock.domain.jobs.jobs import HoldRequest, Job, Report, Result, State
from penstock.domain.units.units import Drain, Hold, Unit, UnitKind, UnitState
from tests.domain.helpers import MINUTE, NOW, job, unit
from tests.rows import changed

KEEP = HoldRequest("ada", "to look at it", 600)
WHATEVER = replace(KEEP, whatever=True)
HELD = Hold("ada", "to look at it", NOW, NOW + 10 * MINUTE)


def reported(result: Result, keep: HoldRequest = KEEP, **changes: object) -> Job:
    return job(state=State.RUNNING, keep=keep, report=Report(result, "so it ended", NOW), retries=0, **changes)


@pytest.mark.parametrize(
    ("told", "is_wanted"),
    [
        (reported(Result.FAILED), True),
        (reported(Result.TIMED_OUT), True),
        (reported(Result.SUCCEEDED), False),
        (reported(Result.CANCELLED), False),
        (reported(Result.LOST), False),
        (changed(reported(Result.FAILED), cancelled_by="ada"), False),
        (changed(reported(Result.FAILED), retries=1, retry_failed=True), False),
        (changed(reported(Result.FAILED), report=None), False),
        (reported(Result.SUCCEEDED, keep=WHATEVER), True),
        (reported(Result.FAILED, keep=WHATEVER), True),
        (reported(Result.CANCELLED, keep=WHATEVER), False),
    ],
)
def test_it_is_wanted_when_the_job_has_come_to_its_end(told: Job, is_wanted: bool) -> None:
    assert told.keep
    assert holds.is_wanted(told.keep, told, NOW) == is_wanted


def ready(**changes: object) -> Unit:
    return unit(state=UnitState.READY, **changes)


def test_what_is_ready_is_held() -> None:
    ((was, after),) = holds.hold_units(KEEP, [ready()], NOW)
    assert (was, after.hold) == (ready(), HELD)


@pytest.mark.parametrize(
    "each",
    [
        unit(state=UnitState.DIRTY),
        ready(broken="hot"),
        ready(hold=Hold("root", "mine", NOW, NOW + MINUTE)),
        ready(drain=Drain("root", "away", NOW, at_once=True)),
    ],
)
def test_what_is_on_its_way_out_or_held_already_is_left_as_it_is(each: Unit) -> None:
    assert holds.hold_units(KEEP, [each], NOW) == []


def test_an_older_hold_that_ran_out_is_no_hold() -> None:
    (pair,) = holds.hold_units(KEEP, [ready(hold=Hold("root", "mine", NOW - MINUTE, NOW))], NOW)
    assert pair[1].hold == HELD


def test_what_is_held_is_counted_in_units_times_seconds() -> None:
    resource = unit(id="r-1", is_a=UnitKind.RESOURCE, hold=replace(HELD, until=NOW + 20 * MINUTE))
    theirs = unit(id="w-2", hold=replace(HELD, by="root"))
    other = unit(id="w-3", hold=replace(HELD, reason="another"))
    found = holds.held_units(KEEP, [unit(hold=HELD), resource, theirs, other, unit(id="w-4")], NOW + MINUTE)
    assert found is not None
    assert ([each.id for each in found.units], found.until) == (["w-1", "r-1"], NOW + 20 * MINUTE)
    assert found.unit_seconds == 120
    assert holds.describe(found) == "held until 2026-01-02 03:24:05Z: worker w-1, resource r-1"


def test_nothing_is_held_when_it_ran_out() -> None:
    assert holds.held_units(KEEP, [unit(hold=HELD)], NOW + 10 * MINUTE) is None
    assert holds.held_units(KEEP, [], NOW) is None
