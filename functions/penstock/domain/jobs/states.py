"""What each state and each outcome of a job means: one table, for everybody. docs/users/lists.md shows it.

A job that waits for something is *waiting*, whatever that is. So a job in the queue of a pool is shown as waiting, also
while it holds what it got before; its row has it as acquiring, as the flow of its attempt is under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.domain.jobs.jobs import Job, Outcome, State
from penstock.domain.pools.pools import Lease, LeaseState

STATES: Mapping[State, str] = {
    State.WAITING: "waits for other jobs, input files, a review, its owner's other jobs, or in the queue of a pool",
    State.QUEUED: "waits for its next step, which the service takes by itself: after its submit, or between two tries",
    State.ACQUIRING: "was granted what it asked for, which is being made: a machine boots, a resource is created",
    State.RUNNING: "its script runs on its worker, or that prepares to run it",
    State.SETTLED: "has ended, with one of the outcomes",
}
"""What a job does in each of its states."""

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.SUCCEEDED: "its script ended well, and its files are stored",
    Outcome.FAILED: "its script failed, ran too long, or the job could not be what it asked to be",
    Outcome.CANCELLED: "somebody cancelled it before its script had ended",
    Outcome.ERRORED: "the service, or a machine, failed it, also when it was tried again",
}
"""How a settled job ended."""

WAITS = (State.WAITING, State.QUEUED)
"""The states, as they are shown, of every job that waits."""


def shown(state: State, *, is_in_queue: bool) -> State:
    """The state that everybody is shown, of a job that stands in the queue of a pool or in none."""
    return State.WAITING if state is State.ACQUIRING and is_in_queue else state


def queue_in(leases: Iterable[Lease]) -> str | None:
    """The pool in whose queue an attempt with these leases stands; None if it stands in none."""
    return next((lease.pool for lease in leases if lease.state is LeaseState.WAITING), None)


def waits_for(job: Job, queue: str | None) -> str | None:
    """What a job waits for, in a few words; None if it does not wait. `queue` is the pool in whose queue it stands."""
    if job.state is State.WAITING:
        return ", ".join(_prerequisites(job)) or f"the backlog of {job.owner}"
    if job.state is State.QUEUED:
        return "the end of its last try" if job.attempt > 1 else "its first step"
    return queue if job.state is State.ACQUIRING else None


def _prerequisites(job: Job) -> list[str]:
    asked = job.request
    return [
        *["other jobs"] * bool(asked.dependencies),
        *["input files"] * bool(asked.inputs),
        *["a review"] * job.awaits_review,
    ]


def is_state(word: str, job: Job, *, is_in_queue: bool) -> bool:
    """Whether a job is what a word says, which is a state, as it is shown, or an outcome. `waiting` are all that wait.

    Raises ValueError for another word.
    """
    if word in OUTCOMES:
        return job.end.outcome == word
    state = shown(job.state, is_in_queue=is_in_queue)
    return state in WAITS if State(word) is State.WAITING else state == word


def rows_of(word: str) -> tuple[State, ...]:
    """The states that the due index may have of unsettled jobs which are what a word says; none if they have settled.

    A flow that is slow to take its first step is still queued there when its job acquires.
    """
    return _ROWS.get(word, ())


_ROWS: Mapping[str, tuple[State, ...]] = {
    State.WAITING: (State.WAITING, State.QUEUED, State.ACQUIRING),
    State.QUEUED: (State.QUEUED,),
    State.ACQUIRING: (State.QUEUED, State.ACQUIRING),
    State.RUNNING: (State.RUNNING,),
}
