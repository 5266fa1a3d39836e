"""A job's worker and resources are held together when its script has failed, for somebody to look at. [UNIT-3]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.holds import describe
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.replies import ResultReceived
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, holds, jobs
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.site import apply
from penstock.usecases.units import maintenance
from penstock.usecases.workers import agents
from tests.usecases.exact import drop
from tests.usecases.holds import HOUR, ROOT, release, running, wait
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import TOKEN, dies_after_the_report, finish, hello, job_of, submit, sweep, told
from tests.usecases.warm import SITE, databases, slots, unit_of

BEN = User(name="ben", created=START)


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE + '[limits]\nhold = "30m"\n', "site.toml")
    made.run()
    return made


def failing(twin: Twin, ada: User, **ask: Any) -> tuple[str, str, str]:
    """A job that asked to be held, and has failed: its id, its worker's, and its database's."""
    job, worker = running(twin, ada, resources=["db"], **({"hold_on_failure": "20m"} | ask))
    finish(twin, job, Result.FAILED)
    return job, worker.id, databases(twin)[0].id


def states(twin: Twin, *units: str) -> list[UnitState]:
    return [unit_of(twin, unit).state for unit in units]


def test_both_are_held_as_they_are_and_go_home_when_the_time_is_over(twin: Twin, ada: User) -> None:
    job, worker, database = failing(twin, ada)
    wait(twin, 1100)
    assert job_of(twin, job).end.outcome is Outcome.FAILED
    assert states(twin, worker, database) == [UnitState.DIRTY, UnitState.CLEANING]
    assert (worker in twin.drivers.hand.made, twin.drivers.basin.cleaned) == (True, [])
    assert [slot.unit for slot in slots(twin, "resource/db", "held#")] == [database]
    wait(twin, 700)
    assert states(twin, worker, database) == [UnitState.GONE, UnitState.IDLE]


def test_the_agent_of_a_held_worker_leaves_the_machine_unchanged(twin: Twin, ada: User) -> None:
    """The report and the hold are one write: nothing of the answer depends on who comes first."""
    job = submit(twin, ada, target="other", hold_on_failure=600)
    twin.run()
    caller = hello(twin, job)
    answer = agents.report_finished(twin.on, caller, Result.FAILED, "exit 1", 1)
    assert answer == ResultReceived(600)


@pytest.mark.parametrize("result", [Result.SUCCEEDED, Result.CANCELLED])
def test_nothing_is_held_when_it_did_not_fail(twin: Twin, ada: User, result: Result) -> None:
    job, worker = running(twin, ada, resources=["db"], hold_on_failure=600)
    finish(twin, job, result)
    sweep(twin)
    assert states(twin, worker.id) == [UnitState.GONE]
    assert holds.held_units(twin.on, job_of(twin, job)) is None


def test_an_attempt_that_is_followed_by_another_is_not_held(twin: Twin, ada: User) -> None:
    script = '#!/bin/sh\n#: name = "a"\n#: variety = "basic"\n#: on_failure = "retry"\n#: hold_on_failure = "10m"\n'
    job = jobs_submit.submit(twin.on, ada, SubmitJob(script, target="other", retries=1), None)
    twin.run()
    worker = hello(twin, job).unit
    finish(twin, job, Result.FAILED)
    sweep(twin)
    assert (job_of(twin, job).attempt, states(twin, worker.id)) == (2, [UnitState.GONE])
    caller = hello(twin, job)
    finish(twin, job, Result.FAILED)
    assert caller.unit.id != worker.id
    assert states(twin, caller.unit.id) == [UnitState.DIRTY]


def test_it_may_be_asked_for_while_the_script_runs_and_whatever_it_comes_to(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    holds.request(twin.on, ada, job, "what does it look like then?", None, whatever=True)
    finish(twin, job)
    kept = unit_of(twin, worker.id)
    assert kept.hold is not None
    assert (kept.state, (kept.hold.until - twin.world.now()).total_seconds()) == (UnitState.DIRTY, 1800)
    assert any("are to be held when its script has ended, by ada: what does it" in line for line in told(twin, job))


def test_the_log_says_when_it_is_held_only_if_it_fails(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    holds.request(twin.on, ada, job, "to see why", 600, whatever=False)
    assert any("are to be held if its script fails, by ada: to see why" in line for line in told(twin, job))
    finish(twin, job)
    assert states(twin, worker.id) == [UnitState.GONE]


def test_what_is_held_is_told_with_its_cost(twin: Twin, ada: User) -> None:
    job, worker, database = failing(twin, ada)
    wait(twin, 300)
    found = holds.held_units(twin.on, job_of(twin, job))
    assert found is not None
    assert {unit.id for unit in found.units} == {worker, database}
    assert (found.unit_seconds, (found.until - twin.world.now()).total_seconds()) == (600, 900)
    assert f"worker {worker}" in describe(found)


def test_its_owner_gives_it_back_before_its_time(twin: Twin, ada: User) -> None:
    job, worker, database = failing(twin, ada)
    holds.release(twin.on, ada, job)
    assert told(twin, job)[-1] == "nothing is held for its sake any more, by ada"
    twin.run()
    sweep(twin)
    assert states(twin, worker, database) == [UnitState.GONE, UnitState.IDLE]
    assert holds.held_units(twin.on, job_of(twin, job)) is None
    holds.release(twin.on, ada, job)  # a second time changes nothing


def test_who_lets_the_first_job_go_lets_nothing_go_that_the_next_one_has(twin: Twin, ada: User) -> None:
    """The same database is held for both, one after the other, by the same user and with the same reason."""
    first, _, database = failing(twin, ada)
    holds.release(twin.on, ada, first)
    twin.run()
    second, worker, again = failing(twin, ada)
    assert again == database
    assert holds.held_units(twin.on, job_of(twin, first)) is None
    holds.release(twin.on, ada, first)
    found = holds.held_units(twin.on, job_of(twin, second))
    assert found is not None
    assert {unit.id for unit in found.units} == {worker, database}


def test_a_job_that_has_nothing_yet_or_whose_units_are_forgotten_holds_nothing(twin: Twin, ada: User) -> None:
    job, worker, database = failing(twin, ada)
    waits = submit(twin, ada, target="other", resources={"a": {"type": "db"}, "b": {"type": "db"}}, hold_on_failure=60)
    twin.run()
    assert holds.held_units(twin.on, job_of(twin, waits)) is None
    holds.release(twin.on, ada, waits)
    for unit in (worker, database):
        drop(twin, unit_of(twin, unit))
    assert holds.held_units(twin.on, job_of(twin, job)) is None
    holds.release(twin.on, ada, job)


def test_what_an_operator_holds_is_not_held_for_a_job_that_did_not_ask(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    maintenance.hold(twin.on, ROOT, worker.is_a, worker.id, "mine", HOUR)
    assert holds.held_units(twin.on, job_of(twin, job)) is None


def test_an_operators_hold_that_comes_with_the_report_stands(twin: Twin, ada: User) -> None:
    """UNIT-3: of the two one is first, and the other sees it."""
    job, worker = running(twin, ada, hold_on_failure=600)
    before_the_next_commit(twin, lambda: maintenance.hold(twin.on, ROOT, worker.is_a, worker.id, "mine", HOUR))
    finish(twin, job, Result.FAILED)
    kept = unit_of(twin, worker.id)
    assert kept.hold is not None
    assert (kept.hold.by, kept.hold.reason) == ("root", "mine")


def test_a_script_that_ends_while_it_is_asked_for_or_taken_back_has_ended(twin: Twin, ada: User) -> None:
    """JOB-1: what was decided on a job that still ran is decided anew, and settles nothing a second time."""
    job, worker = running(twin, ada)
    before_the_next_commit(twin, lambda: finish(twin, job, Result.FAILED))
    with pytest.raises(Refused) as refused:
        holds.request(twin.on, ada, job, "late", 60, whatever=False)
    assert refused.value.code == "too-late-to-hold"
    assert (job_of(twin, job).state, job_of(twin, job).keep) == (State.SETTLED, None)
    job, worker = running(twin, ada, hold_on_failure=600)
    before_the_next_commit(twin, lambda: finish(twin, job, Result.FAILED))
    holds.release(twin.on, ada, job)
    twin.run()
    assert job_of(twin, job).state is State.SETTLED
    assert states(twin, worker.id) == [UnitState.GONE], "it was held by then, and is let go"


def test_a_wish_is_taken_back_before_the_script_ends(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada, hold_on_failure=600)
    holds.release(twin.on, ada, job)
    finish(twin, job, Result.FAILED)
    sweep(twin)
    assert states(twin, worker.id) == [UnitState.GONE]


def test_an_operators_hold_stays_when_the_job_is_released(twin: Twin, ada: User) -> None:
    """UNIT-3: it was there first, and is not its owner's to take off."""
    job, worker = running(twin, ada, resources=["db"], hold_on_failure=600)
    maintenance.hold(twin.on, ROOT, worker.is_a, worker.id, "mine", HOUR)
    finish(twin, job, Result.FAILED)
    holds.release(twin.on, ada, job)
    twin.run()
    kept = unit_of(twin, worker.id)
    assert kept.hold is not None
    assert (kept.hold.by, kept.hold.reason) == ("root", "mine")
    release(twin, worker)
    assert states(twin, worker.id) == [UnitState.GONE]


def test_a_broken_machine_is_not_held_for_its_job(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="other", hold_on_failure=600)
    twin.run()
    caller = hello(twin, job)
    assert agents.report_finished(twin.on, caller, Result.FAILED, "exit 1", 1, "its disk is full") == ResultReceived()
    twin.run()
    sweep(twin)
    assert states(twin, caller.unit.id) == [UnitState.GONE]


def test_a_resource_that_is_recycled_is_not_held(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada, resources=["db"], hold_on_failure=600)
    (database,) = databases(twin)
    maintenance.recycle(twin.on, ROOT, database.is_a, database.id, "away with it")
    twin.run()
    sweep(twin)
    assert unit_of(twin, worker.id).hold is None
    assert job_of(twin, job).state is not State.RUNNING


def test_the_second_report_holds_nothing_anew(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="other", hold_on_failure=600)
    twin.run()
    caller = hello(twin, job)
    with dies_after_the_report(twin):
        agents.report_finished(twin.on, caller, Result.FAILED, "exit 1", 1)
        twin.world.time = twin.world.time.replace(microsecond=1)
        until = unit_of(twin, caller.unit.id).hold
        agents.report_finished(twin.on, caller, Result.FAILED, "exit 1", 1)
    assert unit_of(twin, caller.unit.id).hold == until
    maintenance.release(twin.on, ROOT, caller.unit.is_a, caller.unit.id)
    assert agents.report_finished(twin.on, caller, Result.FAILED, "exit 1", 1) == ResultReceived(), (
        "also when it was let go meanwhile"
    )
    assert unit_of(twin, caller.unit.id).hold is None


def test_users_hold_no_longer_than_the_site_says_and_operators_as_long_as_any_hold(twin: Twin, ada: User) -> None:
    with pytest.raises(Refused) as refused:
        submit(twin, ada, target="other", hold_on_failure=1801)
    assert (refused.value.status, refused.value.code) == (422, "hold-too-long")
    assert "at most 1800 s" in str(refused.value)
    job, _ = running(twin, ada)
    with pytest.raises(Refused, match=r"limits\.hold"):
        holds.request(twin.on, ada, job, "long", 1801, whatever=False)
    holds.request(twin.on, ROOT, job, "long", 1801, whatever=False)
    submit(twin, ROOT, target="other", hold_on_failure=7 * 24 * 3600)


def test_a_site_may_let_users_hold_nothing(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "admin", SITE + "[limits]\nhold = 0\n", "site.toml")
    job, _ = running(twin, ada)
    with pytest.raises(Refused, match="holds nothing for users"):
        holds.request(twin.on, ada, job, "please", None, whatever=False)


def test_what_comes_too_late_or_from_somebody_else_is_refused(twin: Twin, ada: User) -> None:
    job, _ = running(twin, ada)
    with pytest.raises(Refused) as refused:
        holds.request(twin.on, BEN, job, "curious", 60, whatever=True)
    assert refused.value.status == 404
    with pytest.raises(Refused) as refused:
        holds.release(twin.on, ada, job)
    assert (refused.value.status, refused.value.code) == (409, "not-held")
    finish(twin, job, Result.FAILED)
    with pytest.raises(Refused) as refused:
        holds.request(twin.on, ada, job, "late", 60, whatever=True)
    assert (refused.value.status, refused.value.code) == (409, "too-late-to-hold")
    waiting, (reported, _) = submit(twin, ada, target="other"), running(twin, ada)
    cancel.cancel(twin.on, ada, waiting)
    twin.run()
    agents.report_finished(twin.on, agents.authenticate(twin.on, reported, TOKEN), Result.FAILED, "exit 1", 1)
    for ended in (waiting, reported):  # settled without a report, and reported but not settled yet
        with pytest.raises(Refused, match="has ended, and what it had is being put back"):
            holds.request(twin.on, ada, ended, "late", 60, whatever=True)
    with pytest.raises(Refused, match="reason must say why"):
        holds.request(twin.on, ada, job, " ", 60, whatever=True)
    assert jobs.find(twin.on, ada, job).keep is None
