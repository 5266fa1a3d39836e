"""A repeated request with its Idempotency-Key gets its first answer, whatever would be refused by now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.domain.commands import AcquireLease, SubmitJob
from penstock.domain.jobs.jobs import Job, State
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import discard, inputs
from penstock.usecases.jobs import cancel, submit_lease
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.site import apply
from tests.usecases.conftest import SITE
from tests.usecases.dependencies import depends
from tests.usecases.inputs import run, send
from tests.usecases.steps import SCRIPT, job_of, submit


def gone(twin: Twin, user: User, job: str) -> None:
    """Delete what a settled job kept, so that no other may depend on it."""
    discard.discard(twin.on, user, job_of(twin, job))


def test_a_submit_whose_dependency_is_gone_by_now(twin: Twin, ada: User) -> None:
    prior = submit(twin, ada)
    run(twin, prior)
    ask = SubmitJob(SCRIPT, **depends(prior))  # type: ignore[arg-type]
    first = jobs_submit.submit(twin.on, ada, ask, "k")
    run(twin, first)
    gone(twin, ada, prior)
    assert jobs_submit.submit(twin.on, ada, ask, "k") == first
    for key in ("another", None):
        with pytest.raises(Refused, match="are gone since"):
            jobs_submit.submit(twin.on, ada, ask, key)
    with pytest.raises(Refused, match="used for another request"):
        jobs_submit.submit(twin.on, ada, replace(ask, name="other"), "k")


def test_a_submit_that_needs_a_privilege_which_its_user_has_no_more(twin: Twin, ada: User) -> None:
    ask = SubmitJob(SCRIPT, priority=5)
    first = jobs_submit.submit(twin.on, ada, ask, "k")
    assert jobs_submit.submit(twin.on, replace(ada, privileges=()), ask, "k") == first


@pytest.mark.parametrize("shares", ["", '[shares]\nhalf_life = "1h"\n'])
def test_a_submit_that_reached_its_owners_limit(twin: Twin, ada: User, shares: str) -> None:
    apply.apply(twin.on, "admin", f"{SITE}\n{shares}[limits]\njobs = 1\n", "site.toml")
    ask = SubmitJob(SCRIPT)
    first = jobs_submit.submit(twin.on, ada, ask, "k")
    with pytest.raises(Refused, match=r"limits\.jobs"):
        jobs_submit.submit(twin.on, ada, ask, None)
    assert jobs_submit.submit(twin.on, ada, ask, "k") == first


def test_a_lease_of_what_the_site_has_no_more(twin: Twin, ada: User) -> None:
    ask = AcquireLease(["bench"])
    first = submit_lease.acquire(twin.on, ada, ask, "k")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(submit_lease.admission, "check_types", lambda site, asks: Refused(422, "unknown-type", "no"))
        assert submit_lease.acquire(twin.on, ada, ask, "k") == first
        with pytest.raises(Refused, match="no"):
            submit_lease.acquire(twin.on, ada, ask, "another")


def test_a_retry_whose_dependency_is_gone_by_now(twin: Twin, ada: User) -> None:
    prior = submit(twin, ada)
    run(twin, prior)
    job = submit(twin, ada, **depends(prior))
    run(twin, job)
    again = jobs_submit.retry(twin.on, ada, job_of(twin, job), key="k")
    run(twin, again)
    gone(twin, ada, prior)
    assert jobs_submit.retry(twin.on, ada, job_of(twin, job), key="k") == again


def test_a_retry_that_ended_before_it_got_its_inputs(twin: Twin, ada: User) -> None:
    """Its first call died between its two writes."""
    job = submit(twin, ada, inputs=["a"])
    send(twin, job, "a", b"abc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "adopt", lambda on, job, of: None)
        again = jobs_submit.retry(twin.on, ada, job_of(twin, job), key="k")
    cancel.cancel(twin.on, ada, again)
    assert jobs_submit.retry(twin.on, ada, job_of(twin, job), key="k") == again
    assert job_of(twin, again).state is State.SETTLED
    assert len([row for row in twin.store.rows.values() if isinstance(row, Job)]) == 2
