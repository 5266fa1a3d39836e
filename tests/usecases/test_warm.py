"""Units that stay on their free slot for the next lease. [SLOT-1] [SLOT-3] [QUEUE-1] [UNIT-2] [SEC-2]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from penstock.domain.artifacts.artifacts import Artifact, id_of
from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Job, Outcome, Result, State
from penstock.domain.pools.pools import Slot, SlotState
from penstock.domain.units.units import UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import RateLimited, Refused
from penstock.kernel.rows import Create, Replace
from penstock.ports import NotYet, Order, Ready
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, flow
from penstock.usecases.site import apply
from penstock.usecases.units import advance, drivers, maintenance
from penstock.usecases.workers import agents
from tests.usecases.quotas import used
from tests.usecases.races import Died
from tests.usecases.steps import (
    dies_after_the_report,
    finish,
    hello,
    job_of,
    live,
    run_to_end,
    submit,
    sweep,
    told,
    worker_of,
)
from tests.usecases.warm import SITE, Agent, databases, slots, unit_of, worker_at_rest

EVE = User(name="eve", created=START, version=1)


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def test_a_worker_that_cleaned_up_is_handed_to_the_next_job(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    (warm,) = slots(twin, "target/linux", "free#warm#")
    assert (warm.unit, warm.job) == (agent.worker, None)
    job = submit(twin, ada, target="linux")
    twin.run()
    assert agent.hello().job == job
    assert (job_of(twin, job).state, job_of(twin, job).run.worker) == (State.RUNNING, agent.worker)
    (held,) = slots(twin, "target/linux", "held#")
    assert (held.fence, held.job) == (warm.fence + 1, job)
    assert f"warm unit {agent.worker}" in "\n".join(told(twin, job))
    agent.finish(job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert list(twin.drivers.hand.made) == [agent.worker]


def test_its_quota_stays_with_it_and_is_taken_once(twin: Twin, ada: User) -> None:
    """SLOT-1: what a unit uses is used for as long as it exists, idle or not."""
    agent = worker_at_rest(twin, ada)
    assert used(twin, "quota/vcpus") == 4
    job = submit(twin, ada, target="linux")
    twin.run()
    assert used(twin, "quota/vcpus") == 4
    assert [slot.job for slot in slots(twin, "quota/vcpus", "held#")] == [job]
    assert agent.hello().job == job


def test_a_warm_worker_is_granted_although_its_quota_is_used_up(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    submit(twin, ada, target="other")
    twin.run()
    assert used(twin, "quota/vcpus") == 8
    job = submit(twin, ada, target="linux")
    twin.run()
    assert agent.hello().job == job


def test_an_idle_worker_is_evicted_for_a_job_that_waits_for_its_quota(twin: Twin, ada: User) -> None:
    """QUEUE-1: what is idle keeps nobody waiting: it is destroyed, and the claim granted, with no outside event."""
    agent = worker_at_rest(twin, ada)
    first, second = submit(twin, ada, target="other"), submit(twin, ada, target="other")
    twin.run()
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    assert used(twin, "quota/vcpus") == 8
    assert {slot.job for slot in slots(twin, "target/other", "held#")} == {first, second}
    with pytest.raises(Refused, match="no longer wanted"):
        agent.hello()


def test_nothing_makes_room_while_enough_is_on_its_way_back(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    destroy = twin.drivers.hand.destroy
    twin.drivers.hand.destroy = lambda unit, now: NotYet(5, "it is going down")  # type: ignore[method-assign]
    for _ in range(2):
        submit(twin, ada, target="other")
    twin.run()
    assert unit_of(twin, agent.worker).state is UnitState.DIRTY
    (leaving,) = slots(twin, "quota/vcpus", "idle#")
    assert leaving.leaving
    assert slots(twin, "target/linux", "free#warm#") == []
    twin.drivers.hand.destroy = destroy  # type: ignore[method-assign]
    sweep(twin)
    assert len(slots(twin, "target/other", "held#")) == 2
    assert len(slots(twin, "target/linux", "free#cold#")) == 2


def test_no_more_are_kept_than_the_site_says(twin: Twin, ada: User) -> None:
    both = [submit(twin, ada, target="linux") for _ in range(2)]
    twin.run()
    found = [Agent(twin, worker_of(twin, job).id) for job in both]
    for agent, job in zip(found, both, strict=True):
        agent.hello()
        agent.finish(job)
    assert found[0].hello().idle
    with pytest.raises(Refused, match="no longer wanted"):
        found[1].hello()
    twin.run()
    assert [slot.unit for slot in slots(twin, "target/linux", "free#warm#")] == [found[0].worker]
    assert unit_of(twin, found[1].worker).state is UnitState.GONE


def test_a_worker_is_sent_home_after_so_many_leases(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    for _ in range(2):
        job = submit(twin, ada, target="linux")
        twin.run()
        assert agent.hello().job == job
        agent.finish(job)
        if agent.turn < 4:
            assert agent.hello().idle
    with pytest.raises(Refused, match="no longer wanted"):
        agent.hello()
    twin.run()
    assert unit_of(twin, agent.worker).state is UnitState.GONE


def test_a_worker_that_is_idle_too_long_is_destroyed(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    for _ in range(6):
        sweep(twin, 100)
        if unit_of(twin, agent.worker).state is UnitState.IDLE:
            agent.hello()
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    assert used(twin, "quota/vcpus") == 0


def test_an_idle_worker_that_falls_silent_is_destroyed_and_not_granted(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    twin.pass_time(121)
    job = submit(twin, ada, target="linux")
    twin.run()
    assert worker_of(twin, job).id != agent.worker
    assert unit_of(twin, agent.worker).state is UnitState.GONE


def test_an_agent_that_does_not_say_that_it_is_clean_loses_its_worker(twin: Twin, ada: User) -> None:
    """UNIT-2: without the record that it was cleaned a unit is only destroyed."""
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    agent.finish(job)
    assert unit_of(twin, agent.worker).state is UnitState.CLEANING
    assert len(slots(twin, "target/linux", "free#")) == 1
    sweep(twin, 181)
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    assert len(slots(twin, "target/linux", "free#cold#")) == 2


def test_a_lost_worker_is_never_kept(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    sweep(twin, 121)
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    agent.turn += 1
    with pytest.raises(Refused):
        agent.hello()


def test_an_agent_whose_attempt_is_not_settled_yet_asks_again(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    caller = agents.authenticate(twin.on, job, agent.token(1))
    with dies_after_the_report(twin):
        agents.report_finished(twin.on, caller, Result.SUCCEEDED, "the script ended", 0)
    agent.turn += 1
    assert agent.hello().idle
    assert unit_of(twin, agent.worker).state is UnitState.READY
    agents.report_finished(twin.on, caller, Result.SUCCEEDED, "the script ended", 0)
    assert unit_of(twin, agent.worker).state is UnitState.CLEANING
    assert agent.hello().idle
    assert unit_of(twin, agent.worker).state is UnitState.IDLE


def test_who_knows_only_the_bootstrap_key_is_not_the_agent_of_the_next_job(twin: Twin, ada: User) -> None:
    """SEC-2: the key may have been read by the first job; the next one is for who had the last token."""
    agent = worker_at_rest(twin, ada)
    job = submit(twin, ada, target="linux")
    twin.run()
    key = drivers.bootstrap_key(twin.on.signing_key(), agent.worker)
    for previous in ("", "x" * 43):
        with pytest.raises(Refused, match="not the key"):
            agents.hello(twin.on, Hello(agent.worker, key, "z" * 43, "host", previous, "clean"))
    assert agent.hello().job == job
    assert agent.hello().job == job
    with pytest.raises(Refused, match="not the key"):
        agents.hello(twin.on, Hello(agent.worker, key, "z" * 43))


def test_the_token_of_the_last_job_is_worth_nothing_for_the_next(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    job = submit(twin, ada, target="linux")
    twin.run()
    agent.hello()
    with pytest.raises(Refused):
        agents.authenticate(twin.on, job, agent.token(1))


def test_the_token_of_the_present_job_is_worth_nothing_for_the_last(twin: Twin, ada: User) -> None:
    """SEC-2: the last job still names the worker, and both attempts are the first; its outputs are its own."""
    agent = worker_at_rest(twin, ada)
    (last,) = (row.id for row in twin.store.rows.values() if isinstance(row, Job))
    job = submit(twin, ada, target="linux")
    twin.run()
    agent.hello()
    assert (job_of(twin, job).attempt, job_of(twin, last).attempt) == (1, 1)
    with pytest.raises(Refused, match="no longer wanted"):
        agents.authenticate(twin.on, last, agent.token(2))
    assert agents.authenticate(twin.on, job, agent.token(2)).job.id == job


def test_a_worker_that_does_not_come_for_its_next_job_costs_the_job_an_attempt(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    job = submit(twin, ada, target="linux")
    twin.run()
    sweep(twin, 61)
    sweep(twin, 61)
    assert "for its next job" in job_of(twin, job).history.attempts[0].reason
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_lowering_what_is_kept_destroys_the_rest(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    apply.apply(twin.on, "admin", SITE.replace("max = 1", "max = 0"), "site.toml")
    twin.run()
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    assert used(twin, "quota/vcpus") == 0


def test_lowering_the_limit_withdraws_warm_slots_too(twin: Twin, ada: User) -> None:
    """SLOT-1: a slot that is withdrawn while its unit is warm comes back as off, when the unit is gone."""
    worker_at_rest(twin, ada)
    apply.resize(twin.on, "target/linux", 0)
    twin.run()
    assert slots(twin, "target/linux", "free#") == []
    assert slots(twin, "target/linux", "idle#") == []
    assert len(slots(twin, "target/linux", "off#")) == 2


def test_another_factory_does_not_hand_over_what_the_last_one_made(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    moved = SITE.replace('[targets.linux]\nfactory = "hand"', '[targets.linux]\nfactory = "next"')
    apply.apply(twin.on, "admin", moved + '[factories.next]\ndriver = "hand"\n', "site.toml")
    twin.run()
    job = submit(twin, ada, target="linux")
    twin.run()
    assert worker_of(twin, job).id != agent.worker
    assert unit_of(twin, agent.worker).state is UnitState.GONE


def run_one(twin: Twin, ada: User, resources: object = ("db",)) -> Job:
    job = submit(twin, ada, target="other", resources=resources)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    return job_of(twin, job)


def test_a_resource_is_cleaned_by_its_well_and_handed_over(twin: Twin, ada: User) -> None:
    assert run_one(twin, ada).end.outcome is Outcome.SUCCEEDED
    (unit,) = databases(twin)
    assert (unit.state, twin.drivers.basin.cleaned, unit.access.sealed) == (UnitState.IDLE, [unit.id], "")
    assert unit.cleaning.proof
    assert run_one(twin, ada).end.outcome is Outcome.SUCCEEDED
    (again,) = databases(twin)
    assert (again.id, again.lease.leases, again.lease.fence) == (unit.id, 2, unit.lease.fence + 1)


def test_a_claim_one_of_whose_warm_units_does_not_fit_takes_nothing_of_the_other_and_waits(
    twin: Twin, ada: User
) -> None:
    """SLOT-2: it is granted whole, or not at all."""
    both = {"a": {"type": "db"}, "b": {"type": "db"}}
    run_one(twin, ada, both)
    first, second = databases(twin)
    assert [slot.unit for slot in slots(twin, "resource/db", "free#warm#")] == [first.id, second.id]
    assert twin.store.commit([Replace(second, replace(second, due=twin.world.now()))])
    job = submit(twin, ada, target="other", resources=both)
    while not flow.leases_of(twin.on, job_of(twin, job)):
        assert twin.deliver()
    assert slots(twin, "resource/db", "held#") == []
    assert unit_of(twin, first.id).state is UnitState.IDLE
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_a_waiting_job_is_told_that_it_got_a_warm_unit(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    apply.pause(twin.on, "target/linux", paused=True)
    job = submit(twin, ada, target="linux")
    twin.run()
    apply.pause(twin.on, "target/linux", paused=False)
    twin.run()
    assert any(f"(warm unit {agent.worker})" in line for line in told(twin, job))


@pytest.mark.parametrize("says", [[NotYet(5)], [RateLimited("slowly")], [NotYet(0), RateLimited("slowly")]])
def test_a_resource_is_not_free_before_its_well_says_that_it_is_clean(
    twin: Twin, ada: User, says: list[Exception | NotYet]
) -> None:
    job = submit(twin, ada, target="other", resources=["db"])
    twin.run()
    hello(twin, job)
    twin.drivers.basin.says += says
    finish(twin, job)
    assert len(slots(twin, "resource/db", "free#")) == 1
    for _ in range(3):
        sweep(twin)
    assert databases(twin)[0].state is UnitState.IDLE
    assert len(slots(twin, "resource/db", "free#warm#")) == 1


def test_a_resource_that_cannot_be_cleaned_is_destroyed(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="other", resources=["db"])
    twin.run()
    hello(twin, job)
    twin.drivers.basin.says += [RateLimited("no")] * 3
    finish(twin, job)
    for _ in range(6):
        sweep(twin)
    (unit,) = databases(twin)
    assert (unit.state, twin.drivers.basin.made) == (UnitState.GONE, {})
    assert len(slots(twin, "resource/db", "free#cold#")) == 2


def test_a_late_call_that_cleans_never_meets_the_next_lease(twin: Twin, ada: User) -> None:
    """UNIT-2: while one handler cleans, another that was told the same leaves the unit alone."""
    job = submit(twin, ada, target="other", resources=["db"])
    twin.run()
    hello(twin, job)
    calls: list[str] = []
    clean = twin.drivers.basin.clean

    def slow(unit: str, now: object) -> object:
        calls.append(unit)
        advance.advance(twin.on, unit)
        return clean(unit, now)  # type: ignore[arg-type]

    twin.drivers.basin.clean = slow  # type: ignore[method-assign, assignment]
    finish(twin, job)
    assert len(calls) == 1
    assert databases(twin)[0].state is UnitState.IDLE


def test_a_late_call_that_makes_never_meets_the_next_lease(twin: Twin, ada: User) -> None:
    """UNIT-2: it would come with what the last job asked for, when the unit is clean, idle, or somebody else's."""
    seen: list[UnitState] = []
    create = twin.drivers.basin.create

    def slow(order: Order) -> Ready | NotYet:
        twin.drivers.basin.create = create  # type: ignore[method-assign]
        advance.advance(twin.on, order.id)
        twin.run()
        cancel.cancel(twin.on, ada, job)
        twin.run()
        seen.append(unit_of(twin, order.id).state)
        return create(order)

    twin.drivers.basin.create = slow  # type: ignore[method-assign]
    job = submit(twin, ada, target="other", resources=["db"])
    twin.run()
    assert seen == [UnitState.GONE], (
        "what another makes at the same time is destroyed, and swept if it comes after that"
    )
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED
    for _ in range(20):  # a stray is destroyed when it was seen twice
        sweep(twin)
    assert not twin.drivers.basin.made


def test_a_handler_that_died_while_it_made_is_followed_by_another(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="other", resources=["db"])
    twin.drivers.basin.says.append(Died())
    with pytest.raises(Died):
        twin.run()
    sweep(twin, 181)
    assert "left no answer" in str(databases(twin)[0].step.reason)
    twin.pass_time(15)
    twin.run()
    assert databases(twin)[0].state is UnitState.READY
    hello(twin, job)


def test_a_handler_that_died_while_it_cleaned_is_followed_by_another(twin: Twin, ada: User) -> None:
    run_one(twin, ada)
    (unit,) = databases(twin)
    job = submit(twin, ada, target="other", resources=["db"])
    twin.run()
    hello(twin, job)
    twin.drivers.basin.says.append(Died())
    with pytest.raises(Died):
        finish(twin, job)
    twin.run()
    assert databases(twin)[0].state is UnitState.CLEANING
    for _ in range(4):
        sweep(twin)
    assert databases(twin)[0].state is UnitState.IDLE
    assert databases(twin)[0].id == unit.id


def test_a_slot_whose_unit_was_cleaned_is_free_for_its_fence_only(twin: Twin, ada: User) -> None:
    """SLOT-3: a unit whose slot somebody else has by now is not kept on it."""
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    agent.finish(job)
    (held,) = slots(twin, "target/linux", "held#")
    twin.store.rows[held.key] = replace(held, fence=held.fence + 1, unit="w-other")
    with pytest.raises(Refused):
        agent.hello()
    assert unit_of(twin, agent.worker).state is not UnitState.IDLE
    assert [slot.state for slot in slots(twin, "target/linux", "held#")] == [SlotState.HELD]


def test_a_worker_learns_which_of_its_copies_still_have_artifacts(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept nowhere else is to be on no machine. [ART-2]"""
    agent = worker_at_rest(twin, ada)
    kept, gone = (id_of(twin.on.world.ulid(), twin.on.world.ulid()) for _ in range(2))
    made = Artifact(id=kept, path="/work/a", size=1, sha256="0" * 64, by="ada", time=twin.on.world.now())
    assert twin.store.commit([Create(made)])
    get = twin.store.get
    monkeypatch.setattr(
        twin.store, "get", lambda key, kind: get(key, kind) if "no id" not in key.pk else pytest.fail(key.pk)
    )
    shown = Hello(agent.worker, "", agent.token(2), "host", agent.token(1), "clean")
    assert agents.hello(twin.on, shown).copies is None
    asked = agents.hello(twin.on, replace(shown, copies=[kept, gone, "no id at all"]))
    assert (asked.idle, asked.copies) == (True, [kept])
    with pytest.raises(Refused) as refused:
        agents.hello(twin.on, replace(shown, copies=[kept] * (agents.COPIES + 1)))
    assert refused.value.status == 413
    assert len(agents.hello(twin.on, replace(shown, copies=[kept] * agents.COPIES)).copies) == agents.COPIES


def test_a_worker_serves_nobody_but_the_owner_of_its_first_job(twin: Twin, ada: User) -> None:
    """SEC-2: eve's job gets another worker, although a clean one is there, and ada's next job gets that one."""
    agent = worker_at_rest(twin, ada)
    eves = submit(twin, EVE, target="linux")
    twin.run()
    assert worker_of(twin, eves).id != agent.worker
    assert unit_of(twin, agent.worker).state is UnitState.IDLE
    adas = submit(twin, ada, target="linux")
    twin.run()
    assert worker_of(twin, adas).id == agent.worker


def test_a_worker_of_somebody_else_makes_room_and_is_not_handed_over(twin: Twin, ada: User) -> None:
    """QUEUE-1, SEC-2: its quota is used up, so it is destroyed, and eve's job does not wait until it was idle."""
    other = submit(twin, ada, target="other")
    twin.run()
    agent = worker_at_rest(twin, ada)
    eves = submit(twin, EVE, target="linux")
    twin.run()
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    assert worker_of(twin, eves).id != agent.worker
    assert job_of(twin, other).state is State.ACQUIRING


def test_a_job_gets_what_is_kept_for_its_owner_also_if_others_wait_before_it(twin: Twin, ada: User) -> None:
    """QUEUE-1: eve's job waits until a worker is destroyed for it, and cannot have the one that ada's job left."""
    apply.apply(twin.on, "admin", SITE.replace("max = 1", "max = 2", 1), "site.toml")
    first, second = (submit(twin, ada, target="linux") for _ in range(2))
    twin.run()
    agents_ = [Agent(twin, worker_of(twin, job).id) for job in (first, second)]
    for agent, job in zip(agents_, (first, second), strict=True):
        assert agent.hello().job == job
    agents_[0].finish(first)
    assert agents_[0].hello().idle
    twin.drivers.hand.stuck = NotYet(60, "it takes a while")
    eves = submit(twin, EVE, target="linux")
    twin.run()
    assert unit_of(twin, agents_[0].worker).state is UnitState.DIRTY
    agents_[1].finish(second)
    assert agents_[1].hello().idle
    assert (unit_of(twin, agents_[1].worker).state, job_of(twin, eves).run.worker) == (UnitState.IDLE, None)
    serve, asked = twin.queues.serve, list[Sequence[str]]()

    def noting(names: Sequence[str], group: str) -> None:
        asked.append(names)
        serve(names, group)

    twin.queues.serve = noting  # type: ignore[method-assign]
    submit(twin, EVE, target="linux")
    twin.run()
    assert asked == [], "it is asked for somebody for whom nothing is kept"
    adas = submit(twin, ada, target="linux")
    twin.run()
    assert worker_of(twin, adas).id == agents_[1].worker
    twin.drivers.hand.stuck = None
    sweep(twin)
    assert worker_of(twin, eves).id not in {agent.worker for agent in agents_}


def test_what_is_kept_for_its_owner_in_any_pool_of_a_step_is_asked_for(ada: User) -> None:
    """QUEUE-1: types that use the same quota are acquired in one step; what is kept may be of any of them."""
    twin = Twin()
    kinds = {name: {"well": "spring", "limit": 2, "uses": {"memory": 1}} for name in ("app", "db")}
    site = site_toml(targets={"linux": {}}, wells={"spring": "hand"}, resources=kinds, quotas={"memory": 8})
    apply.apply(twin.on, "admin", site, "site.toml")
    twin.run()
    apply.pause(twin.on, "resource/app", paused=True)
    submit(twin, EVE, target="linux", resources=["app", "db"])
    twin.run()
    serve, asked = twin.queues.serve, list[Sequence[str]]()

    def noting(names: Sequence[str], group: str) -> None:
        asked.append(names)
        serve(names, group)

    twin.queues.serve = noting  # type: ignore[method-assign]
    submit(twin, ada, target="linux", resources=["app", "db"])
    twin.run()
    assert asked == []
    kept = Slot(pool="resource/db", name="kept", state=SlotState.FREE, unit="r-1", owner="ada")
    assert twin.store.commit([Create(kept)])
    submit(twin, ada, target="linux", resources=["app", "db"])
    twin.run()
    assert len(asked) == 1


def test_where_the_site_says_so_a_worker_serves_anybody(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "admin", SITE.replace('life = "1h"', 'life = "1h", serves = "site"'), "site.toml")
    twin.run()
    agent = worker_at_rest(twin, ada)
    eves = submit(twin, EVE, target="linux")
    twin.run()
    assert worker_of(twin, eves).id == agent.worker


def test_a_resource_serves_anybody_for_its_well_cleans_it(twin: Twin, ada: User) -> None:
    first = submit(twin, ada, target="other", resources=["db"])
    run_to_end(twin, first)
    (kept,) = slots(twin, "resource/db", "free#warm#")
    assert kept.owner == ""
    eves = submit(twin, EVE, target="other", resources=["db"])
    twin.run()
    assert kept.unit in {unit.id for unit in live(twin, eves)}


def test_a_worker_that_an_operator_held_while_it_was_idle_still_serves_its_owner_only(
    twin: Twin, ada: User, root: User
) -> None:
    agent = worker_at_rest(twin, ada)
    maintenance.hold(twin.on, root, UnitKind.WORKER, agent.worker, "looking", 60)
    maintenance.release(twin.on, root, UnitKind.WORKER, agent.worker)
    (kept,) = slots(twin, "target/linux", "free#warm#")
    assert (kept.unit, kept.owner) == (agent.worker, "ada")
