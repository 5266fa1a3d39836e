"""What a cloud says of machines: taken back, they get nothing new; ended, their attempt is lost. [JOB-1] [UNIT-3]"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Outcome, Result
from penstock.domain.units.units import STEP_WITHIN, Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured
from penstock.ports import MachineFate, MachineNotice
from penstock.testing.twin import ScriptedDriver, Twin
from penstock.usecases.site import apply
from penstock.usecases.units import advance, cloud_events, drivers, maintenance
from tests.usecases.exact import Flows, drop, put, sent
from tests.usecases.holds import HOUR, ROOT, hold, release, running
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import dies_after_the_report, finish, hello, job_of, run_to_end, submit, told, worker_of
from tests.usecases.warm import SITE, Agent, databases, slots, unit_of, worker_at_rest

ENDS, WARNS = "the cloud says that m-1 ends", "the cloud takes m-1 back"


EVENT: dict[str, Any] = {"source": "a.cloud", "detail": {"machine": "m-1"}}


class Cloud(ScriptedDriver):
    """A factory whose cloud speaks of machines."""

    def __init__(self) -> None:
        super().__init__()
        self.tells: MachineNotice | Exception | None = None
        self.printed: str | None = None
        self.heard: list[Mapping[str, Any]] = []

    def read_event(self, event: Mapping[str, Any]) -> MachineNotice | None:
        self.heard.append(event)
        if isinstance(self.tells, Exception):
            raise self.tells
        return self.tells

    def evidence(self, unit: str) -> str | None:
        return self.printed


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def twin(cloud: Cloud) -> Twin:
    made = Twin()
    made.drivers.hand = cloud
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def lost(twin: Twin, unit: str, why: str = ENDS) -> None:
    assert isinstance(twin.drivers.hand, Cloud)
    twin.drivers.hand.tells = MachineNotice(unit, MachineFate.LOST, why)
    cloud_events.handle(twin.on, EVENT)


def warned(twin: Twin, unit: str, seconds: float | None = 120, why: str = WARNS) -> None:
    assert isinstance(twin.drivers.hand, Cloud)
    until = None if seconds is None else twin.world.now() + timedelta(seconds=seconds)
    twin.drivers.hand.tells = MachineNotice(unit, MachineFate.DRAINING, why, until)
    cloud_events.handle(twin.on, EVENT)


def journal(twin: Twin, unit: str) -> list[str]:
    return [entry.what for entry in unit_of(twin, unit).journal.entries]


def cleaning(twin: Twin, ada: User) -> Unit:
    """A worker whose agent cleans up for the next job."""
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    agent.finish(job)
    found = unit_of(twin, agent.worker)
    assert found.state is UnitState.CLEANING
    return found


def test_a_machine_that_ends_loses_its_attempt_at_once_and_the_next_follows(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    with dies_after_the_report(twin):
        lost(twin, worker.id)
    report = job_of(twin, job).run.report
    assert report
    assert (report.result, report.reason) == (Result.LOST, f"worker {worker.id} was recycled by hand: {ENDS}")
    lost(twin, worker.id)
    assert f"worker {worker.id}: {ENDS}" in told(twin, job)
    twin.run()
    assert job_of(twin, job).attempt == 2
    assert unit_of(twin, worker.id).state is UnitState.GONE
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_a_machine_that_ends_while_it_boots_is_replaced_and_what_it_printed_is_told(
    twin: Twin, ada: User, cloud: Cloud
) -> None:
    job = submit(twin, ada, target="other")
    twin.run()
    worker = worker_of(twin, job)
    cloud.printed = f"kernel panic with {drivers.bootstrap_key(twin.on.signing_key(), worker.id)}"
    lost(twin, worker.id)
    lost(twin, worker.id)
    assert told(twin, job).count("kernel panic with (its key)") == 1
    twin.run()
    assert job_of(twin, job).attempt == 2
    assert ENDS in job_of(twin, job).history.attempts[0].reason
    assert unit_of(twin, worker.id).state is UnitState.GONE


def test_what_a_machine_printed_is_told_for_a_boot_only(twin: Twin, ada: User, cloud: Cloud) -> None:
    job, worker = running(twin, ada)
    cloud.printed = "hours of output"
    lost(twin, worker.id)
    assert "hours of output" not in told(twin, job)


@pytest.mark.parametrize("again", [lost, lambda twin, unit: advance.advance(twin.on, unit)])
def test_an_attempt_that_was_not_ended_is_ended_by_the_next_event_or_when_it_is_due(
    twin: Twin, ada: User, again: Callable[[Twin, str], None]
) -> None:
    """JOB-1: the function may die in between, and events come twice."""
    job, worker = running(twin, ada)
    with dies_after_the_report(twin):
        lost(twin, worker.id)
        lost(twin, worker.id)
    assert told(twin, job).count(f"worker {worker.id}: {ENDS}") == 1
    due = unit_of(twin, worker.id).due
    assert due
    assert due <= twin.world.now() + STEP_WITHIN
    again(twin, worker.id)
    assert job_of(twin, job).attempt == 2


def test_a_job_that_has_reported_ends_as_it_said(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    Flows(twin)
    finish(twin, job)
    lost(twin, worker.id)
    report = job_of(twin, job).run.report
    assert report
    assert report.result is Result.SUCCEEDED


def test_what_we_end_ourselves_is_no_news(twin: Twin, ada: User) -> None:
    """Every worker's end is told by its cloud, mostly several times."""
    job, worker = running(twin, ada)
    finish(twin, job)
    gone = unit_of(twin, worker.id)
    assert gone.state is UnitState.GONE
    for tell in (lost, warned):
        tell(twin, worker.id)
        assert unit_of(twin, worker.id) == gone
    assert sent(twin) == []


@pytest.mark.parametrize("tell", [lost, warned])
def test_what_is_being_destroyed_is_left_alone(twin: Twin, ada: User, tell: Callable[..., None]) -> None:
    job, worker = running(twin, ada)
    maintenance.recycle(twin.on, ROOT, UnitKind.WORKER, worker.id, "")
    assert unit_of(twin, worker.id).state is UnitState.DIRTY
    before, log = unit_of(twin, worker.id), told(twin, job)
    sent(twin)
    tell(twin, worker.id)
    assert unit_of(twin, worker.id) == before
    assert (sent(twin), told(twin, job)) == ([], log)


@pytest.mark.parametrize("tell", [lost, warned])
def test_an_idle_worker_goes_at_once(twin: Twin, ada: User, tell: Callable[..., None]) -> None:
    agent = worker_at_rest(twin, ada)
    sent(twin)
    tell(twin, agent.worker)
    assert unit_of(twin, agent.worker).state is UnitState.DIRTY
    assert slots(twin, "target/linux", "free#warm#") == []
    assert sent(twin) == [("factory", {"unit": agent.worker})]
    advance.advance(twin.on, agent.worker)
    assert unit_of(twin, agent.worker).state is UnitState.GONE


@pytest.mark.parametrize("tell", [lost, warned])
def test_a_worker_whose_agent_cleans_goes_at_once(twin: Twin, ada: User, tell: Callable[..., None]) -> None:
    worker = cleaning(twin, ada)
    sent(twin)
    tell(twin, worker.id)
    assert unit_of(twin, worker.id).state is UnitState.DIRTY
    assert sent(twin) == [("factory", {"unit": worker.id})]


def test_an_interrupted_spot_machine_finishes_its_job_and_gets_no_other(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    warned(twin, agent.worker, 119.5)
    found = unit_of(twin, agent.worker)
    assert found.state is UnitState.READY
    assert found.drain
    assert (found.drain.by, found.drain.reason, found.drain.at_once) == ("hand", f"{WARNS}; 119 s are left", False)
    assert journal(twin, agent.worker)[-1] == f"drained by hand: {WARNS}; 119 s are left"
    assert told(twin, job)[-1] == f"worker {agent.worker}: {WARNS}; 119 s are left"
    assert job_of(twin, job).run.report is None
    agent.finish(job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert unit_of(twin, agent.worker).state is UnitState.GONE


def test_an_event_that_comes_late_leaves_no_time(twin: Twin, ada: User) -> None:
    _, worker = running(twin, ada)
    warned(twin, worker.id, -30)
    assert journal(twin, worker.id)[-1].endswith("; 0 s are left")


def test_a_recommendation_ends_no_job(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    warned(twin, worker.id, None)
    assert told(twin, job)[-1] == f"worker {worker.id}: {WARNS}"
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_a_rebalance_a_warning_and_the_end_are_each_reported_once(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    with dies_after_the_report(twin):
        for _ in range(2):
            warned(twin, worker.id, None, "it may be taken back")
            warned(twin, worker.id)
            lost(twin, worker.id)
    said = [line for line in told(twin, job) if line.startswith(f"worker {worker.id}: ")]
    texts = ["it may be taken back", f"{WARNS}; 120 s are left", ENDS]
    assert said == [f"worker {worker.id}: {text}" for text in texts]
    assert journal(twin, worker.id)[-3:] == [f"drained by hand: {texts[0]}", texts[1], f"recycled by hand: {texts[2]}"]


def test_a_machine_that_is_taken_back_while_it_boots_may_still_do_its_job(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="other")
    twin.run()
    worker = worker_of(twin, job)
    warned(twin, worker.id)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert (job_of(twin, job).end.outcome, job_of(twin, job).attempt) == (Outcome.SUCCEEDED, 1)


def test_a_held_worker_is_not_touched_and_its_journal_says_that_its_machine_ends(twin: Twin, ada: User) -> None:
    """UNIT-3: its attempt goes on until its lease runs out."""
    job, worker = running(twin, ada)
    before = hold(twin, worker)
    for _ in range(2):
        lost(twin, worker.id)
    found = unit_of(twin, worker.id)
    assert (found.state, found.hold, found.drain, found.due) == (before.state, before.hold, None, before.due)
    assert journal(twin, worker.id)[-1] == ENDS
    assert journal(twin, worker.id).count(ENDS) == 1
    assert told(twin, job)[-1] == f"worker {worker.id}: {ENDS}"
    assert job_of(twin, job).run.report is None


@pytest.mark.parametrize("tell", [lost, warned])
def test_a_worker_in_quarantine_is_left_to_its_operator(twin: Twin, ada: User, tell: Callable[..., None]) -> None:
    """UNIT-1: its journal says what became of its machine, once."""
    _, worker = running(twin, ada)
    put(twin, unit_of(twin, worker.id), state=UnitState.QUARANTINED, due=None)
    for _ in range(2):
        tell(twin, worker.id)
        assert unit_of(twin, worker.id).state is UnitState.QUARANTINED
    why = ENDS if tell is lost else WARNS
    assert sum(why in line for line in journal(twin, worker.id)) == 1


def test_what_is_noted_overtakes_nothing(twin: Twin, ada: User) -> None:
    """UNIT-3: the hold is released, or lengthened, in the moment in which its journal is written."""
    _, worker = running(twin, ada)
    hold(twin, worker)
    before_the_next_commit(twin, lambda: hold(twin, worker, 2 * HOUR))
    lost(twin, worker.id)
    held = unit_of(twin, worker.id).hold
    assert held
    assert held.until == twin.world.now() + timedelta(seconds=2 * HOUR)
    assert journal(twin, worker.id)[-1] == ENDS


def test_a_held_worker_whose_job_has_ended_keeps_its_machine_for_as_long_as_there_is_one(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    hold(twin, worker)
    finish(twin, job)
    assert unit_of(twin, worker.id).state is UnitState.DIRTY
    sent(twin)
    lost(twin, worker.id)
    warned(twin, worker.id)
    assert unit_of(twin, worker.id).state is UnitState.DIRTY
    assert journal(twin, worker.id)[-2:] == [ENDS, f"{WARNS}; 120 s are left"]
    assert sent(twin) == []
    release(twin, worker)
    assert unit_of(twin, worker.id).state is UnitState.GONE


def test_a_held_idle_worker_is_drained_when_it_is_taken_back_and_goes_after_its_hold(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    hold(twin, agent.worker)
    warned(twin, agent.worker)
    assert unit_of(twin, agent.worker).state is UnitState.IDLE
    release(twin, agent.worker)
    assert unit_of(twin, agent.worker).state is UnitState.GONE


def test_a_hold_that_has_run_out_protects_nothing(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    hold(twin, worker)
    twin.pass_time(HOUR)
    lost(twin, worker.id)
    assert job_of(twin, job).attempt == 2


def test_a_worker_that_is_granted_meanwhile_is_lost_with_its_new_job(twin: Twin, ada: User) -> None:
    """It was idle when the event came, and has a job when that is written."""
    agent = worker_at_rest(twin, ada)
    job = ""

    def granted() -> None:
        nonlocal job
        job = submit(twin, ada, target="linux")
        twin.run()

    before_the_next_commit(twin, granted)
    lost(twin, agent.worker)
    assert worker_of(twin, job).id == agent.worker
    twin.run()
    assert job_of(twin, job).attempt == 2
    assert unit_of(twin, agent.worker).state is UnitState.GONE


def test_a_late_end_of_a_machine_does_not_end_the_next_attempt(twin: Twin, ada: User) -> None:
    job, first = running(twin, ada)
    lost(twin, first.id)
    twin.run()
    second = worker_of(twin, job)
    hello(twin, job)
    lost(twin, first.id, "it is gone for good")
    assert job_of(twin, job).run.report is None
    assert worker_of(twin, job).id == second.id != first.id


def test_a_worker_that_nobody_knows_is_passed_over(twin: Twin, ada: User) -> None:
    """The sweep destroys strays; a worker may also be forgotten."""
    rows = dict(twin.store.rows)
    lost(twin, "w-none")
    warned(twin, "w-none")
    assert twin.store.rows == rows
    job, worker = running(twin, ada)
    drop(twin, worker)
    lost(twin, worker.id)
    assert job_of(twin, job).run.report is None


def test_a_resource_is_nobodys_machine(twin: Twin, ada: User) -> None:
    running(twin, ada, resources=["db"])
    (database,) = databases(twin)
    lost(twin, database.id)
    assert unit_of(twin, database.id) == database


def test_a_factory_that_cannot_tell_stops_nobody(twin: Twin, ada: User, cloud: Cloud) -> None:
    """Its event is not asked about again: the lease says the same later."""
    job, _ = running(twin, ada)
    cloud.tells = Misconfigured("no leave to list machines")
    cloud_events.handle(twin.on, EVENT)
    assert job_of(twin, job).run.report is None
    assert cloud.heard == [EVENT]


def test_every_factory_is_asked_until_one_knows(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    job, worker = running(twin, ada)
    names = ("after", "broken", "dumb", "knows", "strange")
    clouds: dict[str, Any] = {name: Cloud() for name in names} | {"dumb": ScriptedDriver()}
    clouds["broken"].tells = Misconfigured("bad credentials")
    clouds["knows"].tells = MachineNotice(worker.id, MachineFate.LOST, ENDS)
    toml = "".join(f'[factories.{name}]\ndriver = "hand"\n' for name in ("broken", "dumb", "strange", "knows", "after"))
    apply.apply(twin.on, "admin", SITE + toml, "site.toml")
    monkeypatch.setattr(twin.drivers, "factory", lambda driver, settings, name="": clouds.get(name, twin.drivers.hand))
    cloud_events.handle(twin.on, EVENT)
    assert [name for name in names if getattr(clouds[name], "heard", [])] == ["broken", "knows", "strange"]
    assert job_of(twin, job).history.attempts[0].reason == f"worker {worker.id} was recycled by knows: {ENDS}"


def test_a_worker_that_was_drained_by_an_operator_is_recycled_when_its_machine_ends(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    maintenance.drain(twin.on, ROOT, UnitKind.WORKER, worker.id, "to be replaced")
    warned(twin, worker.id)
    drained = unit_of(twin, worker.id).drain
    assert drained
    assert (drained.by, journal(twin, worker.id)[-1]) == ("root", f"{WARNS}; 120 s are left")
    lost(twin, worker.id)
    run_to_end(twin, job)
    assert unit_of(twin, worker.id).state is UnitState.GONE
