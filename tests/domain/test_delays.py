"""What keeps the slots of a unit, and what that means to who waits for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.pools import delays, forecast
from penstock.domain.pools.delays import Cause, Delay
from penstock.domain.pools.forecast import Action, Queue
from penstock.domain.pools.pools import Claim, HoldTimes, LeaseState, Pool, Slot, SlotState
from penstock.domain.pools.why import Stopped, block, explain
from penstock.domain.units.units import Hold, Unit, UnitKind, UnitState, format_time
from tests.domain.helpers import MINUTE, NOW, claim, job, lease, pool, slot, unit

HOLD = Hold("root", "looking", NOW - MINUTE, NOW + 30 * MINUTE)
AT = format_time(NOW)
BENCH, TARGET = "resource/bench", "target/ubuntu"


def delay(cause: Cause = Cause.HOLD, name: str = "u-A", until: int | None = 30, **changes: Any) -> Delay:
    ends = NOW + until * MINUTE if until is not None else None
    return Delay(name, cause, NOW, f"{name} is kept", f"{name} comes back", until=ends, **changes)


def held(name: str, job_: str | None, **changes: Any) -> Slot:
    fields = {"job": job_, "attempt": 1, "order": 1, "unit": f"u-{job_}", "since": NOW, **changes}
    return slot(name, SlotState.HELD, **fields)


def queues(slots: list[Slot], claims: list[Claim], mean: float | None = 600.0, **changes: Any) -> dict[str, Queue]:
    times = HoldTimes(pool=BENCH, holds=2, mean_hold=mean) if mean is not None else None
    return {BENCH: Queue(pool(**{"limit": len(slots), **changes}), slots, claims, times)}


@pytest.mark.parametrize(
    ("fields", "cause", "says", "act"),
    [
        (
            {"state": UnitState.QUARANTINED, "reason": "its disk is gone"},
            Cause.QUARANTINE,
            f"worker w-1 is quarantined since {AT}: its disk is gone",
            "an operator releases, recycles or removes worker w-1",
        ),
        (
            {"state": UnitState.DIRTY, "hold": HOLD},
            Cause.HOLD,
            f"worker w-1 is held by root until {format_time(HOLD.until)}: looking",
            f"root or an operator releases worker w-1, or its hold ends at {format_time(HOLD.until)}",
        ),
        (
            {"state": UnitState.DIRTY, "hold": replace(HOLD, until=NOW)},
            Cause.CLEANING,
            f"worker w-1 is being cleaned since {AT}",
            "worker w-1 is clean",
        ),
        (
            {"state": UnitState.CLEANING},
            Cause.CLEANING,
            f"worker w-1 is being cleaned since {AT}",
            "worker w-1 is clean",
        ),
        (
            {"state": UnitState.DIRTY, "tries": 1, "reason": "denied", "due": NOW + MINUTE},
            Cause.FAILING,
            f"worker w-1 is not clean since {AT}: factory here failed 1 time: denied; "
            f"it is tried again at {format_time(NOW + MINUTE)}",
            "factory here can clean worker w-1 again, which an operator may have to see to",
        ),
        (
            {"state": UnitState.DIRTY, "tries": 2, "reason": "denied", "due": None, "is_a": UnitKind.RESOURCE},
            Cause.FAILING,
            f"resource w-1 is not clean since {AT}: well here failed 2 times: denied",
            "well here can clean resource w-1 again, which an operator may have to see to",
        ),
    ],
)
def test_what_keeps_a_unit_is_said_with_who_ends_it(fields: dict[str, Any], cause: Cause, says: str, act: str) -> None:
    found = delays.delay_of(unit(**fields), NOW)
    assert found
    assert (found.unit, found.cause, found.says, found.act, found.has_ended) == ("w-1", cause, says, act, True)
    assert (found.until, found.by) == ((HOLD.until, "root") if cause is Cause.HOLD else (None, None))


@pytest.mark.parametrize(
    "fields",
    [{"state": UnitState.READY}, {"state": UnitState.IDLE}, {"state": UnitState.GONE, "hold": HOLD}],
)
def test_what_may_be_granted_or_a_job_has_is_not_kept(fields: dict[str, Any]) -> None:
    assert delays.delay_of(unit(**fields), NOW) is None


def test_a_hold_lasts_longer_than_the_job_that_has_the_unit() -> None:
    found = delays.delay_of(unit(state=UnitState.READY, hold=HOLD), NOW)
    assert found
    assert not found.has_ended


def leased(order: int, state: UnitState, **changes: Any) -> tuple[Any, Unit | None]:
    had = lease(order, LeaseState.GRANTED, fence=1)
    row = unit(state=state, id=f"u-{order}", **changes)
    return had, replace(row, lease=replace(row.lease, order=order))


def test_the_first_of_an_attempts_units_that_is_kept_keeps_those_behind_it() -> None:
    """UNIT-3"""
    worker, bench = leased(0, UnitState.DIRTY, hold=HOLD), leased(1, UnitState.DIRTY)
    first = delays.first_delay([worker, bench], NOW)
    assert first
    assert (first.unit, first.cause) == ("u-0", Cause.HOLD)
    over = leased(0, UnitState.GONE)
    second = delays.first_delay([over, (bench[0], None), bench], NOW)
    assert second
    assert (second.unit, second.cause) == ("u-1", Cause.CLEANING)
    assert delays.first_delay([over], NOW) is None


@pytest.mark.parametrize(
    ("kept", "seconds", "basis"),
    [
        (delay(), 1800, "u-A is kept; the last 2 holders of resource/bench kept it 10 min on average"),
        (delay(Cause.CLEANING, until=None), 600, "the last 2 holders of resource/bench kept it 10 min on average"),
        (delay(Cause.FAILING, until=None), None, None),
        (delay(Cause.QUARANTINE, until=None), None, None),
    ],
)
def test_a_start_counts_what_keeps_the_unit(kept: Delay, seconds: float | None, basis: str | None) -> None:
    found = forecast.forecast(queues([held("1", "A")], [claim("J1")]), claim("J1"), NOW, {"u-A": kept})
    assert (found.seconds, found.basis) == (seconds, basis)
    assert [(act.way, act.unit, str(act)) for act in found.unblocks] == [(Action.LET_GO, "u-A", "u-A comes back")]


def test_a_hold_alone_is_basis_enough_where_no_holder_is_known() -> None:
    found = forecast.forecast(queues([held("1", "A")], [claim("J1")], None), claim("J1"), NOW, {"u-A": delay()})
    assert (found.seconds, found.basis) == (1800, "u-A is kept")


def test_a_held_unit_comes_back_after_its_job_and_after_its_hold() -> None:
    kept = {"u-A": delay(until=5, has_ended=False)}
    found = forecast.forecast(queues([held("1", "A")], [claim("J1")]), claim("J1"), NOW, kept)
    assert [str(act) for act in found.unblocks] == ["A ends", "u-A comes back"]
    assert found.seconds == 600


def test_who_is_kept_least_comes_first() -> None:
    slots = [held("1", "A"), held("2", "B")]
    kept = {"u-A": delay(Cause.QUARANTINE, until=None), "u-B": delay(name="u-B", until=5)}
    found = forecast.forecast(queues(slots, [claim("J1")]), claim("J1"), NOW, kept)
    assert ([act.unit for act in found.unblocks], found.seconds) == (["u-B"], 300)


def chain(paused: bool = False, **changes: Any) -> tuple[dict[str, Queue], Claim]:
    """J1 waits for the bench of A, which waits for the machine of B."""
    mine, first = claim("J1"), claim("A", **{"pool": TARGET, "step": 0, "pools": (TARGET,), **changes})
    machine = held("1", "B", pool=TARGET, since=NOW - 5 * MINUTE)
    row, times = Pool(name=TARGET, limit=1, paused=paused), HoldTimes(pool=TARGET, holds=2, mean_hold=1200.0)
    return {**queues([held("1", "A")], [mine]), TARGET: Queue(row, [machine], [first], times)}, mine


def test_a_holder_that_waits_gives_back_only_after_it_got_what_it_waits_for() -> None:
    found = forecast.forecast(*chain(), NOW)
    assert [(act.way, act.job) for act in found.unblocks] == [(Action.GIVE_BACK, "B"), (Action.GIVE_BACK, "A")]
    assert found.seconds == 15 * 60 + 1200


def test_what_an_operator_has_to_do_for_a_holder_is_named_and_nobody_knows_when() -> None:
    found = forecast.forecast(*chain(paused=True), NOW)
    assert [act.way for act in found.unblocks] == [Action.RESUME, Action.GIVE_BACK, Action.GIVE_BACK]
    assert (found.seconds, found.basis) == (None, None)


def test_where_it_was_not_read_what_a_holder_waits_for_its_own_end_is_named() -> None:
    found = forecast.forecast(*chain(count=2), NOW)
    assert found.unblocks[0].way is Action.RAISE
    read, mine = chain(pools=(TARGET, "quota/unread"))
    assert [act.job for act in forecast.forecast(read, mine, NOW).unblocks] == ["A"]


def test_a_slot_that_does_not_exist_yet_has_no_name() -> None:
    first, mine = claim("J0"), claim("J1")
    found = forecast.forecast(queues([], [first, mine], limit=0), mine, NOW)
    assert [str(act) for act in found.unblocks] == [
        "an operator raises the limit of resource/bench to 1",
        "a slot of resource/bench is given back by J0",
    ]


def test_a_block_tells_what_is_kept_and_no_job_that_has_ended() -> None:
    slots = [held("1", "A"), held("2", "B"), held("3", None, unit=None, count=1), held("4", "D")]
    kept = {"u-A": delay(), "u-B": delay(name="u-B", has_ended=False)}
    found = block(pool(limit=4), slots, [claim("J1")], "J1", kept)
    assert found
    assert [each.job for each in found.held_by] == ["B", "D"]
    assert (found.aside, [each.slot for each in found.kept]) == (1, ["1", "2"])
    told = explain(job(state=State.ACQUIRING), [lease()], found).summary
    assert told == (
        "the job waits for bench: held are 2 by B, 4 by D, 1 kept by operators; u-A is kept; u-B is kept; "
        "position 1 in the queue"
    )


@pytest.mark.parametrize(("count", "tail"), [(5, ""), (7, "; 2 more are kept so")])
def test_not_all_that_is_kept_is_named(count: int, tail: str) -> None:
    slots = [held(str(number), f"H{number}") for number in range(count)]
    kept = {f"u-H{number}": delay(name=f"u-H{number}") for number in range(count)}
    found = block(pool(limit=count), slots, [claim("J1")], "J1", kept)
    told = explain(job(state=State.ACQUIRING), [lease()], found).summary
    assert told.endswith(f"u-H4 is kept{tail}; position 1 in the queue")


def test_a_unit_that_is_held_before_it_is_made_is_named() -> None:
    given = lease(0, LeaseState.GRANTED)
    found = explain(job(state=State.ACQUIRING), [given], None, "no capacity", now=NOW, kept=delay())
    assert found.summary == "the job waits for its worker to say hello (u-A is kept)"
    assert (found.expected_start, found.basis) == (NOW + 30 * MINUTE, "u-A is kept")
    assert found.next_steps == "u-A comes back; then the agent of its worker says hello"


@pytest.mark.parametrize(
    ("order", "is_made", "stopped", "says", "again"),
    [
        (0, True, (), "the agent of its worker says hello", None),
        (0, False, (), "its worker is made ready; then the agent of its worker says hello", None),
        (1, True, (), "bench is made ready", None),
        (
            1,
            False,
            (Stopped("s", "w", NOW + MINUTE),),
            f"bench is made ready: its maker is asked again at {format_time(NOW + MINUTE)}",
            NOW + MINUTE,
        ),
        (1, False, (Stopped("s", "w", NOW),), "bench is made ready", None),
        (1, False, (Stopped("s", "w", NOW, "r-2"),), "bench is made ready, once r-2 is, which is tried first", None),
    ],
)
def test_what_is_not_made_yet_is_named(
    order: int, is_made: bool, stopped: tuple[Stopped, ...], says: str, again: Any
) -> None:
    given = lease(order, LeaseState.GRANTED)
    found = explain(job(state=State.ACQUIRING), [given], None, None, now=NOW, stopped=stopped, is_made=is_made)
    assert (found.next_steps, found.expected_start, bool(found.basis)) == (says, again, bool(again))
