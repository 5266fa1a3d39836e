"""What each state and outcome of a job means: the same everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.jobs import states
from penstock.domain.jobs.dependencies import Dependency
from penstock.domain.jobs.jobs import End, Job, Outcome, State
from penstock.domain.jobs.reviews import Review
from penstock.domain.pools.pools import LeaseState
from tests.domain.helpers import NOW, job, lease

PAGE = Path(__file__).parents[2] / "docs" / "users" / "lists.md"


def test_there_is_one_table_of_states_and_one_of_outcomes_and_users_read_the_same() -> None:
    assert (set(states.STATES), set(states.OUTCOMES)) == (set(State), set(Outcome))
    text = PAGE.read_text(encoding="utf-8")
    for word, means in {**states.STATES, **states.OUTCOMES}.items():
        assert f"| `{word}` | {means} |" in text


@pytest.mark.parametrize(
    ("state", "is_in_queue", "shown"),
    [
        (State.ACQUIRING, True, State.WAITING),
        (State.ACQUIRING, False, State.ACQUIRING),
        (State.RUNNING, True, State.RUNNING),
        (State.QUEUED, False, State.QUEUED),
    ],
)
def test_who_stands_in_a_queue_waits(state: State, is_in_queue: bool, shown: State) -> None:
    assert states.shown(state, is_in_queue=is_in_queue) is shown


def test_the_queue_is_that_of_the_first_lease_that_waits() -> None:
    granted, waiting = lease(1, LeaseState.GRANTED, pool="a"), lease(2, pool="b")
    assert states.queue_in([granted, waiting]) == "b"
    assert states.queue_in([granted]) is None


WAITS = job(state=State.WAITING)


@pytest.mark.parametrize(
    ("row", "queue", "said"),
    [
        (WAITS, None, "the backlog of ada"),
        (job(state=State.WAITING, dependencies=(Dependency("it", "J0"),)), None, "other jobs"),
        (job(state=State.WAITING, inputs=("a",), review=Review("prod", NOW)), None, "input files, a review"),
        (job(state=State.WAITING, review=Review("prod", NOW, by="bob")), None, "the backlog of ada"),
        (job(state=State.QUEUED), None, "its first step"),
        (job(state=State.QUEUED, attempt=2), None, "the end of its last try"),
        (job(state=State.ACQUIRING), "target/lab", "target/lab"),
        (job(state=State.ACQUIRING), None, None),
        (job(state=State.RUNNING), "target/lab", None),
        (job(state=State.SETTLED), None, None),
    ],
)
def test_what_a_job_waits_for(row: Job, queue: str | None, said: str | None) -> None:
    assert states.waits_for(row, queue) == said


def test_a_word_is_a_state_or_an_outcome() -> None:
    failed = job(state=State.SETTLED, end=End(outcome=Outcome.FAILED))
    is_ = {
        word: states.is_state(word, failed, is_in_queue=False)
        for word in ("failed", "settled", "succeeded", "waiting", "running")
    }
    assert is_ == {"failed": True, "settled": True, "succeeded": False, "waiting": False, "running": False}
    for state, in_queue in ((State.WAITING, False), (State.QUEUED, False), (State.ACQUIRING, True)):
        assert states.is_state("waiting", job(state=state), is_in_queue=in_queue), state
    assert not states.is_state("waiting", job(state=State.ACQUIRING), is_in_queue=False)
    assert states.is_state("queued", job(state=State.QUEUED), is_in_queue=False)
    assert not states.is_state("acquiring", job(state=State.ACQUIRING), is_in_queue=True)
    with pytest.raises(ValueError, match="nonsense"):
        states.is_state("nonsense", failed, is_in_queue=False)


def test_which_states_the_due_index_has_of_what_a_word_says() -> None:
    assert states.rows_of("waiting") == (State.WAITING, State.QUEUED, State.ACQUIRING)
    assert states.rows_of("acquiring") == (State.QUEUED, State.ACQUIRING)
    assert (states.rows_of("queued"), states.rows_of("running")) == ((State.QUEUED,), (State.RUNNING,))
    assert states.rows_of("settled") == states.rows_of("failed") == ()
