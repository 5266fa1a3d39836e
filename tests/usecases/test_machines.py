"""Jobs that say what they need, over the real use cases: which target of a family they get, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Outcome
from penstock.domain.pools.pools import HoldTimes, pool_key
from penstock.domain.site.machines import Stand
from penstock.domain.site.site import Site, Target
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create, Replace, Row
from penstock.system import System
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.pools import machines
from penstock.usecases.probes import factory_test
from penstock.usecases.site import apply
from penstock.usecases.units import release
from tests.usecases.exact import site
from tests.usecases.prewarmed import existing
from tests.usecases.steps import SCRIPT, job_of, run_to_end, submit, told, worker_of
from tests.usecases.warm import Agent

BOB = User(name="bob", created=START, version=1)
SMALL, LARGE = "target/small", "target/large"


def text(band: float = 1, small: Mapping[str, Any] | None = None, large: Mapping[str, Any] | None = None) -> str:
    warm = {"max": 2, "idle": "10m", "life": "1d"}
    sizes = {
        "small": {"limit": 1, "price": 1.0, "machine": {"cpus": 2, "memory": "4GiB"}, **(small or {})},
        "large": {"limit": 2, "price": 1.5, "machine": {"cpus": 8, "memory": "32GiB"}, "warm": warm, **(large or {})},
    }
    family = {"machines": ["small", "large"], "price_band": band}
    return site_toml(
        prices={"currency": "USD"},
        factories={"hand": "hand", "other": "hand"},
        targets={
            **sizes,
            "any": family,
            "default": "any",
            "old": {"limit": 1},
            "lab": {"machines": ["large"], "privilege": "target.lab"},
            "behind": "lab",
        },
        quotas={"vcpus": 4},
    )


@pytest.fixture
def twin() -> Twin:
    return site(text())


def went(twin: Twin, job: str) -> str:
    return job_of(twin, job).request.target_resolved


def queued(twin: Twin, user: User, **ask: Any) -> str:
    job = submit(twin, user, **ask)
    twin.run()
    return job


def keep_one(twin: Twin, user: User, target: str = "large") -> Agent:
    """A warm worker of a target, which serves a user."""
    job = queued(twin, user, target=target)
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    agent.finish(job)
    assert agent.hello().idle
    return agent


def learn(twin: Twin, pool: str, **times: Any) -> None:
    now = HoldTimes(pool=pool, **times)
    was = twin.store.get(now.key, HoldTimes)
    assert twin.store.commit([Replace(was, replace(now, version=was.version)) if was else Create(now)])


def refused(act: Callable[[], object]) -> tuple[int, str, str]:
    with pytest.raises(Refused) as caught:
        act()
    return caught.value.status, caught.value.code, caught.value.detail


def test_the_cheapest_that_fits_is_taken_and_the_job_waits_for_it(twin: Twin, ada: User) -> None:
    plain, small, large, late = (
        queued(twin, ada, **ask)
        for ask in ({}, {"machine": {"cpus": 2}}, {"machine": {"memory": "5GiB"}}, {"target": "any"})
    )
    assert [went(twin, job) for job in (plain, small, large, late)] == ["small", "small", "large", "small"]
    asked = job_of(twin, large).request
    assert (asked.target, asked.chosen) == ("default", 'large is the cheapest of any that fits memory = "5GiB"')
    assert asked.needs[0].pool == LARGE
    found = jobs.explain(twin.on, job_of(twin, late))
    assert found.blocked_on
    assert (found.blocked_on.pool, found.chosen) == (SMALL, "small is the cheapest of any")
    for job in (plain, small, late):
        run_to_end(twin, job)
        assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_its_log_and_its_plan_say_what_was_chosen(twin: Twin, ada: User) -> None:
    script = '#!/bin/bash\n#: name = "build"\n#: variety = "basic"\n#: machine = { cpus = 4 }\n'
    found = jobs_submit.plan(twin.on, ada, SubmitJob(script))
    chosen = "large is the cheapest of any that fits cpus = 4"
    assert found.sentences[0] == f"the job would acquire a worker of large ({chosen})"
    job = jobs_submit.submit(twin.on, ada, SubmitJob(script), None)
    twin.run()
    assert any(f"a worker of large ({chosen})" in line for line in told(twin, job))
    assert went(twin, jobs_submit.submit(twin.on, ada, SubmitJob(script, machine={"cpus": 1}), None)) == "small"
    again = jobs_submit.retry(twin.on, ada, job_of(twin, job))
    assert (went(twin, again), job_of(twin, again).request.chosen) == ("large", chosen)


def test_what_fits_nothing_is_refused_with_the_nearest_and_nothing_is_written(twin: Twin, ada: User) -> None:
    rows = dict(twin.store.rows)
    for ask, said in (
        ({"cpus": 16}, "no machine of any fits cpus = 16: the nearest is large: cpus = 16 is 8 more than its 8"),
        ({"arch": "arm64"}, 'the nearest is small: arch = "arm64", and its arch is not known'),
    ):
        for act in (jobs_submit.plan, lambda on, user, wanted: jobs_submit.submit(on, user, wanted, None)):
            found = refused(lambda act=act, ask=ask: act(twin.on, ada, SubmitJob(SCRIPT, machine=ask)))  # type: ignore[misc]
            assert found[:2] == (422, "unsatisfiable")
            assert found[2].endswith(said)
    wrong = refused(lambda: submit(twin, ada, machine={"cpus": "many"}))
    assert wrong[:2] == (400, "bad-request")
    assert twin.store.rows == rows


def test_a_target_that_is_no_family_is_checked(twin: Twin, ada: User) -> None:
    assert went(twin, submit(twin, ada, target="small", machine={"cpus": 1})) == "small"
    assert not job_of(twin, submit(twin, ada, target="small", machine={"cpus": 1})).request.chosen
    _, _, detail = refused(lambda: submit(twin, ada, target="small", machine={"cpus": 3}))
    assert "the nearest is small: cpus = 3 is 1 more than its 2" in detail
    _, _, detail = refused(lambda: submit(twin, ada, target="old", machine={"cpus": 1}))
    assert "name one that does: small, large, any, lab" in detail


def test_in_the_band_a_free_slot_comes_before_a_queue_and_a_warm_worker_before_a_free_slot(ada: User) -> None:
    twin = site(text(band=1.5))
    assert went(twin, queued(twin, ada)) == "small"
    second = queued(twin, ada)
    assert went(twin, second) == "large"
    said = "large has a free slot, and its price is in the band of small, the cheapest of any"
    assert job_of(twin, second).request.chosen == said
    assert [went(twin, queued(twin, ada)) for _ in range(2)] == ["large", "small"]


def test_in_the_band_a_warm_worker_serves_its_owner_only(ada: User) -> None:
    """SEC-2: somebody else's warm worker is none."""
    twin = site(text(band=1.5))
    keep_one(twin, ada)
    assert went(twin, queued(twin, BOB)) == "small"
    job = queued(twin, ada)
    assert "large has a warm worker" in job_of(twin, job).request.chosen
    assert went(twin, job) == "large"


def test_a_quota_that_is_used_up_counts_as_no_room(ada: User) -> None:
    twin = site(text(band=1.5, small={"limit": 3, "uses": {"vcpus": 4}}))
    assert [went(twin, queued(twin, ada)) for _ in range(2)] == ["small", "large"]


def test_a_paused_pool_has_no_room(ada: User) -> None:
    twin = site(text(band=1.5))
    apply.pause(twin.on, SMALL, paused=True)
    assert went(twin, queued(twin, ada)) == "large"
    apply.pause(twin.on, LARGE, paused=True)
    assert went(twin, queued(twin, ada)) == "small"


def test_a_warm_worker_that_is_dearer_serves_if_a_new_one_would_cost_more(twin: Twin, ada: User) -> None:
    keep_one(twin, ada)
    assert went(twin, submit(twin, ada)) == "small"
    learn(twin, SMALL, holds=3, mean_hold=160.0, mean_wait=60.0, boots=2, mean_boot=60.0)
    assert went(twin, submit(twin, BOB)) == "small"
    job = submit(twin, ada)
    said = "large has a warm worker, which is cheaper than a new one of small; both are of any"
    assert (went(twin, job), job_of(twin, job).request.chosen) == ("large", said)


def test_a_warm_worker_of_the_cheapest_comes_before_all_others(ada: User) -> None:
    twin = site(text(small={"warm": {"max": 1}}))
    keep_one(twin, ada)
    keep_one(twin, ada, "small")
    learn(twin, SMALL, holds=3, mean_hold=160.0, mean_wait=60.0, boots=2, mean_boot=60.0)
    assert [went(twin, queued(twin, ada)) for _ in range(2)] == ["small", "large"]


def test_a_long_use_is_not_worth_a_dearer_worker(twin: Twin, ada: User) -> None:
    keep_one(twin, ada)
    learn(twin, SMALL, holds=3, mean_hold=180.0, mean_wait=60.0, boots=2, mean_boot=60.0)
    assert went(twin, submit(twin, ada)) == "small"


def test_a_warm_worker_is_none_for_a_job_with_an_image_of_its_own(twin: Twin, ada: User) -> None:
    """Its worker is made for it, so that nothing dearer is taken."""
    keep_one(twin, ada)
    learn(twin, SMALL, holds=3, mean_hold=160.0, mean_wait=60.0, boots=2, mean_boot=60.0)
    image = f"docker.io/library/rust@sha256:{'ab' * 32}"
    assert went(twin, submit(twin, ada, image=image)) == "small"
    assert went(twin, submit(twin, ada)) == "large"


def test_a_worker_that_is_made_ahead_is_warm_once_it_is_there(ada: User) -> None:
    twin = site(text(band=1.5, small={"limit": 3}, large={"warm": {"max": 1, "min": 1}}))
    assert went(twin, queued(twin, ada)) == "small"
    (ahead,) = [unit for unit in existing(twin) if unit.type == "large"]
    assert Agent(twin, ahead.id).hello().idle
    assert [went(twin, queued(twin, BOB)) for _ in range(2)] == ["large", "small"]


def test_nothing_is_read_where_one_target_only_fits(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def stand_of(*given: object) -> None:
        raise AssertionError(given)

    monkeypatch.setattr(machines, "stand_of", stand_of)
    monkeypatch.setattr(machines, "_warm_instead", stand_of)
    assert went(twin, submit(twin, ada, machine={"cpus": 8})) == "large"


def test_of_what_costs_more_only_that_is_read_which_could_be_cheaper(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    stand_of = machines.stand_of

    def noting(on: System, where: Site, owner: str, target: Target) -> Stand:
        looked.append(target.name)
        return stand_of(on, where, owner, target)

    monkeypatch.setattr(machines, "stand_of", noting)
    assert went(twin, submit(twin, ada)) == "small"
    assert looked == ["small"]
    learn(twin, SMALL, holds=3, mean_hold=160.0, mean_wait=60.0, boots=2, mean_boot=60.0)
    assert went(twin, submit(twin, ada)) == "small"
    assert looked == ["small", "small", "large"]


def test_who_may_not_use_a_target_gets_another_and_who_has_no_other_is_refused(ada: User, root: User) -> None:
    """SEC-2: a family opens nothing."""
    twin = site(text(small={"privilege": "target.small"}))
    assert (went(twin, submit(twin, ada)), went(twin, submit(twin, root))) == ("large", "small")
    both = site(text(small={"privilege": "target.small"}, large={"privilege": "target.large"}))
    found = refused(lambda: submit(both, ada))
    assert found == (403, "privilege-missing", "target small needs the privilege 'target.small'")


@pytest.mark.parametrize("name", ["lab", "behind"])
def test_the_privilege_of_a_family_is_needed_by_whatever_name_leads_to_it(twin: Twin, root: User, name: str) -> None:
    """SEC-2: when it is submitted, and when its worker is granted."""
    found = refused(lambda: submit(twin, BOB, target=name))
    assert found == (403, "privilege-missing", "target lab needs the privilege 'target.lab'")
    job = queued(twin, root, target=name)
    assert went(twin, job) == "large"
    assert job_of(twin, job).request.needs[0].privileges == ("target.lab",)


def test_a_factory_is_tested_on_the_target_of_a_family_that_it_serves(root: User) -> None:
    twin = site(text(large={"factory": "other"}))
    assert factory_test.start(twin.on, root, "other", "any", None, None).target == "large"
    assert factory_test.start(twin.on, root, "hand", "default", None, None).target == "small"
    found = refused(lambda: factory_test.start(twin.on, root, "hand", "lab", None, None))
    assert found[1:] == ("other-factory", "target lab is served by factory other; factory hand serves: old, small")


def test_a_family_has_no_pool(twin: Twin) -> None:
    assert twin.store.get(pool_key("target/any"), Row) is None
    assert twin.store.get(pool_key(LARGE), Row)


def test_a_warm_worker_counts_as_no_boot(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "SAMPLED", 1)
    agent = keep_one(twin, ada)
    twin.pass_time(60)
    job = queued(twin, ada, target="large")
    twin.pass_time(5)
    agent.hello()
    agent.finish(job)
    agent.hello()
    times = twin.store.get(HoldTimes(pool=LARGE).key, HoldTimes)
    assert times
    assert (times.holds, times.boots) == (2, 1)


def test_a_worker_that_was_not_heard_of_counts_as_no_boot(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "SAMPLED", 1)
    job = queued(twin, ada)
    twin.pass_time(60)
    cancel.cancel(twin.on, ada, job)
    twin.run()
    times = twin.store.get(HoldTimes(pool=SMALL).key, HoldTimes)
    assert times
    assert (times.holds, times.boots, round(times.mean_hold)) == (1, 0, 60)
