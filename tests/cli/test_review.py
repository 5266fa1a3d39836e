"""Looking at a job that asks for an environment, and approving or refusing it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from penstock.cli.client import refusal
from tests.cli.conftest import Run
from tests.cli.service import Service


def decided(service: Service) -> list[Any]:
    return [body for method, path, _, body in service.asked if method == "POST" and path.endswith("/review")]


def test_what_is_approved_is_shown_first(penstock: Run, service: Service) -> None:
    job = service.add("never")
    done = penstock("job", "approve", job, input="y\n")
    assert done.exit_code == 0, done.stderr
    facts = dict(line.split(maxsplit=1) for line in done.stdout.splitlines()[:-1])
    assert (facts["owner"], facts["environment"], facts["privileges"]) == ("oxide:hubris", "production", "target.lab")
    assert (facts["inputs"], facts["env"], facts["dependencies"]) == ("data", "LEVEL=3", "j9")
    assert "#!/bin/bash\n./deploy\n" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "Approve it? [y/N]: " in done.stderr
    assert done.stdout.splitlines()[-1] == f"approved job {job} for the environment production"
    assert decided(service) == [{"refuse": False}]


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_without_a_yes_nothing_is_decided(penstock: Run, service: Service, answer: str) -> None:
    done = penstock("job", "approve", service.add("never"), input=answer)
    assert done.exit_code != 0
    assert decided(service) == []


def test_a_script_need_not_be_asked(penstock: Run, service: Service) -> None:
    job = service.add("never")
    done = penstock("job", "approve", job, "--refuse", "--yes")
    assert done.stdout == f"refused job {job} for the environment production\n"
    assert decided(service) == [{"refuse": True}]
    said = json.loads(penstock("job", "approve", job, "--yes", "--json").stdout)
    assert (said["job"], said["by"]) == (job, "alice")


def test_those_that_wait_are_listed(penstock: Run) -> None:
    done = penstock("job", "approve")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[1].split() == [
        "j1", "production", "oxide:hubris", "deploy", "refs/heads/main", "2026-01-01T10:02:30Z",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("not-a-reviewer", "ask one of them"),
        ("own-job", "ask another of them"),
        ("environment-not-allowed", "`[environments]`"),
        ("privilege-missing", "`penstock whoami`"),
    ],
)
def test_a_refusal_says_what_to_do(code: str, hint: str) -> None:
    answer = httpx.Response(403, json={"detail": "no", "code": code}, request=httpx.Request("POST", "http://x"))
    assert hint in str(refusal(answer, has_token=True).hint)


def test_a_job_that_is_not_there(penstock: Run) -> None:
    done = penstock("job", "approve", "nothing", input="y\n")
    assert done.exit_code == 2
    assert "there is no job nothing" in done.stderr
