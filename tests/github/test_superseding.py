"""A newer commit of a pull request ends the jobs of the one before it, whatever order GitHub tells it in."""

from __future__ import annotations

import pytest

from penstock.domain.github.commits import Stage
from penstock.domain.jobs.jobs import Outcome
from tests.github.payloads import check_suite, pull_request, push
from tests.github.rig import A, B, C, Rig, job


@pytest.fixture
def two(rig: Rig) -> Rig:
    rig.commit(B, build=job("build"), test=job("test", "build"))
    rig.commit(C, build=job("build"))
    return rig


def come(rig: Rig, sha: str) -> str:
    """A pull request of ada's gets a new commit."""
    rig.repo.ends["pull/12"] = sha
    return rig.say("pull_request", pull_request(sha, author="ada", action="synchronize"))


def outcomes(rig: Rig, sha: str) -> set[Outcome | None]:
    return {each.end.outcome for each in rig.jobs(sha).values()}


def test_a_new_commit_of_a_pull_request_cancels_the_jobs_of_the_old(two: Rig) -> None:
    come(two, A)
    come(two, B)
    assert (two.set(A).stage, two.set(A).lines, two.set(B).stage) == (Stage.SUPERSEDED, (), Stage.SUBMITTED)
    assert outcomes(two, A) == {Outcome.CANCELLED}
    assert outcomes(two, B) == {None}
    assert two.fake.runs[1000]["conclusion"] == "cancelled"
    two.later(400)
    assert two.set(A).due is None


def test_what_is_told_late_is_not_newer(two: Rig) -> None:
    two.repo.ends["pull/12"] = B
    two.say("pull_request", pull_request(B, author="ada"))
    told = two.say("pull_request", pull_request(A, author="ada", action="synchronize"))
    assert told == f"jobs of {A[:12]}, which is not the newest"
    assert (two.set(B).stage, outcomes(two, B)) == (Stage.SUBMITTED, {None})
    assert (two.set(A).stage, two.jobs(A)) == (Stage.SUPERSEDED, {})


@pytest.mark.parametrize(
    ("policy", "superseded"), [("", False), ('supersede = "none"', False), ('supersede = "all"', True)]
)
def test_policy_says_whether_branches_are_superseded(two: Rig, policy: str, superseded: bool) -> None:
    two.policy(f"enable = true\n{policy}")
    for sha in (A, B):
        two.repo.ends["heads/main"] = sha
        two.say("push", push(sha))
    assert (two.set(A).stage is Stage.SUPERSEDED) is superseded
    assert (outcomes(two, A) == {None}) is not superseded
    assert (two.set(A).lines, two.set(A).left, two.set(A).due is None) == ((), ("heads/main",), not superseded)


def test_a_commit_that_something_else_ends_with_is_still_wanted(two: Rig) -> None:
    two.say("push", push(A, "patch"))
    come(two, A)
    come(two, B)
    assert (two.set(A).stage, two.set(A).lines) == (Stage.SUBMITTED, ("heads/patch",))
    two.repo.ends["heads/patch"] = B
    two.say("push", push(B, "patch"))
    assert two.set(A).stage is Stage.SUPERSEDED


def test_a_commit_that_comes_back_is_wanted_again(two: Rig) -> None:
    come(two, A)
    come(two, B)
    come(two, A)
    assert two.set(B).stage is Stage.SUPERSEDED
    assert two.set(A).lines == ("pull/12",)


def test_an_old_commit_may_be_run_again_on_purpose(two: Rig) -> None:
    come(two, A)
    come(two, B)
    two.say("check_suite", check_suite(A, "ada"))
    assert (two.set(A).stage, outcomes(two, A)) == (Stage.SUBMITTED, {None})
    come(two, C)
    assert (two.set(A).stage, outcomes(two, A)) == (Stage.SUBMITTED, {None})
    assert two.set(B).stage is Stage.SUPERSEDED


def test_what_awaits_approval_is_superseded_as_well(two: Rig) -> None:
    two.say("pull_request", pull_request(A))
    two.repo.ends["pull/12"] = B
    two.say("pull_request", pull_request(B, action="synchronize"))
    assert (two.set(A).stage, two.set(B).stage) == (Stage.SUPERSEDED, Stage.AWAITING)


def test_a_pull_request_that_is_gone_has_no_newest(two: Rig) -> None:
    come(two, A)
    two.repo.ends.clear()
    assert two.say("pull_request", pull_request(B, author="ada")).endswith("which is not the newest")
    assert two.set(A).stage is Stage.SUBMITTED
