"""What a unit that enters a state takes along of its last one: no failures, no look and no call of its driver.

A failure that is counted on is one that the new step never had: a unit would be given up, or asked for later, for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from penstock.domain.pools.pools import Warm
from penstock.domain.units import maintenance, prewarm, quarantine, reuse, units
from penstock.domain.units.units import CleanProof, DriverStep, Hold, Unit, UnitKind, UnitState
from tests.domain.helpers import MINUTE, NOW, unit

LATER = NOW + MINUTE
PAST = DriverStep("it failed", tries=3, next_look=LATER + MINUTE, busy=LATER + MINUTE)
PROOF = CleanProof("hand", LATER, "all of it")
HOLD = Hold("ada", "looking", NOW, LATER)


def late(**changes: object) -> Unit:
    """A unit whose driver failed several times, and is to be asked again."""
    return replace(unit(**changes), step=PAST)


def kept() -> Unit:
    return late(state=UnitState.READY, is_kept=True)


STEPS: dict[str, tuple[Callable[[], Unit], DriverStep]] = {
    "its machine is ordered": (lambda: units.mark_made(late(), LATER, MINUTE), DriverStep()),
    "it is to be cleaned": (
        lambda: units.end_lease(kept(), "it ended", LATER, ended_well=True),
        replace(PAST, reason="it ended", tries=0, next_look=None),
    ),
    "it is to be destroyed": (
        lambda: units.end_lease(kept(), "it ended", LATER),
        replace(PAST, reason="it ended", tries=0, next_look=None),
    ),
    "it is kept": (
        lambda: reuse.keep_warm(late(state=UnitState.CLEANING), PROOF, Warm(), LATER, MINUTE),
        DriverStep(),
    ),
    "it came ahead of need": (
        lambda: prewarm.arrive(late(state=UnitState.IDLE), Warm(), None, LATER, MINUTE),
        DriverStep(),
    ),
    "it is lent": (
        lambda: reuse.lend(late(state=UnitState.IDLE), "B", 1, 0, 2, LATER),
        DriverStep(busy=PAST.busy),
    ),
    "it is quarantined": (
        lambda: quarantine.enter(late(state=UnitState.DIRTY), "it is stuck", LATER),
        DriverStep("it is stuck"),
    ),
    "it is released from quarantine": (
        lambda: quarantine.release(late(state=UnitState.QUARANTINED), "mended", LATER),
        replace(PAST, reason="mended", next_look=None),
    ),
    "its hold ended": (
        lambda: maintenance.release(late(state=UnitState.DIRTY, hold=HOLD), None, LATER, MINUTE),
        replace(PAST, next_look=None),
    ),
}


@pytest.mark.parametrize("what", STEPS)
def test_a_new_step_of_a_unit_begins_without_the_failures_and_looks_of_the_last(what: str) -> None:
    enter, step = STEPS[what]
    assert enter().step == step


SINCE: dict[str, Callable[[], Unit]] = {
    "it said hello": lambda: units.hello(unit(), "hash", LATER, MINUTE),
    "it is to be cleaned": lambda: units.end_lease(kept(), "it ended", LATER, ended_well=True),
    "it is to be destroyed": lambda: units.end_lease(kept(), "it ended", LATER),
    "it is kept": lambda: reuse.keep_warm(unit(state=UnitState.CLEANING), PROOF, Warm(), LATER, MINUTE),
    "it came ahead of need": lambda: prewarm.arrive(unit(state=UnitState.IDLE), Warm(), None, LATER, MINUTE),
    "it is lent": lambda: reuse.lend(unit(state=UnitState.IDLE), "B", 1, 0, 2, LATER),
    "it is quarantined": lambda: quarantine.enter(unit(state=UnitState.DIRTY), "it is stuck", LATER),
    "it is released from quarantine": lambda: quarantine.release(unit(state=UnitState.QUARANTINED), "mended", LATER),
}


@pytest.mark.parametrize("what", SINCE)
def test_a_unit_is_in_its_state_since_it_entered_it(what: str) -> None:
    """How long it is there is what deadlines, logs and `is_late` count."""
    assert SINCE[what]().since == LATER


def test_a_reused_worker_that_said_hello_is_known_by_its_new_token_alone() -> None:
    """SEC-2: the token of its last job opens nothing any more."""
    session = units.hello(unit(past_hash="old"), "new", LATER, MINUTE).session
    assert (session.token_hash, session.past_hash) == ("new", None)


def test_a_unit_that_is_given_up_is_destroyed_since_then_and_not_since_it_was_cleaned() -> None:
    """UNIT-3: from then on it is too late to hold it."""
    assert units.give_up(unit(state=UnitState.CLEANING, begun=NOW), "too many", LATER).cleaning.begun == LATER


def test_a_unit_whose_hold_ended_while_it_was_cleaned_is_kept_without_it() -> None:
    """UNIT-3: the next job's worker is nobody's to look at."""
    cleaned = unit(state=UnitState.CLEANING, hold=HOLD)
    assert reuse.keep_warm(cleaned, PROOF, Warm(), LATER, MINUTE).hold is None


@pytest.mark.parametrize(("until", "due"), [(LATER + MINUTE, NOW), (LATER, LATER + MINUTE)])
def test_a_unit_that_came_ahead_of_need_is_due_when_its_hold_ends(until: object, due: object) -> None:
    """UNIT-3: nothing automatic comes before that, also not because its agent is silent."""
    coming = unit(state=UnitState.IDLE, hold=replace(HOLD, until=until), due=NOW, is_a=UnitKind.WORKER)
    assert prewarm.arrive(coming, Warm(), "hash", LATER, MINUTE).due == due


@pytest.mark.parametrize(
    ("token", "made", "says"),
    [
        ("hash", None, "its agent said hello; it waits for its first lease"),
        (None, NOW, "ready; it waits for its first lease"),
    ],
)
def test_a_unit_that_came_ahead_of_need_is_made_and_known_by_its_token(
    token: str | None, made: datetime | None, says: str
) -> None:
    coming = unit(state=UnitState.IDLE, made=made, is_making=True, past_hash="old")
    come = prewarm.arrive(coming, Warm(), token, LATER, MINUTE)
    assert (come.creation.made, come.creation.is_making) == (made or LATER, False)
    assert (come.session.past_hash, come.journal.entries[-1].what) == (token, says)


def test_a_unit_that_is_kept_can_be_held_again() -> None:
    """UNIT-3: its cleaning has begun and is over, and nothing ends it yet."""
    cleaned = unit(state=UnitState.CLEANING, begun=NOW)
    assert reuse.keep_warm(cleaned, PROOF, Warm(), LATER, MINUTE).cleaning.begun is None
