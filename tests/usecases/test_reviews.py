"""A job that asks for an environment waits until somebody approves it, through the real use cases. [SEC-2]"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs import statement
from penstock.domain.jobs.failures import Kind
from penstock.domain.jobs.jobs import Outcome, State, job_key, spec_key
from penstock.domain.jobs.reviews import ReviewRequest, review_key
from penstock.domain.jobs.statement import Service
from penstock.domain.users import oidc
from penstock.domain.users.audit import Wanted
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, jobs, prerequisites, provenance, reviews, submit
from penstock.usecases.site import apply
from penstock.usecases.users import audit, privileges
from penstock.usecases.users.oidc import token
from tests.usecases.conftest import SITE
from tests.usecases.dependencies import depends
from tests.usecases.outputs import keep
from tests.usecases.races import before_the_next_commit
from tests.usecases.reviewed import PRODUCTION, SCRIPT, asks, reviewing, user
from tests.usecases.steps import finish, hello, job_of, run_to_end, sweep, told
from tests.usecases.steps import submit as submit_plain

BERT = user("bert", START)
AWS = "sts.amazonaws.com"


@pytest.fixture
def site(twin: Twin) -> Twin:
    reviewing(twin)
    return twin


def refused(act: Any, *given: Any, **named: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        act(*given, **named)
    return caught.value


def audited(twin: Twin) -> Sequence[tuple[str, str, str]]:
    entries = audit.list_entries(twin.on, Wanted(), 50, "")[0]
    return [(one.by, one.did, one.detail) for one in entries if one.what.startswith("job ")]


def test_a_job_waits_until_a_reviewer_approves_and_has_the_privileges_of_its_environment(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    site.run()
    assert (job_of(site, job).state, site.drivers.hand.made) == (State.WAITING, {})
    assert "it waits for a review for the environment production; then a worker of lab" in told(site, job)[0]
    reviews.decide(site.on, BERT, job)
    assert job_of(site, job).state is State.QUEUED
    assert "github" not in [message.get("do") for _, _, message in site.queues.messages], "no check shows it"
    run_to_end(site, job)
    assert job_of(site, job).end.outcome is Outcome.SUCCEEDED
    said = [line.partition(" (")[0] for line in told(site, job)]
    approved = said.index("approved for the environment production, by bert")
    assert approved < said.index("job dependencies complete; ready to run")
    assert audited(site) == [("bert", "approve", "for the environment production")]


def test_why_says_who_has_to_approve_and_until_when(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    found = jobs.explain(site.on, job_of(site, job))
    who = "bert or ada or Octo at GitHub"
    assert found.summary == (
        f"the job waits until {who} approves it for the environment production (until 2026-01-08 00:00:00Z)"
    )
    assert (found.waiting_for, found.next_steps) == ("a review for production", f"{who} approves job {job}")
    reviewing(site, environment="")
    gone = jobs.explain(site.on, job_of(site, job))
    assert gone.summary == "the environment production, for which the job waits to be approved, is no longer there"
    assert gone.next_steps == f"nobody approves job {job}"


def test_a_plan_says_that_there_would_be_a_review(site: Twin, ada: User) -> None:
    found = submit.plan(site.on, ada, SubmitJob(SCRIPT))
    assert "first it would wait for a review for the environment production" in found.sentences
    assert found.depends


def test_a_job_waits_for_others_and_for_a_review_in_any_order(site: Twin, ada: User) -> None:
    first = submit_plain(site, ada)
    job = submit.submit(site.on, ada, SubmitJob(SCRIPT, **depends(first)), None)  # type: ignore[arg-type]
    reviews.decide(site.on, BERT, job)
    assert job_of(site, job).state is State.WAITING
    run_to_end(site, first)
    assert job_of(site, job).state is State.ACQUIRING


def test_what_nobody_approves_in_time_fails(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    sweep(site, 7 * 24 * 3600 - 61)
    assert job_of(site, job).state is State.WAITING
    sweep(site)
    found = job_of(site, job)
    assert requests(site) == []
    assert found.end.reason == "nobody approved this job for the environment production in time; failing job"
    assert (found.end.outcome, found.run.failure and found.run.failure.kind) == (
        Outcome.FAILED,
        Kind.DEPENDENCY_FAILED,
    )


def test_what_is_refused_fails_and_says_who_refused(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    reviews.decide(site.on, BERT, job, refuse=True)
    found = job_of(site, job)
    assert (found.end.outcome, found.run.failure and found.run.failure.kind) == (Outcome.FAILED, Kind.NOT_ALLOWED)
    assert found.end.reason == "bert refused it for the environment production"
    assert "refused for the environment production, by bert" in told(site, job)
    assert audited(site) == [("bert", "refuse", "for the environment production")]
    assert refused(reviews.decide, site.on, BERT, job).code == "job-settled"


def test_the_first_decision_stands(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    reviews.decide(site.on, BERT, job)
    reviews.decide(site.on, BERT, job)
    again = job_of(site, job)
    assert again.review
    assert (again.review.by, len(audited(site))) == ("bert", 1)
    assert [line for line in told(site, job) if line.startswith("approved")] == [
        "approved for the environment production, by bert"
    ]
    assert "" not in told(site, job)
    assert refused(reviews.decide, site.on, BERT, job, refuse=True).code == "already-approved"
    cancel.cancel(site.on, ada, job)
    assert refused(reviews.decide, site.on, BERT, job).code == "job-settled"


def test_a_function_that_dies_after_the_approval_loses_nothing(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prerequisites, "judge", lambda *_: None)
        reviews.decide(site.on, BERT, job)
    assert job_of(site, job).state is State.WAITING
    sweep(site, 61)
    assert job_of(site, job).state is State.ACQUIRING


def test_one_that_dies_after_the_refusal_neither(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prerequisites, "judge", lambda *_: None)
        reviews.decide(site.on, BERT, job, refuse=True)
    sweep(site, 200)
    assert job_of(site, job).end.outcome is Outcome.FAILED


def test_a_reviewer_sees_what_they_approve(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    found = reviews.find(site.on, BERT, job)
    assert (found.job.id, found.environment and found.environment.name) == (job, "production")
    assert found.spec
    assert found.spec.script == SCRIPT
    assert refused(jobs.find, site.on, BERT, job).status == 404


def requests(twin: Twin) -> list[ReviewRequest]:
    return [row for row in twin.store.rows.values() if isinstance(row, ReviewRequest)]


def waiting_for(twin: Twin, reviewer: User) -> list[str]:
    return [job.id for job in reviews.list_requests(twin.on, reviewer, 50, "")[0]]


def test_a_reviewer_finds_what_waits_for_them(site: Twin, ada: User) -> None:
    first, second, third = (asks(site, ada) for _ in range(3))
    assert waiting_for(site, BERT) == waiting_for(site, ada) == [first, second, third]
    assert waiting_for(site, user("carl", START, "admin")) == []
    reviews.decide(site.on, BERT, first)
    cancel.cancel(site.on, ada, second)
    assert waiting_for(site, BERT) == [third]
    reviews.decide(site.on, BERT, third, refuse=True)
    assert waiting_for(site, BERT) == []
    assert requests(site) == []


def test_pages_of_reviews_follow_each_other(site: Twin, ada: User) -> None:
    staging = PRODUCTION.replace("production", "staging").replace('"bert", ', "")
    reviewing(site, environment=PRODUCTION + staging)
    first = asks(site, ada)
    others = asks(site, ada, SCRIPT.replace("production", "staging"))
    second, third = asks(site, ada), asks(site, ada)
    found, page = reviews.list_requests(site.on, BERT, 2, "")
    assert ([job.id for job in found], page) == ([first, second], second)
    rest, end = reviews.list_requests(site.on, BERT, 2, str(page))
    assert ([job.id for job in rest], end) == ([third], None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reviews, "SCANNED", 2)
        assert [job.id for job in reviews.list_requests(site.on, BERT, 50, "")[0]] == [first]
        assert reviews.list_requests(site.on, BERT, 50, "")[1] == others
        assert reviews.list_requests(site.on, user("carl", START), 50, "") == ([], None)


def test_a_job_that_is_approved_already_or_over_waits_for_nobody(site: Twin, ada: User) -> None:
    """The request of one is there for a moment longer in the index, which is late."""
    first = submit_plain(site, ada)
    job = submit.submit(site.on, ada, SubmitJob(SCRIPT, **depends(first)), None)  # type: ignore[arg-type]
    request = site.store.get(review_key(job), ReviewRequest)
    assert request is not None
    reviews.decide(site.on, BERT, job)
    site.store.commit([Create(request)])
    assert (job_of(site, job).state, waiting_for(site, BERT)) == (State.WAITING, [])
    del site.store.rows[job_key(job)]
    assert waiting_for(site, BERT) == []


def test_a_request_that_expired_is_not_missed(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    del site.store.rows[review_key(job)]
    reviews.decide(site.on, BERT, job)
    assert job_of(site, job).state is State.QUEUED


def test_an_environment_that_is_gone_approves_nothing(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    reviewing(site, environment="")
    assert refused(reviews.decide, site.on, ada, job).code == "environment-gone"
    assert refused(reviews.decide, site.on, BERT, job).status == 404
    assert job_of(site, job).state is State.WAITING


def test_a_job_that_is_cancelled_meanwhile_is_not_approved(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    before_the_next_commit(site, lambda: cancel.cancel(site.on, ada, job))
    assert refused(reviews.decide, site.on, BERT, job).code == "job-settled"
    assert job_of(site, job).end.outcome is Outcome.CANCELLED
    assert audited(site) == []


def test_neither_is_one_that_is_forgotten_meanwhile(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reviews, "spec_of", lambda *_: site.store.rows.pop(job_key(job)) and None)
        assert refused(reviews.decide, site.on, BERT, job).code == "job-settled"


def test_a_script_that_is_no_longer_kept_is_not_shown(site: Twin, ada: User) -> None:
    job = asks(site, ada, SCRIPT + "# long\n" * 2000 + "".join(f"echo {number * 7919}\n" for number in range(2000)))
    assert reviews.find(site.on, BERT, job).spec
    del site.store.rows[spec_key(job)]
    assert reviews.find(site.on, BERT, job).spec is None


def test_a_job_without_an_environment_has_nothing_to_review(site: Twin, ada: User) -> None:
    job = submit_plain(site, ada)
    assert refused(reviews.find, site.on, ada, job).code == "no-review"
    assert refused(reviews.find, site.on, ada, "0" * 26).status == 404
    assert refused(reviews.find, site.on, ada, "x").status == 404


def test_an_environment_that_is_not_there_is_refused_with_a_hint(site: Twin, ada: User) -> None:
    found = refused(asks, site, ada, SCRIPT.replace('"production"', '"prodction"'))
    assert (found.code, found.detail) == (
        "unknown-environment",
        "there is no environment 'prodction'; did you mean 'production'?",
    )


def test_a_privilege_that_is_revoked_from_the_owner_is_still_the_environments(site: Twin, root: User) -> None:
    ada = privileges.granting.create(site.on, "ada", ["target.lab"], "root")
    job = asks(site, ada)
    site.run()
    reviews.decide(site.on, BERT, job)
    _, found = privileges.revoke(site.on, root, "ada", "target.lab", at_once=True)
    assert (list(found.stopped), list(found.holding)) == ([], [])
    run_to_end(site, job)
    assert job_of(site, job).end.outcome is Outcome.SUCCEEDED


def test_its_identity_is_that_of_the_environment(site: Twin, ada: User) -> None:
    reviewing(site, f'[identity]\naudiences = ["{AWS}"]\nprivilege = "target.lab"\n')
    job = asks(site, ada)
    reviews.decide(site.on, BERT, job)
    site.run()
    hello(site, job)
    assert token(site.on, job_of(site, job), AWS)
    said = oidc.claims(job_of(site, job), "i", AWS, "J1", site.world.now())
    assert (said["sub"], said["environment"]) == ("user:ada:environment:production", "production")


def test_a_privilege_that_the_environment_has_not_is_still_needed_for_an_identity(site: Twin, ada: User) -> None:
    reviewing(site, f'[identity]\naudiences = ["{AWS}"]\nprivilege = "other"\n')
    job = asks(site, ada)
    reviews.decide(site.on, BERT, job)
    site.run()
    hello(site, job)
    assert refused(token, site.on, job_of(site, job), AWS).code == "privilege-missing"


def test_who_approved_stands_in_the_statement_about_its_outputs(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    reviews.decide(site.on, BERT, job)
    site.run()
    hello(site, job)
    keep(site, job)
    finish(site, job)
    made = provenance.provenance(site.on, ada, job, Service("https://x", "1", "d"))
    assert b'"environment":"production","approvedBy":"bert"' in made.body
    assert statement.PREDICATE.encode() in made.body


def test_what_an_environment_is_now_decides_who_approves(site: Twin, ada: User) -> None:
    job = asks(site, ada)
    apply.apply(site.on, "admin", SITE + PRODUCTION.replace('"bert", ', ""), "site.toml")
    assert refused(reviews.decide, site.on, BERT, job).status == 404
