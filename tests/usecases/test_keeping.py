"""A unit between two leases, row by row: cleaned, kept, heard of, retired. [UNIT-2] [SLOT-1] [SLOT-3] [SEC-2]"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.pools.pools import LeaseState, Pool, Slot, SlotName, SlotState, Warm
from penstock.domain.site.site import Limits
from penstock.domain.units.retries import EARLY
from penstock.domain.units.units import CLEAN_WITHIN, CleanProof, Unit, UnitKind, UnitState, unit_key
from penstock.kernel.rows import Create, Delete, Replace, Row
from penstock.ports import NotYet
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs.flow import slots_of, turn_pause
from penstock.usecases.logs import logs
from penstock.usecases.pools import resize
from penstock.usecases.site import apply
from penstock.usecases.units import release, retire, reuse
from penstock.usecases.units.driver_calls import lock
from penstock.usecases.workers import agents
from tests.domain.helpers import job, lease, slot, unit
from tests.rows import changed
from tests.usecases.races import before_the_next_commit

HELD, IDLE, FREE = SlotState.HELD, SlotState.IDLE, SlotState.FREE
DB, RACK, GB = "resource/db", "resource/rack", "quota/gb"
SECOND = timedelta(seconds=1)
PROOF = CleanProof(by="spring", time=START, checked="it")
SITE = '[wells.spring]\ndriver = "hand"\n[wells.locks]\ndriver = "lock"\n'
UNIT = unit(
    id="r-1", is_a=UnitKind.RESOURCE, maker="spring", state=UnitState.CLEANING, is_kept=True, order=1, pool=DB,
    since=START, due=START, also=((RACK, "1"), (GB, "r-1")),
)  # fmt: skip
WORKER = replace(
    UNIT, is_a=UnitKind.WORKER, lease=replace(UNIT.lease, order=0), session=replace(UNIT.session, past_hash="hash")
)
POOL, OTHER = Pool(name=DB, limit=1, warm=Warm()), Pool(name=RACK, limit=1)
AMOUNT = Pool(name=GB, limit=4, used=2, is_amount=True)
HOLDER = {"job": "J1", "attempt": 1, "order": 1, "unit": "r-1", "since": START, "fence": 1}
SLOTS = [
    slot("1", HELD, pool=DB, **HOLDER),
    slot("1", HELD, pool=RACK, **{**HOLDER, "fence": 7}),
    slot("r-1", HELD, pool=GB, count=2, **HOLDER),
]


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "root", SITE, "site.toml")
    return made


def put(twin: Twin, *rows: Row) -> None:
    for row in rows:
        assert twin.store.commit([Create(row)])


def scene(twin: Twin, *rows: Row, without: Row | None = None) -> Unit:
    """A unit that is being cleaned, its pools and its slots; but for the rows that are given instead."""
    given = {row.key: row for row in (UNIT, POOL, OTHER, AMOUNT, *SLOTS)} | {row.key: row for row in rows}
    put(twin, *(row for row in given.values() if row is not without))
    return unit_of(twin)


def unit_of(twin: Twin) -> Unit:
    found = twin.store.get(unit_key("r-1"), Unit)
    assert found
    return found


def change(twin: Twin, **changes: object) -> Callable[[], None]:
    """Somebody else, who writes something to the unit's row."""

    def act() -> None:
        was = unit_of(twin)
        assert twin.store.commit([Replace(was, changed(was, **changes))])

    return act


def asked(twin: Twin) -> list[tuple[str, dict[str, object]]]:
    return [(queue, message) for _, queue, message in twin.queues.messages]


def keep(twin: Twin) -> Unit | None:
    return reuse.unit_cleaned(twin.on, "r-1", PROOF, timedelta(0))


def said(twin: Twin) -> str:
    return " ".join(event.line.payload for event in logs.read(twin.on, "J1", 0, 1000))


@pytest.mark.parametrize(("seconds", "is_told"), [(0, False), (59, False), (60, True), (3600, True)])
def test_a_job_is_told_of_cleaning_that_took_long(twin: Twin, seconds: int, *, is_told: bool) -> None:
    scene(twin, replace(UNIT, since=PROOF.time - timedelta(seconds=seconds)))
    assert keep(twin)
    assert (f"is clean after {seconds} s and kept warm" in said(twin)) is is_told
    assert ("is clean" in said(twin)) is is_told


def test_a_clean_unit_is_kept_on_its_slot_with_all_that_it_takes(twin: Twin) -> None:
    scene(twin, replace(UNIT, since=PROOF.time - timedelta(seconds=60)))
    kept = keep(twin)
    assert kept
    assert (kept.state, unit_of(twin).state) == (UnitState.IDLE, UnitState.IDLE)
    rows = twin.store.rows.values()
    assert {(row.pool, row.state) for row in rows if isinstance(row, Slot)} == {(DB, FREE), (RACK, IDLE), (GB, IDLE)}
    assert unit_of(twin).lease.is_over, "though it is destroyed one day"
    assert "is clean after 60 s and kept warm" in said(twin)
    assert ("well", {"unit": "r-1"}) not in asked(twin)


@pytest.mark.parametrize("state", [UnitState.READY, UnitState.DIRTY, UnitState.GONE])
def test_what_is_not_being_cleaned_is_not_kept(twin: Twin, state: UnitState) -> None:
    assert keep(twin) is None
    scene(twin, replace(UNIT, state=state))
    assert keep(twin) is None
    assert unit_of(twin).state is state


OVER = [
    replace(POOL, over=True),
    replace(POOL, warm=None),
    replace(OTHER, over=True),
    replace(AMOUNT, limit=1),
    replace(SLOTS[0], withdrawn=True),
    replace(SLOTS[1], withdrawn=True),
    replace(SLOTS[1], unit="r-2"),
]


@pytest.mark.parametrize("instead", OVER)
@pytest.mark.parametrize(("of", "queue"), [(UNIT, "well"), (WORKER, "factory")])
def test_a_unit_that_the_site_has_no_room_for_is_destroyed(twin: Twin, instead: Row, of: Unit, queue: str) -> None:
    scene(twin, of, instead)
    kept = keep(twin)
    assert kept
    assert kept.state is UnitState.DIRTY
    assert asked(twin) == [(queue, {"unit": "r-1"})]
    assert said(twin) == ""


@pytest.mark.parametrize("names", [replace(POOL, names=("0",), over=True), replace(OTHER, names=("0",), over=True)])
def test_a_unit_stays_while_others_hold_what_the_site_took_out(twin: Twin, names: Row) -> None:
    scene(twin, names)
    kept = keep(twin)
    assert kept
    assert kept.state is UnitState.IDLE


@pytest.mark.parametrize("without", [POOL, OTHER, AMOUNT])
def test_a_unit_whose_pool_is_no_more_is_destroyed(twin: Twin, without: Row) -> None:
    scene(twin, without=without)
    kept = keep(twin)
    assert kept
    assert kept.state is UnitState.DIRTY


def test_an_amount_that_is_used_up_has_room_for_who_uses_it(twin: Twin) -> None:
    scene(twin, replace(AMOUNT, limit=2))
    kept = keep(twin)
    assert kept
    assert kept.state is UnitState.IDLE


@pytest.mark.parametrize("instead", [POOL, replace(POOL, over=True)])
def test_who_gave_it_up_meanwhile_is_heard(twin: Twin, instead: Pool) -> None:
    """UNIT-2: what is gone is not idle again, and not destroyed again."""
    scene(twin, instead)
    before_the_next_commit(twin, change(twin, state=UnitState.GONE))
    assert keep(twin) is None
    assert unit_of(twin).state is UnitState.GONE


def test_who_paused_the_pool_meanwhile_is_heard(twin: Twin) -> None:
    scene(twin)
    before_the_next_commit(twin, lambda: apply.pause(twin.on, DB, paused=True))
    assert keep(twin)
    assert apply.find(twin.on, DB).paused


@pytest.mark.parametrize(("of", "queue"), [(UNIT, "well"), (WORKER, "factory")])
def test_what_is_given_up_is_destroyed_by_who_made_it_unless_it_moved(twin: Twin, of: Unit, queue: str) -> None:
    was = scene(twin, of)
    before_the_next_commit(twin, change(twin, leases=2))
    reuse.give_up(twin.on, was, "it is late")
    assert (unit_of(twin).state, asked(twin)) == (UnitState.CLEANING, [])
    reuse.give_up(twin.on, unit_of(twin), "it is late")
    assert (unit_of(twin).state, asked(twin)) == (UnitState.DIRTY, [(queue, {"unit": "r-1"})])


@pytest.mark.parametrize(("due", "state"), [(0, UnitState.DIRTY), (1, UnitState.CLEANING), (None, UnitState.CLEANING)])
def test_a_worker_has_until_it_is_due_to_say_that_it_is_clean(twin: Twin, due: int | None, state: UnitState) -> None:
    now = twin.world.now()
    was = scene(twin, replace(WORKER, due=None if due is None else now + due * SECOND))
    reuse.clean(twin.on, was)
    assert unit_of(twin).state is state


@pytest.mark.parametrize(("look", "cleaned"), [(EARLY, ["r-1"]), (EARLY + SECOND, [])])
def test_a_message_that_may_be_this_one_is_not_waited_for(twin: Twin, look: timedelta, cleaned: list[str]) -> None:
    reuse.clean(twin.on, scene(twin, replace(UNIT, step=replace(UNIT.step, next_look=twin.world.now() + look))))
    assert twin.drivers.basin.cleaned == cleaned


@pytest.mark.parametrize(("busy", "cleaned"), [(0 * SECOND, ["r-1"]), (SECOND, [])])
def test_a_call_is_over_when_its_time_is(twin: Twin, busy: timedelta, cleaned: list[str]) -> None:
    reuse.clean(twin.on, scene(twin, replace(UNIT, step=replace(UNIT.step, busy=twin.world.now() + busy))))
    assert twin.drivers.basin.cleaned == cleaned


def test_a_resource_is_cleaned_after_the_worker_that_used_it(twin: Twin) -> None:
    was = scene(twin, lease(0, LeaseState.RELEASING, pool="target/linux", unit="w-1"))
    before_the_next_commit(twin, change(twin, leases=2))
    reuse.clean(twin.on, was)
    assert (unit_of(twin).lease.leases, unit_of(twin).due) == (2, was.due)
    reuse.clean(twin.on, unit_of(twin))
    due = unit_of(twin).due
    assert due
    assert due > twin.world.now()
    assert twin.drivers.basin.cleaned == []


def test_a_unit_that_was_written_before_it_is_locked_is_not_locked(twin: Twin) -> None:
    was = scene(twin)
    before_the_next_commit(twin, change(twin, leases=2))
    assert lock(twin.on, was) is None
    assert (unit_of(twin).lease.leases, unit_of(twin).step.busy) == (2, None)


def test_one_of_two_concurrent_handlers_cleans(twin: Twin) -> None:
    was = scene(twin)
    twin.drivers.basin.says += [NotYet(5), NotYet(5)]
    before_the_next_commit(twin, lambda: reuse.clean(twin.on, was))
    reuse.clean(twin.on, was)
    assert len(twin.drivers.basin.says) == 1


def test_a_handler_that_was_overtaken_before_its_call_does_not_call(twin: Twin) -> None:
    """It slept so long after its write that another took over."""
    was, get, asked_ = scene(twin), twin.store.get, []

    def late(key: object, kind: type[Row]) -> Row | None:
        if not asked_:
            asked_.append(key)
            change(twin, busy=START + 2 * CLEAN_WITHIN)()
        return get(key, kind)  # type: ignore[arg-type]

    commit = twin.store.commit

    def then_sleeps(changes: object) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        done = commit(changes)  # type: ignore[arg-type]
        twin.store.get = late  # type: ignore[method-assign, assignment]
        return done

    twin.store.commit = then_sleeps  # type: ignore[method-assign, assignment]
    reuse.clean(twin.on, was)
    assert asked_
    assert twin.drivers.basin.cleaned == []


def test_a_well_that_does_not_clean_has_its_unit_destroyed(twin: Twin) -> None:
    reuse.clean(twin.on, scene(twin, replace(UNIT, maker="locks")))
    assert unit_of(twin).state is UnitState.DIRTY


def test_an_unfinished_well_is_called_again_by_one_message(twin: Twin) -> None:
    twin.drivers.basin.says += [NotYet(30, "it is being wiped")]
    reuse.clean(twin.on, scene(twin))
    found = unit_of(twin)
    assert (found.step.busy, found.step.next_look) == (None, twin.world.now() + 30 * SECOND)
    assert asked(twin) == [("well", {"unit": "r-1"})]


def test_whoever_moved_during_the_call_sends_the_next_message(twin: Twin) -> None:
    was = scene(twin)

    def slow(unit: str, now: object) -> NotYet:
        change(twin, leases=2)()
        return NotYet(30, "it is being wiped")

    twin.drivers.basin.clean = slow  # type: ignore[method-assign, assignment]
    reuse.clean(twin.on, was)
    assert (unit_of(twin).lease.leases, asked(twin)) == (2, [])


def at_rest(twin: Twin, of: Unit = UNIT) -> Unit:
    """A unit that is idle."""
    scene(twin, of)
    assert keep(twin)
    twin.queues.messages.clear()
    return unit_of(twin)


@pytest.mark.parametrize(("of", "queue"), [(UNIT, "well"), (WORKER, "factory")])
def test_an_idle_unit_is_retired_by_who_made_it(twin: Twin, of: Unit, queue: str) -> None:
    at_rest(twin, of)
    before_the_next_commit(twin, change(twin, leases=5))
    assert retire.retire(twin.on, "r-1", "it is too many")
    assert (unit_of(twin).state, unit_of(twin).lease.leases) == (UnitState.DIRTY, 5)
    assert asked(twin) == [(queue, {"unit": "r-1"})]
    assert all(row.leaving for row in twin.store.rows.values() if isinstance(row, Slot))


def test_what_is_not_idle_is_not_retired(twin: Twin) -> None:
    assert not retire.retire(twin.on, "r-1", "it is not there")
    scene(twin)
    assert not retire.retire(twin.on, "r-1", "it is being cleaned")
    assert (unit_of(twin).state, asked(twin)) == (UnitState.CLEANING, [])


def test_a_units_slots_are_its_own_by_pool_name_and_fence(twin: Twin) -> None:
    """SLOT-3: what it takes besides has other fences, also a slot of the same name, and one of the same pool."""
    second = slot("2", HELD, pool=DB, **{**HOLDER, "fence": 8})
    was = scene(twin, replace(UNIT, lease=replace(UNIT.lease, also=((DB, "2"), (RACK, "1")))), second)
    assert [(one.pool, one.name) for one in slots_of(twin.on, was)] == [(DB, "1"), (DB, "2"), (RACK, "1")]
    assert [one.pool for one in slots_of(twin.on, replace(was, lease=replace(was.lease, fence=2)))] == [DB, RACK]
    assert slots_of(twin.on, replace(was, id="r-2")) == []


@pytest.mark.parametrize(("order", "woken"), [(0, ["x-2"]), (2, ["x-1"]), (1, [])])
def test_the_turn_goes_to_the_next_lease_of_the_attempt(twin: Twin, order: int, woken: list[str]) -> None:
    """Those before it have had theirs: their units are not read."""
    for other in (1, 2):
        put(twin, lease(other, LeaseState.RELEASING, pool=DB, unit=f"x-{other}"))
    release.slot_freed(twin.on, replace(UNIT, lease=replace(UNIT.lease, order=order)))
    assert [each for each in asked(twin) if each[0] == "well"] == [("well", {"unit": unit}) for unit in woken]


@pytest.mark.parametrize("state", UnitState)
def test_it_has_its_turn_when_the_units_before_it_are_put_back(twin: Twin, state: UnitState) -> None:
    """Their rows say so: those of leases were last written when they were granted."""
    granted = {"fence": 1, "pool": DB}
    own = lease(1, LeaseState.GRANTED, unit="r-1", **granted)
    was = scene(twin, own, lease(0, LeaseState.GRANTED, unit="w-1", **granted))
    put(twin, replace(WORKER, id="w-1", state=state, hold=None))
    waits = state in (UnitState.CLEANING, UnitState.DIRTY, UnitState.QUARANTINED)
    assert (turn_pause(twin.on, was) is not None) is waits


@pytest.mark.parametrize("state", [State.QUEUED, State.SETTLED, None])
def test_when_a_worker_is_back_its_job_may_start_again(twin: Twin, state: State | None) -> None:
    if state:
        put(twin, replace(job(), id="J1", state=state))
    release.slot_freed(twin.on, WORKER)
    assert asked(twin) == [("schedule", {"do": "start", "job": "J1"})] * (state is State.QUEUED)


def test_when_a_resource_is_back_its_job_does_not_start_again(twin: Twin) -> None:
    put(twin, replace(job(), id="J1", state=State.QUEUED))
    release.slot_freed(twin.on, UNIT)
    assert asked(twin) == []


LIMITS = Limits()
LEASE = timedelta(seconds=LIMITS.lease)


def wait(twin: Twin, shown: str = "hash") -> bool:
    return agents.wait_for_job(twin.on, "r-1", shown, "all of it", LIMITS)


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({}, True),
        ({"is_a": UnitKind.RESOURCE}, False),
        ({"past_hash": None}, False),
        ({"past_hash": "another"}, False),
        ({"state": UnitState.READY, "token_hash": "hash", "past_hash": None}, True),
        ({"state": UnitState.READY, "token_hash": "another", "past_hash": None}, False),
        ({"state": UnitState.READY, "token_hash": None, "past_hash": None}, False),
        ({"state": UnitState.DIRTY, "token_hash": "hash", "past_hash": None}, False),
        ({"state": UnitState.DIRTY}, False),
    ],
)
def test_a_worker_waits_for_its_next_job_if_it_knows_its_last(
    twin: Twin, changes: dict[str, object], waits: bool
) -> None:
    """SEC-2: by the token of its last job, and nobody else's."""
    assert not wait(twin)
    scene(twin, changed(WORKER, **changes))
    assert wait(twin) is waits


@pytest.mark.parametrize(("passed", "written"), [(LEASE / 2 - SECOND, False), (LEASE / 2, True)])
def test_an_idle_worker_is_noted_when_half_its_lease_is_over(twin: Twin, passed: timedelta, written: bool) -> None:
    scene(twin, WORKER)
    assert wait(twin)
    was = unit_of(twin)
    assert was.due == twin.world.now() + LEASE
    twin.world.time += passed
    assert wait(twin)
    assert (unit_of(twin).due == was.due + passed) is written
    assert (unit_of(twin).version > was.version) is written


def test_who_wrote_an_idle_worker_meanwhile_is_heard(twin: Twin) -> None:
    scene(twin, WORKER)
    assert wait(twin)
    twin.world.time += LEASE
    before_the_next_commit(twin, change(twin, leases=5))
    assert wait(twin)
    assert (unit_of(twin).lease.leases, unit_of(twin).due) == (5, twin.world.now() + LEASE)


def test_a_resize_of_an_amount_leaves_its_parts_alone(twin: Twin) -> None:
    due = twin.world.now()
    put(twin, replace(AMOUNT, due=due), SLOTS[2])
    resize.resize(twin.on, GB)
    assert apply.find(twin.on, GB).due is None
    assert twin.store.rows[SLOTS[2].key].version == 1


def test_a_resize_of_what_fits_writes_nothing(twin: Twin) -> None:
    put(twin, replace(OTHER, due=twin.world.now()))
    resize.resize(twin.on, RACK)
    commits = twin.store.commits
    resize.resize(twin.on, RACK)
    assert twin.store.commits == commits
    assert apply.find(twin.on, RACK).version == 3


def test_a_resize_that_somebody_raced_looks_again(twin: Twin) -> None:
    """SLOT-1: the limit that was set meanwhile is the one that counts."""
    put(twin, replace(OTHER, due=twin.world.now()))
    resize.resize(twin.on, RACK)
    apply.pause(twin.on, RACK, paused=False)
    was = apply.find(twin.on, RACK)
    assert twin.store.commit([Replace(was, replace(was, due=twin.world.now()))])
    before_the_next_commit(twin, lambda: apply.resize(twin.on, RACK, 3))
    resize.resize(twin.on, RACK)
    found = [row for row in twin.store.rows.values() if isinstance(row, Slot)]
    assert (len(found), apply.find(twin.on, RACK).due) == (3, None)


def test_a_slot_that_changed_meanwhile_is_read_again(twin: Twin) -> None:
    put(twin, replace(OTHER, due=twin.world.now()))
    resize.resize(twin.on, RACK)
    free = twin.store.get(slot("1", pool=RACK).key, Slot)
    assert free
    assert twin.store.commit([Delete(free)])
    twin.world.pause = lambda tries: put(twin, free)  # type: ignore[method-assign]
    resize.resize(twin.on, RACK)
    assert [row.name for row in twin.store.rows.values() if isinstance(row, Slot)] == ["1"]


def test_a_slot_that_was_on_the_move_is_withdrawn_with_the_others(twin: Twin) -> None:
    """SLOT-1: a pool is not done with a slot that was not seen."""
    put(twin, replace(OTHER, due=twin.world.now()))
    resize.resize(twin.on, RACK)
    apply.resize(twin.on, RACK, 0)
    free = twin.store.get(slot("1", pool=RACK).key, Slot)
    assert free
    assert twin.store.commit([Delete(free)])
    twin.world.pause = lambda tries: put(twin, *([] if tries else [free]))  # type: ignore[method-assign]
    resize.resize(twin.on, RACK)
    assert [row.state for row in twin.store.rows.values() if isinstance(row, Slot)] == [SlotState.OFF]


def test_a_step_of_a_plan_is_not_taken_when_the_limit_has_changed(twin: Twin) -> None:
    """SLOT-1: not even for a moment is there a slot more than the limit."""
    put(twin, replace(OTHER, due=twin.world.now()))
    seen: list[int] = []

    def looks(tries: int) -> None:
        del tries
        seen.append(sum(isinstance(row, Slot) for row in twin.store.rows.values()))

    twin.world.pause = looks  # type: ignore[method-assign]
    before_the_next_commit(twin, lambda: apply.resize(twin.on, RACK, 0))
    resize.resize(twin.on, RACK)
    assert seen == [0]


def test_a_pool_is_over_while_a_slot_that_was_withdrawn_is_held(twin: Twin) -> None:
    held = slot("1", HELD, pool=RACK, **HOLDER)
    put(twin, replace(OTHER, limit=0, due=twin.world.now()), SlotName(pool=RACK, name="1"), held)
    resize.resize(twin.on, RACK)
    assert apply.find(twin.on, RACK).over
    withdrawn = twin.store.get(held.key, Slot)
    assert withdrawn
    assert withdrawn.withdrawn


def test_a_pool_that_is_no_more_is_not_resized(twin: Twin) -> None:
    """The message came late."""
    commits = twin.store.commits
    resize.resize(twin.on, RACK)
    assert twin.store.commits == commits
