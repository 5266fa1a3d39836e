"""What the real use cases commit is a path of the model."""

from __future__ import annotations

from functools import cache

import pytest

from penstock.domain.jobs.jobs import Job, Outcome, job_key
from penstock.domain.pools import grants
from penstock.domain.pools.pools import Lease, lease_key
from penstock.kernel.rows import Replace
from tests.model.observer import ACTIONS, Stray, actions_of
from tests.model.scenario import Scenario
from tests.model.sharing import SharedHost

SEEDS = 62
SHARED_SEEDS = 20
pytestmark = pytest.mark.xdist_group("traces")  # which share the walks


@pytest.fixture(autouse=True)
def _overtaken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small bound is one that is reached."""
    monkeypatch.setattr(grants, "MAX_OVERTAKEN", 1)


@cache
def walked(seed: int) -> Scenario:
    """The scenario of a seed at its end."""
    scenario = Scenario(seed, faults=seed % 7)
    scenario.walk()
    return scenario


def test_without_faults_all_succeed() -> None:
    scenario = Scenario(seed=1, faults=0)
    scenario.walk()
    assert {"claim", "grant", "hello", "finish", "settle", "release"} <= set(scenario.store.trace)
    assert [scenario.job(job).end.outcome for job in scenario.jobs] == [Outcome.SUCCEEDED] * 4


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_commit_is_a_step_of_the_model(seed: int) -> None:
    scenario = walked(seed)
    assert all(scenario.job(job).is_settled for job in scenario.jobs)
    assert not scenario.twin.drivers.hand.made
    if seed % 7 == 0:
        assert {scenario.job(job).end.outcome for job in scenario.jobs} == {Outcome.SUCCEEDED}


@cache
def shared(seed: int) -> SharedHost:
    """The scenario with a shared host of a seed at its end."""
    scenario = SharedHost(seed, faults=seed % 5)
    scenario.walk()
    return scenario


@pytest.mark.parametrize("seed", range(SHARED_SEEDS))
def test_every_commit_on_a_host_that_jobs_share_is_a_step_of_the_model(seed: int) -> None:
    """SEC-2: after each of them, all who have parts of the host have one owner."""
    scenario = shared(seed)
    assert all(scenario.job(job).is_settled for job in scenario.jobs)
    if seed % 5 == 0:
        assert {scenario.job(job).end.outcome for job in scenario.jobs} == {Outcome.SUCCEEDED}


def test_on_the_shared_host_jobs_wait_and_are_overtaken() -> None:
    """And they are granted at once, and parts of the host go and come."""
    found = [shared(seed).store for seed in range(SHARED_SEEDS)]
    assert {"grant_at_once", "grant", "claim", "resize_slot", "release"} <= {
        each for one in found for each in one.trace
    }
    moves = {move for one in found for move in one.seen}
    assert {"overtaken: more", "slot: held -> withdrawn", "slot: off -> free"} <= moves


def test_the_scenarios_take_every_action() -> None:
    taken: set[str] = set()
    seen: set[str] = set()
    for seed in range(SEEDS):
        scenario = walked(seed)
        taken |= set(scenario.store.trace)
        seen |= scenario.store.seen
    written = {name: action for name, action in ACTIONS.items() if not action.get("message")}
    assert taken == set(written)
    moves = {move for action in written.values() for move in (*action["must"], *action["may"])}
    assert moves - seen <= {"report: done -> none"}, "a report that is in and yet not the end is too rare"


def test_a_commit_that_is_no_step_is_found() -> None:
    scenario = Scenario(seed=1, faults=0)
    scenario.walk()
    job = scenario.store.get(job_key(scenario.jobs[0]), Job)
    lease = scenario.store.get(lease_key(scenario.jobs[0], 1, 0), Lease)
    assert job
    assert lease
    risen = Lease(**{**vars(lease), "state": "ready"})
    with pytest.raises(Stray):
        scenario.store.commit([Replace(lease, risen)])
    assert actions_of({"slot: held -> free"}) == []
