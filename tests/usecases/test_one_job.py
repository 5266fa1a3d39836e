"""One job's life, through the real use cases."""

from __future__ import annotations

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.logs.logs import CONTROL
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Replace
from penstock.testing.twin import Twin
from penstock.usecases import sweep as sweep_
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.logs import logs
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.usecases.exact import commits
from tests.usecases.steps import (
    TOKEN,
    assert_all_is_put_back,
    finish,
    hello,
    job_of,
    submit,
    told,
    worker_of,
)


def test_a_job_runs_and_leaves_nothing(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    assert job_of(twin, job).state is State.ACQUIRING
    hello(twin, job)
    assert job_of(twin, job).state is State.RUNNING
    finish(twin, job)
    settled = job_of(twin, job)
    assert (settled.state, settled.end.outcome, settled.attempt) == (State.SETTLED, Outcome.SUCCEEDED, 1)
    assert_all_is_put_back(twin)


def essential(twin: Twin, job: str) -> list[str]:
    """The lines of a job's log that every reader is shown."""
    return [event.line.payload for event in logs.read(twin.on, job, 0, 1000) if event.line.stream == CONTROL]


def test_the_essential_lines_of_a_job_say_where_it_runs_and_how_it_ended(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert essential(twin, job) == [
        f"running on {worker_of(twin, job).id} (target linux), ready after 0 s",
        "settled: succeeded: the script ended; took 0 s, 0 s of it since its script started",
    ]


def test_the_essential_lines_say_what_a_job_waits_for(twin: Twin, ada: User) -> None:
    holder, queued = submit(twin, ada, resources=["bench"]), submit(twin, ada, resources=["bench"])
    twin.run()
    assert essential(twin, holder) == []
    assert [f"bench-1 by {holder}" in line for line in essential(twin, queued)] == [True]
    dependent = submit(twin, ada, dependencies={"before": {"job": holder}})
    assert [f"it waits for job {holder}" in line for line in essential(twin, dependent)] == [True]


def test_resources_come_in_order_of_their_type_and_then_the_worker(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["licence", "bench"])
    twin.run()
    granted = [line.partition(":")[0] for line in told(twin, job) if "got slot" in line]
    assert granted == ["resource/bench", "resource/licence", "target/linux"]
    assignment = agents.hello(
        twin.on,
        Hello(worker_of(twin, job).id, drivers.bootstrap_key(twin.on.signing_key(), worker_of(twin, job).id), TOKEN),
    )
    assert assignment.resources["bench"].metadata["name"] == "bench-1"
    twin.run()
    found = commits(twin)
    finish(twin, job, Result.FAILED)
    assert job_of(twin, job).end.outcome is Outcome.FAILED
    units = [change.row for changes in found for change in changes if isinstance(change, Replace)]
    gone = [unit for unit in units if isinstance(unit, Unit) and unit.state is UnitState.GONE]
    assert [unit.lease.pool for unit in gone] == ["target/linux", "resource/licence", "resource/bench"]
    assert_all_is_put_back(twin)


def test_two_jobs_that_want_one_bench_run_one_after_the_other(twin: Twin, ada: User) -> None:
    first, second = submit(twin, ada, resources=["bench"]), submit(twin, ada, resources=["bench"])
    twin.run()
    why = jobs.explain(twin.on, job_of(twin, second))
    assert why.blocked_on
    assert why.blocked_on.position == 1
    assert [(holder.slot, holder.job) for holder in why.blocked_on.held_by] == [("bench-1", first)]
    assert f"bench-1 by {first}" in why.summary
    hello(twin, first)
    finish(twin, first)
    assert worker_of(twin, second).state is UnitState.CREATING
    hello(twin, second)
    finish(twin, second)
    assert_all_is_put_back(twin)


def test_a_waiting_job_is_cancelled_at_once(twin: Twin, ada: User) -> None:
    first, second = submit(twin, ada, resources=["bench"]), submit(twin, ada, resources=["bench"])
    twin.run()
    cancel.cancel(twin.on, ada, second)
    twin.run()
    assert job_of(twin, second).end.outcome is Outcome.CANCELLED
    hello(twin, first)
    finish(twin, first)
    assert_all_is_put_back(twin)


def test_a_job_is_cancelled_while_its_worker_boots(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    cancel.cancel(twin.on, ada, job)
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED
    assert_all_is_put_back(twin)


def test_a_running_job_hears_of_its_cancellation_and_reports(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    cancel.cancel(twin.on, ada, job)
    caller = agents.authenticate(twin.on, job, TOKEN)
    assert agents.heartbeat(twin.on, caller).cancel
    finish(twin, job, Result.CANCELLED)
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED
    assert_all_is_put_back(twin)


def test_a_lost_agent_leads_to_the_next_attempt_and_then_to_an_error(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"])
    for attempt in (1, 2):
        twin.run()
        hello(twin, job)
        assert job_of(twin, job).attempt == attempt
        twin.pass_time(121)
        sweep_.sweep(twin.on)
        twin.run()
    settled = job_of(twin, job)
    assert (settled.end.outcome, settled.attempt) == (Outcome.ERRORED, 2)
    assert "nothing was heard from its agent" in str(settled.end.reason)
    assert [past.outcome for past in settled.history.attempts] == ["lost"]
    assert_all_is_put_back(twin)


def test_a_worker_that_never_says_hello_is_lost(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, retries=0)
    twin.run()
    twin.pass_time(601)
    sweep_.sweep(twin.on)
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.ERRORED
    assert "did not say hello" in str(job_of(twin, job).end.reason)
    assert_all_is_put_back(twin)


def test_a_job_that_waits_past_the_queue_deadline_is_errored(twin: Twin, ada: User) -> None:
    first, second = submit(twin, ada, resources=["bench"]), submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, first)
    twin.pass_time(7 * 24 * 3600 + 1)
    sweep_.sweep(twin.on)
    twin.run()
    assert job_of(twin, second).end.outcome is Outcome.ERRORED
    assert "queue deadline" in str(job_of(twin, second).end.reason)
