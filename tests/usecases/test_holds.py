"""What operators do with workers and resources: a hold beats whatever happens by itself, and expires. [UNIT-3]"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.pools.pools import Claim, collection
from penstock.domain.replies import ResultReceived
from penstock.domain.units.units import UnitKind, UnitState, format_time
from penstock.domain.users.users import User
from penstock.kernel.errors import RateLimited, Refused
from penstock.kernel.rows import Change, Key, Replace
from penstock.ports import NotYet
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.site import apply
from penstock.usecases.units import drivers, maintenance, retire
from penstock.usecases.units import release as units_release
from penstock.usecases.workers import agents
from tests.usecases.holds import HOUR, ROOT, hold, release, running, wait
from tests.usecases.steps import dies_after_the_report, finish, hello, job_of, submit, sweep, told, worker_of
from tests.usecases.warm import SITE, Agent, databases, slots, unit_of, worker_at_rest

Do = Callable[[Twin, User], None]


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def journal(twin: Twin, unit: str) -> list[str]:
    return [entry.what for _, entry in unit_of(twin, unit).journal.after(0)]


def ends_well(twin: Twin, job: str) -> None:
    finish(twin, job)


def is_cancelled(twin: Twin, job: str) -> None:
    cancel.cancel(twin.on, User(name="ada", created=START), job)
    finish(twin, job, Result.CANCELLED)


def falls_silent(twin: Twin, job: str) -> None:
    sweep(twin, 121)


@pytest.mark.parametrize("end", [ends_well, is_cancelled, falls_silent])
def test_a_held_worker_stays_whatever_becomes_of_its_job(twin: Twin, ada: User, end: Callable[..., None]) -> None:
    """UNIT-3: the attempt ends as usual, its worker stays, with its slots, until the hold ends."""
    job, worker = running(twin, ada)
    hold(twin, worker)
    end(twin, job)
    wait(twin, 3000)
    kept = unit_of(twin, worker.id)
    assert (kept.state, kept.due, kept.cleaning.begun) == (UnitState.DIRTY, kept.hold and kept.hold.until, None)
    assert worker.id in twin.drivers.hand.made
    assert [slot.unit for slot in slots(twin, "target/other", "held#")] == [worker.id]
    wait(twin, 700)
    assert unit_of(twin, worker.id).state is UnitState.GONE
    assert worker.id not in twin.drivers.hand.made
    assert worker.id not in [slot.unit for slot in slots(twin, "target/other", "held#")]


def test_the_next_attempt_waits_until_the_held_worker_is_gone(twin: Twin, ada: User) -> None:
    """JOB-2: a worker that is there may run its script, held or not. UNIT-3: and held, it is there."""
    job, worker = running(twin, ada)
    hold(twin, worker)
    falls_silent(twin, job)
    wait(twin, 1000)
    assert (job_of(twin, job).state, job_of(twin, job).attempt) == (State.QUEUED, 2)
    release(twin, worker)
    assert unit_of(twin, worker.id).state is UnitState.GONE
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_the_resources_of_its_attempt_stay_with_a_held_worker(twin: Twin, ada: User) -> None:
    """UNIT-3: what is put back after the worker is as it was too, for there is nothing to look at without it."""
    job, worker = running(twin, ada, resources=["db"])
    hold(twin, worker)
    finish(twin, job)
    wait(twin, 3000)
    (database,) = databases(twin)
    assert database.state is UnitState.CLEANING
    assert twin.drivers.basin.cleaned == []
    release(twin, worker)
    sweep(twin)
    assert unit_of(twin, worker.id).state is UnitState.GONE
    assert (databases(twin)[0].state, twin.drivers.basin.cleaned) == (UnitState.IDLE, [database.id])


def test_a_lost_message_after_a_release_keeps_resources_no_longer_than_the_sweep(twin: Twin, ada: User) -> None:
    """UNIT-1, UNIT-3: not until the hold would have ended, days later."""
    job, worker = running(twin, ada, resources=["db"])
    hold(twin, worker, 6 * 24 * HOUR)
    finish(twin, job)
    wait(twin, HOUR)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(units_release, "slot_freed", lambda *_: None)
        assert release(twin, worker).state is UnitState.GONE
    assert twin.drivers.basin.cleaned == []
    wait(twin, 1200)
    assert twin.drivers.basin.cleaned == [databases(twin)[0].id]


def test_a_held_resource_is_not_cleaned_and_its_worker_goes_home(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada, resources=["db"])
    (database,) = databases(twin)
    hold(twin, database)
    finish(twin, job)
    wait(twin, 3000)
    assert unit_of(twin, worker.id).state is UnitState.GONE
    assert (databases(twin)[0].state, twin.drivers.basin.cleaned) == (UnitState.CLEANING, [])
    wait(twin, 700)
    assert (databases(twin)[0].state, twin.drivers.basin.cleaned) == (UnitState.IDLE, [database.id])


def test_a_held_resource_that_is_not_kept_is_not_destroyed(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "admin", SITE.replace("warm = { max = 2 }", ""), "site.toml")
    job, _ = running(twin, ada, resources=["db"])
    (database,) = databases(twin)
    hold(twin, database)
    finish(twin, job)
    wait(twin, 3000)
    assert (unit_of(twin, database.id).state, list(twin.drivers.basin.made)) == (UnitState.DIRTY, [database.id])
    assert release(twin, database).state is UnitState.GONE


def another_job(twin: Twin, ada: User) -> None:
    submit(twin, ada, target="linux")


def jobs_that_need_room(twin: Twin, ada: User) -> None:
    for _ in range(2):
        submit(twin, ada, target="other")


def time(twin: Twin, ada: User) -> None:
    wait(twin, 3000)


def a_smaller_site(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "admin", SITE.replace("max = 1", "max = 0"), "site.toml")


def no_limit(twin: Twin, ada: User) -> None:
    apply.resize(twin.on, "target/linux", 0)


def another_factory(twin: Twin, ada: User) -> None:
    moved = SITE.replace('[targets.linux]\nfactory = "hand"', '[targets.linux]\nfactory = "next"')
    apply.apply(twin.on, "admin", moved + '[factories.next]\ndriver = "hand"\n', "site.toml")
    twin.run()
    submit(twin, ada, target="linux")


def no_such_target(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "admin", '[factories.hand]\ndriver = "hand"\n', "site.toml")


AUTOMATIC: Sequence[Do] = (
    another_job, jobs_that_need_room, time, a_smaller_site, no_limit, another_factory, no_such_target,
)  # fmt: skip


@pytest.mark.parametrize("do", AUTOMATIC, ids=lambda do: do.__name__)
def test_nothing_touches_an_idle_worker_that_is_held(twin: Twin, ada: User, do: Do) -> None:
    """UNIT-3: not lent, not evicted, not retired for being idle, silent, old or not what the site says."""
    agent = worker_at_rest(twin, ada)
    before = hold(twin, agent.worker)
    do(twin, ada)
    twin.run()
    sweep(twin)
    after = unit_of(twin, agent.worker)
    assert (after.state, after.lease.leases, after.hold, after.cleaning.begun) == (UnitState.IDLE, 1, before.hold, None)
    assert agent.worker in twin.drivers.hand.made
    assert slots(twin, "target/linux", "free#warm#") == []
    assert agent.worker in [slot.unit for slot in slots(twin, "target/linux", "held#")]


@pytest.mark.parametrize("do", AUTOMATIC, ids=lambda do: do.__name__)
def test_without_the_hold_everything_does(twin: Twin, ada: User, do: Do) -> None:
    """The other side of it: each of these does something to an idle worker, or the test above would ask nothing."""
    agent = worker_at_rest(twin, ada)
    do(twin, ada)
    twin.run()
    sweep(twin)
    after = unit_of(twin, agent.worker)
    assert (after.state, after.lease.leases) != (UnitState.IDLE, 1) or do is no_such_target


def test_an_idle_worker_that_is_released_is_lent_again(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    hold(twin, agent.worker)
    first, second = (submit(twin, ada, target="linux") for _ in range(2))
    twin.run()
    assert [claim.job for claim in twin.store.find(collection("target/linux"), "wait#", Claim)] == [second]
    released = release(twin, agent.worker)
    assert (released.state, released.lease.leases, released.lease.job) == (UnitState.CREATING, 2, second)
    assert agent.hello().job == second
    assert worker_of(twin, first).id != agent.worker


def test_an_idle_worker_whose_hold_ran_out_is_lent_again(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    hold(twin, agent.worker, 100)
    sweep(twin, 101)
    assert [slot.unit for slot in slots(twin, "target/linux", "free#warm#")] == [agent.worker]
    assert slots(twin, "quota/vcpus", "held#") == []
    assert agent.hello().idle
    assert "the hold of root ran out" in journal(twin, agent.worker)


def test_an_idle_worker_that_no_longer_fits_is_destroyed_when_it_is_released(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    hold(twin, agent.worker)
    no_limit(twin, ada)
    twin.run()
    assert release(twin, agent.worker).state is UnitState.GONE
    assert len(slots(twin, "target/linux", "off#")) == 2


def test_a_worker_that_was_idle_for_too_long_while_it_was_held_is_retired_after_it(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    hold(twin, agent.worker, 2000)
    wait(twin, 1900)
    assert unit_of(twin, agent.worker).state is UnitState.IDLE
    wait(twin, 200)
    sweep(twin)
    assert unit_of(twin, agent.worker).state is UnitState.GONE


def test_the_agent_of_a_held_worker_leaves_its_machine_as_it_is(twin: Twin, ada: User) -> None:
    """UNIT-3: it neither cleans nor goes home; it asks, and cleans when it is told that it is not held any more."""
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    hold(twin, agent.worker)
    caller = agents.authenticate(twin.on, job, agent.token(1))
    assert agents.heartbeat(twin.on, caller).held_seconds == HOUR
    said = agents.report_finished(twin.on, caller, Result.SUCCEEDED, "the script ended", 0)
    assert said.held_seconds == HOUR
    ask = Hello(agent.worker, "", agent.token(1), "host", agent.token(1))
    assert agents.hello(twin.on, ask).held_seconds == HOUR
    twin.run()
    assert agents.hello(twin.on, ask).held_seconds == HOUR
    wait(twin, 1000)
    assert unit_of(twin, agent.worker).state is UnitState.CLEANING
    assert release(twin, agent.worker).state is UnitState.CLEANING
    said = agents.hello(twin.on, ask)
    assert said.idle
    assert said.held_seconds is None
    assert unit_of(twin, agent.worker).state is UnitState.CLEANING, "it has not said that it is clean"
    agent.turn = 2
    assert agent.hello().idle
    assert unit_of(twin, agent.worker).state is UnitState.IDLE


def test_an_agent_that_lost_its_job_learns_that_its_machine_is_held(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    hold(twin, worker)
    falls_silent(twin, job)
    with pytest.raises(Refused, match="not of the worker of that job"):
        agents.authenticate(twin.on, job, "t" * 43)
    ask = Hello(worker.id, "", "t" * 43, "host", "t" * 43)
    assert agents.hello(twin.on, ask).held_seconds == HOUR - 121
    release(twin, worker)
    with pytest.raises(Refused, match="no longer wanted"):
        agents.hello(twin.on, ask)


def test_a_machine_that_boots_too_late_stays_if_it_is_held(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="other")
    twin.run()
    worker = worker_of(twin, job)
    hold(twin, worker)
    for _ in range(3):
        sweep(twin, 700)
    key = drivers.bootstrap_key(twin.on.signing_key(), worker.id)
    assert job_of(twin, job).attempt == 2
    assert agents.hello(twin.on, Hello(worker.id, key, "t" * 43)).held_seconds
    with pytest.raises(Refused, match="not the key"):
        agents.hello(twin.on, Hello(worker.id, "0" * 64, "t" * 43))


def test_the_key_of_a_held_worker_is_worth_nothing_after_its_job_but_to_its_agent(twin: Twin, ada: User) -> None:
    """SEC-2: a job may have read the key. UNIT-3: an agent whose hello was never answered must hear of the hold."""
    job, worker = running(twin, ada)
    hold(twin, worker)
    falls_silent(twin, job)
    key = drivers.bootstrap_key(twin.on.signing_key(), worker.id)
    assert agents.hello(twin.on, Hello(worker.id, key, "t" * 43)).held_seconds
    with pytest.raises(Refused, match="not the key"):
        agents.hello(twin.on, Hello(worker.id, key, "f" * 43))


def test_a_hold_that_comes_after_the_agent_was_told_to_go_is_refused(twin: Twin, ada: User) -> None:
    """UNIT-3: of the agent's report and a hold, one comes first."""
    job, worker = running(twin, ada)
    caller = agents.authenticate(twin.on, job, "t" * 43)
    with dies_after_the_report(twin):
        assert agents.report_finished(twin.on, caller, Result.SUCCEEDED, "the script ended", 0) == ResultReceived()
    with pytest.raises(Refused, match="its machine is on its way out"):
        hold(twin, worker)


def test_a_hold_of_a_worker_that_is_being_cleaned_is_refused(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    agent.finish(job)
    with pytest.raises(Refused, match="is being cleaned since") as refused:
        hold(twin, agent.worker)
    assert (refused.value.status, refused.value.code) == (409, "too-late-to-hold")
    agent.hello()
    assert hold(twin, agent.worker).state is UnitState.IDLE


def test_what_is_being_destroyed_cannot_be_held(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    twin.drivers.hand.destroy = lambda unit, now: NotYet(5, "it is going down")  # type: ignore[method-assign]
    finish(twin, job)
    with pytest.raises(Refused, match=r"is being destroyed since 2026-01-01 .*Z \(it is going down\)"):
        hold(twin, worker)


def test_a_resource_whose_turn_has_not_come_can_still_be_held(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "admin", SITE.replace("warm = { max = 2 }", ""), "site.toml")
    job, _ = running(twin, ada, resources=["db"])
    destroy = twin.drivers.hand.destroy
    twin.drivers.hand.destroy = lambda unit, now: NotYet(5, "it is going down")  # type: ignore[method-assign]
    finish(twin, job)
    (database,) = databases(twin)
    assert (database.state, database.cleaning.begun) == (UnitState.DIRTY, None)
    hold(twin, database)
    twin.drivers.hand.destroy = destroy  # type: ignore[method-assign]
    wait(twin, 3000)
    assert list(twin.drivers.basin.made) == [database.id]
    assert release(twin, database).state is UnitState.GONE


class Between:
    """Lets something happen right before the n-th commit that writes a unit."""

    def __init__(self, twin: Twin, unit: str, number: int, do: Callable[[], Any]) -> None:
        self.commit, self.left, self.happened = twin.store.commit, number, False
        self.unit, self.do, self.twin = unit, do, twin
        twin.store.commit = self  # type: ignore[assignment,method-assign]

    def __call__(self, changes: Sequence[Change]) -> bool:
        writes = any(isinstance(one, Replace) and one.was.key == Key(f"unit#{self.unit}", "unit") for one in changes)
        if writes and not self.left:
            self.twin.store.commit = self.commit  # type: ignore[method-assign]
            self.happened = True
            self.do()
        self.left -= writes
        return self.commit(changes)


def destroyed(twin: Twin, unit: str) -> bool:
    return unit not in twin.drivers.hand.made and unit not in twin.drivers.basin.made


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("kind", UnitKind)
def test_a_hold_and_the_end_of_a_unit_one_comes_first(twin: Twin, ada: User, kind: UnitKind, number: int) -> None:
    """UNIT-3: before whichever commit a hold comes, it is refused, or the unit is neither cleaned nor destroyed."""
    apply.apply(twin.on, "admin", SITE.replace("warm = { max = 2 }", ""), "site.toml")
    job, worker = running(twin, ada, resources=["db"])
    unit = worker if kind is UnitKind.WORKER else databases(twin)[0]
    answers: list[str] = []

    def come_between() -> None:
        try:
            maintenance.hold(twin.on, ROOT, kind, unit.id, "looking", HOUR)
            answers.append("held")
        except Refused as refused:
            answers.append(refused.code)

    between = Between(twin, unit.id, number, come_between)
    finish(twin, job)
    sweep(twin)
    assert (answers != []) is between.happened
    if answers == ["held"]:
        assert not destroyed(twin, unit.id)
        assert unit_of(twin, unit.id).state is UnitState.DIRTY
        wait(twin, HOUR)
        sweep(twin)
    assert answers in ([], ["held"], ["too-late-to-hold"])
    assert destroyed(twin, unit.id)


@pytest.mark.parametrize("do", [another_job, jobs_that_need_room, a_smaller_site, time], ids=lambda do: do.__name__)
def test_a_hold_between_the_look_and_the_commit(twin: Twin, ada: User, do: Do) -> None:
    """UNIT-3: the check is in the commit that lends, evicts or retires, not in a look before it."""
    agent = worker_at_rest(twin, ada)
    between = Between(
        twin, agent.worker, 0, lambda: maintenance.hold(twin.on, ROOT, UnitKind.WORKER, agent.worker, "mine", HOUR)
    )
    do(twin, ada)
    twin.run()
    after = unit_of(twin, agent.worker)
    assert between.happened
    assert (after.state, after.lease.leases) == (UnitState.IDLE, 1)
    assert not destroyed(twin, agent.worker)
    assert agent.worker in [slot.unit for slot in slots(twin, "target/linux", "held#")]


def test_a_held_unit_cannot_be_retired_by_anybody(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    hold(twin, agent.worker)
    assert not retire.retire(twin.on, agent.worker, "somebody's mistake")


def test_a_new_hold_takes_the_place_of_the_last(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    hold(twin, worker, 100)
    hold(twin, worker, 5000, "still looking")
    finish(twin, job)
    wait(twin, 4000)
    assert not destroyed(twin, worker.id)
    hold(twin, worker, 10)
    sweep(twin)
    assert destroyed(twin, worker.id)


def test_the_sweep_does_not_take_a_held_unit_for_a_stray(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    hold(twin, worker)
    finish(twin, job)
    assert usecases_sweep.sweep(twin.on).strays == 0
    assert not destroyed(twin, worker.id)


@pytest.mark.parametrize("kept", [True, False])
def test_a_drained_worker_ends_its_job_and_is_destroyed(twin: Twin, ada: User, kept: bool) -> None:
    job = submit(twin, ada, target="linux" if kept else "other")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    shown = maintenance.drain(twin.on, ROOT, UnitKind.WORKER, agent.worker, "its disk is old")
    assert str(shown.drain) == "drained by root: its disk is old"
    assert job_of(twin, job).state is State.RUNNING
    agent.finish(job)
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert destroyed(twin, agent.worker)


def test_an_idle_worker_that_is_drained_is_destroyed_now(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    maintenance.drain(twin.on, ROOT, UnitKind.WORKER, agent.worker, "")
    twin.run()
    assert destroyed(twin, agent.worker)
    assert len(slots(twin, "target/linux", "free#cold#")) == 2
    with pytest.raises(Refused, match="is gone since"):
        maintenance.drain(twin.on, ROOT, UnitKind.WORKER, agent.worker, "")


def test_a_held_worker_that_is_drained_is_destroyed_after_its_hold(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    hold(twin, agent.worker)
    maintenance.drain(twin.on, ROOT, UnitKind.WORKER, agent.worker, "")
    twin.run()
    assert unit_of(twin, agent.worker).state is UnitState.IDLE
    assert release(twin, agent.worker).state is UnitState.GONE


def test_a_resource_that_is_drained_while_it_is_cleaned_is_destroyed(twin: Twin, ada: User) -> None:
    job, _ = running(twin, ada, resources=["db"])
    twin.drivers.basin.says = [RateLimited("slowly")]
    finish(twin, job)
    (database,) = databases(twin)
    assert database.state is UnitState.CLEANING
    maintenance.drain(twin.on, ROOT, UnitKind.RESOURCE, database.id, "")
    wait(twin, 600, 61)
    assert unit_of(twin, database.id).state is UnitState.GONE


def test_a_worker_that_is_recycled_costs_its_job_an_attempt(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    maintenance.recycle(twin.on, ROOT, UnitKind.WORKER, worker.id, "it swaps")
    twin.run()
    assert job_of(twin, job).history.attempts[0].reason == f"worker {worker.id} was recycled by root: it swaps"
    assert destroyed(twin, worker.id)
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert any("was recycled by root: it swaps" in line for line in told(twin, job))


@pytest.mark.parametrize("is_a", UnitKind)
def test_a_unit_that_is_recycled_before_the_script_begins_costs_an_attempt(
    twin: Twin, ada: User, is_a: UnitKind
) -> None:
    job = submit(twin, ada, target="other", resources=["db"])
    twin.run()
    unit = worker_of(twin, job) if is_a is UnitKind.WORKER else databases(twin)[0]
    maintenance.recycle(twin.on, ROOT, is_a, unit.id, "")
    twin.run()
    assert job_of(twin, job).history.attempts[0].reason == f"{is_a} {unit.id} was recycled by root"
    assert destroyed(twin, unit.id)
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_a_recycling_whose_handler_died_goes_on_by_the_sweep(twin: Twin, ada: User) -> None:
    """The wish is in the row, which stays due, heartbeats or not."""
    job, worker = running(twin, ada)

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    twin.on.store.commit, commit = Dying(twin, dies), twin.store.commit  # type: ignore[misc]
    with pytest.raises(KeyboardInterrupt):
        maintenance.recycle(twin.on, ROOT, UnitKind.WORKER, worker.id, "")
    twin.on.store.commit = commit  # type: ignore[method-assign]
    caller = agents.authenticate(twin.on, job, "t" * 43)
    twin.pass_time(30)
    agents.heartbeat(twin.on, caller)
    sweep(twin, 30)
    assert job_of(twin, job).attempt == 2
    assert destroyed(twin, worker.id)


class Dying:
    """Makes one commit; the next never comes."""

    def __init__(self, twin: Twin, die: Callable[..., None]) -> None:
        self.commit, self.die, self.made = twin.store.commit, die, 0

    def __call__(self, changes: Sequence[Change]) -> bool:
        if self.made:
            self.die()
        self.made += 1
        return self.commit(changes)


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_is_idle_or_being_cleaned_is_recycled_at_once(twin: Twin, ada: User, is_kept: bool) -> None:
    agent = worker_at_rest(twin, ada)
    if not is_kept:
        job = submit(twin, ada, target="linux")
        twin.run()
        agent.hello()
        agent.finish(job)
        assert unit_of(twin, agent.worker).state is UnitState.CLEANING
    maintenance.recycle(twin.on, ROOT, UnitKind.WORKER, agent.worker, "")
    twin.run()
    assert destroyed(twin, agent.worker)


def test_a_held_worker_is_not_recycled(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    hold(twin, worker)
    with pytest.raises(Refused, match=r"held by root until .*: looking; release it first") as refused:
        maintenance.recycle(twin.on, ROOT, UnitKind.WORKER, worker.id, "")
    assert refused.value.status == 409
    assert job_of(twin, job).state is State.RUNNING


def test_what_is_recycled_cannot_be_held(twin: Twin, ada: User) -> None:
    _, worker = running(twin, ada)
    with dies_after_the_report(twin):
        maintenance.recycle(twin.on, ROOT, UnitKind.WORKER, worker.id, "")
    with pytest.raises(Refused, match="recycled by root: it is too late"):
        hold(twin, worker)


def test_its_journal_tells_a_units_whole_life(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [RateLimited("slowly")]
    job = submit(twin, ada, target="other")
    twin.run()
    sweep(twin)
    hello(twin, job)
    worker = worker_of(twin, job)
    hold(twin, worker)
    finish(twin, job)
    release(twin, worker)
    assert journal(twin, worker.id) == [
        f"ordered from hand for job {job}, attempt 1",
        "RateLimited: slowly",
        "made",
        "its agent said hello",
        "held by root until 2026-01-01 01:01:01Z: looking",
        "its lease ended; it is to be destroyed",
        "released by root",
        f"destroyed (hand: {worker.id})",
    ]
    assert unit_of(twin, worker.id).expiry == unit_of(twin, worker.id).since + timedelta(days=30)


def test_the_log_of_the_job_says_what_operators_did(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    hold(twin, worker)
    maintenance.release(twin.on, ROOT, UnitKind.WORKER, worker.id)
    maintenance.drain(twin.on, ROOT, UnitKind.WORKER, worker.id, "")
    lines = [line for line in told(twin, job) if worker.id in line][-3:]
    assert [line.partition(" until ")[0] for line in lines] == [
        f"worker {worker.id} is held by root",
        f"worker {worker.id} was released by root",
        f"worker {worker.id} is drained by root",
    ]


def test_who_waits_for_what_an_operator_keeps_is_told_so(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    hold(twin, agent.worker)
    apply.resize(twin.on, "target/linux", 1)
    twin.run()
    job = submit(twin, ada, target="linux")
    twin.run()
    found = jobs.explain(twin.on, job_of(twin, job))
    held = unit_of(twin, agent.worker).hold
    assert held
    until = held.until
    what = f"worker {agent.worker}"
    assert f"{what} is held by root until {format_time(until)}: looking; position 1" in found.summary
    assert found.next_steps == f"root or an operator releases {what}, or its hold ends at {format_time(until)}"
    assert found.expected_start == until
