"""What is done before a job's script reaches the agent: of which commit it is, and which Rust it wants."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.aws import dynamodb
from penstock.domain.commands import Hello, SubmitJob
from penstock.domain.jobs.jobs import Provenance
from penstock.domain.jobs.origins import Origin
from penstock.domain.replies import Assignment
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.jobs import submit
from penstock.usecases.jobs.flow import spec_of
from penstock.usecases.site import apply
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.usecases.conftest import SITE
from tests.usecases.steps import TOKEN, finish, job_of, worker_of

HEAD = '#!/bin/bash\n#: name = "job"\n#: variety = "basic"\n'
ENV = {"GITHUB_REPOSITORY": "oxide/hubris", "GITHUB_SHA": "a" * 40, "GITHUB_BRANCH": "main"}
CHECK = f"1/{'a' * 40}/1"


def told(twin: Twin, job: str) -> Assignment:
    twin.run()
    worker = worker_of(twin, job).id
    answer = agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    twin.run()
    assert isinstance(answer, Assignment)
    return answer


def test_a_check_of_a_commit_begins_in_its_repository(twin: Twin, ada: User) -> None:
    job = submit.submit(
        twin.on, ada, SubmitJob(HEAD + "#: rust_toolchain = true\n", env=ENV), None, commit=Provenance(check=CHECK)
    )
    answer = told(twin, job)
    assert answer.repository == Origin(
        name="oxide/hubris",
        url="https://github.com/oxide/hubris",
        sha="a" * 40,
        branch="main",
        machines=("github.com", "api.github.com"),
        clone=True,
    )
    assert answer.toolchain == "rust-toolchain.toml"
    assert [each.workdir for each in answer.tasks] == ["/work/oxide/hubris"]
    spec = spec_of(twin.on, job_of(twin, job))
    assert spec
    assert dynamodb.load("spec", dynamodb.dump(spec), spec.version) == spec


def test_a_check_that_wants_no_clone(twin: Twin, ada: User) -> None:
    job = submit.submit(
        twin.on, ada, SubmitJob(HEAD + "#: skip_clone = true\n", env=ENV), None, commit=Provenance(check=CHECK)
    )
    answer = told(twin, job)
    assert (answer.repository.clone, answer.tasks[0].workdir) == (False, "/work")
    finish(twin, job)
    again = submit.retry(twin.on, ada, job_of(twin, job))
    assert told(twin, again).repository is None


def test_a_job_by_hand_comes_from_nowhere_whatever_its_environment(twin: Twin, ada: User) -> None:
    """SEC-2: else it would be given a worker that clones, and waits for a token that nobody makes."""
    answer = told(twin, submit.submit(twin.on, ada, SubmitJob(HEAD, env=ENV), None))
    assert (answer.repository, answer.toolchain, answer.tasks[0].workdir) == (None, "", "/work")


def test_a_channel_of_rusts_is_told(twin: Twin, ada: User) -> None:
    job = submit.submit(twin.on, ada, SubmitJob(HEAD + '#: rust_toolchain = "1.85"\n'), None)
    assert told(twin, job).toolchain == "1.85"


@pytest.mark.parametrize("do", [submit.plan, lambda on, user, ask: submit.submit(on, user, ask, None)])
def test_who_submits_by_hand_has_no_file_that_names_a_toolchain(twin: Twin, ada: User, do: Any) -> None:
    with pytest.raises(Refused, match="submitted by hand") as refused:
        do(twin.on, ada, SubmitJob(HEAD + "#: rust_toolchain = true\n"))
    assert (refused.value.status, refused.value.code) == (422, "no-repository")
    assert refused.value.faults[0].hint == 'name the channel: rust_toolchain = "stable"'


def test_what_its_forge_began_with_a_clone_is_run_again_there(twin: Twin, ada: User) -> None:
    """By hand it would have no token, and so no repository."""
    job = submit.submit(twin.on, ada, SubmitJob(HEAD, env=ENV), None, commit=Provenance(check=CHECK))
    told(twin, job)
    finish(twin, job)
    with pytest.raises(Refused, match="press Re-run") as refused:
        submit.retry(twin.on, ada, job_of(twin, job))
    assert (refused.value.status, refused.value.code) == (409, "run-by-its-forge")


def test_a_forge_of_the_sites_own_is_where_it_says(twin: Twin, ada: User) -> None:
    api = 'api = "https://github.example.com/api/v3"'
    apply.apply(twin.on, "admin", f"{SITE}[github]\napp = 1\nrepositories = []\n{api}\n", "site.toml")
    job = submit.submit(twin.on, ada, SubmitJob(HEAD, env=ENV), None, commit=Provenance(check=CHECK))
    assert told(twin, job).repository.url == "https://github.example.com/oxide/hubris"
