"""Units that are made ahead of need: when, with what, and what follows. [SLOT-1] [SLOT-2] [UNIT-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.domain.pools import capacity, grants, pools
from penstock.domain.pools.grants import Stock
from penstock.domain.pools.pools import Claim, Pool, Setback, Slot, SlotState, Warm
from penstock.domain.site.parse import parse
from penstock.domain.site.site import Site
from penstock.domain.units import lifecycle, maintenance, prewarm, reuse, units
from penstock.domain.units.prewarm import FreeCapacity
from penstock.domain.units.units import Hold, Unit, UnitKind, UnitState
from penstock.kernel.rows import Create, Delete, Replace
from tests.domain import helpers
from tests.rows import changed

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LEASE = timedelta(seconds=120)
TARGET, RACK, QUOTA = "target/linux", "resource/rack", "quota/vcpus"
WARM = Warm(least=2, most=3, idle=600, life=3600)
TAKES = {TARGET: 1, RACK: 2, QUOTA: 4}


def fresh(is_a: UnitKind = UnitKind.WORKER) -> Unit:
    return prewarm.new_unit("w-1", is_a, "aws", "linux", NOW)


def slot(pool: str, name: str, **given: object) -> Slot:
    return Slot(pool=pool, name=name, state=SlotState.FREE, fence=3, **given)  # type: ignore[arg-type]


def rooms(used: int = 4, racks: int = 2, own: int = 1) -> dict[str, FreeCapacity]:
    return {
        TARGET: FreeCapacity(Pool(name=TARGET, limit=2, warm=WARM), [slot(TARGET, str(each)) for each in range(own)]),
        RACK: FreeCapacity(Pool(name=RACK, limit=2), [slot(RACK, str(each)) for each in range(racks)]),
        QUOTA: FreeCapacity(Pool(name=QUOTA, limit=8, is_amount=True, used=used)),
    }


@pytest.mark.parametrize(
    ("warm", "there", "until", "is_short"),
    [
        (WARM, 0, None, True),
        (WARM, 1, None, True),
        (WARM, 2, None, False),
        (None, 0, None, False),
        (Warm(), 0, None, False),
        (WARM, 0, NOW + MINUTE, False),
        (WARM, 0, NOW, True),
    ],
)
def test_a_pool_is_short_while_it_has_fewer_than_it_is_to_have(
    warm: Warm | None, there: int, until: datetime | None, is_short: bool
) -> None:
    setback = Setback(1, until, "no hello") if until else None
    assert prewarm.is_short(Pool(name=TARGET, limit=2, warm=warm, setback=setback), there, NOW) is is_short


@pytest.mark.parametrize("closed", [{"paused": True}, {"over": True}, {"due": NOW}])
def test_nothing_is_taken_ahead_from_a_pool_that_is_paused_or_made_smaller(closed: dict[str, object]) -> None:
    pool = Pool(name=TARGET, limit=2)
    assert prewarm.is_open(pool)
    assert not prewarm.is_open(replace(pool, **closed))  # type: ignore[arg-type]
    amount, named = replace(pool, is_amount=True), replace(pool, names=("0", "1"))
    assert prewarm.is_open(replace(amount, **closed)) is ("paused" not in closed)  # type: ignore[arg-type]
    # Which slots of names are to go they say themselves, and they may be held for long.
    assert prewarm.is_open(replace(named, **closed)) is ("over" in closed)  # type: ignore[arg-type]


def test_a_unit_takes_its_slot_and_all_that_its_type_uses_in_one_commit() -> None:
    found = prewarm.reserve(fresh(), TAKES, rooms())
    assert found
    unit, changes = found
    assert (unit.state, unit.lease.leases, unit.lease.job, unit.lease.pool, unit.lease.slot, unit.lease.fence) == (
        UnitState.IDLE, 0, "", TARGET, "0", 3,
    )  # fmt: skip
    assert unit.lease.also == ((RACK, "0"), (RACK, "1"), (QUOTA, "w-1"))
    made = [change.row for change in changes if isinstance(change, Create)]
    slots = {(row.pool, row.name): row for row in made if isinstance(row, Slot)}
    assert unit in made
    assert slots[TARGET, "0"].key.sk == "free#warm#0"
    assert {place: (row.state, row.unit, row.since, row.count) for place, row in slots.items()} == {
        (TARGET, "0"): (SlotState.FREE, "w-1", None, 1),
        (RACK, "0"): (SlotState.IDLE, "w-1", None, 1),
        (RACK, "1"): (SlotState.IDLE, "w-1", None, 1),
        (QUOTA, "w-1"): (SlotState.IDLE, "w-1", None, 4),
    }
    assert sum(isinstance(change, Delete) for change in changes) == 3
    written = {change.was.name: change.row for change in changes if isinstance(change, Replace)}  # type: ignore[attr-defined]
    assert written.keys() == TAKES.keys()
    assert written[QUOTA].used == 8  # type: ignore[attr-defined]


@pytest.mark.parametrize("short", [{"used": 5}, {"racks": 1}, {"own": 0}])
def test_a_unit_is_ordered_whole_or_not_at_all(short: dict[str, int]) -> None:
    """SLOT-1, SLOT-2."""
    assert prewarm.reserve(fresh(), TAKES, rooms(**short)) is None


def test_only_what_is_there_and_nobodys_can_be_reserved() -> None:
    """SLOT-1."""
    for taken in (slot(TARGET, "1", unit="w-2"), replace(slot(TARGET, "1"), state=SlotState.HELD)):
        with pytest.raises(ValueError, match="only a free, cold slot"):
            pools.reserve(taken, "w-1", is_own=True)
    amount = Pool(name=QUOTA, limit=8, is_amount=True, used=5)
    with pytest.raises(ValueError, match="has 3 left, not 4"):
        pools.reserve_amount(amount, 4, "w-1")
    assert pools.reserve_amount(amount, 3, "w-1")[0].used == 8


def test_what_nobody_has_asked_for_is_a_workers_or_a_resources_need() -> None:
    assert (fresh().lease.order, fresh(UnitKind.RESOURCE).lease.order) == (0, 1)
    assert (fresh().due, fresh().cleaning.is_kept, fresh().creation.born) == (NOW + units.STEP_WITHIN, True, NOW)


def test_a_unit_that_is_there_waits_for_its_first_lease_for_as_long_as_any() -> None:
    come = prewarm.arrive(changed(fresh(), tries=3, busy=NOW, is_making=True), WARM, "hash", NOW + MINUTE, LEASE)
    assert (come.creation.made, come.session.past_hash, come.cleaning.until) == (
        NOW + MINUTE,
        "hash",
        NOW + 11 * MINUTE,
    )
    assert (come.due, come.step.tries, come.step.busy, come.creation.is_making) == (
        NOW + MINUTE + LEASE,
        0,
        None,
        False,
    )
    assert not units.is_prewarming(come)
    ready = prewarm.arrive(changed(fresh(UnitKind.RESOURCE), made=NOW), WARM, None, NOW + MINUTE, LEASE)
    assert (ready.creation.made, ready.due) == (NOW, NOW + 11 * MINUTE)
    old = prewarm.arrive(fresh(), WARM, "hash", NOW + 55 * MINUTE, LEASE)
    assert old.cleaning.until == NOW + 60 * MINUTE
    assert (
        prewarm.arrive(changed(fresh(), born=None), WARM, "hash", NOW + 55 * MINUTE, LEASE).cleaning.until
        == old.cleaning.until
    )
    assert prewarm.arrive(fresh(), None, "hash", NOW + MINUTE, LEASE).cleaning.until == NOW + MINUTE
    assert (
        prewarm.arrive(replace(fresh(), since=NOW + 30 * MINUTE), WARM, "h", NOW + 55 * MINUTE, LEASE).cleaning.until
        == old.cleaning.until
    )
    assert come.journal.entries[-1].what == "its agent said hello; it waits for its first lease"
    assert ready.journal.entries[-1].what == "ready; it waits for its first lease"


def test_a_unit_that_is_held_is_there_and_stays_due_when_its_hold_ends() -> None:
    """UNIT-3."""
    held = replace(fresh(), hold=Hold("ada", "why", NOW, NOW + 5 * MINUTE), due=NOW + 5 * MINUTE)
    assert prewarm.arrive(held, WARM, "hash", NOW + MINUTE, LEASE).due == NOW + 5 * MINUTE
    assert prewarm.arrive(held, WARM, "hash", NOW + 6 * MINUTE, LEASE).due == NOW + 6 * MINUTE + LEASE


def test_an_idle_unit_that_the_pool_wants_stays_until_it_is_too_old() -> None:
    come = prewarm.arrive(fresh(), WARM, "hash", NOW, LEASE)
    stays = prewarm.extend_idle(come, WARM, NOW + 10 * MINUTE, LEASE)
    assert stays
    assert (stays.cleaning.until, stays.due) == (NOW + 20 * MINUTE, NOW + 10 * MINUTE + LEASE)
    assert prewarm.extend_idle(come, WARM, NOW + 60 * MINUTE, LEASE) is None


def test_what_comes_to_nothing_is_tried_again_later_and_later() -> None:
    pool = Pool(name=TARGET, limit=2, warm=WARM)
    pauses = []
    for _ in range(14):
        pool = prewarm.failed(pool, "no hello", NOW)
        assert pool.setback
        pauses.append((pool.setback.until - NOW) / MINUTE)
    assert pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert pool.setback == Setback(14, NOW + 60 * MINUTE, "no hello")
    assert prewarm.succeeded(pool).setback is None


def test_a_unit_on_its_way_is_lent_as_far_as_it_is() -> None:
    """Nobody waits longer for it than for one that is ordered now."""
    asked = changed(fresh(), tries=4, due=NOW + 10 * MINUTE, next_look=NOW + 10 * MINUTE, reason="none left")
    lent = reuse.lend(asked, "A", 1, 0, 4, NOW)
    assert (lent.state, lent.lease.leases, lent.creation.made, lent.due) == (
        UnitState.CREATING,
        1,
        None,
        NOW + units.STEP_WITHIN,
    )
    assert (lent.step.tries, lent.step.reason, lent.step.next_look, lent.creation.is_making) == (0, None, None, False)
    booting = changed(units.mark_made(fresh(), NOW, 10 * MINUTE), is_making=True)
    lent = reuse.lend(booting, "A", 1, 0, 4, NOW + MINUTE)
    assert (lent.creation.made, lent.due, lent.creation.is_making) == (NOW, NOW + 10 * MINUTE, True)
    there = prewarm.arrive(booting, WARM, "hash", NOW + MINUTE, LEASE)
    lent = reuse.lend(there, "A", 1, 0, 4, NOW + 2 * MINUTE)
    assert (lent.creation.made, lent.due, lent.cleaning.until) == (
        NOW + 2 * MINUTE,
        NOW + 2 * MINUTE + units.STEP_WITHIN,
        None,
    )
    assert (lent.session.past_hash, lent.creation.is_making) == ("hash", False)


def test_what_is_not_made_yet_makes_room_first() -> None:
    kept = [
        slot(RACK, "1", unit="w-1", since=NOW - MINUTE),
        slot(RACK, "2", unit="w-2"),
        slot(RACK, "3", unit="w-3", since=NOW),
    ]
    claim = Claim(
        pool=RACK, job="A", attempt=1, step=0, count=3, pools=(RACK,), priority=0, since=NOW, takes=({RACK: 3},)
    )
    found = []
    for count in (1, 2, 3):
        wanted = replace(claim, count=count)
        stock = Stock(Pool(name=RACK, limit=3), [wanted], idle=[replace(one, state=SlotState.IDLE) for one in kept])
        found.append(grants.units_to_evict(RACK, {RACK: stock})[1])
    assert found == [["w-2"], ["w-2", "w-1"], ["w-2", "w-1", "w-3"]]


def test_what_is_not_made_yet_goes_first_when_fewer_are_kept() -> None:
    there, coming = slot(TARGET, "2", unit="w-2", since=NOW), slot(TARGET, "1", unit="w-1")
    pool = Pool(name=TARGET, limit=2, warm=Warm(most=1))
    assert capacity.surplus(pool, [coming, there]) == [coming]


def test_create_is_repeated_for_an_unfinished_unit_after_its_hold() -> None:
    """UNIT-3."""
    held = maintenance.hold(units.mark_made(fresh(), NOW, 10 * MINUTE), "ada", "why", 3600, NOW)
    assert held.due == NOW + 60 * MINUTE
    free = maintenance.release(held, "ada", NOW + MINUTE, LEASE)
    assert (free.creation.made, free.due) == (None, NOW + MINUTE + units.STEP_WITHIN)
    there = prewarm.arrive(held, WARM, "hash", NOW, LEASE)
    assert maintenance.release(there, "ada", NOW + MINUTE, LEASE).due == NOW + MINUTE + LEASE


def test_what_becomes_of_it_next_is_told() -> None:
    assert lifecycle.next_step(fresh(), NOW).startswith("aws makes it by ")
    booting = units.mark_made(fresh(), NOW, 10 * MINUTE)
    assert lifecycle.next_step(booting, NOW).startswith("its agent says hello by 2026-01-02 00:10")
    there = prewarm.arrive(booting, WARM, "hash", NOW, LEASE)
    assert lifecycle.next_step(there, NOW).startswith("the next job is lent it, or it is destroyed")


def test_what_slots_are_is_told_by_pool() -> None:
    found = [slot(RACK, "1"), slot(RACK, "2"), slot(QUOTA, "w-1", count=4)]
    assert pools.amounts(found) == {RACK: 2, QUOTA: 4}


def test_idle_again_and_stamped() -> None:
    assert prewarm.end_call(changed(fresh(), busy=NOW)).step.busy is None
    assert pools.mark_ready(slot(TARGET, "1"), NOW).since == NOW


@pytest.mark.parametrize(
    ("warm", "expected"),
    [
        ("min = 2", Warm(least=2, most=2)),
        ("min = 2, max = 3", Warm(least=2, most=3)),
        ("min = 0", Warm(least=0, most=1)),
        ("max = 0", None),
    ],
)
def test_a_site_says_how_many_are_made_ahead(warm: str, expected: Warm | None) -> None:
    site = parse(f"[factories.a]\ndriver = 'x'\n[targets.t]\nfactory = 'a'\nlimit = 2\nwarm = {{ {warm} }}", "s.toml")
    assert isinstance(site, Site)
    assert site.targets["t"].warm == expected


def test_each_lease_of_a_named_resource_is_a_slot_for_one() -> None:
    text = "[wells.a]\ndriver = 'x'\n[resources.t]\nwell = 'a'\nnames = ['b']\nleases = 2\nwarm = { min = 2 }"
    assert isinstance(parse(text, "s.toml"), Site)


@pytest.mark.parametrize(
    ("changes", "never"),
    [
        ({}, True),
        ({"is_a": UnitKind.RESOURCE}, False),
        ({"leases": 1}, False),
        ({"until": NOW}, False),
    ],
)
def test_an_unleased_worker_without_hello_never_came(changes: dict[str, Any], never: bool) -> None:
    assert prewarm.never_booted(helpers.unit(state=UnitState.IDLE, **{"leases": 0, **changes})) == never
