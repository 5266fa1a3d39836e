"""What a hold, a release, a drain and a recycling write, send and answer, to the letter. [UNIT-3] [JOB-1] [JOB-2]"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.domain.jobs.jobs import Outcome, Report, Result
from penstock.domain.units import maintenance as wishes
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import RateLimited, Refused
from penstock.kernel.rows import Change, Key, key_of
from penstock.testing.twin import Twin
from penstock.usecases.site import apply
from penstock.usecases.units import advance, maintenance
from penstock.usecases.workers import agents
from tests.usecases.exact import Flows, commits, drop, put, sent
from tests.usecases.holds import HOUR, ROOT, running
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import TOKEN, dies_after_the_report, finish, job_of, submit, told, worker_of
from tests.usecases.warm import SITE, Agent, databases, slots, unit_of, worker_at_rest

WORKER, RESOURCE = UnitKind.WORKER, UnitKind.RESOURCE


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def hold(twin: Twin, unit: Unit) -> Unit:
    return maintenance.hold(twin.on, ROOT, unit.is_a, unit.id, "looking", HOUR)


def report(twin: Twin, job: str) -> None:
    """The script ends, and nothing that follows happens yet."""
    with dies_after_the_report(twin):
        caller = agents.authenticate(twin.on, job, TOKEN)
        agents.report_finished(twin.on, caller, Result.SUCCEEDED, "the script ended", 0)


def written(changes: Sequence[Change]) -> list[str]:
    return [type(change).__name__ + " " + key_of(change).pk.partition("#")[0] for change in changes]


def idle_database(twin: Twin, ada: User) -> Unit:
    job, _ = running(twin, ada, resources=["db"])
    finish(twin, job)
    (database,) = databases(twin)
    assert database.state is UnitState.IDLE
    return database


def cleaned_database(twin: Twin, ada: User) -> Unit:
    """One that its well does not get clean yet."""
    job, _ = running(twin, ada, resources=["db"])
    twin.drivers.basin.says = [RateLimited("slowly")]
    finish(twin, job)
    (database,) = databases(twin)
    assert database.state is UnitState.CLEANING
    return database


def cleaning_agent(twin: Twin, ada: User) -> Agent:
    """The agent of a worker that is kept, whose job has ended."""
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    agent.finish(job)
    assert unit_of(twin, agent.worker).state is UnitState.CLEANING
    return agent


def test_no_longer_id_than_there_can_be_is_looked_up(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table refuses a key that is too long with an error, which is not what the operator is to be told."""
    asked, get = list[Key](), twin.store.get

    def asking(key: Key, kind: type[Unit]) -> Unit | None:
        asked.append(key)
        return get(key, kind)

    monkeypatch.setattr(twin.store, "get", asking)
    for length in (64, 65, 5000):
        with pytest.raises(Refused) as refused:
            maintenance.find(twin.on, WORKER, "x" * length)
        assert refused.value.status == 404
    assert asked == [unit_key("x" * 64)]


def test_a_worker_is_no_resource(twin: Twin, ada: User) -> None:
    _, worker = running(twin, ada)
    with pytest.raises(Refused) as refused:
        maintenance.find(twin.on, RESOURCE, worker.id)
    assert refused.value.status == 404
    assert maintenance.find(twin.on, WORKER, worker.id) == unit_of(twin, worker.id)


def test_a_resource_can_be_held_although_the_script_has_ended(twin: Twin, ada: User) -> None:
    """Its turn comes in a commit of its own, so it is not too late, and nothing is assumed of the job."""
    job, _ = running(twin, ada, resources=["db"])
    report(twin, job)
    (database,) = databases(twin)
    assert database.state is UnitState.READY
    found = commits(twin)
    assert hold(twin, database).hold
    assert written(found[0]) == ["Replace unit", "Create audit"]


def test_a_worker_that_is_held_can_be_held_for_longer_although_its_script_has_ended(twin: Twin, ada: User) -> None:
    """Its agent was told that it is held, and waits."""
    job, worker = running(twin, ada)
    hold(twin, worker)
    report(twin, job)
    longer = maintenance.hold(twin.on, ROOT, WORKER, worker.id, "still looking", 2 * HOUR)
    assert longer.state is UnitState.READY
    assert longer.hold
    assert longer.hold.reason == "still looking"


def test_a_worker_whose_hold_has_run_out_cannot_be_held_after_its_report(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    hold(twin, worker)
    twin.pass_time(HOUR)
    put(twin, job_of(twin, job), report=Report(Result.SUCCEEDED, "the script ended", twin.world.now()))
    with pytest.raises(Refused, match="its machine is on its way out"):
        hold(twin, worker)


def test_a_worker_that_was_lost_can_be_held(twin: Twin, ada: User) -> None:
    """Its agent has reported nothing, so it does not end what it does."""
    job, worker = running(twin, ada)
    put(twin, job_of(twin, job), report=Report(Result.LOST, "nothing was heard", twin.world.now()))
    assert hold(twin, worker).hold


def test_a_worker_can_be_held_whose_job_is_forgotten_or_at_another_attempt(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    said = Report(Result.SUCCEEDED, "another attempt ended", twin.world.now())
    put(twin, job_of(twin, job), attempt=2, report=said)
    found = commits(twin)
    assert hold(twin, worker).hold
    maintenance.release(twin.on, ROOT, WORKER, worker.id)
    drop(twin, job_of(twin, job))
    assert hold(twin, worker).hold
    assert [name for changes in found for name in written(changes) if name == "Check job"] == []


def test_a_worker_that_is_kept_is_cleaned_by_its_agent_from_its_report_on(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada, target="linux")
    report(twin, job)
    assert unit_of(twin, worker.id).state is UnitState.READY
    with pytest.raises(Refused, match=r"has ended at .*Z, and its agent cleans it: it is too late") as refused:
        hold(twin, worker)
    assert (refused.value.status, refused.value.code) == (409, "too-late-to-hold")


def test_a_hold_assumes_that_the_script_still_runs(twin: Twin, ada: User) -> None:
    """UNIT-3: between the look at the job and the commit its agent reports, and is told to go."""
    job, worker = running(twin, ada)
    before_the_next_commit(twin, lambda: report(twin, job))
    with pytest.raises(Refused, match="its machine is on its way out"):
        hold(twin, worker)
    assert unit_of(twin, worker.id).hold is None


def test_the_slots_of_a_leased_unit_stay_its_leases(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    before = slots(twin, "target/other", "held#")
    hold(twin, worker)
    assert slots(twin, "target/other", "held#") == before
    assert [slot.job for slot in before] == [job]


def test_the_slots_of_a_unit_that_is_held_already_are_not_taken_again(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    hold(twin, unit_of(twin, agent.worker))
    before = slots(twin, "target/linux", "held#")
    twin.pass_time(10)
    found = commits(twin)
    hold(twin, unit_of(twin, agent.worker))
    assert [slot.unit for slot in before] == [agent.worker]
    assert slots(twin, "target/linux", "held#") == before
    assert written(found[0]) == ["Replace unit", "Create audit"]


def test_who_is_to_go_on_after_a_release_is_told_by_its_own_queue(twin: Twin, ada: User) -> None:
    _, worker = running(twin, ada, resources=["db"])
    (database,) = databases(twin)
    for unit in (worker, database):
        hold(twin, unit)
        sent(twin)
        maintenance.release(twin.on, ROOT, unit.is_a, unit.id)
        queue = "factory" if unit is worker else "well"
        assert sent(twin) == [(queue, {"unit": unit.id})]


def test_what_is_idle_and_released_only_has_its_pools_served(twin: Twin, ada: User) -> None:
    """QUEUE-1: it has no next step of its own: whoever waits is lent it."""
    agent = worker_at_rest(twin, ada)
    hold(twin, unit_of(twin, agent.worker))
    sent(twin)
    maintenance.release(twin.on, ROOT, WORKER, agent.worker)
    served = {"do": "serve", "pools": ["target/linux", "quota/vcpus"], "group": "quota/vcpus"}
    assert sent(twin) == [("schedule", served)]


def test_the_journal_says_why_what_is_released_is_not_kept(twin: Twin, ada: User) -> None:
    database = idle_database(twin, ada)
    hold(twin, database)
    apply.apply(twin.on, "admin", SITE.replace("warm = { max = 2 }\n", ""), "site.toml")
    free = maintenance.release(twin.on, ROOT, RESOURCE, database.id)
    assert (free.state, free.step.reason) == (UnitState.DIRTY, "its slot was withdrawn")


def test_what_is_to_be_destroyed_is_told_by_its_own_queue(twin: Twin, ada: User) -> None:
    agent, database = worker_at_rest(twin, ada), idle_database(twin, ada)
    sent(twin)
    maintenance.drain(twin.on, ROOT, WORKER, agent.worker, "")
    assert sent(twin) == [("factory", {"unit": agent.worker})]
    maintenance.drain(twin.on, ROOT, RESOURCE, database.id, "")
    assert sent(twin) == [("well", {"unit": database.id})]


def test_what_is_not_destroyed_yet_is_told_nothing(twin: Twin, ada: User) -> None:
    """UNIT-3: a held unit is drained after its hold; its well is not asked in between."""
    agent, database = worker_at_rest(twin, ada), cleaned_database(twin, ada)
    hold(twin, unit_of(twin, agent.worker))
    sent(twin)
    assert maintenance.drain(twin.on, ROOT, WORKER, agent.worker, "").state is UnitState.IDLE
    assert maintenance.drain(twin.on, ROOT, RESOURCE, database.id, "").state is UnitState.CLEANING
    assert sent(twin) == []


def test_what_is_held_until_it_is_destroyed_is_told_nothing(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    hold(twin, worker)
    finish(twin, job)
    sent(twin)
    assert maintenance.drain(twin.on, ROOT, WORKER, worker.id, "").state is UnitState.DIRTY
    assert sent(twin) == []


def test_a_wish_that_stands_is_not_written_again(twin: Twin, ada: User) -> None:
    _, worker = running(twin, ada)
    first = maintenance.drain(twin.on, ROOT, WORKER, worker.id, "")
    found = commits(twin)
    assert maintenance.drain(twin.on, ROOT, WORKER, worker.id, "again").drain == first.drain
    assert not [name for changes in found for name in written(changes) if name == "Replace unit"]


def test_a_worker_that_is_recycled_while_it_cleans_keeps_its_slots_until_it_is_gone(twin: Twin, ada: User) -> None:
    agent = cleaning_agent(twin, ada)
    before = slots(twin, "target/linux", "held#")
    assert maintenance.recycle(twin.on, ROOT, WORKER, agent.worker, "").state is UnitState.DIRTY
    assert slots(twin, "target/linux", "held#") == before
    assert [slot.unit for slot in before] == [agent.worker]


def test_recycling_what_nobody_leases_is_no_news_to_a_job(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    job = unit_of(twin, agent.worker).lease.job
    before, found = job_of(twin, job), commits(twin)
    assert maintenance.recycle(twin.on, ROOT, WORKER, agent.worker, "").state is UnitState.DIRTY
    assert job_of(twin, job) == before
    assert len(found) == 1


def test_recycling_a_running_worker_is_a_report_that_it_was_lost(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    flows = Flows(twin)
    with dies_after_the_report(twin):
        maintenance.recycle(twin.on, ROOT, WORKER, worker.id, "it swaps")
    said = job_of(twin, job).run.report
    assert said == Report(Result.LOST, f"worker {worker.id} was recycled by root: it swaps", twin.world.now())
    assert (flows.succeeded, flows.failed) == ([], [])
    assert [line for line in told(twin, job) if "recycled" in line] == [said.reason]


def test_recycling_a_running_worker_ends_its_attempt(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    maintenance.recycle(twin.on, ROOT, WORKER, worker.id, "it swaps")
    assert (job_of(twin, job).attempt, unit_of(twin, worker.id).state) == (2, UnitState.DIRTY)


@pytest.mark.usefixtures("by_flow")
def test_recycling_a_worker_that_boots_ends_the_step_and_reports_nothing(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="other")
    twin.run()
    worker, flows = worker_of(twin, job), Flows(twin)
    maintenance.recycle(twin.on, ROOT, WORKER, worker.id, "")
    assert job_of(twin, job).run.report is None
    assert [given[1:] for given in flows.failed] == [("Lost", f"worker {worker.id} was recycled by root")]
    assert flows.succeeded == []


def test_recycling_a_worker_that_has_reported_ends_its_attempt_and_leaves_the_report(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    report(twin, job)
    before, found = job_of(twin, job), commits(twin)
    with dies_after_the_report(twin):
        maintenance.recycle(twin.on, ROOT, WORKER, worker.id, "")
    assert job_of(twin, job) == before
    assert [written(changes) for changes in found[:2]] == [["Replace unit", "Create audit"], ["Replace unit"]]
    advance.advance(twin.on, worker.id)
    assert (job_of(twin, job).end.outcome, job_of(twin, job).run.report) == (Outcome.SUCCEEDED, before.run.report)


def recycled(twin: Twin, ada: User) -> tuple[str, Unit]:
    """A worker whose wish to be recycled is written, and nothing that follows."""
    job, worker = running(twin, ada)
    put(twin, worker, drain=wishes.recycle(worker, "root", "", twin.world.now()).drain)
    return job, unit_of(twin, worker.id)


@pytest.mark.parametrize("what", ["unit", "lease", "job", "attempt"])
def test_the_attempt_of_what_is_recycled_may_have_ended_by_itself(twin: Twin, ada: User, what: str) -> None:
    """The message that goes on with a recycling may come at any time later."""
    job, worker = recycled(twin, ada)
    if what == "unit":
        drop(twin, worker)
    elif what == "lease":
        put(twin, worker, state=UnitState.DIRTY)
    elif what == "job":
        drop(twin, job_of(twin, job))
    else:
        put(twin, job_of(twin, job), attempt=2)
    before, flows = dict(twin.store.rows), Flows(twin)
    maintenance.end_attempt(twin.on, worker)
    assert twin.store.rows == before
    assert (flows.succeeded, flows.failed) == ([], [])


def test_a_recycling_that_was_not_carried_out_is_gone_on_with(twin: Twin, ada: User) -> None:
    """The other side of it: without any of these, the attempt ends."""
    job, worker = recycled(twin, ada)
    maintenance.end_attempt(twin.on, worker)
    assert job_of(twin, job).attempt == 2
