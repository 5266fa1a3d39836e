"""When a claim may be granted, from what that was guessed, and what has to happen before."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.pools.forecast import (
    MAX_PRUNED,
    Action,
    Forecast,
    Queue,
    Unblock,
    combined_start,
    forecast,
    format_duration,
)
from penstock.domain.pools.grants import MAX_OVERTAKEN
from penstock.domain.pools.pools import (
    RECENT_HOLDERS,
    Claim,
    HoldTimes,
    Pool,
    Slot,
    SlotState,
    record_boot,
    record_hold,
)
from penstock.domain.pools.stops import ByHand
from penstock.domain.units import units
from penstock.domain.units.units import Creation
from tests.domain.helpers import NOW, SECOND, claim, pool, slot, unit

BENCH, LICENCE, VCPUS = "resource/bench", "resource/licence", "quota/vcpus"


def held(name: str, job: str, minutes: float = 0, **changes: Any) -> Slot:
    since = NOW - timedelta(minutes=minutes)
    return slot(
        name, SlotState.HELD, **{"job": job, "attempt": 1, "order": 1, "unit": f"u-{job}", "since": since, **changes}
    )


def queue(slots: list[Slot], claims: list[Claim], **changes: Any) -> dict[str, Queue]:
    times = HoldTimes(pool=BENCH, holds=changes.pop("holds", 5), mean_hold=changes.pop("mean_hold", 600.0))
    row = pool(**{"limit": len(slots), **changes})
    return {row.name: Queue(row, slots, claims, times)}


def way(*acts: Unblock) -> list[str]:
    return [str(act) for act in acts]


def test_a_pool_learns_how_long_its_slots_are_kept() -> None:
    times = HoldTimes(pool=BENCH)
    assert times.key == (f"pool#{BENCH}", "holdtimes")
    for minutes in (2, 4):
        times = record_hold(times, timedelta(minutes=minutes))
    assert (times.holds, times.mean_hold) == (2, 180.0)


def test_a_pool_forgets_slowly() -> None:
    times = HoldTimes(pool=BENCH, holds=1000, mean_hold=100.0)
    assert record_hold(times, timedelta(minutes=1)).mean_hold == 100.0 - 40.0 / RECENT_HOLDERS


def test_a_pool_learns_how_long_its_workers_boot_and_are_used() -> None:
    times = HoldTimes(pool="p")
    for kept, waited in ((60, 20), (120, 0)):
        times = record_hold(times, kept * SECOND, waited * SECOND)
    assert (times.holds, times.mean_hold, times.mean_wait, times.mean_use) == (2, 90.0, 10.0, 80.0)
    times = record_boot(record_boot(times, 20 * SECOND), 40 * SECOND)
    assert (times.boots, times.mean_boot, times.holds) == (2, 30.0, 2)


def test_a_unit_knows_how_long_it_was_waited_for_and_for_whom_it_was_made() -> None:
    fresh = unit(creation=Creation(born=NOW))
    assert units.waited(fresh, NOW) == timedelta(0)
    heard = units.hello(fresh, "hash", NOW + 20 * SECOND, 60 * SECOND)
    assert (units.waited(heard, NOW), units.waited(heard, NOW + 21 * SECOND)) == (20 * SECOND, timedelta(0))
    assert [units.is_made_for(heard, NOW), units.is_made_for(heard, NOW + SECOND)] == [True, False]
    assert not units.is_made_for(unit(creation=Creation()), NOW)


def test_a_clock_that_went_back_makes_no_negative_time() -> None:
    assert record_hold(HoldTimes(pool=BENCH), timedelta(minutes=-5)).mean_hold == 0.0


def test_what_is_free_is_had_at_once() -> None:
    found = forecast(queue([slot("1")], [claim("J1")]), claim("J1"), NOW)
    assert found == Forecast(BENCH, 1, 0.0, None, ())
    assert not found.would_wait


@pytest.mark.parametrize(
    ("minutes", "ahead", "seconds", "jobs"),
    [
        ((4, 1), 0, 360, ["A"]),
        ((4, 1), 1, 540, ["A", "B"]),
        ((4, 1), 2, 960, ["A", "B", "C0"]),  # who comes first gives back 10 min after it got the slot of A
        ((30, 1), 0, 0, ["A"]),  # longer than the mean already: any moment now
    ],
)
def test_the_queue_is_played_forward(minutes: tuple[int, int], ahead: int, seconds: float, jobs: list[str]) -> None:
    slots = [held("1", "A", minutes[0]), held("2", "B", minutes[1])]
    claims = [*(claim(f"C{number}") for number in range(ahead)), claim("J1")]
    found = forecast(queue(slots, claims), claim("J1"), NOW)
    assert (found.position, found.seconds) == (ahead + 1, seconds)
    assert [act.job for act in found.unblocks] == jobs
    assert found.would_wait


@pytest.mark.parametrize(
    ("holds", "minutes", "said"),
    [
        (1, 4, "the last holder of resource/bench kept it 10 min"),
        (5, 4, "the last 5 holders of resource/bench kept it 10 min on average"),
        (50, 30, "the last 12 holders of resource/bench kept it 10 min on average; 1 of the present 1 already longer"),
        (0, 4, None),
    ],
)
def test_the_basis_is_told(holds: int, minutes: int, said: str | None) -> None:
    found = forecast(queue([held("1", "A", minutes)], [claim("J1")], holds=holds), claim("J1"), NOW)
    assert found.basis == said
    assert (found.seconds is None) == (said is None)
    assert found.would_wait


def test_nobody_knows_how_long_operators_take() -> None:
    found = forecast(queue([held("1", "A", withdrawn=True)], [claim("J1")], paused=True, limit=0), claim("J1"), NOW)
    assert (found.seconds, found.would_wait) == (None, True)
    assert way(*found.unblocks) == [
        "an operator resumes resource/bench",
        "an operator raises the limit of resource/bench to 1",
        "slot 1 of resource/bench is given back by A",
    ]


def test_who_paused_a_pool_is_named_beside_the_other_operators() -> None:
    found = forecast(queue([], [claim("J1")], paused=True, limit=1, pause=ByHand("ada", NOW)), claim("J1"), NOW)
    assert "ada or another operator resumes resource/bench" in way(*found.unblocks)


def test_a_raised_limit_gives_back_what_was_withdrawn_and_then_makes_new_slots() -> None:
    slots = [held("1", "A", 3, withdrawn=True), held("2", "B", withdrawn=True)]
    mine = claim("J1", count=3)
    found = forecast(queue(slots, [mine], limit=0), mine, NOW)
    assert way(*found.unblocks) == [
        "an operator raises the limit of resource/bench to 3",
        "slot 1 of resource/bench is given back by A",
        "slot 2 of resource/bench is given back by B",
    ]


def test_a_withdrawn_number_is_made_up_for_by_whoever_gives_back_first() -> None:
    slots = [held("1", "A", 3), held("2", "B", withdrawn=True)]
    found = forecast(queue(slots, [claim("J1")], limit=1), claim("J1"), NOW)
    assert [act.job for act in found.unblocks] == ["A", "B"]


def test_a_withdrawn_name_is_not() -> None:
    slots = [held("bench-2", "B", 3, withdrawn=True), held("bench-1", "A")]
    found = forecast(queue(slots, [claim("J1")], limit=1, names=("bench-1",)), claim("J1"), NOW)
    assert way(*found.unblocks) == ["bench-1 is given back by A"]


def test_names_are_given_in_the_configuration() -> None:
    slots = [held("b", "B", 3, withdrawn=True), held("a", "A", withdrawn=True)]
    found = forecast(queue(slots, [claim("J1")], limit=0, names=()), claim("J1"), NOW)
    assert way(*found.unblocks) == [
        "an operator gives resource/bench 1 slots in the site's configuration",
        "a is given back by A",
    ]


def test_a_job_does_not_wait_for_itself_but_for_its_attempt_before() -> None:
    slots = [held("1", "J1", 3), held("2", "J1", attempt=2), held("3", "A")]
    mine = claim("J1", attempt=2, count=1)
    found = forecast(queue(slots, [mine]), mine, NOW)
    assert [act.what for act in found.unblocks] == ["slot 1 of resource/bench"]


def quota(used: int, claims: list[Claim], slots: list[Slot], **changes: Any) -> dict[str, Queue]:
    row = Pool(name=VCPUS, limit=8, is_amount=True, used=used, **changes)
    mine = [replace(one, pool=VCPUS, count=count) for one, count in zip(claims, (4, 2), strict=False)]
    return {
        **queue([slot("1"), slot("2")], claims),
        VCPUS: Queue(row, slots, mine, HoldTimes(pool=VCPUS, holds=1, mean_hold=60.0)),
    }


def test_what_is_wanted_of_an_amount_is_told() -> None:
    mine = claim("J1", pools=(BENCH, VCPUS))
    other = held("A", "A", pool=VCPUS, count=6)
    found = forecast(quota(6, [mine], [other]), mine, NOW)
    assert (found.pool, found.seconds) == (VCPUS, 60.0)
    assert way(*found.unblocks) == ["6 of quota/vcpus is given back by A"]


def test_an_amount_is_raised() -> None:
    mine = claim("J1", pools=(BENCH, VCPUS))
    queues = quota(0, [mine], [])
    queues[VCPUS] = replace(queues[VCPUS], pool=replace(queues[VCPUS].pool, limit=3))
    assert way(*forecast(queues, mine, NOW).unblocks) == ["an operator raises the limit of quota/vcpus to 4"]


def test_who_is_passed_counts_and_what_is_kept_for_them_is_not_had() -> None:
    first, mine = claim("J0", pools=(BENCH, VCPUS), overtaken=MAX_OVERTAKEN - 1), claim("J1", pools=(BENCH, VCPUS))
    other, small = held("A", "A", 5, pool=VCPUS, count=5), claim("J05", pools=(BENCH, VCPUS))
    row = Pool(name=VCPUS, limit=8, is_amount=True, used=5)
    amounts = [replace(one, pool=VCPUS, count=count) for one, count in ((first, 4), (small, 1), (mine, 1))]
    queues = {**queue([slot(str(n)) for n in range(3)], [first, small, mine]), VCPUS: Queue(row, [other], amounts)}
    found = forecast(queues, mine, NOW)
    assert way(*found.unblocks) == ["5 of quota/vcpus is given back by A"]


@pytest.mark.parametrize("changes", [{}, {"limit": 3, "paused": True}])
def test_for_who_cannot_have_it_nothing_is_kept(changes: dict[str, Any]) -> None:
    """It is not up to its holders but to an operator, who need not do anything for those behind."""
    first, mine = claim("J0", overtaken=MAX_OVERTAKEN, count=3, pools=(BENCH, LICENCE)), claim("J1")
    licence = Queue(pool(name=LICENCE, **changes), [], [replace(first, pool=LICENCE)])
    found = forecast({**queue([slot("1"), slot("2")], [first, mine]), LICENCE: licence}, mine, NOW)
    assert (found.pool, found.seconds, found.unblocks) == (BENCH, 0.0, ())


def test_what_is_kept_for_who_waits_for_something_else_is_not_had() -> None:
    """It is the pool that keeps it which is waited for, though it has what is wanted."""
    both = (BENCH, LICENCE)
    first, mine = claim("J0", overtaken=MAX_OVERTAKEN, pools=both), claim("J1", pools=(VCPUS, BENCH))
    vcpus = Queue(pool(name=VCPUS, is_amount=True, limit=8), [], [replace(mine, pool=VCPUS)])
    other = held("1", "A", 3, pool=LICENCE)
    times = HoldTimes(pool=LICENCE, holds=1, mean_hold=600.0)
    licence = Queue(pool(name=LICENCE, limit=1), [other], [replace(first, pool=LICENCE)], times)
    queues = {**queue([slot("1")], [first, mine]), LICENCE: licence, VCPUS: vcpus}
    found = forecast(queues, mine, NOW)
    assert (found.pool, found.seconds) == (BENCH, 1020.0)
    assert [act.job for act in found.unblocks] == ["A", "J0"]
    assert forecast({**queues, **queue([slot("1"), slot("2")], [first, mine])}, mine, NOW).seconds == 0.0


def test_where_the_pools_of_those_ahead_were_not_read_nobody_knows() -> None:
    first = claim("J0", overtaken=MAX_OVERTAKEN, pools=(BENCH, "resource/unread"))
    found = forecast(queue([slot("1")], [first, claim("J1")]), claim("J1"), NOW)
    assert (found.seconds, found.unblocks, found.would_wait) == (None, (), True)


def test_an_act_that_is_not_needed_is_left_out() -> None:
    """It is there already when what is withdrawn comes back, so the limit need not be raised for it."""
    slots = [held("1", "A", 3), held("2", "B", withdrawn=True)]
    found = forecast(queue(slots, [claim("J1", count=2)], limit=1), claim("J1", count=2), NOW)
    assert [act.way for act in found.unblocks] == [Action.RAISE, Action.GIVE_BACK, Action.GIVE_BACK]
    free = [slot("1"), slot("2")]
    assert forecast(queue(free, [claim("J1", count=2)], limit=1), claim("J1", count=2), NOW).unblocks == ()


def test_a_long_way_is_told_whole() -> None:
    ahead = [claim(f"C{number:02d}") for number in range(MAX_PRUNED + 4)]
    found = forecast(queue([held("1", "A")], [*ahead, claim("J1")]), claim("J1"), NOW)
    assert len(found.unblocks) == MAX_PRUNED + 5


def test_who_holds_more_than_one_thing_gives_all_back() -> None:
    """The worker goes first; a holder that got more in the meantime is expected later."""
    first, mine = claim("J0"), claim("J1", count=2)
    slots = [held("1", "J0", 1, order=2), held("2", "A", 8)]
    found = forecast(queue(slots, [first, mine]), mine, NOW)
    assert found.seconds == 720
    assert way(*found.unblocks)[0].endswith("given back by A")


def test_the_slowest_step_decides() -> None:
    quick, slow = Forecast(BENCH, 1, 0.0, None, ()), Forecast(BENCH, 2, 60.0, "b", ())
    unknown = Forecast(BENCH, 1, None, "c", ())
    assert combined_start([quick, slow]) == (60.0, "b")
    assert combined_start([slow, unknown]) == (None, "c")
    assert combined_start([slow, replace(unknown, basis=None)]) == (None, None)
    assert combined_start([]) == (None, None)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (119, "119 s"), (240, "4 min"), (7200, "2 h"), (864000, "10 d")]
)
def test_a_time_is_said(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (Unblock(Action.HELLO), "the agent of its worker says hello"),
        (Unblock(Action.MAKE, what="bench"), "bench is made ready"),
        (Unblock(Action.PUT_BACK, what="1"), "what its attempt 1 used is put back"),
    ],
)
def test_what_else_may_have_to_happen(act: Unblock, text: str) -> None:
    assert str(act) == text
