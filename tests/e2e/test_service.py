"""The service as plain HTTP sees it, through the real API Gateway path."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from penstock import agentfile
from penstock.drivers.factories import userdata
from tests.e2e.conftest import Local, assert_problem

pytestmark = pytest.mark.xdist_group("e2e")


def test_the_document_is_served_to_everybody(local: Local) -> None:
    document = httpx.get(f"{local.running.url}/v1/openapi.json", trust_env=False).json()
    assert document["openapi"] == "3.1.0"
    assert "/v1/jobs" in document["paths"]


def test_machines_are_led_to_the_agent_in_the_object_store(local: Local) -> None:
    """By the very script that they boot with; the function itself sends nothing of the file."""
    url = f"{local.running.url}/v1/agent/agent.pyz"
    led = httpx.get(url, trust_env=False)
    assert (led.status_code, led.content) == (302, b"")
    assert led.headers["etag"] == f'"{agentfile.digest()}"'
    place = urlsplit(led.headers["location"])
    assert place.path.endswith(f"/{agentfile.digest()}.pyz")
    assert parse_qs(place.query)["X-Amz-Expires"] == ["300"]
    fetched = subprocess.run([sys.executable, "-c", userdata.FETCH, url], capture_output=True, check=True).stdout
    assert fetched == agentfile.build()
    assert hashlib.sha256(fetched).hexdigest() == agentfile.digest()


def test_bad_input_is_refused_in_one_shape(local: Local) -> None:
    assert_problem(local.call("GET", "/v1/nowhere"), 404, "not-found")
    assert_problem(local.call("POST", "/v1/jobs", content=b"{"), 400, "malformed-json")
    assert_problem(local.call("POST", "/v1/jobs", content=b"x" * 10_000_000), 413, "body-too-big")
    big = {"script": "#!/bin/bash\n" + "#" * 2**20}
    assert_problem(local.call("POST", "/v1/jobs", json=big), 413, "body-too-big")
    unknown = {"script": "#!/bin/bash\n", "target": "ubunut-24.04"}
    answer = local.call("POST", "/v1/jobs", json=unknown)
    assert_problem(answer, 422, "unknown-target")
    assert "did you mean 'ubuntu-24.04'" in answer.text
    assert_problem(local.call("GET", "/v1/jobs", headers={"authorization": "Bearer no"}), 401, "unknown-token")


def test_a_worker_acts_for_its_own_job_only(local: Local) -> None:
    job = local.submit("sleep 600\n")
    other = local.submit("sleep 600\n")
    local.until(lambda: local.job(job)["state"] == local.job(other)["state"] == "running")
    import pathlib

    folder = pathlib.Path(local.running.home) / "workers" / local.job(job)["worker"]
    token = (folder / "token").read_text().strip()
    stolen = {"authorization": f"Bearer {token}"}
    answer = local.call("POST", f"/v1/agent/jobs/{other}/finish", json={"result": "succeeded"}, headers=stolen)
    assert_problem(answer, 403, "not-your-job")
    for each in (job, other):
        local.cli("job", "cancel", each)
        local.settled(each)
    local.put_back()


def test_privileges_are_needed_and_granted(local: Local) -> None:
    assert local.cli("user", "create", "ada").returncode == 0
    token = local.json("token", "create", "--user", "ada")["token"]
    ada = {"authorization": f"Bearer {token}"}
    ask = {"script": "#!/bin/bash\ntrue\n", "target": "lab"}
    assert_problem(local.call("POST", "/v1/jobs", json=ask, headers=ada), 403, "privilege-missing")
    narrow = local.json("token", "create", "--user", "ada", "--scope", "read", "--expires", "1h")
    reads = {"authorization": f"Bearer {narrow['token']}"}
    assert_problem(local.call("POST", "/v1/jobs", json=ask, headers=reads), 403, "scope-missing")
    assert narrow["id"] in [each["id"] for each in local.json("token", "list", "--user", "ada")]
    assert local.cli("token", "revoke", narrow["token"]).returncode == 0
    assert_problem(local.call("GET", "/v1/whoami", headers=reads), 401, "token-revoked")
    assert local.cli("user", "grant", "ada", "target.lab").returncode == 0
    answer = local.call("POST", "/v1/jobs", json=ask, headers=ada)
    assert answer.status_code == 201, answer.text
    assert local.settled(answer.json()["id"])["outcome"] == "succeeded"
    mine = local.submit("true\n")
    assert_problem(local.call("GET", f"/v1/jobs/{mine}", headers=ada), 404, "job-not-found")
    local.settled(mine)
    local.put_back()


def test_the_deployer_makes_the_first_operator(local: Local) -> None:
    token = local.json("user", "bootstrap")["token"]
    answer = local.call("GET", "/v1/whoami", headers={"authorization": f"Bearer {token}"})
    assert answer.json()["privileges"] == ["admin"]
    assert local.cli("user", "bootstrap", "--stack", "Other").returncode != 0


def test_the_site_is_changed_while_jobs_run(local: Local) -> None:
    assert local.cli("pool", "resize", "target/lab", "0").returncode == 0
    local.until(lambda: local.json("pool", "show", "target/lab")["free"] == 0)
    assert local.cli("pool", "resize", "target/lab", "1").returncode == 0
    local.until(lambda: local.json("pool", "show", "target/lab")["free"] == 1)


def test_who_may_list_lists_what_exists_and_what_will_go(local: Local) -> None:
    """Both are read from the due index, so the API's role must be able to."""
    job = local.submit("echo kept > kept.txt; until [ -e go ]; do sleep 0.1; done\n", "-O", "/work/*.txt")
    worker = local.until(lambda: local.job(job)["worker"])
    assert [each["id"] for each in local.json("worker", "list")] == [worker]
    (Path(local.running.home) / "workers" / worker / "root" / "work" / "go").touch()
    assert local.settled(job)["outcome"] == "succeeded"
    local.put_back()
    assert local.json("worker", "list") == []
    going = local.json("artifact", "sweep", "--dry-run", "--within", "40d")
    assert "/work/kept.txt" in {each["path"] for each in going["items"]}
