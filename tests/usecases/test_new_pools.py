"""A site counts as soon as it is applied, and its rollout makes its new pools after that: a job may come in between.

The crash sweep found that such a job failed at once, because "the site no longer has" what it had just begun to have.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Throttled
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs import jobs
from penstock.usecases.site import apply
from tests.usecases.races import Died, after_the_next_commit, before_the_next_write_of, die
from tests.usecases.steps import job_of, run_to_end, submit, sweep, told

OLD = site_toml(targets={"linux": {"limit": 1}})
NEW = site_toml(
    targets={"linux": {"limit": 1}, "big": {"limit": 1, "uses": {"vcpus": 8}}, "mac": {"limit": 1}},
    quotas={"vcpus": 8},
)
COMES = "the job waits for {}, which is new in the site's configuration and comes within minutes"
IS_GONE = "the job waits for {}, which the site no longer has"


@pytest.fixture
def twin() -> Twin:
    """The function that applies NEW ends as soon as its text is committed: no new pool is there."""
    made = Twin()
    apply.apply(made.on, "ada", OLD, "site.toml")
    made.run()
    after_the_next_commit(made, die)
    with suppress(Died):
        apply.apply(made.on, "ada", NEW, "site.toml")
    assert made.store.get(pool_key("target/mac"), Pool) is None
    return made


def test_it_waits_and_is_told_why_and_runs_once_its_pool_is_there(twin: Twin, ada: User) -> None:
    """JOB-1: it costs no attempt."""
    job = submit(twin, ada, target="mac")
    twin.run()
    assert job_of(twin, job).state is State.ACQUIRING
    assert jobs.explain(twin.on, job_of(twin, job)).summary == COMES.format("target/mac")
    assert told(twin, job)[-1] == COMES.format("target/mac")
    sweep(twin)
    run_to_end(twin, job)
    ended = job_of(twin, job)
    assert (ended.end.outcome, ended.attempt) == (Outcome.SUCCEEDED, 1)


def test_it_waits_for_a_new_quota_too(twin: Twin, ada: User) -> None:
    """The rollout is refused where it makes the quota, after it made the target."""

    def refused() -> None:
        raise Throttled("dynamodb")

    before_the_next_write_of(twin, Pool, refused, lambda pool: pool.name == "quota/vcpus")
    sweep(twin)
    assert twin.store.get(pool_key("target/big"), Pool)
    assert twin.store.get(pool_key("quota/vcpus"), Pool) is None
    job = submit(twin, ada, target="big")
    twin.run()
    assert jobs.explain(twin.on, job_of(twin, job)).summary == COMES.format("quota/vcpus")
    assert told(twin, job)[-1] == COMES.format("quota/vcpus")
    sweep(twin)
    run_to_end(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_it_fails_if_the_site_has_its_pool_no_more(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="mac")
    apply.apply(twin.on, "ada", OLD, "site.toml")
    twin.run()
    ended = job_of(twin, job).end
    assert (ended.outcome, ended.reason) == (Outcome.FAILED, "the site no longer has target/mac")


def test_one_that_waits_already_is_told_that_its_pool_comes_no_more(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="mac")
    twin.run()
    apply.apply(twin.on, "ada", OLD, "site.toml")
    twin.run()
    assert jobs.explain(twin.on, job_of(twin, job)).summary == IS_GONE.format("target/mac")
