"""`access_repos`: what a job may read besides its own repository, and on whose word. [SEC-2]"""

from __future__ import annotations

import pytest

from penstock.domain.github.commits import Stage
from penstock.kernel.errors import Refused
from penstock.ports import GitHubResponse
from penstock.usecases.github import client
from penstock.usecases.github.client import Repository
from penstock.usecases.jobs import submit
from tests.github.fake import INSTALLATION, Repo
from tests.github.payloads import check_run, check_suite, pull_request, push
from tests.github.rig import A, Rig, job
from tests.github.tokens import ask, minted

KEYS, OTHER, FAR = 60, 61, 62


@pytest.fixture
def two(rig: Rig) -> Rig:
    """A commit one of whose jobs reads another repository, which ada and mem may read, and bob may not."""
    rig.fake.repos[KEYS] = Repo("oxide/keys", KEYS, rights={"ada": "read", "mem": "read", "eve": "none"})
    rig.fake.repos[OTHER] = Repo("oxide/other", OTHER, rights={"ada": "admin"})
    rig.fake.repos[FAR] = Repo("acme/far", FAR, rights={"ada": "admin"}, installation=100)
    wants(rig, "oxide/Keys", "Oxide/Hubris")
    return rig


def wants(rig: Rig, *names: str) -> None:
    """A job of the commit names repositories, and another names none."""
    named = ", ".join(f'"{name}"' for name in names)
    rig.commit(A, reads=job("reads", more=f"#: access_repos = [{named}]\n"), build=job("build"))


def token_of(rig: Rig, name: str) -> tuple[list[int], dict[str, str]]:
    rig.hello(rig.jobs()[name].id)
    found = minted(rig, ask(rig, rig.jobs()[name]))
    return found.repositories, found.permissions


def test_the_token_of_a_job_reads_what_its_file_names_and_does_no_more(two: Rig) -> None:
    two.policy('enable = true\npermissions = { contents = "write", packages = "read" }')
    two.say("push", push(A))
    assert token_of(two, "reads") == ([55, KEYS], {"contents": "read"})
    assert token_of(two, "build") == ([55], {"contents": "write", "packages": "read"})


def test_who_may_not_read_it_needs_the_approval_of_somebody_who_may(two: Rig) -> None:
    two.repo.rights["bob"] = "write"
    two.say("push", push(A, sender="bob"))
    assert (two.set().stage, two.all_jobs()) == (Stage.AWAITING, [])
    shown = two.fake.shown("penstock")
    assert shown["conclusion"] == "action_required"
    assert "may not read all of oxide/keys" in shown["output"]["summary"]
    two.say("check_run", check_run(shown, "ada", "approve"))
    assert set(two.jobs()) == {"reads", "build"}
    assert token_of(two, "reads") == ([55, KEYS], {"contents": "read"})


@pytest.mark.parametrize("policy", ["org_only = false", 'allow_users = ["eve"]'])
def test_who_needs_no_approval_otherwise_needs_it_for_this(two: Rig, policy: str) -> None:
    two.policy(f"enable = true\n{policy}")
    two.say("pull_request", pull_request(A))
    assert (two.set().stage, two.all_jobs()) == (Stage.AWAITING, [])
    two.fake.repos[KEYS].rights["zoe"] = "read"
    two.say("push", push(A, sender="zoe"))
    assert (two.set().stage is Stage.AWAITING) == ("users" in policy)  # it is for the same to let it run and read


def test_all_who_brought_it_must_be_able_to_read_it(two: Rig) -> None:
    two.policy("enable = true\norg_only = false")
    two.say("pull_request", pull_request(A, author="ada", sender="eve"))
    assert two.set().stage is Stage.AWAITING


def test_all_of_them_must_be_readable(two: Rig) -> None:
    wants(two, "oxide/keys", "oxide/other")
    two.say("push", push(A, sender="mem"))
    assert two.set().stage is Stage.AWAITING


def test_nobody_is_asked_about_who_is_nobody(two: Rig) -> None:
    two.say("push", push(A, sender="mem"))
    wants(two, "oxide/other")
    two.say("check_suite", check_suite(A, "ada"))
    assert two.set().stage is Stage.AWAITING
    assert not [path for _, path in two.fake.asked if "//" in path]


def test_who_may_read_is_what_github_says_and_nothing_else(two: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    of = Repository(INSTALLATION, 55, "oxide/hubris")
    assert client.may_read(two.on, of, "oxide/keys", "ada")
    assert not client.may_read(two.on, of, "oxide/keys", "eve")
    monkeypatch.setattr(two.forge, "call", lambda *_: GitHubResponse(404, {"permission": "read"}))
    assert not client.may_read(two.on, of, "oxide/keys", "ada")


def test_an_approval_by_who_may_not_read_it_either_is_told(two: Rig) -> None:
    two.repo.rights["bob"] = "write"
    two.say("pull_request", pull_request(A))
    two.say("check_run", check_run(two.fake.shown("penstock"), "bob", "approve"))
    shown = two.fake.shown("penstock")
    assert (two.set().stage, two.all_jobs(), shown["conclusion"]) == (Stage.SETTLED, [], "failure")
    assert "bob approved this, and may not read all of oxide/keys either" in shown["output"]["summary"]


@pytest.mark.parametrize("name", ["acme/far", "oxide/none"])
def test_what_another_installation_has_or_nobody_cannot_be_had(two: Rig, name: str) -> None:
    wants(two, name)
    two.say("push", push(A))
    shown = two.fake.shown("penstock")
    assert (two.set().stage, two.all_jobs(), shown["conclusion"]) == (Stage.SETTLED, [], "failure")
    assert f"a job of oxide/hubris cannot read {name}: the App is not installed there" in shown["output"]["summary"]


def test_what_is_taken_from_the_app_meanwhile_is_in_no_token(two: Rig) -> None:
    two.say("push", push(A))
    two.fake.repos[KEYS].installation = 100
    two.hello(two.jobs()["reads"].id)
    assert ask(two, two.jobs()["reads"]) is None


def test_a_repository_is_read_again_when_a_job_is_run_again(two: Rig) -> None:
    two.say("push", push(A))
    two.fake.repos[KEYS].name = "oxide/old-keys"
    two.fake.repos[63] = Repo("oxide/keys", 63, rights={"ada": "read"})
    assert token_of(two, "reads")[0] == [55, KEYS]  # the one that was looked at, by its id
    two.say("check_run", check_run(two.fake.shown("reads"), "ada"))
    assert token_of(two, "reads")[0] == [55, 63]


def test_a_job_of_a_commit_is_not_run_again_by_hand(two: Rig) -> None:
    two.say("push", push(A))
    with pytest.raises(Refused, match="press Re-run"):
        submit.retry(two.on, two.user, two.jobs()["reads"])
