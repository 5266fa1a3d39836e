"""Metadata that expires while a job runs is refreshed; AWS's own library asks for it by itself. [SEC-1]"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.agent.control_plane import ONE_STREAM

FAR, PAST = "2099-01-01T00:00:00+00:00", "2020-01-01T00:00:00+00:00"
SHOW = f"""{sys.executable} -I - <<'END'
import boto3
found = boto3.Session()
print(found.region_name, found.get_credentials().get_frozen_credentials().access_key)
END"""


def told(key: str, expiration: str = FAR, **more: Any) -> dict[str, Any]:
    metadata = {
        "access_key_id": key,
        "secret_access_key": "s",
        "session_token": "t",
        "expiration": expiration,
        "region": "eu-west-1",
    }
    return {"type": "aws", "metadata": metadata, "public": ["expiration", "region"], **more}


@pytest.fixture
def job(worker):
    """Run a script in a job whose resource is as the service first said; return what it printed, and the service."""

    def run(script, first, fresh, misbehave=lambda endpoint, count: None):
        made = worker(misbehave, script=f"{ONE_STREAM}\n{script}", resources={"aws": first})
        made.plane.fresh = {"aws": fresh}
        assert made.finish()["result"] == "succeeded", made.plane.lines()
        return made.plane.lines("stdout"), made.plane

    return run


def test_stale_metadata_is_refreshed(job):
    lines, plane = job(
        "bmat resource get aws access_key_id; bmat resource get aws access_key_id",
        told("A1", fresh_seconds=0),
        told("A2", fresh_seconds=900),
    )
    assert lines == ["A2", "A2"]
    assert plane.calls.count("resources") == 1, "and then it is fresh"


@pytest.mark.parametrize("more", [{}, {"fresh_seconds": 900}])
def test_fresh_metadata_is_not_refreshed(job, more):
    lines, plane = job("bmat resource get aws access_key_id", told("A1", **more), told("A2"))
    assert (lines, plane.calls.count("resources")) == (["A1"], 0)


@pytest.mark.parametrize("fault", [503, 404, "drop"])
def test_without_an_answer_the_last_metadata_remains(job, fault):
    lines, plane = job(
        "bmat resource get aws access_key_id; bmat resource get aws access_key_id",
        told("A1", fresh_seconds=0),
        told("A2"),
        lambda endpoint, count: fault if endpoint == "resources" else None,
    )
    assert lines == ["A1", "A1"]
    assert 1 <= plane.calls.count("resources") <= 2, "and is not asked at every turn"


def test_a_lost_answer_is_requested_again(job):
    lines, _ = job(
        "bmat resource get aws access_key_id",
        told("A1", fresh_seconds=0),
        told("A2"),
        lambda endpoint, count: "forget" if (endpoint, count) == ("resources", 1) else None,
    )
    assert lines == ["A2"]


def test_awss_own_library_fetches_credentials_by_itself(job):
    """Which needs nothing but a config file; before they end it runs the command again."""
    lines, _ = job(
        f'bmat resource get aws --format aws-config > "$HOME/config"; export AWS_CONFIG_FILE="$HOME/config"\n{SHOW}',
        told("A1", fresh_seconds=0),
        told("A2"),
    )
    assert lines == ["eu-west-1 A2"]


def test_awss_own_library_refuses_expired_credentials(job):
    lines, _ = job(
        'bmat resource get aws --format aws-config > "$HOME/config"; export AWS_CONFIG_FILE="$HOME/config"\n'
        f"{{ {SHOW}\n}} || true",
        told("A1", PAST),
        told("A2"),
    )
    assert "refreshed credentials are still expired" in lines[-1]


def test_the_output_for_credential_process(job):
    lines, _ = job("bmat resource get aws --format aws", told("A1"), {})
    wanted = {"Version": 1, "AccessKeyId": "A1", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": FAR}
    assert json.loads(lines[0]) == wanted


def test_a_resource_without_aws_credentials(job):
    lines, _ = job(
        "bmat resource get aws --format aws; echo $?; bmat resource get aws --format aws-config; echo $?",
        {"type": "x", "metadata": {"access_key_id": "A"}},
        {},
    )
    why = "bmat: resource 'aws' has no AWS credentials: there is no expiration, secret_access_key, session_token"
    assert lines == [why, "1", why, "1"] or sorted(lines) == sorted([why, "1", why, "1"])


def test_the_environment_of_a_resource_called_aws_is_awss_own(job):
    lines, _ = job(
        'eval "$(bmat resource env aws)"; echo $AWS_ACCESS_KEY_ID $AWS_SESSION_TOKEN $AWS_REGION', told("A1"), {}
    )
    assert lines == ["A1 t eu-west-1"]
