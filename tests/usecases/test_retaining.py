"""What a job owns is kept for the jobs that depend on it, from their submit until they settle. [ART-1]"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from penstock.domain.artifacts.retention import Retention, retention_key
from penstock.domain.jobs.jobs import Result, State
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Create, Replace
from penstock.testing.twin import Twin
from penstock.usecases.jobs import prerequisites, settle
from penstock.usecases.site import apply
from tests.usecases.conftest import SITE
from tests.usecases.exact import commits, drop, put, running
from tests.usecases.races import before_the_next_commit, before_the_next_write_of
from tests.usecases.steps import finish, job_of, submit


def kept(twin: Twin, job: str) -> Retention:
    found = settle.find_retention(twin.on, job)[0]
    assert found
    return found


def pin(twin: Twin, job: str, dependent: str) -> list[Change]:
    changes = prerequisites.pin(twin.on, job, dependent)
    assert not changes or twin.store.commit(changes)
    return changes


def test_it_is_written_when_it_says_something_and_not_before(twin: Twin, ada: User) -> None:
    """A job without dependents has no use for it before its end, and then its own row says all."""
    job = running(twin, ada)
    assert job_of(twin, job).end.kept_until is None
    finish(twin, job)
    assert job_of(twin, job).end.kept_until == kept(twin, job).until
    assert twin.store.get(retention_key(job), Retention) is None
    pin(twin, job, "D")
    assert job_of(twin, job).end.kept_until is None
    assert kept(twin, job).version == 1


def test_of_a_jobs_end_and_its_first_dependent_the_later_one_sees_the_other(twin: Twin, ada: User) -> None:
    """ART-1: both write the job's row."""
    job = running(twin, ada)
    changes = prerequisites.pin(twin.on, job, "D")
    finish(twin, job)
    assert not twin.store.commit(changes)
    job = running(twin, ada)
    before_the_next_commit(twin, lambda: pin(twin, job, "D"))
    settle.settle(twin.on, job, 1, "Cancelled", None)
    assert (kept(twin, job).dependents, kept(twin, job).until is None) == (("D",), False)


def test_a_first_dependent_assumes_that_the_job_has_not_settled(twin: Twin, ada: User) -> None:
    """ART-1: also when all that the job had is gone again by the time of the write."""
    job = running(twin, ada)
    changes = prerequisites.pin(twin.on, job, "D")
    finish(twin, job)
    put(twin, job_of(twin, job), kept_until=None, outputs_gone=twin.world.now())
    assert not twin.store.commit(changes)


@pytest.mark.parametrize(("result", "days"), [(Result.SUCCEEDED, 30), (Result.FAILED, 14)])
def test_its_time_is_set_in_the_write_that_settles_the_job(twin: Twin, ada: User, result: Result, days: int) -> None:
    job = running(twin, ada)
    finish(twin, job, result)
    settled = job_of(twin, job).times.settled
    assert settled
    assert kept(twin, job).until == settled + timedelta(days=days)


def test_a_site_says_how_long(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    apply.apply(twin.on, "admin", SITE + '[retention]\nsucceeded = "2h"\n', "site.toml")
    finish(twin, job)
    settled = job_of(twin, job).times.settled
    assert settled
    assert kept(twin, job).until == settled + timedelta(hours=2)


def test_an_attempt_that_is_followed_by_another_ends_nothing(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    assert twin.store.get(retention_key(job), Retention) is None
    pin(twin, job, "D")
    settle.settle(twin.on, job, 2, "Cancelled", None)
    assert kept(twin, job).dependents == ("D",)


def test_an_attempt_that_is_followed_by_another_writes_it_not_again(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    pin(twin, job, "D")
    before = twin.store.get(retention_key(job), Retention)
    assert before
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    assert job_of(twin, job).attempt == 2
    assert twin.store.get(retention_key(job), Retention) == before


def test_a_dependent_comes_and_goes(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    assert pin(twin, job, "D")
    assert pin(twin, job, "D") == []
    assert kept(twin, job).dependents == ("D",)
    settle.unpin(twin.on, job, "D")
    written = commits(twin)
    settle.unpin(twin.on, job, "D")
    settle.unpin(twin.on, "nothing", "D")
    assert (kept(twin, job).dependents, written) == ((), [])


def test_two_that_come_at_once_are_both_there(twin: Twin, ada: User) -> None:
    """The later of two submits is refused by its row's version, and reads again."""
    job = submit(twin, ada)
    changes = prerequisites.pin(twin.on, job, "D")
    pin(twin, job, "E")
    assert not twin.store.commit(changes)
    pin(twin, job, "D")
    assert kept(twin, job).dependents == ("E", "D")


def test_a_dependent_that_leaves_while_another_comes_takes_nobody_along(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    pin(twin, job, "D")
    before_the_next_commit(twin, lambda: pin(twin, job, "E"))
    settle.unpin(twin.on, job, "D")
    assert kept(twin, job).dependents == ("E",)


def test_two_that_come_to_one_with_dependents_at_once_are_both_there(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    pin(twin, job, "C")
    changes = prerequisites.pin(twin.on, job, "D")
    pin(twin, job, "E")
    assert not twin.store.commit(changes)
    assert kept(twin, job).dependents == ("C", "E")


def test_who_comes_while_a_job_with_dependents_settles_stays(twin: Twin, ada: User) -> None:
    """ART-1: the job's end writes the row too."""
    job = running(twin, ada)
    pin(twin, job, "D")
    before_the_next_write_of(twin, Retention, lambda: pin(twin, job, "E"))
    finish(twin, job)
    assert (kept(twin, job).dependents, kept(twin, job).until is None) == (("D", "E"), False)


def test_a_job_that_settles_while_somebody_comes_settles(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    changes = prerequisites.pin(twin.on, job, "D")
    finish(twin, job)
    assert kept(twin, job).until
    assert not twin.store.commit(changes)
    pin(twin, job, "D")
    assert kept(twin, job).until
    assert kept(twin, job).dependents == ("D",)


def refusal(twin: Twin, job: str) -> Refused:
    with pytest.raises(Refused) as told:
        prerequisites.pin(twin.on, job, "D")
    return told.value


def test_nobody_depends_on_what_is_gone(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    pin(twin, job, "D")
    put(twin, kept(twin, job), ended=twin.world.now())
    assert (refusal(twin, job).status, refusal(twin, job).code) == (422, "outputs-gone")
    drop(twin, kept(twin, job))
    put(twin, job_of(twin, job), state=State.SETTLED, outputs_gone=datetime.fromisoformat("2026-02-03T04:05:06+00:00"))
    assert refusal(twin, job).detail == (
        f"the outputs of job {job} are gone since 2026-02-03 04:05 UTC: "
        "the site keeps what a job had for a limited time"
    )
    assert refusal(twin, "nothing").status == 404


def test_a_pin_is_no_write_of_its_own(twin: Twin, ada: User) -> None:
    """It belongs into the write that accepts the dependent: neither is there without the other."""
    job = submit(twin, ada)
    written = commits(twin)
    first = prerequisites.pin(twin.on, job, "D")
    assert (written, [type(change) for change in first]) == ([], [Create, Replace])
    pin(twin, job, "D")
    written.clear()
    more = prerequisites.pin(twin.on, job, "E")
    assert (written, [type(change) for change in more]) == ([], [Replace])
