"""Quarantine, row by row: what each condition of it keeps. [UNIT-1] [UNIT-2] [JOB-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock import listings
from penstock.domain.cooldowns import CoolDown
from penstock.domain.pools.pools import Lease, LeaseState, Pool, Slot, SlotState
from penstock.domain.units.quarantine import MAX_BROKEN_IN_A_ROW
from penstock.domain.units.retries import BACK_OFF_MOST
from penstock.domain.units.units import STEP_WITHIN, Unit, UnitKind, UnitState, unit_key
from penstock.kernel.rows import Create, Row
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs.flow import turn_pause
from penstock.usecases.units import listing, quarantine
from penstock.usecases.units.release import enter_quarantine, free_slots
from tests.domain.helpers import lease, pool, slot, unit
from tests.rows import changed
from tests.usecases.races import before_the_next_commit

TARGET = "target/ubuntu"
WORKER = unit(state=UnitState.DIRTY, since=START, due=START, broken="hot", past_hash="hash")
POOL = pool(name=TARGET, broken=0)
HELD = slot("1", SlotState.HELD, pool=TARGET, fence=1, unit="w-1", job="J1", attempt=1, order=0, since=START)
DAY = timedelta(days=1)


@pytest.fixture
def twin() -> Twin:
    return Twin()


def scene(twin: Twin, *rows: Row) -> None:
    for row in rows:
        assert twin.store.commit([Create(row)])


def unit_of(twin: Twin) -> Unit:
    found = twin.store.get(unit_key("w-1"), Unit)
    assert found
    return found


def pool_of(twin: Twin) -> Pool:
    found = twin.store.get(POOL.key, Pool)
    assert found
    return found


def moved(twin: Twin, **changes: object) -> None:
    """Somebody else writes the unit's row."""
    twin.store.rows[unit_key("w-1")] = changed(unit_of(twin), version=9, **changes)  # type: ignore[arg-type]


def asked(twin: Twin) -> list[tuple[str, object]]:
    return [(queue, message) for _, queue, message in twin.queues.messages]


@pytest.mark.parametrize(("is_a", "queue"), [(UnitKind.WORKER, "factory"), (UnitKind.RESOURCE, "well")])
def test_who_lost_the_race_asks_again_and_writes_nothing(twin: Twin, is_a: UnitKind, queue: str) -> None:
    scene(twin, replace(WORKER, is_a=is_a), POOL, HELD)
    before = unit_of(twin)
    before_the_next_commit(twin, lambda: moved(twin))
    enter_quarantine(twin.on, before, "late")
    assert unit_of(twin).state is UnitState.DIRTY
    assert asked(twin) == [(queue, {"unit": "w-1"})]


def test_a_bad_worker_is_counted_in_its_pool(twin: Twin) -> None:
    scene(twin, WORKER, POOL, HELD)
    enter_quarantine(twin.on, unit_of(twin), "it is broken")
    assert pool_of(twin).broken == 1


@pytest.mark.parametrize(("broken", "cools_down"), [("hot", True), (None, False)])
def test_a_type_cools_down_after_the_last_broken_worker_of_too_many_and_not_after_another(
    twin: Twin, broken: str | None, cools_down: bool
) -> None:
    scene(twin, changed(WORKER, broken=broken, past_hash=None), replace(POOL, broken=MAX_BROKEN_IN_A_ROW), HELD)
    enter_quarantine(twin.on, unit_of(twin), "stuck")
    assert any(isinstance(row, CoolDown) for row in twin.store.rows.values()) is cools_down


def test_one_whose_slots_no_job_held_was_counted_before(twin: Twin) -> None:
    scene(twin, WORKER, POOL, replace(HELD, job=None))
    enter_quarantine(twin.on, unit_of(twin), "it is broken")
    assert (pool_of(twin).broken, pool_of(twin).version) == (0, 1)


def test_a_pool_of_which_nothing_is_learned_is_not_written(twin: Twin) -> None:
    scene(
        twin,
        replace(WORKER, health=replace(WORKER.health, broken=None), session=replace(WORKER.session, past_hash=None)),
        POOL,
        HELD,
    )
    enter_quarantine(twin.on, unit_of(twin), "stuck")
    assert (unit_of(twin).state, pool_of(twin).version) == (UnitState.QUARANTINED, 1)


def test_one_without_a_pool_or_a_slot_is_kept_apart_all_the_same(twin: Twin) -> None:
    scene(twin, WORKER, HELD)
    enter_quarantine(twin.on, unit_of(twin), "stuck")
    assert unit_of(twin).state is UnitState.QUARANTINED
    other = Twin()
    scene(other, WORKER, POOL)
    enter_quarantine(other.on, unit_of(other), "stuck")
    assert (unit_of(other).state, pool_of(other).broken) == (UnitState.QUARANTINED, 0)


APART = replace(WORKER, state=UnitState.QUARANTINED, since=START, due=START)


def test_a_reminder_comes_when_it_is_due(twin: Twin) -> None:
    scene(twin, APART)
    quarantine.remind(twin.on, unit_of(twin))
    assert (unit_of(twin).health.reminders, unit_of(twin).due) == (1, START + DAY)
    quarantine.remind(twin.on, unit_of(twin))
    assert unit_of(twin).health.reminders == 1


def test_one_without_a_due_time_is_reminded_of(twin: Twin) -> None:
    scene(twin, replace(APART, due=None))
    quarantine.remind(twin.on, unit_of(twin))
    assert unit_of(twin).due == START + DAY


def test_what_was_counted_meanwhile_is_counted_on(twin: Twin) -> None:
    scene(twin, WORKER, POOL, HELD)

    def somebody_counts() -> None:
        twin.store.rows[POOL.key] = replace(pool_of(twin), broken=5, version=9)

    before_the_next_commit(twin, somebody_counts)
    enter_quarantine(twin.on, unit_of(twin), "it is broken")
    assert (unit_of(twin).state, pool_of(twin).broken) == (UnitState.DIRTY, 5)


def test_a_reminder_that_lost_the_race_is_none(twin: Twin, caplog: pytest.LogCaptureFixture) -> None:
    scene(twin, APART)
    before_the_next_commit(twin, lambda: moved(twin))
    quarantine.remind(twin.on, unit_of(twin))
    assert unit_of(twin).health.reminders == 0
    assert "is quarantined since" not in caplog.text


def test_only_what_is_in_quarantine_is_listed_as_that(twin: Twin) -> None:
    scene(twin, APART, replace(WORKER, id="w-2"), replace(APART, id="w-3", maker="there"))
    found = listing.quarantined(twin.on, UnitKind.WORKER, "here")
    assert [one.id for one in found] == ["w-1"]


def test_all_pages_are_read(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "PAGE", 2)
    scene(twin, *(replace(APART, id=f"w-{number}") for number in range(1, 5)))
    assert len(listing.quarantined(twin.on, UnitKind.WORKER, "here")) == 4


def test_nothing_is_freed_without_a_proof(twin: Twin) -> None:
    """UNIT-2"""
    scene(twin, APART)
    with pytest.raises(ValueError, match="no proof"):
        free_slots(twin.on, unit_of(twin), replace(unit_of(twin), state=UnitState.GONE))


def test_who_comes_after_one_in_quarantine_looks_rarely(twin: Twin) -> None:
    """JOB-2: its operator passes the turn on."""
    ahead, behind = (
        lease(0, LeaseState.RELEASING, unit="w-1"),
        replace(WORKER, id="r-1", lease=replace(WORKER.lease, order=1)),
    )
    scene(twin, APART, ahead)
    assert turn_pause(twin.on, behind) == BACK_OFF_MOST
    moved(twin, state=UnitState.DIRTY)
    assert turn_pause(twin.on, behind) == STEP_WITHIN
    del twin.store.rows[unit_key("w-1")]
    assert turn_pause(twin.on, behind) == STEP_WITHIN


def test_its_slots_are_nobodys(twin: Twin) -> None:
    leaving = replace(HELD, state=SlotState.IDLE, leaving=True, job=None)
    scene(twin, WORKER, POOL, leaving)
    enter_quarantine(twin.on, unit_of(twin), "stuck")
    (found,) = [row for row in twin.store.rows.values() if isinstance(row, Slot)]
    assert (found.state, found.leaving, found.job, found.unit) == (SlotState.HELD, False, None, "w-1")
    assert [row for row in twin.store.rows.values() if isinstance(row, Lease)] == []
