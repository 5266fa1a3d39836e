"""What a waiting job is told: what blocks it, who has it, since when."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Job, Outcome, PastAttempt, State, Times
from penstock.domain.pools import why
from penstock.domain.pools.choices import Choice
from penstock.domain.pools.delays import Cause, Delay
from penstock.domain.pools.forecast import Action, Forecast, Unblock
from penstock.domain.pools.pools import Lease, LeaseState, SlotState
from penstock.domain.pools.stops import ByHand
from penstock.domain.pools.why import AwayHost, Block, ClaimAhead, Holder, MissingPool, block, explain, short_block
from penstock.domain.units.units import format_time
from tests.domain.helpers import MINUTE, NOW, SECOND, claim, job, lease, pool, slot

HELD = [slot(str(number), SlotState.HELD, job=f"H{number}", since=NOW) for number in range(1, 6)]
BLOCK = Block(
    pool="resource/bench",
    kind="numbered",
    position=2,
    ahead=(ClaimAhead("J0", NOW),),
    held_by=(),
    limit=2,
    held=0,
    free=0,
    paused=False,
)


def holders(count: int) -> tuple[Holder, ...]:
    return tuple(Holder(f"bench-{number}", f"H{number}", NOW) for number in range(1, count + 1))


def test_who_has_no_claim_is_not_blocked() -> None:
    assert block(pool(), HELD, [claim("J2")], "J1") is None
    assert block(pool(), HELD, [], "J1") is None


@pytest.mark.parametrize(
    ("changes", "step", "is_granted"),
    [({}, 1, True), ({}, 0, False), ({"job": "J2"}, 1, False), ({"attempt": 2}, 1, False), ({"order": 0}, 1, False)],
)
def test_a_step_is_granted_that_has_a_slot_of_its_attempt(changes: Any, step: int, is_granted: bool) -> None:
    mine = slot("7", SlotState.HELD, **{"job": "J1", "attempt": 1, "order": 1, **changes})
    assert why.is_granted([*HELD, mine, slot("8")], job(), step) is is_granted


def test_a_block_counts_slots_and_names_those_ahead_and_those_that_hold() -> None:
    slots = [*HELD[:2], slot("6"), slot("7", SlotState.OFF)]
    found = block(pool(limit=3, paused=True), slots, [claim("J0"), claim("J1"), claim("J2")], "J1")
    assert found == Block(
        pool="resource/bench",
        kind="numbered",
        position=2,
        ahead=(ClaimAhead("J0", NOW),),
        held_by=(Holder("1", "H1", NOW), Holder("2", "H2", NOW)),
        limit=3,
        held=2,
        free=1,
        paused=True,
    )


def test_a_pool_with_names_is_named() -> None:
    found = block(pool(names=("a",)), [], [claim()], "J1")
    assert found
    assert found.kind == "named"


def test_hosts_that_are_away_are_told() -> None:
    gone = (AwayHost("bench-7", NOW), AwayHost("bench-8", None))
    found = block(pool(names=("bench-7", "bench-8")), [], [claim()], "J1", away=gone)
    assert found
    assert found.away == gone


@pytest.mark.parametrize(
    ("order", "changes", "summary"),
    [
        (
            0,
            {"away": (AwayHost("bench-7", NOW),)},
            f"the job waits for a worker of bench: away is bench-7 since {format_time(NOW)}; position 2 in the queue",
        ),
        (
            0,
            {"away": tuple(AwayHost(f"b-{number}", None) for number in range(7)), "held_by": holders(1)},
            "the job waits for a worker of bench: held are bench-1 by H1; away are "
            + ", ".join(f"b-{number}, which was never heard of" for number in range(5))
            + " and 2 more; position 2 in the queue",
        ),
        (1, {}, "the job waits for bench; position 2 in the queue"),
        (0, {}, "the job waits for a worker of bench; position 2 in the queue"),
        (
            1,
            {"held_by": holders(1)},
            "the job waits for bench: held are bench-1 by H1; position 2 in the queue",
        ),
        (
            1,
            {"held_by": holders(5)},
            "the job waits for bench: held are bench-1 by H1, bench-2 by H2, bench-3 by H3 and 2 more; "
            "position 2 in the queue",
        ),
        (
            1,
            {"paused": True, "held_by": holders(1)},
            "the job waits for bench: resource/bench is paused by an operator; position 2 in the queue",
        ),
        (
            1,
            {"paused": True, "pause": ByHand("ada", NOW, "it is rewired")},
            f"the job waits for bench: resource/bench is paused by ada at {format_time(NOW)}: it is rewired; "
            "position 2 in the queue",
        ),
        (
            1,
            {"limit": 0, "resized": ByHand("ada", NOW)},
            f"the job waits for bench: resource/bench has a limit of 0, set by ada at {format_time(NOW)}, so nothing "
            "is granted until an operator raises it; position 2 in the queue",
        ),
        (
            1,
            {"limit": 0},
            "the job waits for bench: resource/bench has a limit of 0, so nothing is granted until an operator "
            "raises it; position 2 in the queue",
        ),
    ],
)
def test_a_waiting_job_is_told(order: int, changes: dict[str, Any], summary: str) -> None:
    blocked = replace(BLOCK, **changes)
    found = explain(job(state=State.ACQUIRING), [lease(order)], blocked)
    assert (found.summary, found.blocked_on, found.waiting_for) == (summary, blocked, "bench")


@pytest.mark.parametrize(
    ("order", "reason", "summary"),
    [
        (0, None, "the job waits for its worker to say hello"),
        (0, "no capacity", "the job waits for its worker to say hello (no capacity)"),
        (1, None, "the job waits for bench to be made ready"),
    ],
)
def test_a_job_with_a_slot_is_told_what_is_being_made(order: int, reason: str | None, summary: str) -> None:
    granted = lease(order, LeaseState.GRANTED, since=NOW + MINUTE)
    found = explain(job(state=State.ACQUIRING), [lease(2, LeaseState.READY), granted], None, reason)
    assert (found.summary, found.blocked_on, found.waiting_for) == (summary, None, "bench")
    assert found.since == NOW + MINUTE


@pytest.mark.parametrize(
    ("is_coming", "says"),
    [
        (True, "which is new in the site's configuration and comes within minutes"),
        (False, "which the site no longer has"),
    ],
)
def test_a_job_that_waits_for_a_pool_that_is_not_there_is_told_so(is_coming: bool, says: str) -> None:
    waiting, missing = lease(1, LeaseState.WAITING, since=NOW + MINUTE), MissingPool("resource/bench", is_coming)
    found = explain(job(state=State.ACQUIRING), [waiting], None, missing=missing)
    assert found.summary == f"the job waits for resource/bench, {says}"
    assert (found.blocked_on, found.waiting_for, found.since) == (None, "bench", NOW + MINUTE)


def test_a_job_that_was_granted_meanwhile_waits_for_no_pool() -> None:
    granted, missing = lease(1, LeaseState.GRANTED), MissingPool("resource/bench", is_coming=True)
    found = explain(job(state=State.ACQUIRING), [granted], None, missing=missing)
    assert found.summary == "the job waits for bench to be made ready"


@pytest.mark.parametrize(
    ("fields", "summary"),
    [
        (
            {"state": State.SETTLED, "outcome": Outcome.FAILED, "reason": "exit status 1"},
            "the job is settled: failed: exit status 1",
        ),
        ({"state": State.RUNNING, "worker": "w-1"}, "the job runs on w-1"),
        (
            {"state": State.RUNNING, "worker": "w-1", "cancelled_by": "ada"},
            "the job runs on w-1 and is being cancelled",
        ),
        ({}, "the job is about to take its next step"),
        (
            {"attempt": 2, "attempts": (PastAttempt(1, "lost", "no heartbeat"),)},
            "attempt 2 starts when what attempt 1 used is put back (no heartbeat)",
        ),
        (
            {"state": State.ACQUIRING, "attempt": 2, "attempts": (PastAttempt(1, "lost", "no heartbeat"),)},
            "the job is about to take its next step",
        ),
    ],
)
def test_a_job_that_waits_for_nothing_is_told(fields: dict[str, Any], summary: str) -> None:
    found = explain(job(**fields), [lease(state=LeaseState.RELEASED)], None)
    assert (found.summary, found.blocked_on, found.waiting_for) == (summary, None, None)


@pytest.mark.parametrize(
    ("times", "minutes"),
    [
        (Times(NOW), 0),
        (Times(NOW, ready=NOW + MINUTE), 1),
        (Times(NOW, ready=NOW + MINUTE, started=NOW + 2 * MINUTE), 2),
        (Times(NOW, ready=NOW + MINUTE, settled=NOW + 3 * MINUTE), 3),
    ],
)
def test_the_time_is_that_of_the_last_station(times: Times, minutes: int) -> None:
    found: Job = job(times=times)
    assert explain(found, [], None).since == NOW + minutes * MINUTE


BACK = tuple(Unblock(Action.GIVE_BACK, "resource/bench", f"bench-{number}", f"H{number}") for number in range(1, 8))


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, None),
        (2, "bench-1 is given back by H1; then bench-2 is given back by H2"),
        (
            7,
            "; then ".join(f"bench-{number} is given back by H{number}" for number in range(1, 6))
            + "; and 2 more after that",
        ),
    ],
)
def test_what_unblocks_a_job_is_a_sentence(count: int, said: str | None) -> None:
    ahead = Forecast("resource/bench", 1, 60.0, "from before", BACK[:count])
    later = Forecast("target/u", 1, 0.0, None, ())
    found = explain(job(state=State.ACQUIRING), [lease()], BLOCK, None, [ahead, later], NOW)
    assert (found.expected_start, found.basis, found.next_steps) == (NOW + MINUTE, "from before", said)


def test_a_start_that_nobody_knows_is_not_told() -> None:
    unknown = Forecast("resource/bench", 1, None, None, BACK[:1])
    found = explain(job(state=State.ACQUIRING), [lease()], BLOCK, None, [unknown], NOW)
    assert (found.expected_start, found.basis) == (None, None)


@pytest.mark.parametrize(
    ("fields", "leases", "said"),
    [
        ({}, [lease(0, LeaseState.GRANTED)], "the agent of its worker says hello"),
        ({}, [lease(1, LeaseState.GRANTED)], "bench is made ready"),
        (
            {"state": State.QUEUED, "attempt": 2, "attempts": (PastAttempt(1, "lost", "no heartbeat"),)},
            [],
            "what its attempt 1 used is put back",
        ),
        ({"state": State.RUNNING}, [], None),
    ],
)
def test_what_moves_a_job_on_that_waits_for_no_slot(
    fields: dict[str, Any], leases: list[Lease], said: str | None
) -> None:
    assert explain(job(**{"state": State.ACQUIRING, **fields}), leases, None).next_steps == said


def test_why_says_that_the_last_worker_is_quarantined() -> None:
    past = (PastAttempt(1, "lost", "the worker was lost"),)
    queued = job(state=State.QUEUED, attempt=2, attempts=past)
    says = "worker w-1 is quarantined since yesterday: its disk is gone"
    kept = Delay("w-1", Cause.QUARANTINE, NOW, says, "an operator releases, recycles or removes worker w-1")
    found = explain(queued, [], None, kept=kept)
    assert found.summary == (
        "attempt 2 starts when what attempt 1 used is put back (the worker was lost); "
        "worker w-1 is quarantined since yesterday: its disk is gone"
    )
    assert (found.next_steps, found.expected_start) == (kept.act, None)


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (0, "the job waits for bench"),
        (3, "the job waits for bench: held are 0 by H0, 1 by H1, 2 by H2"),
        (4, "the job waits for bench: held are 0 by H0, 1 by H1, 2 by H2 and others"),
    ],
)
def test_a_log_says_no_position_and_not_how_many_more_hold_something(held: int, says: str) -> None:
    slots = [slot(str(n), SlotState.HELD, job=f"H{n}", since=NOW) for n in range(held)]
    blocked = short_block(pool(limit=9), slots, claim("J1"))
    assert (blocked.held, blocked.limit, blocked.kind, blocked.aside) == (held, 9, "numbered", 0)
    assert explain(job(state=State.ACQUIRING), [lease(1)], blocked).summary == says


@pytest.mark.parametrize("paused", [True, False])
def test_a_block_names_who_changed_the_pool_by_hand(paused: bool) -> None:
    pause, resized = ByHand("ada", NOW, "it is rewired"), ByHand("bob", NOW)
    row = pool(limit=3, paused=paused, pause=pause, resized=resized)
    found = block(row, HELD, [claim("J1")], "J1")
    assert found
    assert (found.pause, found.resized) == (pause if paused else None, resized)


def test_a_log_says_what_operators_keep_and_that_a_pool_is_paused() -> None:
    aside = [slot("a", SlotState.HELD, count=2), slot("b", SlotState.HELD, job="H1", since=NOW)]
    blocked = short_block(pool(limit=9), aside, claim("J1"))
    assert explain(job(state=State.ACQUIRING), [lease(1)], blocked).summary == (
        "the job waits for bench: held are b by H1, 2 kept by operators"
    )
    paused = short_block(pool(limit=9, paused=True, pause=ByHand("ada", NOW, "secret")), aside, claim("J1"))
    assert "is paused by an operator" in explain(job(state=State.ACQUIRING), [lease(1)], paused).summary


@pytest.mark.parametrize(("behind", "said"), [(0, "0 s"), (90, "90 s"), (7200, "2 h")])
def test_a_job_with_a_turn_is_told_how_much_later_that_is(behind: int, said: str) -> None:
    turned = job(times=replace(job().times, turn=NOW + behind * SECOND))
    without = explain(job(), [lease()], BLOCK).summary
    told = f"its turn is {said} after it came, for what ada has used and asked for lately"
    assert explain(turned, [lease()], BLOCK).summary == f"{without}; {told}"


RACKS = {"1": {"rack": "1"}, "2": {"rack": "2"}}


@pytest.mark.parametrize(
    ("choice", "said", "held"),
    [
        (Choice("rack == 2"), "only 2 fits rack == 2; held are 2 by H2", ["2"]),
        (Choice("rack != 9"), "only 1, 2 fit rack != 9; held are 1 by H1, 2 by H2", ["1", "2"]),
        (Choice("rack == 9"), "nothing of resource/bench fits rack == 9 any more: it waits until the site changes", []),
        (Choice("rack == 1", exclusive=True), "only 1 fits rack == 1 for itself; held are 1 by H1", ["1"]),
    ],
)
def test_who_chooses_is_told_of_what_fits_only(choice: Choice, said: str, held: list[str]) -> None:
    row = pool(names=("1", "2"), labels=RACKS)
    slots = [slot(name, SlotState.HELD, job=f"H{name}", since=NOW) for name in ("1", "2")]
    mine = claim("J1", takes=({"resource/bench": 1},), choices=(choice,))
    for found in (block(row, slots, [mine], "J1"), short_block(row, slots, mine)):
        assert found
        assert ([holder.slot for holder in found.held_by], found.choice) == (held, str(choice))
        assert said in explain(job(state=State.ACQUIRING), [lease(1)], found).summary


def test_of_many_things_that_fit_some_are_named() -> None:
    names = tuple(f"b{number}" for number in range(7))
    mine = claim("J1", takes=({"resource/bench": 1},), choices=(Choice("name != b0"),))
    found = short_block(pool(names=names, limit=7), (), mine)
    assert "only b1, b2, b3, b4, b5 and 1 more fit name != b0" in explain(job(), [lease(1)], found).summary
    assert short_block(pool(names=names, limit=7), (), claim("J1", takes=({"resource/bench": 1},))).choice == ""
