"""What operators may do with a unit in each of its states, and what is said of it. [UNIT-3]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.pools import forecast, pools, why
from penstock.domain.pools.forecast import Queue
from penstock.domain.pools.pools import SlotState, Warm
from penstock.domain.units import lifecycle, maintenance, retries, reuse, units
from penstock.domain.units.units import (
    CLEAN_WITHIN,
    HOLD_MOST,
    HOLD_REASON_CHARS,
    JOURNAL_CHARS,
    STEP_WITHIN,
    Drain,
    Hold,
    Journal,
    Unit,
    UnitKind,
    UnitState,
)
from penstock.domain.units.units import JOURNAL_ENTRIES as ENTRIES
from penstock.kernel.errors import Refused
from tests.domain.helpers import MINUTE, NOW, SECOND, claim, job, lease, pool, slot, unit

HOUR = timedelta(hours=1)
HOLD = Hold("ada", "looking", NOW - HOUR, NOW + HOUR)
OVER = Hold("ada", "looking", NOW - HOUR, NOW)
ALIVE = [state for state in UnitState if state not in (UnitState.QUARANTINED, UnitState.GONE)]
KINDS = list(UnitKind)


def hold(before: Unit, seconds: int = 60) -> Unit:
    return maintenance.hold(before, "bob", "why", seconds, NOW)


def release(before: Unit, by: str | None = "bob") -> Unit:
    return maintenance.release(before, by, NOW, 2 * MINUTE)


def last(found: Unit) -> str:
    return found.journal.entries[-1].what


@pytest.mark.parametrize("state", ALIVE)
@pytest.mark.parametrize("is_a", KINDS)
def test_a_hold_can_be_set_in_every_state(state: UnitState, is_a: UnitKind) -> None:
    due = NOW + 5 * MINUTE
    found = hold(unit(state=state, is_a=is_a, due=due, hold=HOLD))
    assert found.hold == Hold("bob", "why", NOW, NOW + MINUTE)
    assert found.state is state
    waits = state in maintenance.PARKED or (state is UnitState.READY and is_a is UnitKind.RESOURCE)
    assert found.due == (NOW + MINUTE if waits else due)
    assert last(found) == "held by bob until 2026-01-02 03:05:05Z: why"


def test_what_is_gone_or_begun_or_recycled_is_not_held() -> None:
    begun = NOW - MINUTE
    for before, said in (
        (unit(state=UnitState.GONE, since=NOW), "worker w-1 is gone since 2026-01-02 03:04:05Z"),
        (unit(state=UnitState.DIRTY, begun=begun, reason="old"), "is being destroyed since 2026-01-02 03:03:05Z (old)"),
        (unit(state=UnitState.CLEANING, begun=begun), "is being cleaned since"),
        (unit(drain=Drain("eve", "bad", NOW, at_once=True)), "is recycled by eve: bad: it is too late"),
    ):
        with pytest.raises(Refused) as refused:
            hold(before)
        assert refused.value.status == 409
        assert said in refused.value.detail
    assert hold(unit(drain=Drain("eve", "bad", NOW))).hold


@pytest.mark.parametrize(
    ("reason", "seconds"),
    [("", 1), (" ", 1), ("x" * (HOLD_REASON_CHARS + 1), 1), ("a\nb", 1), ("x", 0), ("x", -1), ("x", HOLD_MOST + 1)],
)
def test_a_hold_has_a_reason_and_a_length(reason: str, seconds: int) -> None:
    with pytest.raises(Refused) as refused:
        maintenance.check(reason, seconds, required=True)
    assert refused.value.status == 400


def test_reasons_that_may_be() -> None:
    maintenance.check("x" * HOLD_REASON_CHARS, HOLD_MOST, required=True)
    maintenance.check("")


@pytest.mark.parametrize("is_a", KINDS)
def test_a_release_lets_everything_go_on(is_a: UnitKind) -> None:
    is_worker = is_a is UnitKind.WORKER
    due = NOW + HOUR

    def held(state: UnitState, **more: Any) -> Unit:
        return unit(state=state, is_a=is_a, hold=HOLD, due=due, until=NOW + MINUTE, **more)

    assert release(held(UnitState.CREATING)).due == due
    assert release(held(UnitState.READY)).due == (due if is_worker else None)
    cleaning = release(held(UnitState.CLEANING))
    assert cleaning.due == NOW + (CLEAN_WITHIN if is_worker else STEP_WITHIN)
    assert cleaning.cleaning.begun == (NOW if is_worker else None)
    assert release(held(UnitState.CLEANING, begun=NOW - MINUTE)).cleaning.begun == NOW - MINUTE
    assert release(held(UnitState.IDLE)).due == NOW + MINUTE
    assert release(held(UnitState.DIRTY)).due == NOW + STEP_WITHIN
    assert release(held(UnitState.DIRTY)).hold is None
    assert last(release(held(UnitState.DIRTY))) == "released by bob"
    assert last(release(held(UnitState.DIRTY), None)) == "the hold of ada ran out"


def test_a_held_resource_is_renewed_all_the_same() -> None:
    """Its job goes on with what its well said of it."""
    leased = unit(is_a=UnitKind.RESOURCE, state=UnitState.READY, renews=NOW + MINUTE / 2, due=NOW + MINUTE / 2)
    held = hold(leased)
    assert held.due == leased.access.renews
    assert hold(replace(leased, access=replace(leased.access, renews=NOW + MINUTE * 2))).due == NOW + MINUTE
    assert release(held).due == leased.access.renews


def test_what_is_not_held_is_not_released() -> None:
    with pytest.raises(Refused, match="worker w-1 is not held") as refused:
        release(unit())
    assert refused.value.status == 409


@pytest.mark.parametrize("is_a", KINDS)
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_held_unit_whose_lease_ends_waits_for_its_operator(is_a: UnitKind, is_kept: bool) -> None:
    before = unit(is_a=is_a, state=UnitState.READY, is_kept=is_kept, token_hash="hash", hold=HOLD)
    found = units.end_lease(before, "its lease ended", NOW, ended_well=True)
    assert found.state is (UnitState.CLEANING if is_kept else UnitState.DIRTY)
    assert (found.due, found.cleaning.begun, found.session.token_hash, found.session.past_hash) == (
        HOLD.until,
        None,
        None,
        "hash",
    )
    free = units.end_lease(unit(**{**vars(before), "hold": OVER}), "its lease ended", NOW, ended_well=True)
    assert free.cleaning.begun == (NOW if is_a is UnitKind.WORKER else None)
    assert free.due != HOLD.until


def test_a_drained_unit_is_not_kept() -> None:
    drained = unit(state=UnitState.READY, is_kept=True, drain=Drain("ada", "", NOW))
    assert units.end_lease(drained, "its lease ended", NOW, ended_well=True).state is UnitState.DIRTY
    assert reuse.why_not_kept(drained, pool(warm=Warm()), 0, 0, NOW) == "drained by ada"


@pytest.mark.parametrize("state", [UnitState.CLEANING, UnitState.IDLE])
def test_a_held_unit_is_never_given_up_nor_begun(state: UnitState) -> None:
    with pytest.raises(ValueError, match="held by ada"):
        units.give_up(unit(state=state, hold=HOLD), "it made room", NOW)
    with pytest.raises(ValueError, match="held by ada"):
        units.begin_end(unit(state=state, hold=HOLD), NOW)
    assert units.give_up(unit(state=state, hold=OVER), "it made room", NOW).cleaning.begun == NOW
    assert units.begin_end(unit(begun=NOW - MINUTE), NOW).cleaning.begun == NOW - MINUTE


def test_a_held_resource_is_due_at_the_end_of_its_hold() -> None:
    assert units.ready(unit(is_a=UnitKind.RESOURCE, hold=HOLD, tries=2), {}, NOW).due == HOLD.until


def test_heartbeats_do_not_put_off_a_recycling() -> None:
    recycled = unit(state=UnitState.READY, due=NOW, drain=Drain("ada", "", NOW, at_once=True))
    renewed = units.renew(recycled, NOW + SECOND, MINUTE)
    assert (renewed.due, renewed.session.heard) == (NOW, NOW + SECOND)  # its agent goes on for a lease, so it is noted
    assert units.renew(unit(drain=Drain("ada", "", NOW)), NOW, MINUTE).due == NOW + MINUTE


@pytest.mark.parametrize("state", ALIVE)
def test_draining_is_noted_once(state: UnitState) -> None:
    found = maintenance.drain(unit(state=state), "bob", "old", NOW)
    assert (found.drain is None) is (state is UnitState.DIRTY)
    assert maintenance.drain(found, "eve", "again", NOW) == found


@pytest.mark.parametrize("state", ALIVE)
def test_recycling_is_noted_once_and_ends_what_leases_it(state: UnitState) -> None:
    due = NOW + HOUR
    found = maintenance.recycle(unit(state=state, due=due), "bob", "", NOW)
    assert found.is_recycled is found.is_leased is (state in (UnitState.CREATING, UnitState.READY))
    assert found.due == (NOW + STEP_WITHIN if found.is_leased else due)
    assert maintenance.recycle(found, "eve", "again", NOW) == found
    drained = unit(state=state, drain=Drain("ada", "", NOW))
    assert maintenance.recycle(drained, "bob", "", NOW).is_recycled is drained.is_leased
    assert not drained.is_recycled


def test_neither_is_for_what_is_gone_nor_recycling_for_what_is_held() -> None:
    for act in (maintenance.drain, maintenance.recycle):
        with pytest.raises(Refused, match="is gone since"):
            act(unit(state=UnitState.GONE), "bob", "", NOW)
    with pytest.raises(Refused, match=r"held by ada until .* release it first"):
        maintenance.recycle(unit(hold=HOLD), "bob", "", NOW)


def test_the_slots_of_an_idle_unit_that_is_held_are_held_by_no_job() -> None:
    aside = pools.set_aside(slot(unit="w-1", fence=3), NOW)
    assert (aside.state, aside.job, aside.unit, aside.fence) == (SlotState.HELD, None, "w-1", 3)


def test_a_journal_keeps_its_numbers_when_it_forgets() -> None:
    journal = Journal()
    for number in range(1, ENTRIES + 11):
        journal = journal.with_(NOW, f"entry {number}")
    assert [(seq, entry.what) for seq, entry in journal.after(ENTRIES + 8)] == [
        (ENTRIES + 9, f"entry {ENTRIES + 9}"),
        (ENTRIES + 10, f"entry {ENTRIES + 10}"),
    ]
    assert journal.after(0)[0][0] == 11
    assert len(journal.entries) == ENTRIES
    assert journal.entries[0].time == NOW
    assert len(Journal().with_(NOW, "x" * 1000).entries[0].what) == JOURNAL_CHARS


def test_a_reason_is_noted_when_it_is_new() -> None:
    found = retries.retry_later(unit(), "no capacity", NOW)
    again = retries.retry_by_message(retries.retry_later(found, "no capacity", NOW), "no capacity", NOW)
    other = retries.retry_by_message(again, "the account is full", NOW)
    assert [entry.what for entry in other.journal.entries] == ["no capacity", "the account is full"]


AT = "2026-01-02 03:05:05Z"
END = "2026-01-02 04:04:05Z"
ENDS = f"it stays as it is until its hold ends, by {END}, and is destroyed"
SAID: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, f"f makes it; asked again by {AT}; then it is destroyed"),
    ({"made": NOW}, f"its agent says hello by {AT}, or its attempt is lost; then it is destroyed"),
    (
        {"state": "ready", "hold": HOLD},
        f"its job ends, or is lost if nothing is heard of its agent by {AT}; then {ENDS}",
    ),
    (
        {"state": "ready", "is_a": UnitKind.RESOURCE, "due": None, "is_kept": True},
        "its job ends; then it is cleaned for the next, if its job ended well",
    ),
    (
        {"state": "ready", "drain": Drain("a", "", NOW, at_once=True), "is_kept": True},
        "its attempt ends, for it is recycled; then it is destroyed",
    ),
    ({"state": "cleaning", "hold": HOLD}, f"it is cleaned when its hold ends, by {END}"),
    ({"state": "cleaning"}, f"its agent says that it is clean by {AT}, or it is destroyed"),
    (
        {"state": "cleaning", "is_a": UnitKind.RESOURCE, "due": None},
        "f says that it is clean, or it is destroyed",
    ),
    ({"state": "idle", "hold": HOLD}, f"nobody is lent it until its hold ends, by {END}"),
    ({"state": "idle", "until": NOW + HOUR}, f"the next job is lent it, or it is destroyed by {END}"),
    ({"state": "idle"}, f"f makes it by {AT}; the next job is lent it, there or not"),
    ({"state": "dirty", "hold": HOLD}, f"it is destroyed when its hold ends, by {END}"),
    ({"state": "dirty"}, "it is destroyed when what its attempt gives back before it is back"),
    ({"state": "dirty", "begun": NOW, "hold": OVER}, f"f destroys it; asked again by {AT}"),
    ({"state": "gone"}, "nothing: it is gone"),
)


@pytest.mark.parametrize(("given", "said"), SAID)
def test_what_becomes_of_a_unit_is_said_in_a_sentence(given: dict[str, Any], said: str) -> None:
    fields = {"maker": "f", "due": NOW + MINUTE, "state": "creating"} | given
    assert lifecycle.next_step(unit(**fields | {"state": UnitState(fields["state"])}), NOW) == said


def test_what_an_operator_keeps_comes_back_last_and_nobody_knows_when() -> None:
    aside = slot("1", SlotState.HELD, unit="w-1", since=NOW - HOUR)
    lent = slot("2", SlotState.HELD, unit="w-2", job="J9", attempt=1, order=1, since=NOW)
    waits = claim()
    pool = pools.Pool(name="resource/bench", limit=2)
    times = pools.HoldTimes(pool=pool.name, holds=3, mean_hold=60.0)
    soon = forecast.forecast({pool.name: Queue(pool, [aside, lent], [waits], times)}, waits, NOW)
    assert [(act.job, soon.seconds) for act in soon.unblocks] == [("J9", 60.0)]
    never = forecast.forecast({pool.name: Queue(pool, [aside], [waits], times)}, waits, NOW)
    assert ([str(act) for act in never.unblocks], never.seconds) == (
        ["an operator releases what keeps slot 1 of resource/bench"],
        None,
    )
    blocked = why.block(pool, [aside, lent], [waits], "J1")
    told = why.explain(job(), [lease()], blocked).summary
    assert "held are 2 by J9, 1 kept by operators; position 1" in told


def test_a_hold_of_one_second_may_be() -> None:
    maintenance.check("x", 1, required=True)


def test_what_is_being_destroyed_already_is_not_recycled_again() -> None:
    dirty = unit(state=UnitState.DIRTY)
    assert maintenance.recycle(dirty, "bob", "bad", NOW) == dirty


@pytest.mark.parametrize(("tries", "told"), [(0, ""), (2, " after 2 failures")])
def test_how_often_making_failed_is_noted(tries: int, told: str) -> None:
    assert last(units.mark_made(unit(tries=tries), NOW, MINUTE)) == f"made{told}"
    assert last(units.ready(unit(tries=tries, is_a=UnitKind.RESOURCE), {}, NOW)) == f"ready{told}"


def test_a_unit_whose_hold_is_over_goes_on_at_once() -> None:
    over = units.end_lease(unit(state=UnitState.READY, hold=OVER), "its lease ended", NOW)
    assert over.due == NOW + STEP_WITHIN
    held = units.end_lease(unit(state=UnitState.READY, hold=HOLD), "its lease ended", NOW)
    assert held.due == HOLD.until


def test_an_agent_that_did_not_get_clean_is_still_known() -> None:
    """It asks whether its machine is wanted by the token of its last job, also when it is to be destroyed."""
    cleaning = unit(state=UnitState.CLEANING, past_hash="hash")
    assert units.give_up(cleaning, "too late", NOW).session.past_hash == "hash"


def test_no_reason_is_not_noted() -> None:
    before = unit(reason="down")
    assert retries.retry_later(before, None, NOW).journal == before.journal
    assert retries.retry_later(before, "down", NOW).journal == before.journal
    assert retries.retry_later(before, "up", NOW).journal != before.journal
