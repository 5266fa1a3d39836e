"""The key with which a check's job is submitted once, and who used it before. [JOB-1] [SEC-2]"""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.github import checks
from penstock.domain.github.checks import CheckRun
from penstock.domain.github.commits import Stage
from penstock.domain.jobs.jobs import Job
from penstock.kernel.rows import Replace
from penstock.testing.twin import START
from penstock.usecases.github import commits
from penstock.usecases.jobs import submit
from tests.github.fake import INSTALLATION
from tests.github.payloads import push
from tests.github.rig import JOBS, A, Rig, job

OTHER = SubmitJob(script="#!/bin/bash\ntrue\n")
SAME = SubmitJob(
    script=job("build").decode(),
    path=f"{JOBS}/build.sh",
    tags={"repository": "oxide/hubris", "commit": A, "branch": "main"},
    env={
        "CI": "true", "GITHUB_REPOSITORY": "oxide/hubris", "GITHUB_SHA": A,
        "GITHUB_BRANCH": "main", "GITHUB_REF": "refs/heads/main",
    },
)  # fmt: skip
"""What the front end asks for, to the letter: everybody knows it before there is a check."""

CHECK = CheckRun(
    repository="oxide/hubris", repository_id=55, installation=INSTALLATION, sha=A, number=1, name="build", since=START
)


@pytest.fixture
def alone(rig: Rig) -> Rig:
    """A commit with one job."""
    rig.commit(A, build=job("build"))
    return rig


def submitted(rig: Rig) -> list[Job]:
    """The jobs that the front end submitted."""
    return [each for each in rig.all_jobs() if each.provenance.check]


def die_unrecorded(rig: Rig) -> None:
    """The job was accepted, and who submitted it died before that was recorded; the step is repeated."""
    found = rig.checks()["build"]
    assert rig.on.store.commit([Replace(found, replace(found, job="", told=""))])
    assert commits.job_of(rig.on, rig.checks()["build"]) is not None
    planned = replace(rig.set(), stage=Stage.PLANNED, due=rig.now())
    assert rig.on.store.commit([Replace(rig.set(), planned)])
    rig.step({"set": [55, A]})
    rig.twin.run()


@pytest.mark.parametrize("theirs", [SAME, OTHER], ids=["the same", "another"])
def test_a_job_that_was_submitted_with_the_key_of_a_check_before_is_not_the_checks(
    alone: Rig, theirs: SubmitJob
) -> None:
    """Whoever has the repository's token can do that. The check would show what they say, or fail."""
    theirs_id = submit.submit(alone.on, alone.user, theirs, checks.submit_key(CHECK))
    assert commits.job_of(alone.on, CHECK) is None
    alone.say("push", push(A))
    (ours,) = submitted(alone)
    check = alone.checks()["build"]
    assert (check.job, check.told) == (ours.id, "")
    assert ours.id != theirs_id
    die_unrecorded(alone)
    assert (alone.checks()["build"].job, submitted(alone)[1:]) == (ours.id, [])


def test_a_job_that_was_accepted_and_not_recorded_is_not_submitted_again(alone: Rig) -> None:
    """Also one that a release before this accepted: the usual key is still that of all whom nobody was before."""
    alone.say("push", push(A))
    (ours,) = alone.all_jobs()
    die_unrecorded(alone)
    assert (alone.checks()["build"].job, alone.all_jobs()[1:]) == (ours.id, [])


def test_a_check_whose_own_job_was_asked_for_in_other_words_is_not_submitted_again(alone: Rig) -> None:
    """What its tags say may have changed since: it fails, as before, and no second job runs."""
    alone.say("push", push(A))
    (ours,) = alone.all_jobs()
    assert alone.on.store.commit([Replace(alone.set(), replace(alone.set(), branch="other"))])
    die_unrecorded(alone)
    assert (alone.checks()["build"].job, alone.all_jobs()) == ("", [ours])
    assert "used for another request" in alone.checks()["build"].told
