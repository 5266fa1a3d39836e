"""What strangers tried with a pull request, whether somebody approved it or the repository runs it unasked. [SEC-2]"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest

from penstock.domain.github.commits import Stage
from penstock.domain.jobs.jobs import Job, Outcome
from penstock.domain.published import Published
from penstock.kernel.errors import Refused
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from penstock.usecases.users import oidc, users
from tests.github.conftest import app_key, rig
from tests.github.fake import APP
from tests.github.payloads import check_run, pull_request, push
from tests.github.rig import SITE, A, B, Rig, job
from tests.usecases.outputs import keep
from tests.usecases.steps import told

__all__ = ["app_key", "rig"]

AWS = "sts.amazonaws.com"
PUBLISHES = """\
#: output_rules = ["/work/app"]
#: [[publish]]
#: from_output = "/work/app"
#: series = "nightly"
#: name = "app"
"""


@pytest.fixture(params=["approved", "org_only = false", 'allow_users = ["eve"]'])
def strange(rig: Rig, request: pytest.FixtureRequest) -> Rig:
    """A repository and a site that give much away; and the pull request of eve, whose jobs are run."""
    text = SITE.format(app=APP, url=rig.fake.url)
    apply.apply(rig.on, "root", f'{text}[identity]\naudiences = ["{AWS}"]\n', "site.toml")
    rig.twin.run()
    users.change_privilege(rig.on, "oxide:hubris", "target.lab", grant=True, by="root")
    policy = "" if request.param == "approved" else request.param
    rig.policy(f"enable = true\n{policy}")
    rig.commit(A, build=job("build", more=PUBLISHES), lab=job("lab", more='#: target = "lab"\n'))
    return rig


def let_run(rig: Rig) -> Job:
    """Have the jobs of eve's commit run, and its job `build` begin."""
    rig.say("pull_request", pull_request(A, 7))
    if rig.set().stage is Stage.AWAITING:
        rig.say("check_run", check_run(rig.fake.shown("penstock"), "ada", "approve"))
    found = rig.jobs(A)["build"]
    rig.hello(found.id)
    return rig.jobs(A)["build"]


def refused(rig: Rig, found: Job) -> str:
    with pytest.raises(Refused) as caught:
        oidc.token(rig.on, found, AWS)
    return caught.value.code


def claims(rig: Rig, found: Job) -> dict[str, Any]:
    body = oidc.token(rig.on, found, AWS).token.split(".")[1]
    said: dict[str, Any] = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return said


def test_a_strangers_job_gets_no_identity(strange: Rig) -> None:
    assert refused(strange, let_run(strange)) == "outsider"


def test_a_strangers_job_publishes_nothing(strange: Rig) -> None:
    build = let_run(strange)
    keep(strange.twin, build.id)
    strange.finish(build.id)
    assert not [row for row in strange.twin.store.rows.values() if isinstance(row, Published)]
    assert "BUT NOT PUBLISHED" in str(strange.jobs(A)["build"].end.reason)
    assert any("may not write to the repository" in line for line in told(strange.twin, build.id))


def test_a_strangers_job_has_none_of_the_repositorys_privileges(strange: Rig) -> None:
    let_run(strange)
    assert set(strange.jobs(A)) == {"build"}
    assert "target.lab" in str(strange.fake.shown("lab")["output"]["summary"])


def test_a_strangers_job_is_still_a_strangers_when_it_is_retried(strange: Rig) -> None:
    """Whoever retries it has not read it for that."""
    strange.commit(A, build=job("build", more="#: skip_clone = true\n"))
    build = let_run(strange)
    gate = users.create(strange.on, "gate", ["as", "identity.vouch"], "root")
    again = submit.retry(strange.on, gate, build)
    strange.twin.run()
    strange.hello(again)
    (fresh,) = (row for row in strange.twin.store.rows.values() if isinstance(row, Job) and row.id == again)
    assert refused(strange, fresh) == "outsider"


FAMILY = """
[prices]
currency = "USD"
[factories.hand]
driver = "hand"
[targets.cheap]
factory = "hand"
limit = 4
price = 1.0
privilege = "target.lab"
machine = { cpus = 2, memory = "4GiB" }
[targets.dear]
factory = "hand"
limit = 4
price = 9.0
machine = { cpus = 2, memory = "4GiB" }
[targets.any]
machines = ["cheap", "dear"]
[targets.default]
redirect = "any"
"""


def test_a_strangers_job_that_is_retried_has_none_of_the_repositorys_privileges(strange: Rig) -> None:
    """Neither for the cheapest member of a family, nor for a target that needed none when it ran first."""
    text = SITE[SITE.index("[github]") :].format(app=APP, url=strange.fake.url)
    apply.apply(strange.on, "root", FAMILY + text, "site.toml")
    strange.twin.run()
    strange.commit(A, build=job("build", more="#: skip_clone = true\n"))
    build = let_run(strange)
    gate = users.create(strange.on, "gate", ["admin"], "root")
    again = submit.retry(strange.on, gate, build)
    ran = {one.id: one.request for one in strange.all_jobs()}
    assert [ran[id].target_resolved for id in (build.id, again)] == ["dear", "dear"]
    narrower = FAMILY.replace("price = 9.0", 'price = 9.0\nprivilege = "target.lab"')
    apply.apply(strange.on, "root", narrower + text, "site.toml")
    with pytest.raises(Refused) as caught:
        submit.retry(strange.on, gate, build)
    assert caught.value.code == "privilege-missing"


def test_a_pull_request_of_ones_own_is_no_branch(strange: Rig) -> None:
    """Who may write gets an identity for it, which says that it is a pull request."""
    strange.commit(B, build=job("build", more='#: [tags]\n#: ref = "refs/heads/main"\n#: event_name = "push"\n'))
    strange.say("pull_request", pull_request(B, 8, author="ada"))
    strange.hello(strange.jobs(B)["build"].id)
    said = claims(strange, strange.jobs(B)["build"])
    assert said["sub"] == "repository:oxide/hubris:pull_request"
    assert (said["event_name"], said["pull_request"], said["sha"], "ref" in said) == ("pull_request", "8", B, False)


def test_a_push_is_the_branch_that_it_was_pushed_to(strange: Rig) -> None:
    strange.commit(B, build=job("build", more=PUBLISHES), lab=job("lab", more='#: target = "lab"\n'))
    strange.say("push", push(B, "main", "ada"))
    assert set(strange.jobs(B)) == {"build", "lab"}
    build = strange.jobs(B)["build"]
    strange.hello(build.id)
    said = claims(strange, strange.jobs(B)["build"])
    assert said["sub"] == "repository:oxide/hubris:ref:refs/heads/main"
    assert (said["ref"], said["event_name"], said["sha"]) == ("refs/heads/main", "push", B)
    assert "pull_request" not in said
    keep(strange.twin, build.id)
    strange.finish(build.id)
    assert [row.name for row in strange.twin.store.rows.values() if isinstance(row, Published)] == ["app"]


def test_who_pushes_a_strangers_commit_to_a_branch_answers_for_it(rig: Rig) -> None:
    """Until then nothing of it has run; from then on it is a commit of the repository's, though of no known branch."""
    rig.commit(A, build=job("build", more=PUBLISHES))
    rig.say("pull_request", pull_request(A, 7))
    assert rig.set().outsider
    rig.say("push", push(A, "main", "ada"))
    assert not rig.set().outsider
    build = rig.jobs(A)["build"]
    assert (build.provenance.outsider, build.provenance.vouched["event_name"]) == (False, "pull_request")


@pytest.fixture
def guarded(rig: Rig) -> Rig:
    """A repository that trusts its main branch, and no other branch or pull request of its members."""
    text = SITE.format(app=APP, url=rig.fake.url)
    apply.apply(rig.on, "root", f'{text}[identity]\naudiences = ["{AWS}"]\n', "site.toml")
    rig.twin.run()
    users.change_privilege(rig.on, "oxide:hubris", "target.lab", grant=True, by="root")
    rig.policy('enable = true\ntrusted_refs = ["refs/heads/main"]\n[permissions]\ncontents = "write"')
    rig.commit(B, build=job("build", more=PUBLISHES), lab=job("lab", more='#: target = "lab"\n'))
    return rig


def test_a_branch_that_the_default_branch_does_not_name_gets_what_a_strangers_does(guarded: Rig) -> None:
    guarded.say("push", push(B, "patch", "ada"))
    assert set(guarded.jobs(B)) == {"build"}
    assert "target.lab" in str(guarded.fake.shown("lab")["output"]["summary"])
    build = guarded.jobs(B)["build"]
    guarded.hello(build.id)
    assert refused(guarded, guarded.jobs(B)["build"]) == "outsider"
    keep(guarded.twin, build.id)
    guarded.finish(build.id)
    assert not [row for row in guarded.twin.store.rows.values() if isinstance(row, Published)]
    assert any("`trusted_refs` does not name" in line for line in told(guarded.twin, build.id))


def test_a_members_pull_request_is_no_ref_that_is_trusted(guarded: Rig) -> None:
    guarded.say("pull_request", pull_request(B, 8, author="ada"))
    guarded.hello(guarded.jobs(B)["build"].id)
    assert refused(guarded, guarded.jobs(B)["build"]) == "outsider"


def test_a_commit_that_comes_to_a_trusted_branch_is_run_again_as_that_branchs(guarded: Rig) -> None:
    """What ran before, on a branch that is not trusted, is none of it."""
    guarded.say("push", push(B, "patch", "ada"))
    (before,) = guarded.all_jobs()
    guarded.say("push", push(B, "main", "ada"))
    assert set(guarded.jobs(B)) == {"build", "lab"}
    build = guarded.jobs(B)["build"]
    assert build.id != before.id
    assert (build.request.tags["branch"], guarded.set(B).outsider) == ("main", False)
    (old,) = (one for one in guarded.all_jobs() if one.id == before.id)
    assert (old.end.outcome, old.provenance.outsider) == (Outcome.CANCELLED, True)
    guarded.hello(build.id)
    said = claims(guarded, guarded.jobs(B)["build"])
    assert said["sub"] == "repository:oxide/hubris:ref:refs/heads/main"


def test_a_strangers_commit_is_not_trusted_because_a_member_pushes_it_to_some_branch(guarded: Rig) -> None:
    """Nor is it run again: that branch is none that the default branch names."""
    guarded.policy('enable = true\norg_only = false\ntrusted_refs = ["refs/heads/main"]')
    guarded.say("pull_request", pull_request(B, 7))
    ran = guarded.all_jobs()
    guarded.say("push", push(B, "patch", "ada"))
    assert guarded.all_jobs() == ran
    assert guarded.set(B).outsider is True


def test_what_is_trusted_already_is_not_run_again_for_another_branch(guarded: Rig) -> None:
    guarded.say("push", push(B, "main", "ada"))
    ran = {one.id for one in guarded.all_jobs()}
    guarded.say("push", push(B, "patch", "ada"))
    assert {one.id for one in guarded.all_jobs()} == ran
    assert guarded.set(B).branch == "main"
