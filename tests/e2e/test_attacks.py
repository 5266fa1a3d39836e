"""What an attacker tries against a whole cloud, over HTTP. tests/attacks has all that was tried. [SEC-2]"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import SITE, Local, assert_problem, cloud_wait

pytestmark = pytest.mark.xdist_group("e2e")

SCRIPT = "#!/bin/bash\ntrue\n"
HELD = '#!/bin/bash\nuntil [ -e "{sign}" ]; do sleep 0.1; done\n'


class Attacker:
    """Somebody with a token, and what they ask for with it."""

    def __init__(self, local: Local, name: str) -> None:
        local.cli("user", "create", name)
        self.local, self.name = local, name
        self.secret = str(local.json("token", "create", "--user", name)["token"])

    def ask(self, method: str, path: str, body: Any = None, secret: str = "") -> httpx.Response:
        return self.local.call(method, path, json=body, headers={"authorization": f"Bearer {secret or self.secret}"})

    def submit(self, script: str = SCRIPT, **asked: Any) -> httpx.Response:
        return self.ask("POST", "/v1/jobs", {"script": script, **asked})

    def token(self, secret: str = "", **wish: Any) -> httpx.Response:
        return self.ask("POST", f"/v1/users/{self.name}/tokens", wish, secret)


def limited(folder: Path, limits: Mapping[str, int]) -> Path:
    """The site of all tests, with more limits."""
    lines = "".join(f"{name} = {most}\n" for name, most in limits.items())
    site = folder / "site.toml"
    site.write_text(SITE.read_text().replace("[limits]\n", f"[limits]\n{lines}"))
    return site


def test_a_stolen_token_makes_others_that_stay_when_it_is_revoked(local: Local) -> None:
    thief = Attacker(local, "mallory")
    short = thief.token(expires_in=3600).json()
    assert_problem(thief.token(short["token"], expires_in="never"), 422, "outlives-parent")
    reader = thief.token(short["token"], scopes=["read"]).json()
    assert_problem(thief.token(reader["token"], scopes=["submit"]), 403, "scope-missing")
    assert_problem(thief.ask("POST", "/v1/jobs", {"script": SCRIPT}, reader["token"]), 403, "scope-missing")
    assert thief.ask("GET", "/v1/whoami", secret=reader["token"]).status_code == 200
    assert thief.ask("DELETE", f"/v1/tokens/{short['id']}").is_success
    for secret in (short["token"], reader["token"]):
        assert_problem(thief.ask("GET", "/v1/whoami", secret=secret), 401, "token-revoked")


def test_the_job_of_somebody_else_is_not_there(local: Local) -> None:
    owner, thief = Attacker(local, "oscar"), Attacker(local, "mallory")
    job = owner.submit().json()["id"]
    for method, path in (
        ("GET", ""), ("GET", "/events"), ("GET", "/why"), ("GET", "/outputs"), ("GET", "/store"), ("GET", "/review"),
        ("GET", "/provenance"), ("POST", "/cancel"), ("POST", "/retry"), ("POST", "/discard"),
    ):  # fmt: skip
        assert_problem(
            thief.ask(method, f"/v1/jobs/{job}{path}", {} if method == "POST" else None), 404, "job-not-found"
        )
    assert local.settled(job)["outcome"] == "succeeded"


def test_a_flood_of_jobs_takes_one_machine_and_ends_at_its_limits(local: Local, tmp_path: Path) -> None:
    """Its owner has one job under way, and so many that wait; all of them run, one after the other."""
    owner, thief = Attacker(local, "oscar"), Attacker(local, "mallory")
    with local.having(limited(tmp_path, {"jobs": 3, "at_once": 1})):
        sign = tmp_path / "go"
        flood = [thief.submit(HELD.format(sign=sign)) for _ in range(8)]
        assert [answer.status_code for answer in flood] == [201] * 3 + [429] * 5
        assert_problem(flood[-1], 429, "too-many-jobs")
        jobs = [answer.json()["id"] for answer in flood[:3]]
        local.until(lambda: local.job(jobs[0])["state"] == "running")
        assert [local.job(job)["state"] for job in jobs[1:]] == ["waiting"] * 2
        why = thief.ask("GET", f"/v1/jobs/{jobs[2]}/why").json()["summary"]
        assert "until fewer jobs of mallory are under way: 1 are, and 1 may be (limits.at_once); 1 of its jobs" in why
        assert local.settled(owner.submit().json()["id"])["outcome"] == "succeeded", "others have the rest"
        sign.touch()
        ended = [local.settled(job) for job in jobs]
        assert [job["outcome"] for job in ended] == ["succeeded"] * 3
        times = [job["times"] for job in ended]
        assert times[0]["settled"] <= times[1]["started"] <= times[1]["settled"] <= times[2]["started"]
    local.put_back()


def test_more_bytes_than_an_owner_may_keep_until_some_are_discarded(local: Local, tmp_path: Path) -> None:
    thief = Attacker(local, "marvin")
    with local.having(limited(tmp_path, {"stored_bytes": 1000})):
        fills = thief.submit("#!/bin/bash\nhead -c 900 /dev/zero > a\n", output_rules=["/work/a"]).json()["id"]
        assert local.settled(fills)["outcome"] == "succeeded", local.log(fills)
        more = thief.submit("#!/bin/bash\nhead -c 200 /dev/zero > b\n", output_rules=["/work/b"]).json()["id"]
        refused = local.settled(more)
        assert refused["outcome"] == "failed"
        assert "limits.stored_bytes" in json.dumps([refused, local.log(more)])
        rest = thief.submit("#!/bin/bash\nhead -c 100 /dev/zero > c\n", output_rules=["/work/c"]).json()["id"]
        assert local.settled(rest)["outcome"] == "succeeded", local.log(rest)
        assert_problem(thief.submit(), 429, "too-many-bytes")
        assert thief.ask("POST", f"/v1/jobs/{fills}/discard").status_code == 200
        for _ in range(3):  # they end a retention, release what is kept, and delete it
            local.sweep()
        last = cloud_wait(lambda: (answer := thief.submit()).status_code == 201 and answer)
        assert local.settled(last.json()["id"])["outcome"] == "succeeded"
        assert thief.ask("GET", f"/v1/jobs/{fills}").json()["outputs_gone"]
    local.put_back()
