"""The sweep ends, reminds and stops what is due, and nothing else. [JOB-1] [UNIT-1]"""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.github.tokens import Minted
from penstock.domain.jobs import outcome
from penstock.domain.jobs.jobs import Job, Outcome, Report, Result, State, job_key, step_on
from penstock.domain.pools.pools import LeaseState
from penstock.domain.users.users import User
from penstock.kernel.errors import Unreached
from penstock.kernel.rows import Create
from penstock.ports import NotYet
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep
from penstock.usecases.isolation import Isolation
from penstock.usecases.jobs import settle
from penstock.usecases.pools import serving
from tests.usecases.exact import (
    Flows,
    commits,
    drop,
    lease_of,
    lease_of_or_none,
    put,
    running,
    sent,
    unit_of,
)
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, run_to_end, submit, told

pytestmark = pytest.mark.usefixtures("by_flow")


def test_the_sweep_tells_whoever_makes_a_unit(twin: Twin, ada: User) -> None:
    job = running(twin, ada, resources=["bench"])
    for order, queue in ((0, "factory"), (1, "well")):
        unit = unit_of(twin, job, order)
        put(twin, unit, due=START)
        sent(twin)
        sweep.nudge(twin.on, "unit", unit.key)
        assert sent(twin) == [(queue, {"unit": unit.id})]


OVERDUE: dict[str, tuple[dict[str, Any], str]] = {
    "reported": ({"report": Report(Result.FAILED, "it failed", START)}, "it failed"),
    "cancelled": ({"cancelled_by": "ada"}, "cancelled by ada"),
    "running": ({}, "neither finished nor stopped"),
}


@pytest.mark.parametrize("what", OVERDUE)
@pytest.mark.parametrize("late", [-1, 0])
def test_what_is_overdue_ends_for_its_reason_and_its_flow_is_stopped(
    twin: Twin, ada: User, what: str, late: int
) -> None:
    job = running(twin, ada, retries=0)
    put(twin, job_of(twin, job), due=twin.world.now() - timedelta(seconds=late), **OVERDUE[what][0])
    flows = Flows(twin)
    sweep.nudge(twin.on, "job", job_key(job))
    found = job_of(twin, job)
    assert found.is_settled is (late == 0)
    assert flows.stopped == ([(job, 1)] if late == 0 else [])
    if late == 0:
        assert OVERDUE[what][1] in str(found.end.reason)
        assert (found.due, found.flow.stop_from) == (None, None)


@pytest.mark.parametrize(("late", "outcome"), [(-1, None), (0, Outcome.ERRORED)])
def test_the_queue_deadline_is_a_moment(twin: Twin, ada: User, late: int, outcome: Outcome | None) -> None:
    running(twin, ada, resources=["bench"])
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    now = twin.world.now()
    put(twin, job_of(twin, job), due=now, queue_until=now - timedelta(seconds=late))
    sweep.nudge(twin.on, "job", job_key(job))
    assert job_of(twin, job).end.outcome is outcome


def test_a_settled_job_that_is_still_due_has_its_flows_stopped_and_nothing_else(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    finish(twin, job)
    put(twin, job_of(twin, job), due=START, stop_from=1, attempt=2)
    flows, lines = Flows(twin), told(twin, job)
    sweep.nudge(twin.on, "job", job_key(job))
    assert flows.stopped == [(job, 1), (job, 2)]
    assert told(twin, job) == lines
    assert (job_of(twin, job).due, job_of(twin, job).flow.stop_from) == (None, None)
    put(twin, job_of(twin, job), due=START)
    written = commits(twin)
    sweep.nudge(twin.on, "job", job_key(job))
    assert not written


def test_the_flow_of_an_attempt_that_is_followed_is_stopped_and_not_the_next_ones(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, job_of(twin, job), due=START)
    flows = Flows(twin)
    sweep.nudge(twin.on, "job", job_key(job))
    found = job_of(twin, job)
    assert flows.stopped == [(job, 1)]
    assert (found.state, found.flow.stop_from) == (State.QUEUED, None)
    assert found.due, "the sweep starts its flow, if that is lost"


def test_a_flow_that_takes_no_first_step_is_given_time_once(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, retries=0)
    sent(twin)
    for seconds, attempt in ((61, 1), (61, 1), (600, 2)):
        twin.pass_time(seconds)
        sweep.sweep(twin.on)
        sent(twin)
        assert job_of(twin, job).attempt == attempt
    assert twin.flows.executions[job, 1].ended, "nothing would end it for a month"
    (past,) = job_of(twin, job).history.attempts
    assert "never took its first step" in past.reason


def test_a_lost_first_message_costs_no_retry_and_the_job_runs(twin: Twin, ada: User) -> None:
    """P3: AWS answers that the flow is started, as it is; the message of its first step is lost for good."""
    job = submit(twin, ada, retries=0)
    assert [message["do"] for _, message in sent(twin)] == ["acquire"]
    for _ in range(12):
        twin.pass_time(61)
        sweep.sweep(twin.on)
        twin.run()
    assert (job_of(twin, job).state, job_of(twin, job).attempt) == (State.ACQUIRING, 2)
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert job_of(twin, job).history.spared == 1


def test_a_job_whose_first_messages_are_all_lost_waits_longer_each_time_and_ends_in_the_end(
    twin: Twin, ada: User
) -> None:
    job = submit(twin, ada, retries=0)
    began: dict[int, float] = {}
    for minute in range(240):
        began.setdefault(job_of(twin, job).attempt, minute)
        sent(twin)
        twin.pass_time(60)
        sweep.sweep(twin.on)
    found = job_of(twin, job)
    assert (found.attempt, found.history.spared) == (4, outcome.MAX_SPARED)
    assert found.end.outcome is Outcome.ERRORED
    assert "tried 4 times: the flow never took its first step" in str(found.end.reason)
    waits = [later - sooner for sooner, later in itertools.pairwise(began.values())]
    assert waits == sorted(waits)
    assert waits[0] < 13 < waits[-1]


def test_a_first_message_that_comes_after_all_starts_nothing_twice(twin: Twin, ada: User) -> None:
    """JOB-2: it is of an attempt that is over."""
    job = submit(twin, ada, retries=0)
    late = list(twin.queues.messages)
    sent(twin)
    for _ in range(12):
        twin.pass_time(61)
        sweep.sweep(twin.on)
    twin.queues.messages.extendleft(late)
    twin.run()
    assert len(twin.drivers.hand.made) == 1
    assert job_of(twin, job).attempt == 2


def test_a_flow_that_cannot_be_started_is_tried_again_and_not_blamed(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreached(*_: object) -> None:
        raise Unreached

    monkeypatch.setattr(twin.flows, "start", unreached)
    job = submit(twin, ada, retries=0)
    for _ in range(15):
        twin.pass_time(61)
        with pytest.raises(Unreached):
            sweep.nudge(twin.on, "job", job_key(job))
        assert (job_of(twin, job).state, job_of(twin, job).flow.nudged) == (State.QUEUED, False)


def test_an_attempt_that_must_wait_is_due_again_later(twin: Twin, ada: User) -> None:
    """JOB-2: its last worker may still run. What waits is not read by every sweep."""
    job = running(twin, ada)
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    sent(twin)
    for _ in range(15):
        twin.pass_time(61)
        sweep.nudge(twin.on, "job", job_key(job))
        found = job_of(twin, job)
        assert found.due
        assert (found.flow.nudged, found.due > twin.world.now()) == (False, True)
    assert (job, 2) not in twin.flows.executions


def test_a_job_that_is_cancelled_while_the_sweep_lets_it_wait_stays_cancelled(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    twin.pass_time(61)
    before_the_next_commit(twin, lambda: put(twin, job_of(twin, job), cancelled_by="ada"))
    sweep.nudge(twin.on, "job", job_key(job))
    found = job_of(twin, job)
    assert found.cancellation.cancelled_by == "ada"
    assert found.due
    assert found.due <= twin.world.now(), "the next sweep ends it"


def test_each_step_that_has_all_is_answered_once_by_the_sweep_and_then_its_flow_is_lost(twin: Twin, ada: User) -> None:
    job = between_two_steps(twin, ada)
    flows = Flows(twin)
    for _ in range(2):
        assert job_of(twin, job).attempt == 1
        twin.pass_time(120)
        sweep.nudge(twin.on, "job", job_key(job))
    assert sorted(flows.succeeded) == sorted(lease_of(twin, job, order).token for order in (1, 2))
    assert "stopped between two steps" in str(job_of(twin, job).history.attempts[-1])


def between_two_steps(twin: Twin, ada: User, spared: int = 0, **ask: Any) -> str:
    """A job whose resources are ready; the message of its flow's next step was deleted."""
    job = submit(twin, ada, resources=["bench", "licence"], **ask)
    while lease_of_or_none(twin, job, 2) is None or lease_of(twin, job, 2).state is not LeaseState.READY:
        assert twin.deliver()
    sent(twin)
    put(twin, job_of(twin, job), spared=spared, due=twin.world.now() + timedelta(minutes=2))
    return job


def test_a_lost_message_of_a_later_step_costs_one_sweep_and_no_retry(twin: Twin, ada: User) -> None:
    """The flow refuses a second answer to the step before: so it went on, and what it sent is lost."""
    job = between_two_steps(twin, ada, retries=0)
    twin.pass_time(119)
    sweep.nudge(twin.on, "job", job_key(job))
    assert job_of(twin, job).attempt == 1
    twin.pass_time(1)
    sweep.nudge(twin.on, "job", job_key(job))
    found = job_of(twin, job)
    assert (found.state, found.attempt, found.history.spared) == (State.QUEUED, 2, 1)
    assert twin.flows.executions[job, 1].ended
    run_to_end(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_a_lost_answer_is_given_again_and_the_attempt_goes_on(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"], retries=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.flows, "succeed", lambda token: True)
        twin.run()
    assert lease_of(twin, job, 1).state is LeaseState.READY
    twin.pass_time(120)
    sweep.nudge(twin.on, "job", job_key(job))
    assert job_of(twin, job).due == twin.world.now() + timedelta(minutes=2)
    run_to_end(twin, job)
    assert job_of(twin, job).attempt == 1


def test_an_attempt_after_a_lost_one_waits_longer_for_the_next_step(twin: Twin, ada: User) -> None:
    """If a backlog delays all messages, it is not added to."""
    job = between_two_steps(twin, ada, spared=2)
    now = twin.world.now()
    assert step_on(job_of(twin, job), now).due == now + timedelta(minutes=6)


def test_a_flow_that_waits_for_a_lease_is_not_reminded(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [NotYet(5)] * 99
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    put(twin, job_of(twin, job), due=twin.world.now(), nudged=True)
    flows = Flows(twin)
    sweep.nudge(twin.on, "job", job_key(job))
    found = job_of(twin, job)
    assert (found.due, found.flow.nudged, flows.succeeded) == (found.flow.queue_until, False, [])


def test_only_pools_that_somebody_waits_for_are_served(twin: Twin, ada: User) -> None:
    for _ in range(2):
        submit(twin, ada, resources=["bench"])
    twin.run()
    served: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "serve", lambda on, names: served.extend(names))
        sweep.serve_all(twin.on, Isolation())
    assert served == ["resource/bench"]


def test_only_the_flow_of_the_present_attempt_settles_it(twin: Twin, ada: User) -> None:
    second, third = (running(twin, ada, retries=0) for _ in range(2))
    finish(twin, second)
    first = submit(twin, ada, retries=0)
    twin.run()
    twin.flows.ended = lambda: [  # type: ignore[method-assign]
        ("01KDVDNA01AAAAAAAAAAAAAAAA", 1, "FAILED"), (first, 2, "FAILED"), (second, 1, "FAILED"), (third, 1, "FAILED"),
    ]  # fmt: skip
    steps = Isolation()
    assert (sweep.settle_ended(twin.on, steps), steps.failed) == (0, 0)
    assert not job_of(twin, first).is_settled
    assert job_of(twin, third).state is State.RUNNING
    twin.flows.ended = lambda: [(first, 1, "FAILED")]  # type: ignore[method-assign]
    assert sweep.settle_ended(twin.on, Isolation()) == 1
    assert job_of(twin, first).is_settled


def test_a_hello_that_comes_before_the_sweep_writes_the_end_of_a_flow_wins(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, retries=0)
    twin.run()
    twin.flows.ended = lambda: [(job, 1, "FAILED")]  # type: ignore[method-assign]
    before_the_next_commit(twin, lambda: hello(twin, job))
    sweep.settle_ended(twin.on, Isolation())
    assert job_of(twin, job).state is State.RUNNING


def test_a_job_that_is_gone_when_its_flow_is_to_be_stopped_stops_nothing(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, job_of(twin, job), due=START)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settle, "settle", lambda on, *_, **__: drop(twin, job_of(twin, job)))
        sweep.nudge(twin.on, "job", job_key(job))
    assert twin.store.get(job_key(job), Job) is None


def test_a_nudge_that_comes_too_early_does_nothing(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    sent(twin)
    rows = dict(twin.store.rows)
    sweep.nudge(twin.on, "job", job_key(job))
    assert twin.store.rows == rows
    assert not sent(twin)


def test_what_waits_for_github_is_taken_up_again(twin: Twin) -> None:
    minted = Minted(job="J1", id="1", installation=1, sealed="", made=START, due=START)
    twin.store.commit([Create(minted)])
    sweep.nudge(twin.on, "minted", minted.key)
    assert sent(twin) == [("schedule", {"do": "github", "message": {"revoke": "J1"}})]


def test_a_nudge_of_what_has_no_next_step_does_nothing(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    sent(twin)
    sweep.nudge(twin.on, "lease", lease_of(twin, job, 0).key)
    assert not sent(twin)


def test_a_settled_job_whose_worker_is_being_put_back_has_its_flow_stopped_and_no_hint_is_sent(
    twin: Twin, ada: User
) -> None:
    job = running(twin, ada, retries=0)
    put(twin, job_of(twin, job), due=START)
    settle.settle(twin.on, job, 1, "Lost", "overdue", overdue=twin.world.now())
    sent(twin)
    flows = Flows(twin)
    sweep.nudge(twin.on, "job", job_key(job))
    assert flows.stopped == [(job, 1)]
    assert not sent(twin)


def test_a_job_that_was_cancelled_while_it_acquires_is_ended_and_not_reminded(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [NotYet(5)] * 99
    job = submit(twin, ada)
    twin.run()
    put(twin, job_of(twin, job), cancelled_by="ada", due=START)
    sweep.nudge(twin.on, "job", job_key(job))
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED


def test_an_attempt_that_waits_for_the_release_of_the_last_has_it_gone_on_with(twin: Twin, ada: User) -> None:
    """JOB-1: the message that would have released it was lost, and the next attempt's flow is not even started."""
    job = running(twin, ada, resources=["bench"], retries=1)
    settle.settle(twin.on, job, 1, "Lost", "it is gone")
    sent(twin)
    was = job_of(twin, job)
    assert (was.state, was.attempt) == (State.QUEUED, 2)
    sweep._resume_queued(twin.on, was)
    assert ("factory", {"unit": unit_of(twin, job, 0).id}) in sent(twin)
