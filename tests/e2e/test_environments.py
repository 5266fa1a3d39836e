"""A job that asks for an environment waits for a reviewer, end to end. [SEC-2]"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import SITE, Local, assert_problem

pytestmark = pytest.mark.xdist_group("e2e")

ENVIRONMENT = """
[environments.production]
owners = ["carla"]
privileges = ["target.lab"]
reviewers = ["bert"]
"""
SCRIPT = """#!/bin/bash
#: name = "deploy"
#: variety = "basic"
#: target = "lab"
#: environment = "production"
echo deployed
"""


def test_a_job_runs_once_its_reviewer_has_approved_it(local: Local, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(SITE.read_text() + ENVIRONMENT)
    with local.having(site):
        tokens = {name: token(local, name) for name in ("carla", "bert", "dora")}
        answer = local.call("POST", "/v1/jobs", json={"script": SCRIPT}, headers=tokens["carla"])
        assert answer.status_code == 201, answer.text
        job = answer.json()["id"]
        why = local.call("GET", f"/v1/jobs/{job}/why", headers=tokens["carla"]).json()
        assert why["summary"].startswith("the job waits until bert approves it for the environment production")
        path = f"/v1/jobs/{job}/review"
        assert_problem(local.call("POST", path, json={}, headers=tokens["dora"]), 404, "job-not-found")
        assert_problem(local.call("POST", path, json={}, headers=tokens["carla"]), 403, "not-a-reviewer")
        shown = local.call("GET", path, headers=tokens["bert"]).json()
        assert (shown["script"], shown["privileges"]) == (SCRIPT, ["target.lab"])
        approved = local.call("POST", path, json={}, headers=tokens["bert"])
        assert (approved.status_code, approved.json()["by"]) == (200, "bert")
        assert local.settled(job)["outcome"] == "succeeded", local.log(job)
    local.put_back()


def token(local: Local, name: str) -> dict[str, str]:
    """A new token of a user, who may be new too."""
    local.cli("user", "create", name)
    return {"authorization": f"Bearer {local.json('token', 'create', '--user', name)['token']}"}
