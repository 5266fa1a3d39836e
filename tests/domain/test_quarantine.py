"""Quarantine, broken workers and the table of a unit's life, as values. [UNIT-1] [UNIT-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.domain.pools import pools
from penstock.domain.units import lifecycle, maintenance, quarantine, units
from penstock.domain.units.units import STEP_WITHIN, Unit, UnitKind, UnitState
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Refused,
    Short,
    Unknown,
    Unsatisfiable,
)
from tests.domain.helpers import NOW, pool, unit

DAY = timedelta(days=1)
DIRTY = unit(state=UnitState.DIRTY, tries=4, stuck=3, broken="hot", next_look=NOW)
APART = quarantine.enter(DIRTY, "it is broken: hot", NOW)
PAGE = Path(__file__).parents[2] / "docs" / "internals" / "unit-lifecycle.md"


def test_a_unit_in_quarantine_says_why_and_since_when_and_is_due_in_a_day() -> None:
    found = replace(DIRTY, since=NOW - DAY, health=replace(DIRTY.health, reminders=7))
    apart = quarantine.enter(found, "it is broken: hot", NOW)
    assert (apart.state, apart.step.reason, apart.since, apart.due) == (
        UnitState.QUARANTINED, "it is broken: hot", NOW, NOW + DAY,
    )  # fmt: skip
    assert (apart.step.tries, apart.health.stuck, apart.health.reminders, apart.step.next_look) == (0, 0, 0, None)
    assert apart.journal.entries[-1].what == "quarantined: it is broken: hot"
    assert quarantine.describe(apart) == "worker w-1 is quarantined since 2026-01-02 03:04:05Z: it is broken: hot"
    assert apart.deadline, "it is found by the due index"
    assert apart.expiry is None, "and never forgotten"


@pytest.mark.parametrize("state", [state for state in UnitState if state is not UnitState.DIRTY])
def test_only_what_is_to_be_destroyed_is_quarantined(state: UnitState) -> None:
    with pytest.raises(ValueError, match="not dirty"):
        quarantine.enter(unit(state=state), "why", NOW)


def test_reminders_are_counted_and_ever_less_often_noted() -> None:
    found, noted = APART, []
    for day in range(1, 18):
        before = len(found.journal.entries)
        found = quarantine.remind(found, NOW + day * DAY)
        assert (found.health.reminders, found.due) == (day, NOW + (day + 1) * DAY)
        noted += [day] if len(found.journal.entries) > before else []
    assert noted == [1, 2, 4, 8, 16]
    assert found.journal.entries[-1].what == "still quarantined, since 2026-01-02 03:04:05Z"


ERRORS = [
    (Unsatisfiable("no"), 3), (Misconfigured("no"), 20), (RateLimited(), None), (Short(), None), (QuotaReached(), None),
    (NoCapacity(), None), (Unknown(), None), (DriverError(), None),
]  # fmt: skip


@pytest.mark.parametrize(("error", "most"), ERRORS, ids=lambda each: type(each).__name__)
def test_only_what_time_does_not_mend_is_counted_and_bounded(error: DriverError, most: int | None) -> None:
    found = unit(state=UnitState.DIRTY)
    assert quarantine.count_failure(found, error).health.stuck == (1 if most else 0)
    for stuck in (0, 2, 3, 19, 20, 1000):
        assert quarantine.is_stuck(replace(found, health=replace(found.health, stuck=stuck)), error) is (
            most is not None and stuck >= most
        )


def test_an_operator_lets_it_go_and_everything_is_counted_anew() -> None:
    late = NOW + 3 * DAY
    found = maintenance.release(replace(APART, health=replace(APART.health, reminders=3)), "bob", late, DAY)
    assert (found.state, found.step.reason, found.health.broken) == (
        UnitState.DIRTY,
        "released from quarantine by bob",
        None,
    )
    assert (found.since, found.due, found.cleaning.begun, found.health.reminders) == (late, late + STEP_WITHIN, late, 0)
    assert (
        maintenance.release(
            replace(APART, cleaning=replace(APART.cleaning, begun=NOW)), "bob", late, DAY
        ).cleaning.begun
        == NOW
    )
    again = maintenance.recycle(APART, "bob", "sold", late)
    assert (again.state, again.step.reason) == (UnitState.DIRTY, "recycled by bob: sold")


def test_it_is_not_held_and_draining_it_changes_nothing() -> None:
    with pytest.raises(Refused) as told:
        maintenance.hold(APART, "bob", "why", 60, NOW)
    assert (told.value.status, told.value.code) == (409, "quarantined")
    assert maintenance.drain(APART, "bob", "", NOW) == APART


def test_what_was_removed_by_hand_is_gone_with_the_operators_word() -> None:
    gone = quarantine.removed(APART, "bob", "shredded", NOW)
    assert gone.cleaning.proof
    assert (gone.state, gone.cleaning.proof.by, gone.cleaning.proof.checked) == (
        UnitState.GONE,
        "the operator bob",
        "shredded",
    )
    for state in UnitState:
        if state is not UnitState.QUARANTINED:
            with pytest.raises(Refused) as told:
                quarantine.removed(unit(state=state), "bob", "shredded", NOW)
            assert told.value.code == "not-quarantined"


@pytest.mark.parametrize(
    ("is_a", "may_run", "goes_on"),
    [
        (UnitKind.WORKER, True, False), (UnitKind.WORKER, False, True),
        (UnitKind.RESOURCE, True, True), (UnitKind.RESOURCE, False, True),
    ],
)  # fmt: skip
def test_what_comes_after_waits_while_a_script_may_run(is_a: UnitKind, may_run: bool, goes_on: bool) -> None:
    """JOB-2"""
    assert (
        quarantine.may_continue(replace(APART, is_a=is_a, session=replace(APART.session, may_run=may_run))) is goes_on
    )
    found = replace(DIRTY, is_a=is_a, session=replace(DIRTY.session, may_run=may_run))
    assert quarantine.enter(found, "why", NOW).lease.is_over is goes_on


READY = unit(state=UnitState.READY, is_kept=True)


@pytest.mark.parametrize(
    ("was", "well", "may_run"),
    [
        (READY, False, True),
        (READY, True, False),
        (replace(READY, health=replace(READY.health, broken="hot")), False, False),
        (replace(READY, is_a=UnitKind.RESOURCE), False, False),
        (replace(READY, state=UnitState.CREATING), False, False),
    ],
)
def test_a_script_may_still_run_without_a_report_of_its_end(was: Unit, well: bool, may_run: bool) -> None:
    """JOB-2: who never said hello gets no job any more; who reported, or is broken, said that it does not run."""
    assert units.end_lease(was, "why", NOW, ended_well=well).session.may_run is may_run


def test_a_broken_worker_is_not_cleaned_for_the_next() -> None:
    """UNIT-2"""
    assert units.end_lease(READY, "why", NOW, ended_well=True).state is UnitState.CLEANING
    assert units.end_lease(units.mark_broken(READY, "hot", NOW), "why", NOW, ended_well=True).state is UnitState.DIRTY


def test_what_was_found_first_stands() -> None:
    found = units.mark_broken(READY, "hot", NOW)
    assert (found.health.broken, found.journal.entries[-1].what) == ("hot", "broken: hot")
    assert units.mark_broken(found, "cold", NOW) == found


TARGET = pool(name="target/ubuntu", broken=2)


@pytest.mark.parametrize(
    ("worker", "count"),
    [
        (unit(broken="hot"), 3),
        (unit(is_unheard=True), 3),
        (unit(past_hash="hash"), 0),
        (unit(past_hash="hash", broken="hot"), 3),
        (unit(), 2),
        (unit(is_a=UnitKind.RESOURCE, broken="hot"), 3),
        (unit(is_a=UnitKind.RESOURCE, is_unheard=True), 2),
        (unit(is_a=UnitKind.RESOURCE), 2),
        (unit(pool="target/other", broken="hot"), 2),
    ],
)
def test_bad_workers_are_counted_one_after_the_other(worker: Unit, count: int) -> None:
    assert pools.count_broken(TARGET, worker).broken == count


def test_what_was_wrong_is_said() -> None:
    assert quarantine.why_broken(unit(broken="hot")) == "hot"
    assert quarantine.why_broken(unit()) == "worker w-1 did not say hello in time"
    assert not unit(is_a=UnitKind.RESOURCE, is_unheard=True).is_broken
    assert unit(is_a=UnitKind.RESOURCE, broken="hot").is_broken


def test_what_becomes_of_it_next_is_an_operators_business() -> None:
    said = "an operator mends it and releases it, recycles it, or removes it by hand and proves it"
    assert lifecycle.next_step(APART, NOW) == said
    assert (
        lifecycle.next_step(replace(APART, health=replace(APART.health, reminders=2)), NOW)
        == f"{said} (reminded 2 times)"
    )


def test_the_table_in_the_documents_is_the_codes() -> None:
    assert lifecycle.table() in PAGE.read_text(), "put what `lifecycle.table()` says into the page"


@pytest.mark.parametrize("state", UnitState)
def test_moves_are_those_of_the_table(state: UnitState) -> None:
    for after in UnitState:
        assert lifecycle.may_move(state, after) is (state is after or after in lifecycle.STAGES[state].to)
