"""What reading buildomat's source shows to be wrong there, where it concerns assignment, leases and workers."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.users.users import User
from penstock.kernel.errors import Moved, Refused
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import cancel
from penstock.usecases.units import drivers, release
from penstock.usecases.workers import agents
from tests.known import breaks_later
from tests.known.caught import fails_with
from tests.known.races import dying, restart
from tests.known.site import Known, assert_nothing_is_left, holders
from tests.simulation import plants as planted
from tests.usecases.steps import TOKEN, finish, hello, job_of, run_to_end, submit, sweep, worker_of


@fails_with(breaks_later.first_error_ends_the_pass)
def test_one_job_in_error_stops_the_assignment_of_all_that_are_younger(twin: Known, ada: User) -> None:
    """job_assignment_one: `?` on the first error left the rest of the pass out, every second anew. QUEUE-1"""
    first, second = submit(twin, ada), submit(twin, ada)
    restart(twin)
    twin.flows.executions.clear()
    start = twin.flows.start

    def failing(job: str, *given: Any) -> bool:
        if job == first:
            raise ConnectionError("a file is still being committed")
        return start(job, *given)

    twin.flows.start = failing  # type: ignore[assignment]
    twin.pass_time(61)
    usecases_sweep.sweep(twin.on)
    steps = [message for message in twin.queues.messages if message[2]["job"] != first]
    restart(twin)
    twin.queues.messages.extend(steps)
    twin.run()
    assert (job_of(twin, first).state, job_of(twin, second).state) == (State.QUEUED, State.ACQUIRING)
    run_to_end(twin, second)


@fails_with(breaks_later.remembers_before_it_writes)
def test_a_job_counts_as_complete_in_memory_while_its_row_does_not(twin: Known, ada: User) -> None:
    """main.rs `completed_jobs` was written before the database, which then failed; nothing more was taken. JOB-1"""
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    with dying(twin.store, "commit"):
        agents.report_finished(twin.on, caller, Result.FAILED, "the script ended with 3", 3)
    agents.report_finished(twin.on, caller, Result.FAILED, "the script ended with 3", 3)
    twin.run()
    assert (job_of(twin, job).end.outcome, job_of(twin, job).end.exit_code) == (Outcome.FAILED, 3)
    assert_nothing_is_left(twin)


@fails_with(breaks_later.tells_before_it_writes)
def test_watchers_are_told_of_an_end_that_was_not_written(twin: Known, ada: User) -> None:
    """job_complete notified them also when its update had failed. JOB-1"""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    caller = agents.authenticate(twin.on, job, TOKEN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.store, "commit", lambda changes: False)
        with pytest.raises(Moved):
            agents.report_finished(twin.on, caller, Result.SUCCEEDED, "the script ended", 0)
    twin.run()
    assert job_of(twin, job).state is State.RUNNING
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


@fails_with(breaks_later.nobody_looks_who_waits)
def test_leases_are_process_memory_and_lost_with_it(twin: Known, ada: User) -> None:
    """Leases, subscriptions and queues were gone after a restart. QUEUE-1 JOB-1"""
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    caller = hello(twin, first)
    restart(twin)
    assert agents.heartbeat(twin.on, caller).lease_seconds == 120
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "slot_freed", lambda on, unit: None)  # the process is gone before it hands anything over
        finish(twin, first)
        for _ in range(2):
            restart(twin)
            twin.pass_time(61)
            usecases_sweep.sweep(twin.on)
            twin.run()
    sweep(twin)
    assert holders(twin, "resource/bench") == {"bench-1": second}
    run_to_end(twin, second)
    assert_nothing_is_left(twin)


@fails_with(breaks_later.outlives_its_lease)
def test_the_worker_of_a_cancelled_job_idles_for_half_an_hour(twin: Known, ada: User) -> None:
    """A lease was bound to no worker, so a machine that nobody wanted any more went on costing. UNIT-1"""
    job = submit(twin, ada)
    twin.run()
    assert len(twin.factory.made) == 1
    cancel.cancel(twin.on, ada, job)
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED
    assert_nothing_is_left(twin)


@fails_with(planted.old_agents_write)
def test_a_job_is_taken_by_another_worker_than_the_one_that_was_made_for_it(twin: Known, ada: User) -> None:
    """Whichever machine came first took the oldest job; the one made for it was left over. SEC-2 JOB-2"""
    first, second = submit(twin, ada), submit(twin, ada)
    twin.run()
    worker = worker_of(twin, second).id
    given = agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), "u" * 43))
    assert given.job == second
    hello(twin, first)
    with pytest.raises(Refused):
        agents.authenticate(twin.on, first, "u" * 43)


@fails_with(breaks_later.absence_counts)
def test_a_machine_that_is_not_listed_yet_is_taken_for_gone(twin: Known, ada: User) -> None:
    """EC2's list lagged behind RunInstances; the row was cleared, and then the instance was killed. UNIT-1 JOB-1"""
    job = submit(twin, ada)
    twin.run()
    made = dict(twin.factory.made)
    twin.factory.made.clear()
    usecases_sweep.sweep(twin.on)
    twin.run()
    twin.factory.made.update(made)
    sweep(twin)
    assert list(twin.factory.made) == [worker_of(twin, job).id]
    hello(twin, job)
    finish(twin, job)
    assert (job_of(twin, job).end.outcome, job_of(twin, job).attempt) == (Outcome.SUCCEEDED, 1)
