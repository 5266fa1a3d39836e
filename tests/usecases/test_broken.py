"""Workers that are broken: what their agents say, and what follows for job, machine and target. [JOB-1] [UNIT-2]"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from penstock.domain.commands import Hello
from penstock.domain.cooldowns import Cause, CoolDown
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.pools.pools import Pool, SlotState, pool_key
from penstock.domain.replies import HealthChecks
from penstock.domain.units import quarantine
from penstock.domain.units.quarantine import MAX_BROKEN_IN_A_ROW
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState
from penstock.domain.users.users import User, digest
from penstock.kernel.errors import NoCapacity, Refused
from penstock.kernel.rows import Replace
from penstock.ports import NotYet
from penstock.testing.twin import START, Twin
from penstock.usecases import cooldowns
from penstock.usecases.jobs import cancel, jobs, settle
from penstock.usecases.site import apply
from penstock.usecases.units import broken as units_quarantine
from penstock.usecases.units import drivers, maintenance, release
from penstock.usecases.workers import agents
from tests.usecases.exact import commits, put
from tests.usecases.races import before_the_next_commit, before_the_next_write_of
from tests.usecases.steps import (
    TOKEN,
    dies_after_the_report,
    finish,
    hello,
    job_of,
    slots,
    submit,
    sweep,
    told,
    worker_of,
)
from tests.usecases.warm import SITE, Agent, unit_of

ROOT = User(name="root", privileges=("admin",), created=START)
CHECKED = SITE.replace("[targets.other]", '[targets.linux.health]\nbefore = "df"\nafter = "ls"\n[targets.other]')
WHY = "its health check before the job exited with code 1: no disk"
DAY = 24 * 3600


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", CHECKED, "site.toml")
    made.run()
    return made


def running(twin: Twin, ada: User, target: str = "other", **ask: object) -> tuple[str, Unit]:
    job = submit(twin, ada, target=target, **ask)
    twin.run()
    hello(twin, job)
    return job, worker_of(twin, job)


def breaks(twin: Twin, job: str, why: str = WHY) -> None:
    """A job's agent finds its machine broken before the script begins."""
    agents.report_broken(twin.on, agents.authenticate(twin.on, job, TOKEN), why)
    twin.run()


def test_an_agent_is_told_of_the_scripts_of_its_target(twin: Twin, ada: User) -> None:
    for target, scripts, more in (("linux", ("df", "ls"), 120), ("other", ("", ""), 0)):
        job = submit(twin, ada, target=target)
        twin.run()
        worker = worker_of(twin, job).id
        key = drivers.bootstrap_key(twin.on.signing_key(), worker)
        reply = agents.hello(twin.on, Hello(worker, key, TOKEN))
        twin.run()
        assert reply.health == HealthChecks(scripts[0], scripts[1], timeout_seconds=60)
        found = job_of(twin, job)
        assert found.due
        assert found.times.started
        assert (
            found.due - found.times.started
        ).total_seconds() == found.limits.timeout + found.limits.grace + 120 + more


@pytest.mark.parametrize(("keys", "sudo"), [("", True), ("sudo = false\n", False)])
def test_the_agent_is_told_whether_its_job_may_become_root(twin: Twin, ada: User, keys: str, sudo: bool) -> None:
    """SEC-2: as its target says when the job starts."""
    apply.apply(twin.on, "admin", SITE.replace("[targets.linux]\n", f"[targets.linux]\n{keys}"), "site.toml")
    job = submit(twin, ada, target="linux")
    twin.run()
    worker = worker_of(twin, job).id
    reply = agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    assert reply.sudo is sudo


def test_a_job_whose_target_is_no_more_has_no_scripts(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="linux")
    twin.run()
    apply.apply(twin.on, "admin", '[factories.hand]\ndriver = "hand"\n', "site.toml")
    worker = worker_of(twin, job).id
    reply = agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    assert reply.health.before == ""
    assert reply.sudo


def test_a_worker_that_is_broken_before_the_script_is_destroyed_and_the_next_attempt_follows(
    twin: Twin, ada: User
) -> None:
    """JOB-1: the attempt is lost, says why, and is none of the job's retries."""
    job, worker = running(twin, ada, retries=0)
    breaks(twin, job)
    assert unit_of(twin, worker.id).state is UnitState.GONE
    found = job_of(twin, job)
    assert (found.attempt, found.history.spared, found.is_settled) == (2, 1, False)
    (past,) = found.history.attempts
    assert (past.outcome, past.reason) == ("lost", f"worker {worker.id} is broken: {WHY}")
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_so_many_attempts_are_spared_and_then_they_count(twin: Twin, ada: User) -> None:
    job, _ = running(twin, ada, retries=1)
    for _ in range(5):
        assert not job_of(twin, job).is_settled
        breaks(twin, job)
        for _ in range(40):  # three in a row cool their target down
            if job_of(twin, job).is_settled or worker_of(twin, job).creation.made:
                break
            sweep(twin, 61)
        if not job_of(twin, job).is_settled:
            hello(twin, job)
    found = job_of(twin, job)
    assert (found.end.outcome, found.attempt, found.history.spared) == (Outcome.ERRORED, 5, 3)
    assert found.end.reason
    assert found.end.reason.startswith("tried 5 times: worker w-")


def test_a_broken_worker_is_not_kept(twin: Twin, ada: User) -> None:
    """UNIT-2: the job's outcome stands; the machine is lent to nobody again."""
    job, worker = running(twin, ada, target="linux")
    caller = agents.authenticate(twin.on, job, TOKEN)
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "the script ended", 0, "its fan stands still")
    twin.run()
    found = unit_of(twin, worker.id)
    assert (found.state, found.health.broken) == (UnitState.GONE, "its fan stands still")
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert f"worker {worker.id} is broken: its fan stands still" in told(twin, job)
    assert not found.session.may_run


def test_what_was_said_first_stands(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada, target="linux")
    caller = agents.authenticate(twin.on, job, TOKEN)
    with dies_after_the_report(twin):
        agents.report_finished(twin.on, caller, Result.FAILED, "it failed", 1, "first")
        agents.report_finished(twin.on, caller, Result.SUCCEEDED, "the script ended", 0, "second")
        agents.report_broken(twin.on, caller, "third")
    assert unit_of(twin, worker.id).health.broken == "first"
    report = job_of(twin, job).run.report
    assert report
    assert (report.result, report.is_unbegun) == (Result.FAILED, False)


def test_a_machine_that_is_found_broken_is_on_its_way_out(twin: Twin, ada: User) -> None:
    """UNIT-3: of a hold and the end the end came first: its agent has reported."""
    job, worker = running(twin, ada)
    agents.report_broken(twin.on, agents.authenticate(twin.on, job, TOKEN), WHY)
    with pytest.raises(Refused) as refused:
        maintenance.hold(twin.on, ROOT, worker.is_a, worker.id, "looking", 60)
    assert refused.value.code == "too-late-to-hold"


def test_a_broken_worker_that_is_held_stays(twin: Twin, ada: User) -> None:
    job, worker = running(twin, ada)
    maintenance.hold(twin.on, ROOT, worker.is_a, worker.id, "looking", 3600)
    breaks(twin, job)
    found = unit_of(twin, worker.id)
    assert (found.state, found.health.broken) == (UnitState.DIRTY, WHY)
    assert worker.id in twin.drivers.hand.made


def test_a_worker_that_cannot_be_made_anew_is_quarantined_and_the_job_goes_on_elsewhere(twin: Twin, ada: User) -> None:
    """UNIT-1: it is not destroyed: it is a thing that exists. JOB-2: its agent said that nothing runs there."""
    twin.drivers.quarantining = True
    job, worker = running(twin, ada)
    breaks(twin, job)
    found = unit_of(twin, worker.id)
    assert (found.state, found.step.reason) == (UnitState.QUARANTINED, f"it is broken: {WHY}")
    assert worker.id in twin.drivers.hand.made
    assert job_of(twin, job).attempt == 2
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert len(slots(twin, "target/other", SlotState.HELD)) == 1
    maintenance.release(twin.on, ROOT, worker.is_a, worker.id)
    twin.run()
    assert unit_of(twin, worker.id).state is UnitState.GONE, "what was wrong was put right"
    assert len(slots(twin, "target/other", SlotState.FREE)) == 2


def test_a_worker_that_is_not_broken_is_destroyed_whatever_its_driver(twin: Twin, ada: User) -> None:
    twin.drivers.quarantining = True
    job, worker = running(twin, ada)
    finish(twin, job)
    assert unit_of(twin, worker.id).state is UnitState.GONE


def test_one_whose_factory_is_no_more_is_not_quarantined_for_that(twin: Twin, ada: User) -> None:
    twin.drivers.quarantining = True
    job, worker = running(twin, ada)
    apply.apply(twin.on, "admin", "", "site.toml")
    breaks(twin, job)
    assert unit_of(twin, worker.id).state is UnitState.DIRTY


def cleaning(twin: Twin, ada: User) -> Agent:
    """A worker whose agent is about to clean up after its first job."""
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    agent.finish(job)
    assert unit_of(twin, agent.worker).state is UnitState.CLEANING
    return agent


def cannot_clean(twin: Twin, agent: Agent, token: str | None = None) -> None:
    with pytest.raises(Refused) as gone:
        agents.hello(
            twin.on, Hello(agent.worker, "", agent.token(9), "host", token or agent.token(1), broken="/work: busy")
        )
    assert gone.value.status == 410
    twin.run()


def test_an_agents_report_that_it_cannot_clean_ends_the_waiting(twin: Twin, ada: User) -> None:
    agent = cleaning(twin, ada)
    cannot_clean(twin, agent)
    found = unit_of(twin, agent.worker)
    assert (found.state, found.health.broken) == (UnitState.GONE, "/work: busy")
    assert any("it could not be cleaned: /work: busy" in entry.what for _, entry in found.journal.after(0))


def test_a_worker_that_cannot_be_cleaned_nor_made_anew_is_quarantined(twin: Twin, ada: User) -> None:
    twin.drivers.quarantining = True
    agent = cleaning(twin, ada)
    cannot_clean(twin, agent)
    assert unit_of(twin, agent.worker).state is UnitState.QUARANTINED


def reported(twin: Twin, ada: User) -> Agent:
    """A worker whose agent has reported its job's end, before the attempt is settled."""
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    with dies_after_the_report(twin):
        agents.report_finished(twin.on, agents.authenticate(twin.on, job, agent.token(1)), Result.SUCCEEDED, "", 0)
    return agent


def end(twin: Twin, agent: Agent) -> None:
    settle.settle(twin.on, unit_of(twin, agent.worker).lease.job, 1, None, None)


def report_uncleanable(twin: Twin, agent: Agent) -> None:
    units_quarantine.report_uncleanable(twin.on, agent.worker, digest(agent.token(1)), "busy")


def test_a_second_report_that_it_cannot_be_cleaned_writes_nothing(twin: Twin, ada: User) -> None:
    agent = reported(twin, ada)
    report_uncleanable(twin, agent)
    written = commits(twin)
    report_uncleanable(twin, agent)
    assert written == []


def test_one_whose_attempt_is_settled_while_it_reports_that_it_cannot_be_cleaned_is_destroyed(
    twin: Twin, ada: User
) -> None:
    """UNIT-2: its lease has ended, and the report does not bring it back."""
    agent = reported(twin, ada)
    before_the_next_commit(twin, lambda: end(twin, agent))
    report_uncleanable(twin, agent)
    twin.run()
    found = unit_of(twin, agent.worker)
    assert (found.state, found.health.broken) == (UnitState.GONE, "busy")


def test_before_its_attempt_is_settled_it_is_noted(twin: Twin, ada: User) -> None:
    agent = reported(twin, ada)
    with pytest.raises(Refused):
        agents.hello(twin.on, Hello(agent.worker, "", agent.token(2), "", agent.token(1), broken="busy"))
    assert (unit_of(twin, agent.worker).state, unit_of(twin, agent.worker).health.broken) == (UnitState.READY, "busy")
    assert {"unit": agent.worker} not in [message for _, _, message in twin.queues.messages], "it is not to be moved on"
    end(twin, agent)
    twin.run()
    assert unit_of(twin, agent.worker).state is UnitState.GONE


def test_while_it_is_held_it_stays_though_it_cannot_be_cleaned(twin: Twin, ada: User) -> None:
    """UNIT-3: a hold beats this too."""
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    maintenance.hold(twin.on, ROOT, UnitKind.WORKER, agent.worker, "looking", 60)
    agent.finish(job)
    cannot_clean(twin, agent)
    assert (unit_of(twin, agent.worker).state, unit_of(twin, agent.worker).health.broken) == (
        UnitState.CLEANING,
        "/work: busy",
    )


def test_a_stranger_cannot_say_that_a_worker_is_broken(twin: Twin, ada: User) -> None:
    """SEC-2: only who shows the token of its last job."""
    agent = cleaning(twin, ada)
    before = unit_of(twin, agent.worker)
    cannot_clean(twin, agent, "x" * 45)
    assert unit_of(twin, agent.worker) == before
    units_quarantine.report_uncleanable(twin.on, "w-none", digest(agent.token(1)), "busy")
    agent.hello()
    assert unit_of(twin, agent.worker).state is UnitState.IDLE
    cannot_clean(twin, agent)
    idle = unit_of(twin, agent.worker)
    assert (idle.state, idle.health.broken) == (UnitState.IDLE, None), "it has said that it is clean"


# Three in a row.


def broken_before(twin: Twin, job: str) -> None:
    hello(twin, job)
    breaks(twin, job)


def never_booted(twin: Twin, job: str) -> None:
    for _ in range(15):
        if job_of(twin, job).is_settled or worker_of(twin, job).state is UnitState.GONE:
            break
        sweep(twin, 61)


def broken_after(twin: Twin, job: str) -> None:
    hello(twin, job)
    caller = agents.authenticate(twin.on, job, TOKEN)
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "the script ended", 0, "it is hot")
    twin.run()


BAD = (broken_before, never_booted, broken_after)


def pool(twin: Twin, name: str = "target/other") -> Pool:
    found = twin.store.get(pool_key(name), Pool)
    assert found
    return found


def rows(twin: Twin) -> list[CoolDown]:
    return [row for row in twin.store.rows.values() if isinstance(row, CoolDown)]


def in_a_row(twin: Twin, ada: User, how: Callable[[Twin, str], None], times: int) -> None:
    for _ in range(times):
        job = submit(twin, ada, target="other", retries=0)
        twin.run()
        how(twin, job)
        jobs_end(twin, job, ada)


def jobs_end(twin: Twin, job: str, ada: User) -> None:
    if not job_of(twin, job).is_settled:
        cancel.cancel(twin.on, ada, job)
        twin.run()


@pytest.mark.parametrize("how", BAD, ids=lambda how: how.__name__)
def test_three_in_a_row_cool_their_target_down(twin: Twin, ada: User, how: Callable[[Twin, str], None]) -> None:
    in_a_row(twin, ada, how, 2)
    assert (pool(twin).broken, rows(twin)) == (2, [])
    in_a_row(twin, ada, how, 1)
    (row,) = rows(twin)
    assert (row.maker, row.scope, row.cause) == ("factory/hand", "broken/other", Cause.BROKEN)
    assert row.why.startswith("3 in a row; the last: ")
    before = len(twin.drivers.hand.made)
    waiting = submit(twin, ada, target="other")
    twin.run()
    assert len(twin.drivers.hand.made) == before, "no machine is ordered, and paid for"
    why = jobs.explain(twin.on, job_of(twin, waiting))
    assert "its workers are broken/other, one after the other; none is made until" in why.summary
    fine = submit(twin, ada, target="linux")
    twin.run()
    assert worker_of(twin, fine).creation.made, "other targets have another image"


def test_two_that_are_given_back_at_once_are_both_counted(twin: Twin, ada: User) -> None:
    apply.resize(twin.on, "target/other", 2)
    twin.run()
    jobs_of_two = [submit(twin, ada, target="other", retries=0) for _ in range(2)]
    twin.run()
    before_the_next_write_of(twin, Pool, partial(broken_before, twin, jobs_of_two[1]))
    broken_before(twin, jobs_of_two[0])
    assert pool(twin).broken == 2


@pytest.mark.parametrize("how", BAD, ids=lambda how: how.__name__)
def test_a_worker_that_is_fit_begins_the_count_anew(twin: Twin, ada: User, how: Callable[[Twin, str], None]) -> None:
    in_a_row(twin, ada, how, 2)
    job, _ = running(twin, ada)
    finish(twin, job)
    assert pool(twin).broken == 0
    in_a_row(twin, ada, how, 2)
    assert rows(twin) == []


def test_a_worker_that_nobody_waited_for_tells_nothing(twin: Twin, ada: User) -> None:
    in_a_row(twin, ada, broken_before, 2)
    job = submit(twin, ada, target="other")
    twin.run()
    cancel.cancel(twin.on, ada, job)
    twin.run()
    assert pool(twin).broken == 2


def test_a_worker_that_is_kept_begins_the_count_anew(twin: Twin, ada: User) -> None:
    for _ in range(2):
        job, _ = running(twin, ada, target="linux")
        agents.report_finished(twin.on, agents.authenticate(twin.on, job, TOKEN), Result.SUCCEEDED, "", 0, "hot")
        twin.run()
    assert pool(twin, "target/linux").broken == 2
    agent = cleaning(twin, ada)
    agent.hello()
    assert unit_of(twin, agent.worker).state is UnitState.IDLE
    assert pool(twin, "target/linux").broken == 0


def test_quarantined_ones_are_counted_too_and_once(twin: Twin, ada: User) -> None:
    twin.drivers.quarantining = True
    in_a_row(twin, ada, broken_before, 1)
    assert pool(twin).broken == 1
    (worker,) = [
        row for row in twin.store.rows.values() if isinstance(row, Unit) and row.state is UnitState.QUARANTINED
    ]
    maintenance.release(twin.on, ROOT, worker.is_a, worker.id)
    twin.run()
    assert (unit_of(twin, worker.id).state, pool(twin).broken) == (UnitState.GONE, 1)


def test_one_probes_when_the_time_is_over_and_if_it_works_all_go_on(twin: Twin, ada: User) -> None:
    in_a_row(twin, ada, broken_before, 3)
    first, second = (submit(twin, ada, target="other") for _ in range(2))
    twin.run()
    for _ in range(7):
        sweep(twin, 61)
    made = [job for job in (first, second) if worker_of(twin, job).creation.made]
    assert len(made) == 1
    (row,) = rows(twin)
    probe = worker_of(twin, made[0])
    assert (row.probe, probe.creation.is_probe) == (probe.id, True)
    sweep(twin, 300)
    other = second if made == [first] else first
    assert not worker_of(twin, other).creation.made, "a machine takes longer to boot than a call to answer"
    hello(twin, made[0])
    assert (rows(twin), pool(twin).broken) == ([], 0)
    sweep(twin, 61)
    assert worker_of(twin, other).creation.made
    assert not worker_of(twin, other).creation.is_probe


def test_a_probe_that_does_not_boot_either_cools_for_longer(twin: Twin, ada: User) -> None:
    in_a_row(twin, ada, never_booted, 3)
    (before,) = rows(twin)
    job = submit(twin, ada, target="other", retries=0)
    twin.run()
    for _ in range(7):
        sweep(twin, 61)
    assert worker_of(twin, job).creation.is_probe
    never_booted(twin, job)
    (after,) = rows(twin)
    assert (after.count, after.probe) == (2, None)
    assert after.until - twin.world.now() > before.until - before.since
    assert pool(twin).broken == quarantine.MAX_BROKEN_IN_A_ROW + 1


def test_a_probe_whose_target_has_a_check_works_when_its_job_has_ended(twin: Twin, ada: User) -> None:
    """What says hello may be broken all the same."""
    for _ in range(3):
        job, _ = running(twin, ada, target="linux", retries=0)
        breaks(twin, job)
        jobs_end(twin, job, ada)
    job = submit(twin, ada, target="linux")
    twin.run()
    for _ in range(7):
        sweep(twin, 61)
    hello(twin, job)
    assert len(rows(twin)) == 1
    finish(twin, job)
    assert rows(twin) == []


def test_a_probe_that_cannot_even_be_ordered_lets_the_next_one_try(twin: Twin, ada: User) -> None:
    in_a_row(twin, ada, broken_before, 3)
    submit(twin, ada, target="other")
    twin.run()
    twin.drivers.hand.says = [NoCapacity("none")]
    for _ in range(7):
        sweep(twin, 61)
    broken = next(row for row in rows(twin) if row.cause is Cause.BROKEN)
    assert broken.probe is None


def test_a_probe_whose_machine_is_slow_to_order_goes_on_asking(twin: Twin, ada: User) -> None:
    in_a_row(twin, ada, broken_before, 3)
    job = submit(twin, ada, target="other")
    twin.run()
    twin.drivers.hand.says = [NotYet(5), NotYet(5)]
    for _ in range(9):
        sweep(twin, 61)
    assert (worker_of(twin, job).creation.is_probe, job_of(twin, job).state) == (True, State.ACQUIRING)
    assert cooldowns.blocking(twin.on, worker_of(twin, job)) == []


def test_who_is_no_probe_takes_nothing_off(twin: Twin, ada: User) -> None:
    job, _ = running(twin, ada)
    in_a_row(twin, ada, broken_before, 3)
    finish(twin, job)
    assert len(rows(twin)) == 1


def test_a_fit_worker_that_came_back_cools_nothing_down(twin: Twin, ada: User) -> None:
    _, worker = running(twin, ada)
    pool = twin.store.get(pool_key(worker.lease.pool), Pool)
    assert pool
    assert twin.store.commit([Replace(pool, replace(pool, broken=MAX_BROKEN_IN_A_ROW))])
    release.unit_gone(twin.on, worker, CleanProof("its factory", twin.world.now(), "it is gone"), None, None)
    assert rows(twin) == []


def test_one_that_is_being_destroyed_and_cannot_be_cleaned_is_moved_on_by_its_factory(twin: Twin, ada: User) -> None:
    agent = reported(twin, ada)
    end(twin, agent)
    found = unit_of(twin, agent.worker)
    put(twin, found, state=UnitState.CLEANING)
    twin.queues.messages.clear()
    report_uncleanable(twin, agent)
    assert unit_of(twin, agent.worker).state is UnitState.DIRTY
    assert [message[1:] for message in twin.queues.messages] == [("factory", {"unit": agent.worker})]


def test_a_limit_that_is_lowered_while_a_broken_worker_goes_stays_so(twin: Twin, ada: User) -> None:
    """SLOT-1: the pool learns that one more was broken, and keeps what an operator wrote just before."""
    job, worker = running(twin, ada)
    agents.report_broken(twin.on, agents.authenticate(twin.on, job, TOKEN), WHY)
    twin.queues.messages.clear()
    dirty = unit_of(twin, worker.id)
    proof = CleanProof(by="hand", time=twin.world.now(), checked=worker.id)
    before_the_next_commit(twin, lambda: apply.resize(twin.on, "target/other", 1))
    release.unit_destroyed(twin.on, dirty, proof)
    row = twin.store.get(pool_key("target/other"), Pool)
    assert row
    assert (row.limit, row.broken) == (1, 1)
