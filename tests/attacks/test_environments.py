"""What somebody tried to get an environment's privileges without a review, or by one that is worth nothing. [SEC-2]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import reviews, submit
from penstock.usecases.site import apply
from penstock.usecases.users import users
from tests.functions.service import Service, refused
from tests.github.conftest import app_key, rig
from tests.github.fake import APP
from tests.github.payloads import check_run, pull_request, push
from tests.github.rig import SITE, A, Rig, job
from tests.usecases.conftest import ada, new_twin, root
from tests.usecases.reviewed import PRODUCTION, SCRIPT, asks, reviewing, user
from tests.usecases.steps import job_of, run_to_end

__all__ = ["ada", "app_key", "rig", "root"]

ASKS = '#: target = "lab"\n#: environment = "production"\n'


def code(act: Any, *given: Any, **named: Any) -> str:
    with pytest.raises(Refused) as caught:
        act(*given, **named)
    return caught.value.code


@pytest.fixture
def site() -> Twin:
    made = new_twin()
    reviewing(made)
    return made


def test_without_an_environment_the_privilege_is_not_had(site: Twin, ada: User) -> None:
    assert code(asks, site, ada, SCRIPT.replace('#: environment = "production"\n', "")) == "privilege-missing"


def test_an_environment_gives_its_own_privileges_only(site: Twin, ada: User) -> None:
    reviewing(site, environment=PRODUCTION.replace("target.lab", "target.other"))
    assert code(asks, site, ada) == "privilege-missing"


def test_nobody_asks_for_another_owners_environment(site: Twin) -> None:
    assert code(asks, site, user("eve", START)) == "environment-not-allowed"


def test_nobody_approves_their_own_job(site: Twin, ada: User) -> None:
    """She reviews for this environment, but not what she wants herself."""
    mine = asks(site, ada)
    assert code(reviews.decide, site.on, ada, mine) == "own-job"
    assert job_of(site, mine).state is State.WAITING


def test_neither_under_a_name_that_they_had_before(site: Twin, ada: User) -> None:
    mine = asks(site, ada)
    renamed = User(name="bert", former=("ada",), created=START, version=1)
    assert code(reviews.decide, site.on, renamed, mine) == "own-job"


def vouching(site: Twin, name: str) -> User:
    """Somebody who submits for the repository, and whose word for the source counts."""
    if users.by_name(site.on, "oxide:hubris") is None:
        users.create(site.on, "oxide:hubris", [], "root")
    return users.create(site.on, name, ["as", "identity.vouch"], "root")


FOR_REPOSITORY = submit.SubmitJob(SCRIPT, owner="oxide:hubris", tags={"ref": "refs/heads/main"})


def test_nor_one_that_they_submitted_for_a_repository(site: Twin) -> None:
    """Its owner is the repository; it is theirs nevertheless."""
    bert, ada = vouching(site, "bert"), user("ada", START)
    job = submit.submit(site.on, bert, FOR_REPOSITORY, None)
    assert job_of(site, job).owner == "oxide:hubris"
    assert code(reviews.decide, site.on, bert, job) == "own-job"
    renamed = User(name="ada", former=("bert",), created=START, version=1)
    assert code(reviews.decide, site.on, renamed, job) == "own-job"
    assert job_of(site, job).state is State.WAITING
    reviews.decide(site.on, ada, job)
    assert job_of(site, job).state is State.QUEUED


def test_nor_one_that_somebody_else_had_run_again(site: Twin, ada: User) -> None:
    """What is run again is still the script of who wrote it."""
    bert, gate = vouching(site, "bert"), vouching(site, "gate")
    first = submit.submit(site.on, bert, FOR_REPOSITORY, None)
    again = submit.retry(site.on, gate, job_of(site, first))
    third = submit.retry(site.on, gate, job_of(site, again))
    assert code(reviews.decide, site.on, bert, again) == "own-job"
    assert code(reviews.decide, site.on, bert, third) == "own-job"
    reviewing(site, environment=PRODUCTION.replace('owners = ["ada"', 'owners = ["ada", "bert"'))
    mine = asks(site, ada)
    anothers = submit.retry(site.on, bert, job_of(site, mine))
    assert code(reviews.decide, site.on, ada, anothers) == "own-job"


def test_unless_the_environment_lets_who_submitted(site: Twin) -> None:
    reviewing(site, "self_review = true\n")
    bert = vouching(site, "bert")
    job = submit.submit(site.on, bert, FOR_REPOSITORY, None)
    reviews.decide(site.on, bert, job)
    assert job_of(site, job).state is State.QUEUED


def test_unless_the_environment_lets_them(site: Twin, ada: User) -> None:
    reviewing(site, "self_review = true\n")
    mine = asks(site, ada)
    reviews.decide(site.on, ada, mine)
    assert job_of(site, mine).state is State.QUEUED
    run_to_end(site, mine)


def test_an_operator_who_does_not_review_approves_nothing(site: Twin, ada: User, root: User) -> None:
    mine = asks(site, ada)
    assert code(reviews.decide, site.on, root, mine) == "not-a-reviewer"


def test_a_job_that_runs_again_is_reviewed_again(site: Twin, ada: User) -> None:
    mine = asks(site, ada)
    reviews.decide(site.on, user("bert", START), mine)
    run_to_end(site, mine)
    again = submit.retry(site.on, ada, job_of(site, mine))
    assert job_of(site, again).state is State.WAITING


def test_a_token_that_only_submits_approves_nothing(service: Service) -> None:
    """It may be the one that a build uses, of somebody who reviews."""
    made = service.ask("POST", "/v1/users/ada/tokens", {"scopes": ["submit", "read"]}, as_="root").json["token"]
    refused(service.ask("POST", f"/v1/jobs/{'0' * 26}/review", {}, token=made), 403, "scope-missing")


@pytest.fixture
def guarded(rig: Rig) -> Rig:
    """A repository whose main branch may ask for the environment; ada may write to it, and mem pushes."""
    text = SITE.format(app=APP, url=rig.fake.url) + PRODUCTION.replace('"Octo"', '"Octo", "Ada"')
    text += 'refs = ["refs/heads/main"]\n'
    apply.apply(rig.on, "root", text, "site.toml")
    rig.twin.run()
    rig.repo.rights |= {"octo": "write", "carl": "write"}
    rig.commit(A, deploy=job("deploy", more=ASKS))
    return rig


def pressed(rig: Rig, by: str) -> str:
    return rig.say("check_run", check_run(rig.fake.shown("deploy"), by, "review"))


def test_a_reviewer_approves_by_the_button_of_the_check(guarded: Rig) -> None:
    guarded.say("push", push(A))
    shown = guarded.fake.shown("deploy")
    assert [each["identifier"] for each in shown["actions"]] == ["review", "cancel"]
    assert shown["output"]["title"] == "Waiting for a review"
    assert "Waits until bert or ada or Octo at GitHub or Ada at GitHub approves it" in shown["output"]["summary"]
    assert pressed(guarded, "octo") == "approved by octo for the environment production"
    found = guarded.jobs()["deploy"]
    assert (found.state, found.review and found.review.by) == (State.ACQUIRING, "github/octo")
    assert [each["identifier"] for each in guarded.fake.shown("deploy")["actions"]] == ["cancel"]
    assert pressed(guarded, "octo") == "approved by octo for the environment production"
    guarded.hello(found.id)
    guarded.finish(found.id)
    assert "is over, or being cancelled" in pressed(guarded, "octo")


def test_the_button_is_gone_when_a_user_has_approved(guarded: Rig) -> None:
    guarded.say("push", push(A))
    reviews.decide(guarded.on, user("bert", START), guarded.jobs()["deploy"].id)
    guarded.twin.run()
    assert [each["identifier"] for each in guarded.fake.shown("deploy")["actions"]] == ["cancel"]


def test_the_button_is_for_reviewers_only(guarded: Rig) -> None:
    guarded.say("push", push(A))
    assert pressed(guarded, "carl") == "ignored: carl does not review for the environment production"
    assert pressed(guarded, "eve") == "ignored: eve may not write to oxide/hubris"
    assert guarded.jobs()["deploy"].state is State.WAITING


def test_who_pushed_a_commit_does_not_approve_it(guarded: Rig) -> None:
    guarded.say("push", push(A))
    assert pressed(guarded, "ada") == "ignored: ada brought this commit, and may not review it"
    assert guarded.jobs()["deploy"].state is State.WAITING


def test_unless_the_environment_lets_who_pushed(guarded: Rig) -> None:
    text = SITE.format(app=APP, url=guarded.fake.url) + PRODUCTION.replace('"Octo"', '"Ada"')
    apply.apply(guarded.on, "root", text + "self_review = true\n", "site.toml")
    guarded.twin.run()
    guarded.say("push", push(A))
    assert pressed(guarded, "ada") == "approved by ada for the environment production"


def test_the_button_of_a_job_without_an_environment_approves_nothing(guarded: Rig) -> None:
    guarded.commit(A, deploy=job("deploy"))
    guarded.say("push", push(A))
    assert pressed(guarded, "octo") == "ignored: there is nothing to review"


def test_the_button_of_an_environment_that_is_gone_approves_nothing(guarded: Rig) -> None:
    guarded.say("push", push(A))
    apply.apply(guarded.on, "root", SITE.format(app=APP, url=guarded.fake.url), "site.toml")
    assert pressed(guarded, "octo") == "ignored: there is nothing to review"
    assert guarded.jobs()["deploy"].state is State.WAITING


def test_another_branch_may_not_ask(guarded: Rig) -> None:
    guarded.say("push", push(A, "feature"))
    assert guarded.all_jobs() == []
    said = guarded.fake.shown("deploy")["output"]["summary"]
    assert "it is for jobs of refs/heads/main, and this one is of refs/heads/feature" in said


def test_a_pull_request_may_not_ask(guarded: Rig) -> None:
    guarded.repo.rights["mem"] = "write"
    guarded.say("pull_request", pull_request(A, 7, "ada"))
    assert guarded.all_jobs() == []
    assert "this one is of refs/pull/7" in guarded.fake.shown("deploy")["output"]["summary"]


def test_a_stranger_may_not_ask_although_somebody_approved_the_commit(guarded: Rig) -> None:
    guarded.say("pull_request", pull_request(A, 7))
    guarded.say("check_run", check_run(guarded.fake.shown("penstock"), "octo", "approve"))
    assert guarded.all_jobs() == []
    assert "somebody who may not write to the repository" in guarded.fake.shown("deploy")["output"]["summary"]


def test_a_user_who_submits_for_a_repository_vouches_for_no_ref(guarded: Rig) -> None:
    """Tags say what they like."""
    users.change_privilege(guarded.on, "oxide:hubris", "target.lab", grant=True, by="root")
    gate = users.create(guarded.on, "gate", ["as"], "root")
    ask = submit.SubmitJob(SCRIPT, owner="oxide:hubris", tags={"ref": "refs/heads/main"})
    assert code(submit.submit, guarded.on, gate, ask, None) == "environment-not-allowed"
