"""Limits of one owner's jobs, over the real use cases: nobody fills the site, and every end makes room again."""

from __future__ import annotations

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job
from penstock.domain.users import users
from penstock.domain.users.users import Tally, User, tally_key
from penstock.kernel.errors import Refused
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, settle
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.site import apply
from tests.usecases.races import before_the_next_write_of
from tests.usecases.steps import SCRIPT, job_of, run_to_end, submit

BEA = User(name="bea", created=START, version=1)


@pytest.fixture
def small(twin: Twin) -> Twin:
    """A site where an owner has three jobs at most, and submits four a minute."""
    text = site_toml(targets={"default": {"limit": 9}}, limits={"jobs": 3, "submits": 4})
    apply.apply(twin.on, "root", text, "site.toml")
    twin.run()
    return twin


def jobs(twin: Twin, owner: str = "ada") -> int:
    row = twin.store.get(tally_key(owner), Tally)
    return row.jobs if row else 0


def refused(twin: Twin, user: User) -> str:
    with pytest.raises(Refused) as caught:
        submit(twin, user)
    assert caught.value.status == 429
    return caught.value.code


def test_one_owner_fills_its_own_limit_and_no_others(small: Twin, ada: User) -> None:
    for _ in range(3):
        submit(small, ada)
    assert refused(small, ada) == "too-many-jobs"
    assert submit(small, BEA)
    assert (jobs(small), jobs(small, "bea")) == (3, 1)


def test_a_refused_job_leaves_nothing(small: Twin, ada: User) -> None:
    for _ in range(3):
        submit(small, ada)
    before = dict(small.store.rows)
    refused(small, ada)
    assert small.store.rows == before


def test_every_end_makes_room(small: Twin, ada: User) -> None:
    """Whether it succeeded, was cancelled before it began, or was lost for good."""
    done, cancelled, lost = (submit(small, ada) for _ in range(3))
    small.run()
    run_to_end(small, done)
    assert jobs(small) == 2
    cancel.cancel(small.on, ada, cancelled)
    small.run()
    assert jobs(small) == 1
    for attempt in (1, 2):
        assert jobs(small) == 1, "an attempt that is followed by another ends no job"
        settle.settle(small.on, lost, attempt, "Lost", "it is gone")
        settle.settle(small.on, lost, attempt, "Lost", "and again")
        small.run()
    assert job_of(small, lost).is_settled
    assert jobs(small) == 0


def test_who_submits_too_fast_waits_a_little(small: Twin, ada: User) -> None:
    for _ in range(4):
        run_to_end(small, submit(small, ada))
        small.run()
    assert refused(small, ada) == "too-many-submits"
    small.pass_time(15)
    assert submit(small, ada)


def test_the_same_request_again_is_no_new_job(small: Twin, ada: User) -> None:
    made = [jobs_submit.submit(small.on, ada, SubmitJob(SCRIPT), "k") for _ in range(6)]
    assert len(set(made)) == 1
    assert jobs(small) == 1
    for _ in range(2):
        submit(small, ada)
    assert jobs_submit.submit(small.on, ada, SubmitJob(SCRIPT), "k") == made[0], "also when there is no room"


def test_two_at_once_are_both_counted(small: Twin, ada: User, by_flow: None) -> None:
    """Nothing but the tally is written by both."""
    before_the_next_write_of(small, Tally, lambda: submit(small, ada))
    submit(small, ada)
    assert jobs(small) == 2
    before_the_next_write_of(small, Tally, lambda: submit(small, ada))
    assert refused(small, ada) == "too-many-jobs"
    assert jobs(small) == 3


def test_an_end_and_a_submit_at_once_are_both_counted(small: Twin, ada: User, by_flow: None) -> None:
    first = submit(small, ada)
    before_the_next_write_of(small, Tally, lambda: submit(small, ada))
    cancel.cancel(small.on, ada, first)
    small.run()
    assert job_of(small, first).is_settled
    assert jobs(small) == 1


def test_a_job_ends_whose_owners_tally_is_gone(small: Twin, ada: User) -> None:
    made = submit(small, ada)
    del small.store.rows[tally_key("ada")]
    cancel.cancel(small.on, ada, made)
    small.run()
    assert job_of(small, made).is_settled


def test_a_job_keeps_its_weight_when_the_limits_change(small: Twin, ada: User) -> None:
    made = submit(small, ada)
    apply.apply(small.on, "root", site_toml(targets={"default": {"limit": 9}}), "site.toml")
    small.run()
    run_to_end(small, made)
    assert jobs(small) == 0


def test_with_high_limits_few_jobs_are_counted_and_all_make_room(twin: Twin, ada: User) -> None:
    made = [submit(twin, ada) for _ in range(60)]
    counted = [job_of(twin, each).usage.counted for each in made]
    assert 0 < sum(map(bool, counted)) < 15
    assert jobs(twin) == sum(counted)
    for each in made:
        cancel.cancel(twin.on, ada, each)
    twin.run()
    assert all(row.is_settled for row in twin.store.rows.values() if isinstance(row, Job))
    assert jobs(twin) == 0
    row = twin.store.get(tally_key("ada"), Tally)
    assert row
    assert row.version == 2 * sum(map(bool, counted)), "the others write nothing"


def test_the_services_own_jobs_are_not_counted(small: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "check_tally", lambda *_: pytest.fail("a canary is not limited"))
    jobs_submit.submit(small.on, ada, SubmitJob(SCRIPT), None, canary="target/default")
    assert jobs(small) == 0
