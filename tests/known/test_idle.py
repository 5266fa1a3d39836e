"""What went wrong where machines are kept for the next job: in Drydock, and in dispatchers of CI runners."""

from __future__ import annotations

from penstock.domain.jobs.jobs import Outcome
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Replace
from penstock.ports import NotYet
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.isolation import Isolation
from penstock.usecases.workers import agents
from tests.known import breaks, breaks_idle
from tests.known.caught import fails_with
from tests.known.races import just_before
from tests.known.site import Known, held, holders
from tests.usecases.steps import job_of, submit, sweep, worker_of
from tests.usecases.warm import Agent, unit_of


def retires(change: Change) -> bool:
    """An idle unit is to be destroyed."""
    row = change.row if isinstance(change, Replace) and isinstance(change.was, Unit) else None
    return isinstance(row, Unit) and row.state is UnitState.DIRTY


def two_at_rest(twin: Known, ada: User) -> list[Agent]:
    """Two workers that had a job each, and are idle: with them, all of the quota is in use."""
    jobs = [submit(twin, ada, target="kept") for _ in range(2)]
    twin.run()
    found = [Agent(twin, worker_of(twin, job).id) for job in jobs]
    for agent, job in zip(found, jobs, strict=True):
        agent.hello()
        agent.finish(job)
        assert agent.hello().idle
    return found


@fails_with(breaks_idle.evicts_for_what_is_on_its_way)
def test_race_11_leases_steal_idle_resources_from_each_other(twin: Known, ada: User) -> None:
    """T9994, T13676, D21803: a lease reclaimed what another was about to take, and that one reclaimed the next. QUEUE-1

    One idle worker is destroyed for one who waits, however often is looked; the other is there for whom it fits.
    """
    workers = two_at_rest(twin, ada)
    twin.factory.unclean = [NotYet(5, "it is going down")]
    other = submit(twin, ada, target="small")
    twin.run()
    usecases_sweep.serve_all(twin.on, Isolation())
    assert [unit_of(twin, agent.worker).state for agent in workers] == [UnitState.DIRTY, UnitState.IDLE]
    fitting = submit(twin, ada, target="kept")
    twin.run()
    assert workers[1].hello().job == fitting
    sweep(twin)
    assert list(holders(twin, "target/small").values()) == [other]


@fails_with(breaks.writes_without_condition)
def test_an_idle_runner_is_removed_before_its_job_comes(twin: Known, ada: User) -> None:
    """actions-runner-controller#4000: idle when looked at, and given a job before it was removed. SLOT-1"""
    worker, _ = two_at_rest(twin, ada)
    jobs: list[str] = []

    def granted() -> None:
        jobs.append(submit(twin, ada, target="kept", priority=10))
        twin.run()

    submit(twin, ada, target="small")
    with just_before(twin, retires, granted):
        twin.run()
    granted_one = unit_of(twin, worker.worker)
    assert (granted_one.state, granted_one.lease.job) == (UnitState.CREATING, jobs[0])
    assert worker.hello().job == jobs[0]
    worker.finish(jobs[0])
    assert (job_of(twin, jobs[0]).end.outcome, job_of(twin, jobs[0]).attempt) == (Outcome.SUCCEEDED, 1)


@fails_with(breaks_idle.counts_from_birth)
def test_a_runner_counts_as_idle_from_when_it_was_ordered(twin: Known, ada: User) -> None:
    """cdk-github-runners#314: one that came late, or worked for long, had been idle for too long already. UNIT-1

    Idle time begins when a worker is clean; and it ends.
    """
    job = submit(twin, ada, target="kept")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    for _ in range(7):
        twin.pass_time(100)
        agents.heartbeat(twin.on, agents.authenticate(twin.on, job, agent.token(1)))
    agent.finish(job)
    assert agent.hello().idle
    sweep(twin, 1)
    assert unit_of(twin, agent.worker).state is UnitState.IDLE
    for _ in range(6):
        sweep(twin, 100)
        if unit_of(twin, agent.worker).state is UnitState.IDLE:
            agent.hello()
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    assert not held(twin, "target/kept")
