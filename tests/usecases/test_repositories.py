"""Jobs of repositories: who may submit them, what they are granted, and who sees them. [SEC-2]"""

from __future__ import annotations

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.users.users import ACT_AS, User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import explain, pins
from penstock.usecases.jobs import jobs, listing
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.jobs.listing import Wanted
from penstock.usecases.site import apply
from penstock.usecases.users import privileges, users
from tests.usecases.locked import LOCKED
from tests.usecases.retained_jobs import of, send
from tests.usecases.steps import SCRIPT, finish, hello, job_of, submit, told

HUBRIS = "oxide:hubris"


@pytest.fixture
def hubris(twin: Twin, root: User) -> User:
    """A repository at a site that wants a privilege for its bench, which the repository has."""
    apply.apply(twin.on, "root", LOCKED, "site.toml")
    twin.run()
    return users.create(twin.on, HUBRIS, ["resource.bench"], root.name)


def somebody(twin: Twin, *may: str) -> User:
    return users.create(twin.on, "gate", may, "root")


def refused(twin: Twin, user: User, owner: str) -> tuple[int, str]:
    with pytest.raises(Refused) as told_:
        submit(twin, user, owner=owner)
    return told_.value.status, told_.value.code


@pytest.mark.parametrize("privilege", [ACT_AS, f"{ACT_AS}.{HUBRIS}", "admin"])
def test_a_repositorys_job_is_granted_what_the_repository_has(twin: Twin, hubris: User, privilege: str) -> None:
    gate = somebody(twin, privilege)
    job = submit(twin, gate, owner=HUBRIS, resources=["bench"])
    twin.run()
    assert (job_of(twin, job).owner, job_of(twin, job).state) == (HUBRIS, State.ACQUIRING)
    assert told(twin, job)[0].startswith(f"job {job} accepted for {HUBRIS}, from gate: first bench")
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_what_the_submitter_has_is_not_the_repositorys(twin: Twin, hubris: User) -> None:
    gate = somebody(twin, ACT_AS, "target.lab")
    with pytest.raises(Refused) as told_:
        submit(twin, gate, owner=HUBRIS, target="lab")
    assert (told_.value.status, told_.value.code) == (403, "privilege-missing")
    with pytest.raises(Refused):
        submit(twin, gate, resources=["bench"])


def test_what_is_taken_from_a_repository_stops_what_waits_for_it(twin: Twin, hubris: User, root: User) -> None:
    gate = somebody(twin, ACT_AS)
    holds, waits = (submit(twin, gate, owner=HUBRIS, resources=["bench"]) for _ in range(2))
    twin.run()
    found = privileges.revoke(twin.on, root, HUBRIS, "resource.bench", at_once=False)[1]
    twin.run()
    assert (found.stopped, found.holding) == ([waits], [holds])
    assert f"{HUBRIS} may not have this any more" in str(job_of(twin, waits).end.reason)


def test_for_whom_nobody_submits(twin: Twin, hubris: User, ada: User) -> None:
    """Neither for another user, whatever one has, nor for a repository that one was not given, or that is not known."""
    gate = somebody(twin, f"{ACT_AS}.{HUBRIS}")
    assert refused(twin, ada, HUBRIS) == (403, "privilege-missing")
    assert refused(twin, gate, "oxide:humility") == (403, "privilege-missing")
    users.change_privilege(twin.on, "gate", ACT_AS, grant=True)
    may_all = users.find(twin.on, "gate")
    with pytest.raises(Refused, match="for oneself, or for a repository"):
        submit(twin, may_all, owner="ada")
    assert (may_all.may_see("ada"), may_all.may_see(HUBRIS), may_all.may_see("gate")) == (False, True, True)
    assert refused(twin, may_all, "oxide:humility") == (422, "unknown-owner")
    assert refused(twin, may_all, "oxide:" + "x" * 120) == (422, "unknown-owner")
    assert job_of(twin, submit(twin, may_all, owner="gate")).owner == "gate"


def test_who_may_submit_for_it_sees_its_jobs_and_files_and_nobody_else_does(
    twin: Twin, hubris: User, ada: User
) -> None:
    gate = somebody(twin, f"{ACT_AS}.{HUBRIS}")
    job = submit(twin, gate, owner=HUBRIS)
    twin.run()
    hello(twin, job)
    send(twin, job)
    finish(twin, job)
    (kept,) = of(twin, Artifact)
    assert jobs.find(twin.on, gate, job).id == job
    assert [row.id for row in listing.list_jobs(twin.on, gate, HUBRIS, Wanted(), 9, "")[0]] == [job]
    assert [one.artifact.id for one in explain.list_artifacts(twin.on, gate, HUBRIS, 9, "")[0]] == [kept.id]
    assert pins.find(twin.on, gate, kept.id) == kept
    for hidden in (
        lambda: jobs.find(twin.on, ada, job),
        lambda: listing.list_jobs(twin.on, ada, HUBRIS, Wanted(), 9, ""),
        lambda: explain.list_artifacts(twin.on, ada, HUBRIS, 9, ""),
        lambda: pins.find(twin.on, ada, kept.id),
    ):
        with pytest.raises(Refused):
            hidden()


def test_a_repeated_job_is_its_repositorys_again(twin: Twin, hubris: User) -> None:
    gate = somebody(twin, ACT_AS)
    first = submit(twin, gate, owner=HUBRIS)
    assert job_of(twin, jobs_submit.retry(twin.on, gate, job_of(twin, first))).owner == HUBRIS
    by_itself = submit(twin, hubris)
    assert job_of(twin, jobs_submit.retry(twin.on, gate, job_of(twin, by_itself))).owner == HUBRIS
    mine = submit(twin, gate)
    assert job_of(twin, jobs_submit.retry(twin.on, gate, job_of(twin, mine))).owner == "gate"


def test_keys_are_their_submitters(twin: Twin, hubris: User) -> None:
    gate, ask = somebody(twin, ACT_AS), SubmitJob(SCRIPT, owner=HUBRIS)
    assert jobs_submit.submit(twin.on, gate, ask, "k") == jobs_submit.submit(twin.on, gate, ask, "k")
    assert jobs_submit.submit(twin.on, hubris, ask, "k") != jobs_submit.submit(twin.on, gate, ask, "k")
