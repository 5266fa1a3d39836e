"""Where a job comes from: only the front end says so, and what the environment says counts for nothing by itself."""

from dataclasses import replace

import pytest

from penstock.domain.jobfile import JobFile
from penstock.domain.jobs import origins
from penstock.domain.jobs.jobs import Spec
from penstock.domain.jobs.origins import Origin
from penstock.domain.site.site import GitHubApp
from tests.domain.helpers import job
from tests.rows import changed

SHA = "a" * 40
ENV = {"GITHUB_REPOSITORY": "oxide/hubris", "GITHUB_SHA": SHA}
SPEC = Spec(job="J", path="a.sh", script="true", env=ENV, request={"env": ENV})


def checked():
    return changed(job(), check="1/abc/1")


def test_a_job_by_hand_that_merely_has_such_an_environment_comes_from_nowhere():
    """SEC-2: else anybody's job would be given a worker that clones, and waits for a token."""
    assert not origins.is_cloned(job(), SPEC)


def test_a_check_of_a_commit_comes_from_its_repository():
    found = origins.origin(checked(), SPEC, GitHubApp(1))
    machines = ("github.com", "api.github.com")
    assert found == Origin("oxide/hubris", "https://github.com/oxide/hubris", SHA, "", machines, clone=True)


def test_a_job_may_want_no_clone():
    assert not origins.origin(checked(), replace(SPEC, skip_clone=True), GitHubApp(1)).clone


def test_a_branch_is_told():
    on_main = {"env": {**ENV, "GITHUB_BRANCH": "main"}}
    assert origins.origin(checked(), replace(SPEC, request=on_main), GitHubApp(1)).branch == "main"


def test_a_job_file_cannot_say_which_branch_it_is_of():
    """SEC-2: a stranger's pull request would else be of the main branch."""
    forged = replace(SPEC, env={**ENV, "GITHUB_BRANCH": "main"})
    assert origins.origin(checked(), forged, GitHubApp(1)).branch == ""


@pytest.mark.parametrize(
    ("api", "url", "machines"),
    [
        ("https://github.example.com/api/v3", "https://github.example.com", ("github.example.com",)),
        ("https://github.example.com:8443/api/v3", "https://github.example.com:8443", ("github.example.com",)),
        ("https://api.acme.ghe.com", "https://acme.ghe.com", ("acme.ghe.com", "api.acme.ghe.com")),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", ("127.0.0.1",)),
    ],
)
def test_a_forge_of_ones_own(api, url, machines):
    found = origins.origin(checked(), SPEC, GitHubApp(1, api=api))
    assert (found.url, found.machines) == (f"{url}/oxide/hubris", machines)


@pytest.mark.parametrize(("asked", "told"), [(None, ""), (False, ""), (True, "rust-toolchain.toml"), ("1.85", "1.85")])
def test_what_is_told_of_a_toolchain(asked, told):
    assert JobFile("a.sh", "", rust_toolchain=asked).toolchain == told
