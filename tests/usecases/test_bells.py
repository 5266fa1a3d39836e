"""An idle worker, and a host without one, are told by a bell that they have a job. A lost bell costs a poll."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.domain.site.site import Limits
from penstock.domain.units.units import STEP_WITHIN, Unit
from penstock.domain.users.users import User
from penstock.testing.twin import Twin
from penstock.usecases.site import apply
from penstock.usecases.units import advance, bells
from penstock.usecases.workers import agents
from tests.usecases.lab_hosts import Bench, lab
from tests.usecases.prewarmed import SITE as PREWARMED
from tests.usecases.prewarmed import a_twin, only
from tests.usecases.steps import submit
from tests.usecases.warm import SITE, Agent, unit_of, worker_at_rest

POLL = min(bells.IDLE_SECONDS, Limits().heartbeat)


@pytest.fixture
def twin() -> Twin:
    return a_twin(SITE.replace("reuse = 3", "reuse = 9"))


def rung(twin: Twin) -> list[str]:
    """The bells that have rung."""
    return sorted(name for name in twin.objects.objects if name.startswith(bells.PREFIX))


def heard(bell: str | None) -> str:
    """The object that a URL of the twin leads to."""
    assert bell
    return bell.removeprefix("memory://")


def test_each_job_of_a_worker_has_a_bell_that_rings_when_it_is_granted(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    bells_heard = []
    for _ in range(2):
        bell = heard(agent.hello().bell)
        assert bell not in rung(twin)
        job = submit(twin, ada, target="linux")
        twin.run()
        assert bell in rung(twin)
        bells_heard.append(bell)
        assert agent.hello().job == job
        agent.finish(job)
        assert agent.hello().idle
    assert len(set(bells_heard)) == 2
    assert sorted(bells_heard) == rung(twin)


def test_a_worker_that_was_made_ahead_of_need_has_a_bell_too(ada: User) -> None:
    twin = a_twin(PREWARMED)
    agent = Agent(twin, only(twin).id)
    bell = heard(agent.hello().bell)
    submit(twin, ada, target="linux")
    twin.run()
    assert rung(twin) == [bell]


def test_no_bell_rings_for_a_machine_that_is_still_coming(twin: Twin, ada: User) -> None:
    """Nobody listens there: its agent has its job from its first call."""
    submit(twin, ada, target="linux")
    twin.run()
    advance.advance(twin.on, only(twin).id)
    assert rung(twin) == []


def test_a_bell_that_is_lost_costs_a_poll_before_the_worker_counts_as_lost(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    said = agent.hello()
    assert said.seconds == POLL
    assert said.seconds <= bells.IDLE_SECONDS < min(STEP_WITHIN.total_seconds(), bells.URL_SECONDS)
    job = submit(twin, ada, target="linux")
    twin.run()
    twin.objects.objects.clear()
    twin.pass_time(said.seconds)
    assert agent.hello().job == job


def test_where_the_site_hears_of_workers_more_often_they_call_as_often(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "root", SITE + '[limits]\nheartbeat = "7s"\n', "site.toml")
    assert worker_at_rest(twin, ada).hello().seconds == 7


@pytest.mark.parametrize("how", ["its job is being settled", "it was given a job"])
def test_a_worker_that_is_not_idle_has_no_bell_and_calls_soon(twin: Twin, ada: User, how: str) -> None:
    agent = worker_at_rest(twin, ada)
    unit = unit_of(twin, agent.worker)
    busy = replace(unit, state="cleaning" if "settled" in how else "creating")
    twin.store.rows[unit.key] = busy
    said = agents._no_job(twin.on, unit.id, Limits())
    assert (said.bell, said.seconds) == (None, agents.POLL_SECONDS)


def test_a_host_has_a_bell_for_each_worker(ada: User) -> None:
    twin = lab()
    bench = Bench(twin)
    first = bench.ask()  # it has no slot yet: the pool's resize follows
    assert (first.do, first.bell, first.seconds) == ("wait", None, agents.POLL_SECONDS)
    known = []
    for _ in range(2):
        said = bench.ask()
        assert (said.do, said.seconds) == ("wait", POLL)
        known.append(heard(said.bell))
        assert known[-1] not in rung(twin)
        submit(twin, ada, target="lab")
        twin.run()
        assert known[-1] in rung(twin)
        bench.run()
    assert len(set(known)) == 2


def test_a_lent_worker_is_rung_for_again_when_its_message_comes_again(twin: Twin, ada: User) -> None:
    agent = worker_at_rest(twin, ada)
    submit(twin, ada, target="linux")
    twin.run()
    twin.objects.objects.clear()
    advance.advance(twin.on, agent.worker)
    assert len(rung(twin)) == 1
    unit: Unit = unit_of(twin, agent.worker)
    assert unit.lease.leases == 2
