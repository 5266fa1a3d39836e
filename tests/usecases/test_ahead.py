"""Units that are made ahead of need. [SLOT-1] [SLOT-2] [QUEUE-1] [UNIT-1] [UNIT-2] [UNIT-3] [SEC-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.api import pools
from penstock.api import units as unitviews
from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.pools.pools import Serves, Slot, Warm
from penstock.domain.replies import Assignment, Idle
from penstock.domain.units import prewarm as rules
from penstock.domain.units.units import Unit, UnitKind, UnitState, is_prewarming, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import NoCapacity, Refused, Unsatisfiable
from penstock.kernel.rows import Replace
from penstock.ports import NotYet, Order, Ready
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel
from penstock.usecases.pools import serving
from penstock.usecases.site import apply
from penstock.usecases.units import bells, drivers, maintenance, prewarm, retire
from penstock.usecases.workers import agents
from tests.rows import changed
from tests.usecases.prewarmed import DB, LINUX, NONE, SITE, a_twin, at_rest, change_pool, existing, only, pool_of
from tests.usecases.quotas import used
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, submit, sweep, told, worker_of
from tests.usecases.warm import Agent, slots, unit_of

EVE = User(name="eve", created=START, version=1)


@pytest.fixture
def twin() -> Twin:
    return a_twin()


@pytest.fixture
def wells() -> Twin:
    """A site where a resource is made ahead, and no worker."""
    return a_twin(DB)


def test_a_worker_is_made_before_anybody_asks(twin: Twin, ada: User) -> None:
    unit = only(twin)
    assert (unit.state, unit.lease.leases, unit.lease.job, unit.creation.made is not None) == (
        UnitState.IDLE,
        0,
        "",
        True,
    )
    assert used(twin, "quota/vcpus") == 4
    (warm,) = slots(twin, LINUX, "free#warm#")
    assert (warm.unit, warm.since) == (unit.id, None)
    agent = at_rest(twin)
    (warm,) = slots(twin, LINUX, "free#warm#")
    assert warm.since == unit_of(twin, unit.id).since
    job = submit(twin, ada, target="linux")
    twin.run()
    assert agent.hello().job == job
    assert (job_of(twin, job).state, job_of(twin, job).run.worker) == (State.RUNNING, unit.id)
    assert f"warm unit {unit.id}" in "\n".join(told(twin, job))
    agent.finish(job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert agent.hello().idle
    assert unit_of(twin, unit.id).lease.leases == 1


def test_the_next_is_made_when_one_was_handed_over(twin: Twin, ada: User) -> None:
    first = only(twin)
    submit(twin, ada, target="linux")
    twin.run()
    both = existing(twin)
    assert [unit.id for unit in both if unit.state is UnitState.CREATING] == [first.id]
    assert [unit.lease.leases for unit in both] == [1, 0]
    assert used(twin, "quota/vcpus") == 8


def test_a_job_is_lent_a_worker_that_is_still_booting(twin: Twin, ada: User) -> None:
    """Nobody waits longer for it than for one that is ordered when it is asked for."""
    unit = only(twin)
    twin.pass_time(30)
    job = submit(twin, ada, target="linux")
    twin.run()
    lent = worker_of(twin, job)
    assert (lent.id, lent.state, lent.creation.made, lent.due) == (
        unit.id,
        UnitState.CREATING,
        unit.creation.made,
        unit.due,
    )
    assert hello(twin, job).job.id == job


def test_a_job_is_lent_one_whose_order_is_overdue(ada: User) -> None:
    """The message that asks its factory again was lost: it is late, but there is nobody yet who was not heard of."""
    twin = Twin()
    twin.drivers.hand.says = [NotYet(900)]
    apply.apply(twin.on, "admin", SITE, "site.toml")
    twin.run()
    unit = only(twin)
    twin.queues.messages.clear()
    twin.pass_time(3600)
    assert unit.due
    assert (unit.creation.made, unit.due < twin.world.now()) == (None, True)
    job = submit(twin, ada, target="linux")
    twin.run()
    assert worker_of(twin, job).id == unit.id


def test_no_unit_is_prewarmed_while_a_job_waits(twin: Twin, ada: User) -> None:
    """QUEUE-2: whoever waits comes first, and is served by one look that ends when there is nothing for them."""
    looked = list[str]()
    waiting = [submit(twin, ada, target="linux") for _ in range(3)]
    twin.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prewarm, "fill", lambda on, name: looked.append(name))
        serving.serve(twin.on, [LINUX])
        assert looked == []
        cancel.cancel(twin.on, ada, waiting[2])
        twin.run()
        looked.clear()
        serving.serve(twin.on, [LINUX])
    assert looked == [LINUX]


def test_a_unit_that_is_there_is_lent_before_one_that_is_not(ada: User) -> None:
    twin = a_twin(SITE.replace("min = 1", "min = 2"))
    first, second = existing(twin)
    Agent(twin, second.id).hello()
    job = submit(twin, ada, target="linux")
    twin.run()
    assert worker_of(twin, job).id == second.id
    assert unit_of(twin, first.id).lease.leases == 0


def test_no_more_are_made_than_there_is_room_for(ada: User) -> None:
    """SLOT-1: the quota is enough for two."""
    twin = a_twin(SITE.replace("min = 1, max = 2", "min = 3"))
    assert len(existing(twin)) == 2
    assert used(twin, "quota/vcpus") == 8
    sweep(twin)
    assert len(existing(twin)) == 2


def test_so_many_at_once_and_the_others_a_minute_later() -> None:
    wide = SITE.replace("limit = 3\nuses = { vcpus = 4 }", "limit = 30").replace("min = 1, max = 2", "min = 25")
    twin = a_twin(wide)
    assert len(existing(twin)) == rules.ORDERS_PER_CHECK
    sweep(twin)
    assert len(existing(twin)) == 2 * rules.ORDERS_PER_CHECK
    sweep(twin)
    assert len(existing(twin)) == 25


@pytest.mark.parametrize(
    ("pool", "closed"), [(LINUX, {"paused": True}), (LINUX, {"over": True}), ("quota/vcpus", {"paused": True})]
)
def test_nothing_is_made_ahead_from_what_is_closed(pool: str, closed: dict[str, object]) -> None:
    twin = a_twin(NONE)
    change_pool(twin, pool, **closed)
    change_pool(twin, LINUX, warm=Warm(least=1))
    prewarm.fill(twin.on, LINUX)
    assert existing(twin) == []
    change_pool(twin, pool, **dict.fromkeys(closed, False))
    prewarm.fill(twin.on, LINUX)
    assert len(existing(twin)) == 1


def test_nothing_is_made_ahead_while_anybody_waits_for_what_it_takes(ada: User) -> None:
    """QUEUE-2: what falls free is theirs, in their order."""
    twin = a_twin(NONE)
    jobs = [submit(twin, ada, target="other") for _ in range(2)]
    twin.run()
    waits = submit(twin, ada, target="other")
    twin.run()
    change_pool(twin, LINUX, warm=Warm(least=1))
    change_pool(twin, "quota/vcpus", limit=12)
    for _ in range(2):
        sweep(twin)
    assert {unit.lease.job for unit in existing(twin)} == set(jobs)
    hello(twin, jobs[0])
    finish(twin, jobs[0])
    assert worker_of(twin, waits)
    sweep(twin)
    assert [unit.lease.leases for unit in existing(twin)] == [1, 1, 0]


def test_what_was_made_ahead_makes_room_for_who_waits(twin: Twin, ada: User) -> None:
    """QUEUE-1: made or not, it is destroyed for a claim that nothing else keeps waiting, and not made again before."""
    unit = only(twin)
    jobs = [submit(twin, ada, target="other") for _ in range(2)]
    twin.run()
    assert unit_of(twin, unit.id).state is UnitState.GONE
    assert {each.lease.job for each in existing(twin)} == set(jobs)
    sweep(twin)
    assert {each.lease.job for each in existing(twin)} == set(jobs)
    assert pool_of(twin).setback is None
    for job in jobs:
        hello(twin, job)
        finish(twin, job)
    sweep(twin)
    assert only(twin).lease.leases == 0


def test_two_that_look_at_once_make_one() -> None:
    """SLOT-1: both found none; whoever commits second finds the other's."""
    twin = a_twin(NONE)
    change_pool(twin, LINUX, warm=Warm(least=1, most=1, serves=Serves.SITE))
    before_the_next_commit(twin, lambda: prewarm.fill(twin.on, LINUX))
    prewarm.fill(twin.on, LINUX)
    assert len(existing(twin)) == 1


def test_what_another_makes_while_one_looks_is_noticed() -> None:
    """SLOT-1: the pool's row is read before its units are counted, and not after."""
    twin = a_twin(NONE)
    change_pool(twin, LINUX, warm=Warm(least=1, most=1, serves=Serves.SITE))
    find = twin.store.find

    def between(pk: str, prefix: str, *given: Any, **how: Any) -> Any:
        found = find(pk, prefix, *given, **how)
        if prefix == "free#warm#":
            twin.store.find = find  # type: ignore[method-assign]
            prewarm.fill(twin.on, LINUX)
        return found

    twin.store.find = between  # type: ignore[method-assign, assignment]
    prewarm.fill(twin.on, LINUX)
    assert len(existing(twin)) == 1


def test_a_unit_that_is_kept_meanwhile_is_one_of_them(ada: User) -> None:
    """`max` is never passed: the pool's row is written by both."""
    twin = a_twin(NONE.replace("max = 2", "max = 1"))
    job = submit(twin, ada, target="linux")
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    agent.finish(job)
    change_pool(twin, LINUX, warm=Warm(least=1, most=1, serves=Serves.SITE))
    before_the_next_commit(twin, agent.hello)
    prewarm.fill(twin.on, LINUX)
    assert only(twin).id == agent.worker


def test_a_grant_between_the_look_and_the_commit_goes_first(ada: User) -> None:
    twin = a_twin(NONE.replace("limit = 3", "limit = 1"))
    change_pool(twin, LINUX, warm=Warm(least=1))
    jobs: list[str] = []

    def submitted() -> None:
        jobs.append(submit(twin, ada, target="linux"))
        twin.run()

    before_the_next_commit(twin, submitted)
    prewarm.fill(twin.on, LINUX)
    assert [unit.lease.job for unit in existing(twin)] == jobs


def test_a_lost_message_is_made_up_for_by_the_sweep() -> None:
    """UNIT-1: the row is there before anything is made, and is due."""
    twin = a_twin(NONE)
    change_pool(twin, LINUX, warm=Warm(least=1))
    prewarm.fill(twin.on, LINUX)
    twin.queues.messages.clear()
    assert (only(twin).creation.made, twin.drivers.hand.made) == (None, {})
    sweep(twin)
    assert list(twin.drivers.hand.made) == [only(twin).id]


def test_a_worker_that_does_not_boot_is_destroyed_and_made_anew_later_and_later(twin: Twin) -> None:
    first = only(twin)
    sweep(twin, 601)
    assert unit_of(twin, first.id).state is UnitState.GONE
    setback = pool_of(twin).setback
    assert setback
    assert (setback.count, setback.why) == (1, prewarm.NO_HELLO)
    assert existing(twin) == []
    sweep(twin)
    second = only(twin)
    sweep(twin, 601)
    sweep(twin)
    assert existing(twin) == []
    sweep(twin)
    assert only(twin).id not in (first.id, second.id)
    told_ = pools.show(pool_of(twin), slots(twin, LINUX, "free#"), pools.Waiting(), whole=True).setback
    assert told_
    assert (told_.count, told_.why) == (2, prewarm.NO_HELLO)
    at_rest(twin)
    assert pool_of(twin).setback is None


def test_what_can_never_be_made_is_not_tried_in_a_hot_loop() -> None:
    twin = a_twin(NONE)
    change_pool(twin, LINUX, warm=Warm(least=2))
    twin.drivers.hand.says = [Unsatisfiable("no such image")]
    prewarm.fill(twin.on, LINUX)
    twin.run()
    assert [unit.lease.leases for unit in existing(twin)] == [0]
    setback = pool_of(twin).setback
    assert setback
    assert (setback.count, setback.why) == (1, "it can never be made: no such image")
    sweep(twin)
    assert len(existing(twin)) == 2


def test_a_site_that_is_applied_again_tries_again_at_once(twin: Twin) -> None:
    """What an operator put right may be in a factory's settings, or outside."""
    sweep(twin, 601)
    assert pool_of(twin).setback
    apply.apply(twin.on, "admin", SITE, "site.toml")
    twin.run()
    assert (pool_of(twin).setback, only(twin).lease.leases) == (None, 0)


def test_applying_a_site_reports_how_many_units_are_prewarmed() -> None:
    told_ = apply.apply(Twin().on, "admin", SITE, "site.toml")
    assert "pool target/linux: new -> limit 3, up to 2 kept warm, 1 made ahead" in told_
    assert "pool target/linux: new -> limit 3, up to 2 kept warm" in apply.apply(Twin().on, "a", NONE, "s.toml")


def test_what_there_is_none_of_now_is_waited_for(twin: Twin, ada: User) -> None:
    """It keeps its slot and backs off as others do; who needs it, is asked for at once."""
    twin = a_twin(NONE)
    change_pool(twin, LINUX, warm=Warm(least=1))
    twin.drivers.hand.says = [NoCapacity("none left")]
    prewarm.fill(twin.on, LINUX)
    twin.run()
    unit = only(twin)
    assert (unit.creation.made, unit.step.reason, pool_of(twin).setback) == (None, "NoCapacity: none left", None)
    twin.pass_time(200)
    job = submit(twin, ada, target="linux")
    twin.run()
    assert (worker_of(twin, job).id, worker_of(twin, job).creation.made is not None) == (unit.id, True)


def test_one_whose_agent_falls_silent_is_made_anew_later(twin: Twin) -> None:
    agent = at_rest(twin)
    sweep(twin, 121)
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    setback = pool_of(twin).setback
    assert setback
    assert setback.why == prewarm.SILENT
    assert existing(twin) == []


def test_a_unit_that_vanished_is_a_setback(twin: Twin) -> None:
    agent = at_rest(twin)
    for _ in range(40):
        sweep(twin)
        twin.drivers.hand.made.clear()
        setback = pool_of(twin).setback
        if setback or unit_of(twin, agent.worker).state is not UnitState.IDLE:
            break
        assert twin.store.get(unit_key(agent.worker), Unit)
        unit = unit_of(twin, agent.worker)
        twin.store.commit([Replace(unit, replace(unit, due=twin.world.now() + timedelta(seconds=70)))])
    assert setback
    assert "does not list it any more" in setback.why


def test_an_idle_one_stays_for_as_long_as_the_pool_wants_it(twin: Twin) -> None:
    agent = at_rest(twin)
    for _ in range(20):
        sweep(twin, 100)
        assert agent.hello().idle
    for _ in range(20):
        sweep(twin, 100)
        if unit_of(twin, agent.worker).state is UnitState.IDLE:
            agent.hello()
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    assert only(twin).id != agent.worker
    assert pool_of(twin).setback is None


def worn_out(twin: Twin, agent: Agent) -> bool:
    """Whether a worker is gone when it has been idle for its time."""
    for _ in range(8):
        sweep(twin, 100)
        if unit_of(twin, agent.worker).state is UnitState.IDLE:
            agent.hello()
    return unit_of(twin, agent.worker).state is UnitState.GONE


def test_what_is_too_much_is_idle_no_longer_than_any(twin: Twin) -> None:
    agent = at_rest(twin)
    apply.apply(twin.on, "admin", NONE, "site.toml")
    twin.run()
    assert unit_of(twin, agent.worker).state is UnitState.IDLE
    assert worn_out(twin, agent)
    assert existing(twin) == []


@pytest.mark.parametrize(
    "other",
    [
        '[factories.new]\ndriver = "hand"\n' + SITE.replace('linux]\nfactory = "hand"', 'linux]\nfactory = "new"'),
        SITE.replace("vcpus = 4 }\nwarm", "vcpus = 3 }\nwarm"),
    ],
)
def test_what_the_site_would_not_have_made_so_is_made_anew(twin: Twin, other: str) -> None:
    agent = at_rest(twin)
    apply.apply(twin.on, "admin", other, "site.toml")
    twin.run()
    assert worn_out(twin, agent)
    assert only(twin).id != agent.worker


def test_a_unit_does_not_keep_what_the_site_took_out() -> None:
    """SLOT-1: its own slot is as it was; the bench that it takes besides is the site's no more. Seed 7124."""

    def text(*benches: str) -> str:
        sandbox = {"well": "spring", "limit": 1, "uses": {"bench": 1}, "warm": {"min": 1, "max": 1, "idle": "10m"}}
        bench = {"well": "spring", "names": list(benches)}
        return site_toml(wells={"spring": "hand"}, resources={"sandbox": sandbox, "bench": bench})

    twin = a_twin(text("bench-1", "bench-2"))
    sweep(twin)
    before = only(twin)
    (first,) = before.lease.also
    apply.apply(twin.on, "admin", text(*{"bench-1", "bench-2"} - {first[1]}), "site.toml")
    twin.run()
    assert unit_of(twin, before.id).state is UnitState.GONE
    assert f"the site took out resource/bench {first[1]}" in str(unit_of(twin, before.id).journal)
    sweep(twin)
    assert only(twin).lease.also not in ((), (first,))
    assert [slot.name for slot in slots(twin, "resource/bench", "off#")] == [first[1]]


def test_a_target_that_the_site_has_no_more_makes_nothing(twin: Twin) -> None:
    agent = at_rest(twin)
    before, after = SITE.index("[targets.linux]"), SITE.index("[targets.other]")
    apply.apply(twin.on, "admin", SITE[:before] + SITE[after:], "site.toml")
    twin.run()
    sweep(twin)
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    assert "the site keeps fewer warm" in str(unit_of(twin, agent.worker).journal)
    assert existing(twin) == []


def test_one_more_than_is_wanted_wears_out(twin: Twin, ada: User) -> None:
    first = at_rest(twin)
    job = submit(twin, ada, target="linux")
    twin.run()
    first.hello()
    second = Agent(twin, next(unit.id for unit in existing(twin) if not unit.lease.leases))
    assert second.hello().idle
    first.finish(job)
    assert first.hello().idle
    assert len(slots(twin, LINUX, "free#warm#")) == 2
    for _ in range(8):
        sweep(twin, 100)
        for agent in (first, second):
            if unit_of(twin, agent.worker).state is UnitState.IDLE:
                agent.hello()
    assert len(slots(twin, LINUX, "free#warm#")) == 1
    assert len(existing(twin)) == 1


# Agents


def first_hello(twin: Twin, worker: str, token: str, key: str | None = None) -> Assignment | Idle:
    key = drivers.bootstrap_key(twin.on.signing_key(), worker) if key is None else key
    return agents.hello(twin.on, Hello(worker, key, token))


def test_an_agent_asks_with_its_key_and_its_token_until_there_is_a_job(twin: Twin, ada: User) -> None:
    """SEC-2: the first token that comes with the key is the one that counts."""
    worker = only(twin).id
    token, other = "a" * 43, "b" * 43
    said = first_hello(twin, worker, token)
    assert (said.idle, said.seconds, said.held_seconds) == (True, bells.IDLE_SECONDS, None)
    assert first_hello(twin, worker, token).idle
    for wrong in ({"token": other}, {"token": token, "key": "wrong"}):
        with pytest.raises(Refused, match="not the key"):
            first_hello(twin, worker, **wrong)
    job = submit(twin, ada, target="linux")
    twin.run()
    with pytest.raises(Refused, match="not the key"):
        first_hello(twin, worker, other)
    for _ in range(2):
        assert first_hello(twin, worker, token).job == job
    assert agents.authenticate(twin.on, job, token).job.id == job


def test_the_key_is_worth_nothing_after_the_first_job(twin: Twin, ada: User) -> None:
    agent = at_rest(twin)
    job = submit(twin, ada, target="linux")
    twin.run()
    agent.hello()
    agent.finish(job)
    agent.hello()
    with pytest.raises(Refused):
        first_hello(twin, agent.worker, agent.token(1))
    submit(twin, ada, target="linux")
    submit(twin, ada, target="linux")
    twin.run()
    for token in (agent.token(1), "c" * 43):
        with pytest.raises(Refused, match="not the key"):
            first_hello(twin, agent.worker, token)


def test_an_agent_that_comes_before_its_factorys_word(ada: User) -> None:
    twin = a_twin(NONE)
    change_pool(twin, LINUX, warm=Warm(least=1))
    prewarm.fill(twin.on, LINUX)
    assert Agent(twin, only(twin).id).hello().idle
    unit = only(twin)
    assert unit.creation.made
    twin.run()
    assert not is_prewarming(unit)


def test_an_agent_is_not_sent_home_by_a_grant_that_comes_in_between(twin: Twin, ada: User) -> None:
    agent = Agent(twin, only(twin).id)
    jobs: list[str] = []

    def submitted() -> None:
        jobs.append(submit(twin, ada, target="linux"))
        twin.run()

    before_the_next_commit(twin, submitted)
    assert agent.hello().job == jobs[0]


def test_an_agent_that_is_there_is_heard_again_and_again(twin: Twin) -> None:
    agent = at_rest(twin)
    was = only(twin)
    twin.pass_time(30)
    agent.hello()
    assert only(twin).due == was.due
    twin.pass_time(40)
    agent.hello()
    assert only(twin).due == was.due + timedelta(seconds=70)  # type: ignore[operator]


# Operators


def test_a_unit_on_its_way_can_be_held(twin: Twin, ada: User, root: User) -> None:
    """UNIT-3: nobody is lent it; another is made in its place; and it goes on when it is released."""
    unit = only(twin)
    held = maintenance.hold(twin.on, root, UnitKind.WORKER, unit.id, "looking", 3600)
    assert held.due == held.hold.until  # type: ignore[union-attr]
    assert slots(twin, LINUX, "free#warm#") == []
    sweep(twin)
    other = next(each for each in existing(twin) if each.id != unit.id)
    job = submit(twin, ada, target="linux")
    twin.run()
    assert worker_of(twin, job).id == other.id
    said = Agent(twin, unit.id).hello()
    assert said.idle
    assert said.held_seconds
    assert unit_of(twin, unit.id).due == held.due
    maintenance.release(twin.on, root, UnitKind.WORKER, unit.id)
    assert [slot.since is None for slot in slots(twin, LINUX, "free#warm#")] == [False]


@pytest.mark.parametrize("is_made", [True, False])
def test_a_unit_that_is_released_before_it_is_there_is_asked_for_again(root: User, is_made: bool) -> None:
    twin = a_twin(NONE)
    change_pool(twin, LINUX, warm=Warm(least=1))
    prewarm.fill(twin.on, LINUX)
    if is_made:
        twin.run()
    unit = only(twin)
    maintenance.hold(twin.on, root, UnitKind.WORKER, unit.id, "looking", 3600)
    twin.run()
    assert (unit_of(twin, unit.id).creation.made is not None) is is_made
    twin.pass_time(1000)
    maintenance.release(twin.on, root, UnitKind.WORKER, unit.id)
    assert [slot.since for slot in slots(twin, LINUX, "free#warm#")] == [None]
    twin.run()
    made = unit_of(twin, unit.id).creation.made
    assert made
    assert made > twin.world.now() - timedelta(seconds=5)
    assert at_rest(twin).worker == unit.id


@pytest.mark.parametrize("remove", [maintenance.drain, maintenance.recycle])
def test_an_operator_has_it_destroyed(twin: Twin, root: User, remove: object) -> None:
    unit = only(twin)
    remove(twin.on, root, UnitKind.WORKER, unit.id, "old image")  # type: ignore[operator]
    twin.run()
    assert unit_of(twin, unit.id).state is UnitState.GONE
    assert only(twin).id != unit.id
    assert pool_of(twin).setback is None


# Resources


def test_a_prewarmed_resource_is_created_again_with_its_jobs_options(wells: Twin, ada: User) -> None:
    """SEC-1: what it is made with is nobody's, and is not kept."""
    (made,) = wells.drivers.basin.made.values()
    assert (made.options, made.settings) == ({}, {"zone": "a"})
    unit = only(wells)
    assert (unit.state, unit.access.sealed, unit.cleaning.until, unit.cleaning.proof) == (
        UnitState.IDLE, "", wells.world.now() + timedelta(minutes=10), None,
    )  # fmt: skip
    job = submit(wells, ada, target="other", resources={"db": {"type": "db", "options": {"size": 3}}})
    wells.run()
    assert wells.drivers.basin.made[unit.id].options == {"size": 3}
    assert hello(wells, job)
    finish(wells, job)
    assert job_of(wells, job).end.outcome is Outcome.SUCCEEDED


def test_a_late_call_without_options_never_undoes_the_jobs(wells: Twin, ada: User) -> None:
    """UNIT-2: the first call is over before the well is asked again; and that is at once."""
    wells = a_twin(NONE)
    change_pool(wells, "resource/db", warm=Warm(least=1, serves=Serves.SITE))
    seen: list[Order] = []
    leased: list[bool] = []
    create = wells.drivers.basin.create

    def slow(order: Order) -> Ready | NotYet:
        if not seen:
            job = submit(wells, ada, target="other", resources={"db": {"type": "db", "options": {"size": 3}}})
            seen.append(order)
            wells.run()
            leased.append([each.lease.job for each in existing(wells) if each.id == order.id] == [job])
        seen.append(order)
        return create(order)

    wells.drivers.basin.create = slow  # type: ignore[method-assign]
    prewarm.fill(wells.on, "resource/db")
    wells.run()
    assert leased == [True]
    mine = [order.options for order in seen if order.id == seen[0].id]
    assert mine == [{}, {}, {"size": 3}]
    unit = unit_of(wells, seen[0].id)
    assert (unit.state, unit.step.busy) == (UnitState.READY, None)


def test_create_is_repeated_until_a_resource_is_ready() -> None:
    wells = a_twin(NONE)
    change_pool(wells, "resource/db", warm=Warm(least=1, serves=Serves.SITE))
    wells.drivers.basin.says = [NotYet(5, "it is coming")]
    prewarm.fill(wells.on, "resource/db")
    wells.run()
    assert (only(wells).creation.made, only(wells).creation.is_making, only(wells).step.busy) == (None, True, None)
    wells.pass_time(6)
    wells.run()
    assert only(wells).creation.made
    assert [slot.since is not None for slot in slots(wells, "resource/db", "free#warm#")] == [True]


def test_a_resource_that_was_evicted_while_it_was_made_is_destroyed() -> None:
    wells = a_twin(NONE)
    change_pool(wells, "resource/db", warm=Warm(least=1, serves=Serves.SITE))
    create = wells.drivers.basin.create

    def slow(order: Order) -> Ready | NotYet:
        wells.drivers.basin.create = create  # type: ignore[method-assign]
        retire.retire(wells.on, order.id, "it made room for others")
        wells.run()
        seen.append(unit_of(wells, order.id).state)
        return create(order)

    seen: list[UnitState] = []
    wells.drivers.basin.create = slow  # type: ignore[method-assign]
    prewarm.fill(wells.on, "resource/db")
    wells.run()
    assert seen == [UnitState.GONE]
    assert [unit.creation.made is not None for unit in existing(wells)] == [True]
    for _ in range(20):  # a stray is destroyed when it was seen twice
        sweep(wells)
    assert list(wells.drivers.basin.made) == [unit.id for unit in existing(wells)]


def test_how_it_is_shown(twin: Twin) -> None:
    shown = unitviews.show_worker(twin.on, only(twin))
    assert (shown.state, shown.job, shown.attempt, shown.leases) == ("creating", None, None, 0)
    pool = pools.show(pool_of(twin), slots(twin, LINUX, "free#"), pools.Waiting(), whole=True)
    assert (pool.warm, pool.coming, pool.setback) == (1, 1, None)
    at_rest(twin)
    assert unitviews.show_worker(twin.on, only(twin)).state == "idle"
    pool = pools.show(pool_of(twin), slots(twin, LINUX, "free#"), pools.Waiting(), whole=True)
    assert (pool.warm, pool.coming) == (1, 0)


def test_a_worker_that_serves_one_owner_is_none_of_those_that_serve_anybody(ada: User) -> None:
    """Ada's first worker stays for her; besides, one is there for anybody, and is made again once eve has it."""
    twin = a_twin(SITE.replace("amount = 8", "amount = 16"))
    agent = had_a_job(twin, ada)
    assert sorted(slot.owner for slot in warm_slots(twin)) == ["", "ada"]
    eves = submit(twin, EVE, target="linux")
    twin.run()
    assert worker_of(twin, eves).id != agent.worker
    assert sorted(slot.owner for slot in warm_slots(twin)) == ["", "ada"]


def test_a_worker_that_serves_one_owner_does_not_stay_for_those_who_want_any(ada: User) -> None:
    """UNIT-1: its time is over, although the pool has no more than it wants."""
    twin = a_twin(SITE.replace("amount = 8", "amount = 16"))
    had_a_job(twin, ada)
    now = twin.world.now()
    for unit in existing(twin):
        twin.store.rows[unit.key] = changed(unit, due=now, until=now)
        prewarm.idle_ended(twin.on, unit_of(twin, unit.id))
    twin.run()
    assert [slot.owner for slot in warm_slots(twin)] == [""]


def had_a_job(twin: Twin, ada: User) -> Agent:
    """The agent of a worker that was made ahead of need, had a job, and is idle again."""
    agent = at_rest(twin)
    job = submit(twin, ada, target="linux")
    twin.run()
    assert agent.hello().job == job
    agent.finish(job)
    assert agent.hello().idle
    return agent


def warm_slots(twin: Twin) -> list[Slot]:
    return slots(twin, LINUX, "free#warm#")
