"""What an attacker wanted stated of a file that no trusted job made. [SEC-2]

What a forged statement, another key and another file come to is in tests/cli/test_provenance.py.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from penstock.cli.app import cli
from penstock.domain.jobs.statement import Service as Stater
from penstock.usecases.jobs import provenance
from tests.attacks.front import serving
from tests.functions.service import WORKER_TOKEN, Service, refused, token_of
from tests.functions.stage import BYTES, Stage
from tests.github.conftest import app_key, rig
from tests.github.payloads import pull_request
from tests.github.rig import B, Rig, job
from tests.usecases.outputs import keep
from tests.usecases.steps import finish, hello

__all__ = ["app_key", "rig"]

FORGED = '#: env = { GITHUB_BRANCH = "main", GITHUB_REF = "refs/heads/main", GITHUB_PULL_REQUEST = "" }\n'
VOUCHED = {"ref": "refs/heads/main", "sha": "c" * 40}


@pytest.fixture
def stage(service: Service) -> Stage:
    made = Stage(service)
    made.end()
    return made


def stated(stage: Stage, job: str) -> Any:
    answer = stage.service.ask("GET", f"/v1/jobs/{job}/provenance", as_="root")
    assert answer.status == 200, answer
    return json.loads(base64.b64decode(answer.json["payload"]))


def source(said: Any) -> Any:
    found = said["predicate"]["buildDefinition"]["resolvedDependencies"]
    return next((each for each in found if each["name"] == "source"), None)


def test_the_statement_of_anothers_job(stage: Stage) -> None:
    """And whoever has no token learns the public key, and nothing else."""
    path = f"/v1/jobs/{stage.job}/provenance"
    refused(stage.service.ask("GET", path, as_="bob"), 404, "job-not-found")
    refused(stage.service.ask("GET", path, as_=None), 401, "no-token")
    refused(stage.service.ask("GET", path, token=WORKER_TOKEN), 401, "unknown-token")
    assert stage.service.ask("GET", "/v1/provenance/key", as_=None).status == 200


def test_tags_of_ones_own_that_name_a_commit(stage: Stage) -> None:
    named = stage.service.submit(tags=VOUCHED)
    hello(stage.service.twin, named)
    keep(stage.service.twin, named)
    finish(stage.service.twin, named)
    assert source(stated(stage, named)) is None


def test_a_pull_request_whose_job_file_says_that_it_is_of_the_main_branch(rig: Rig) -> None:
    rig.policy("enable = true\norg_only = false")
    rig.commit(B, build=job("build", more=FORGED))
    rig.say("pull_request", pull_request(B, 7))
    (build,) = rig.jobs(B).values()
    rig.hello(build.id)
    keep(rig.twin, build.id)
    rig.finish(build.id)
    signed = provenance.provenance(rig.on, rig.user, build.id, Stater("http://here", "", ""))
    found = source(json.loads(signed.body))
    assert found["annotations"] == {"pullRequest": "7"}
    assert found["digest"] == {"gitCommit": B}


@pytest.fixture
def home(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what a job made, the statement about it, and the key: all fetched by commands."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with serving(stage.service) as url:
        monkeypatch.setenv("PENSTOCK_URL", url)
        monkeypatch.setenv("PENSTOCK_TOKEN", token_of("root"))
        for words, name in ((["provenance", stage.job], "x.json"), (["provenance", "--key"], "key.pem")):
            (tmp_path / name).write_text(run("job", *words).stdout)
    monkeypatch.delenv("PENSTOCK_URL")
    (tmp_path / "x").write_bytes(BYTES)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), catch_exceptions=False)


def test_a_file_that_was_exchanged(home: Path) -> None:
    """Commands fetch statement and key; without the service, the file that the job made passes, and no other."""
    words = ("job", "verify", "x", "-p", "x.json", "-k", "key.pem", "--owner", "ada")
    passed = run(*words)
    assert passed.exit_code == 0, passed.stderr
    (home / "x").write_bytes(BYTES + b"!")
    assert run(*words).exit_code == 1


def test_a_statement_of_a_job_of_ones_own_for_a_file_of_the_same_name(stage: Stage, home: Path) -> None:
    """The attacker's file is signed too; whose job it was, says --owner."""
    assert run("job", "verify", "x", "-p", "x.json", "-k", "key.pem", "--owner", "oxide:hubris").exit_code == 1
