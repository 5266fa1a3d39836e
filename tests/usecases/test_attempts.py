"""A job settles once, on one worker at a time, and only that worker may act for it. [JOB-1] [JOB-2] [SEC-1] [SEC-2]"""

from __future__ import annotations

import pytest

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.units.units import Unit, UnitKind
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Refused
from penstock.ports import NotYet
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel, jobs, settle
from penstock.usecases.pools import scheduler
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.usecases.steps import (
    TOKEN,
    assert_all_is_put_back,
    dies_after_the_report,
    finish,
    hello,
    job_of,
    submit,
    sweep,
    told,
    worker_of,
)

pytestmark = pytest.mark.usefixtures("by_flow")


@pytest.mark.parametrize(("error", "outcome"), [(None, Outcome.SUCCEEDED), ("Unsatisfiable", Outcome.SUCCEEDED)])
def test_a_job_settles_once(twin: Twin, ada: User, error: str | None, outcome: Outcome) -> None:
    """JOB-1: the second end, and a report after the end, change nothing."""
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    finish(twin, job)
    settled = job_of(twin, job)
    settle.settle(twin.on, job, 1, error, "again")
    settle.settle(twin.on, job, 2, error, "an attempt that never was")
    with pytest.raises(Refused):
        agents.report_finished(twin.on, caller, Result.FAILED, "late", 1)
    with pytest.raises(Refused):
        cancel.cancel(twin.on, ada, job)
    twin.run()
    assert job_of(twin, job) == settled
    assert settled.end.outcome is outcome
    assert sum("settled:" in line for line in told(twin, job)) == 1


def test_the_first_report_stands(twin: Twin, ada: User) -> None:
    """JOB-1: an agent that reports twice, or is called lost after it reported, ended as it said first."""
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    with dies_after_the_report(twin):
        agents.report_finished(twin.on, caller, Result.FAILED, "the script ended with 3", 3)
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "no it did not", 0)
    sweep(twin, 1000)
    assert (job_of(twin, job).end.outcome, job_of(twin, job).end.exit_code) == (Outcome.FAILED, 3)
    assert job_of(twin, job).attempt == 1


def test_a_worker_whose_hello_did_not_reach_its_flow_is_not_refused(twin: Twin, ada: User) -> None:
    """JOB-1: the step for a worker, delivered again after hello was written and before it was answered."""
    job = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job).id
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.flows, "succeed", lambda token: None)
        agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    flow = twin.flows.executions[job, 1]
    scheduler.acquire(twin.on, job, 1, 0, str(flow.token))
    twin.run()
    assert job_of(twin, job).state is State.RUNNING
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_the_next_attempt_waits_until_the_last_worker_is_gone(twin: Twin, ada: User) -> None:
    """JOB-2: at most one live worker, even when destroying takes long and messages are doubled."""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    old = worker_of(twin, job).id
    hand, destroy = twin.drivers.hand, twin.drivers.hand.destroy
    hand.destroy = lambda unit, now: NotYet(5, "it is still going down")  # type: ignore[method-assign]
    sweep(twin, 121)
    for _ in range(20):
        twin.queues.schedule({"do": "start", "job": job})
        sweep(twin, 31)
        assert (job_of(twin, job).attempt, job_of(twin, job).state) == (2, State.QUEUED)
        assert list(hand.made) == [old]
    assert "put back" in jobs.explain(twin.on, job_of(twin, job)).summary
    hand.destroy = destroy  # type: ignore[method-assign]
    sweep(twin, 31)
    assert list(hand.made) == [worker_of(twin, job).id] != [old]
    hello(twin, job)
    finish(twin, job)
    assert_all_is_put_back(twin)


def test_a_worker_is_known_by_its_key_and_its_first_token(twin: Twin, ada: User) -> None:
    """SEC-2: a wrong key, another worker's key, another token, and any token after the end are refused."""
    job, other = submit(twin, ada), submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job).id
    key, others = (drivers.bootstrap_key(twin.on.signing_key(), worker_of(twin, one).id) for one in (job, other))
    said = [status(twin, Hello(worker, wrong, TOKEN)) for wrong in ("", "0" * 64, others)]
    assert said == [401, 401, 401]
    assert status(twin, Hello(worker, key, TOKEN)) == 200
    assert status(twin, Hello(worker, key, TOKEN)) == 200
    assert status(twin, Hello(worker, key, "u" * 43)) == 409
    with pytest.raises(Refused):
        agents.authenticate(twin.on, other, TOKEN)
    twin.run()
    finish(twin, job)
    assert status(twin, Hello(worker, key, TOKEN)) == 410
    assert "key" not in str([row for row in twin.store.rows.values() if isinstance(row, Unit) and key in str(row)])


def status(twin: Twin, ask: Hello) -> int:
    try:
        agents.hello(twin.on, ask)
    except Refused as refused:
        return refused.status
    return 200


def test_secrets_are_kept_as_digests_and_die_with_their_lease(twin: Twin, ada: User) -> None:
    """SEC-1: no row holds a worker's token or key; after the end no row holds metadata."""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    key = drivers.bootstrap_key(twin.on.signing_key(), worker_of(twin, job).id)
    assert TOKEN not in str(twin.store.rows)
    assert key not in str(twin.store.rows)
    finish(twin, job)
    gone = [row for row in twin.store.rows.values() if isinstance(row, Unit)]
    assert all(unit.session.token_hash is None and not unit.access.sealed for unit in gone)


def test_a_unit_whose_well_is_gone_waits_for_the_operator(twin: Twin, ada: User) -> None:
    """JOB-1: a site that loses what a job waits for says so, and the job still settles when it is cancelled."""
    twin.drivers.hand.says = [Misconfigured("no such image")] * 50
    job = submit(twin, ada)
    for _ in range(5):
        sweep(twin)
    assert "no such image" in jobs.explain(twin.on, job_of(twin, job)).summary
    cancel.cancel(twin.on, ada, job)
    sweep(twin)
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED
    assert [row for row in twin.store.rows.values() if isinstance(row, Unit) and row.is_a is UnitKind.WORKER]
    assert_all_is_put_back(twin)
