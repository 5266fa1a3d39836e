"""What everybody may read: of which owners, and what of an explanation. [SEC-2]"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.pools.delays import Cause, Delay
from penstock.domain.pools.stops import ByHand
from penstock.domain.pools.why import (
    Action,
    AwayHost,
    Block,
    ClaimAhead,
    Holder,
    Kept,
    Unblock,
    Why,
    for_strangers,
)
from penstock.domain.site.site import Console

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DELAY = Delay("U", Cause.HOLD, NOW, "ada holds it: secret", "ada lets it go", by="ada")
BLOCK = Block(
    "resource/bench", "named", 3, (ClaimAhead("A", NOW),), (Holder("bench-1", "B", NOW),), 2, 1, 1, paused=True,
    aside=1, kept=(Kept("bench-2", DELAY),), away=(AwayHost("secret-host", NOW),),
    pause=ByHand("ada", NOW, "secret"), resized=ByHand("ada", NOW, "secret"),
    choice="board == secret", fitting=("secret-1",),
)  # fmt: skip


@pytest.mark.parametrize(
    ("public", "owner", "shows"),
    [
        ((), "oxide:hubris", False),
        (("oxide:hubris",), "oxide:hubris", True),
        (("oxide:hubris",), "oxide:hubris2", False),
        (("oxide:hubris",), "ada", False),
        (("*",), "oxide:hubris", True),
        (("*",), "ada", False),
        (("*",), "*", False),
        (("*",), "", False),
        (("ada",), "ada", False),
    ],
)
def test_only_repositories_that_the_site_names_are_public(public: tuple[str, ...], owner: str, shows: bool) -> None:
    assert Console(public).shows(owner) is shows


def why(state: State, block: Block | None) -> Why:
    step = Unblock(Action.END, what="ends", job="B")
    return Why("J", state, "ada has bench-1: secret", block, "secret", NOW, NOW, "jobs of ada", (step,))


def test_a_queue_is_told_of_by_counts() -> None:
    found = for_strangers(why(State.ACQUIRING, BLOCK))
    summary = "the job waits for resource/bench; position 3 in the queue"
    bare = Block("resource/bench", "named", 3, (), (), 2, 1, 1, paused=True, aside=1)
    assert found == Why("J", State.ACQUIRING, summary, bare, None, NOW, NOW)


@pytest.mark.parametrize(
    ("state", "summary"),
    [
        (State.WAITING, "the job waits for its inputs, for other jobs, or for a review"),
        (State.QUEUED, "the job waits for its worker and its resources"),
        (State.ACQUIRING, "the job waits for its worker and its resources"),
    ],
)
def test_what_drivers_and_people_said_is_left_out(state: State, summary: str) -> None:
    assert for_strangers(why(state, None)) == Why("J", state, summary, None, None, NOW, NOW)


@pytest.mark.parametrize("state", [State.RUNNING, State.SETTLED])
def test_of_a_job_that_runs_or_has_ended_all_is_its_own(state: State) -> None:
    assert for_strangers(why(state, None)) == why(state, None)
