"""What jobs are lent, end to end: nobody waits for ever, everything can be used, and nothing of it is left.

A worker is lost before anything else, for the sweep alone notices that, a minute later: the rest happens meanwhile.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from pg8000.exceptions import DatabaseError

from penstock.drivers.factories import process
from tests.controllers.lab import Lab
from tests.e2e.conftest import SITE, Local
from tests.e2e.outside import BUCKET, Outside, rows, said
from tests.leaks import forms
from tests.postgres import cluster
from tests.postgres.cluster import ADMIN, PASSWORDS
from tests.wells.rack import Rack
from tests.wells.service import SECRET

Leaked = Mapping[str, Mapping[str, Any]]

pytestmark = pytest.mark.xdist_group("jobs")


@pytest.fixture(scope="module")
def outside(
    local: Local, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Outside]:
    server = request.getfixturevalue("postgres") if cluster.programs() else None
    rack, folder = Rack(), tmp_path_factory.mktemp("outside")
    lab = Lab(folder)
    made = Outside(local, folder, rack, lab, server)
    try:
        made.make()
        yield made
        local.apply(SITE)
    finally:
        rack.end()
        lab.end()


@pytest.fixture(scope="module", autouse=True)
def lost(local: Local, outside: Outside) -> str:
    """A job whose worker's agent was killed."""
    script = 'echo "attempt $PENSTOCK_ATTEMPT"\n[ "$PENSTOCK_ATTEMPT" = 2 ] || sleep 600\n'
    job = local.submit(script, "-r", "bench")
    local.until(lambda: any(line["payload"] == "attempt 1" for line in local.log(job)))
    for pid in process.recorded(Path(local.running.home) / "workers" / local.job(job)["worker"] / "pid"):
        os.kill(pid, signal.SIGKILL)
    return job


@pytest.fixture(scope="module", autouse=True)
def forgotten(local: Local, lost: str) -> str:
    """A lease without a job that nobody releases."""
    del lost
    return local.cli("lease", "acquire", "licence", "--for", "1", "--wait").stdout.strip()


@pytest.fixture(scope="module", autouse=True)
def helios(local: Local, lost: str) -> str:
    """A job for the controller's target."""
    return local.submit('echo "on $PENSTOCK_WORKER_ID in $PENSTOCK_ROOT"\n', "-t", "helios")


# Jobs that need the same things, each in an order of its own

CROSSING = """#!/bin/bash
#: name = "crossing"
#: variety = "basic"
#: target = "mill"
#: resources = {resources}
set -o errexit
cd {place}
for each in mill {slots}; do mkdir "$each" || {{ echo "somebody else has $each"; exit 1; }}; done
touch "$PENSTOCK_JOB_ID"
until [ -e go ]; do sleep 0.1; done
rmdir mill {slots}
"""


def crossing(outside: Outside, *resources: str) -> str:
    """Submit a job that says what it has by making a folder for each, which nobody else may have made."""
    script = CROSSING.format(resources=json.dumps(resources), slots=" ".join(resources), place=outside.place)
    answer = outside.local.call("POST", "/v1/jobs", json={"script": script})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def told(local: Local, job: str) -> str:
    """A job's log, for people."""
    return "\n".join(line["payload"] for line in local.log(job))


def granted(local: Local, job: str) -> dict[str, str]:
    """When a job had its slot of each pool, in the order of its events: from its grant, or when that was there."""
    had: dict[str, str] = {}
    for line in local.log(job):
        resource = re.match(r"(\S+): (?:got slot|slot \S+ \(unit \S+\) is there)", line["payload"])
        worker = re.match(r"running on \S+ \(target (\w+)", line["payload"])
        if resource or worker:
            had.setdefault(resource[1] if resource else f"target/{worker[1]}", line["time"])  # type: ignore[index]
    return had


def waits_for(local: Local, job: str, pool: str, holder: str, position: int) -> None:
    """Wait until a job is told to wait for a pool; who is said to have it is who has it."""

    def blocked() -> Any:
        block = local.call("GET", f"/v1/jobs/{job}/why").json()["blocked_on"]
        assert job not in [each["job"] for each in (block or {"held_by": ()})["held_by"]], "it waits for itself"
        return block and block["pool"] == pool and block

    block = local.until(blocked)
    assert ([each["job"] for each in block["held_by"]], block["position"]) == ([holder], position)
    assert [each["job"] for each in local.call("GET", f"/v1/pools/{pool}").json()["slots"]] == [holder]


def test_jobs_that_hold_what_the_others_need_all_finish(local: Local, outside: Outside) -> None:
    """QUEUE-3, SLOT-1: one slot each of a target and two resource types, asked for in every order there is.

    The second holds both resources and waits for the worker, which the first has; were the worker taken first, or were
    resources taken in the order of a file, each of the others could have what it needs.
    """
    first = crossing(outside)
    local.until(lambda: (outside.place / first).exists())
    second = crossing(outside, "axle", "belt")
    waits_for(local, second, "target/mill", first, 1)
    third = crossing(outside, "belt", "axle")
    waits_for(local, third, "resource/axle", second, 1)
    fourth = crossing(outside, "belt")
    waits_for(local, fourth, "resource/belt", second, 1)
    fifth = crossing(outside, "belt", "axle")
    waits_for(local, fifth, "resource/axle", second, 2)
    assert local.call("GET", "/v1/graph").json()["cycle"] == []
    assert second in local.cli("job", "why", third).stdout
    (outside.place / "go").touch()
    jobs = [first, second, third, fourth, fifth]
    ended = {job: local.settled(job) for job in jobs}
    assert {end["outcome"] for end in ended.values()} == {"succeeded"}, [told(local, job) for job in jobs]
    had = {job: granted(local, job) for job in jobs}
    assert list(had[fifth]) == ["resource/axle", "resource/belt", "target/mill"]
    for pool in ("target/mill", "resource/axle", "resource/belt"):
        one_by_one([(had[job][pool], ended[job]["times"]["settled"]) for job in jobs if pool in had[job]])
    (outside.place / "go").unlink()
    local.given_back("target/mill", "resource/axle", "resource/belt")


def one_by_one(spans: Sequence[tuple[str, str]]) -> None:
    """Nobody was granted what another had not even ended with."""
    before = ""
    for begun, ended in sorted(spans):
        assert before <= begun
        before = ended


# One job that is lent something by every well

WANTED = {
    "bench": "belt", "sandbox": "sandbox", "project": "project", "aws": "aws", "scratch": "scratch", "db": "database",
}  # fmt: skip
USES = """#!/bin/bash
#: name = "everything"
#: variety = "basic"
#: target = "mill"
{header}
set -o errexit
cd {place}
bmat resource list -H > list
for name in {names}; do
    bmat resource get "$name" > "$name.json"
    eval "$(bmat resource env "$name")"
done
touch "{sandboxes}/$SANDBOX_NAME/left"
{python} - <<'PYTHON'
import os
from urllib.request import Request, urlopen

import boto3
import pg8000.native

def s3(whose):
    keys = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")
    given = {{f"aws_{{key.lower()}}": os.environ[f"{{whose}}_{{key}}"] for key in keys}}
    return boto3.client("s3", endpoint_url="{url}", region_name=os.environ[whose + "_REGION"], **given)

bearer = {{"Authorization": "Bearer " + os.environ["PROJECT_TOKEN"]}}
urlopen(Request("{rack}/disks", method="POST", headers=bearer), timeout=60)
s3("SCRATCH").put_object(Bucket=os.environ["SCRATCH_BUCKET"], Key=os.environ["SCRATCH_PREFIX"] + "mine", Body=b"x")
free = dict(Bucket="{bucket}", Key="free/" + os.environ["PENSTOCK_JOB_ID"] + "/mine")
s3("AWS").put_object(**free, Body=b"x")
s3("AWS").delete_object(**free)
if "PGHOST" in os.environ:
    named = {{key: os.environ["PG" + key.upper()] for key in ("user", "host", "port", "database", "password")}}
    database = pg8000.native.Connection(**named, ssl_context=False)
    assert database.run("SELECT 1") == [[1]]
    database.run("CREATE TABLE mine (x int)")
PYTHON
touch used
until [ -e go ]; do sleep 0.1; done
"""


def everything(outside: Outside) -> tuple[str, dict[str, str]]:
    """Submit the job; what it wants, by name."""
    wanted = {name: kind for name, kind in WANTED.items() if kind != "database" or outside.server}
    header = "".join(f'#: [resources.{name}]\n#: type = "{kind}"\n' for name, kind in wanted.items())
    script = USES.format(
        header=header, names=" ".join(wanted), place=outside.place, sandboxes=outside.sandbox.parent,
        python=sys.executable, url=outside.local.running.url, rack=outside.rack.url, bucket=BUCKET,
    )  # fmt: skip
    return outside.local.submit(script.partition("\n")[2], "--timeout", "5m"), wanted


def test_a_job_is_lent_something_by_every_well_and_leaves_nothing(local: Local, outside: Outside) -> None:
    """UNIT-1, UNIT-2, SEC-1: and what it was told is worth nothing from then on, and stands nowhere."""
    job, wanted = everything(outside)
    local.until(lambda: (outside.place / "used").exists() or local.job(job)["state"] == "settled")
    assert local.job(job)["state"] == "running", told(local, job)
    assert (outside.place / "list").read_text().split() == [word for pair in sorted(wanted.items()) for word in pair]
    leaked = {name: json.loads((outside.place / f"{name}.json").read_text()) for name in wanted}
    there = outside.made()
    assert [where for where, made in there.items() if not made] == ([] if outside.server else ["server"])
    assert outside.rack.units[there["service"][0]]["inside"] == ["a disk"]
    scratch = leaked["scratch"]["prefix"] + "more"
    assert outside.put(leaked["aws"], f"free/{job}/x") == outside.put(leaked["scratch"], scratch) == "ok"
    assert sealed(local) == len(wanted)
    (outside.place / "go").touch()
    assert local.settled(job)["outcome"] == "succeeded", told(local, job)
    local.given_back("target/mill", *(f"resource/{kind}" for kind in wanted.values()))
    assert_worth_nothing(outside, leaked, {"aws": f"free/{job}/x", "scratch": scratch})
    assert outside.made() == {"service": [], "sandbox": [], "bucket": [f"free/{job}/x"], "server": []}
    assert (outside.denials(), sealed(local)) == (2, 0)
    assert_said_nowhere(local, job, secrets_of(leaked))


SAYS_HELLO = """
import os
from urllib.request import Request, urlopen

token = os.environ["PROJECT_TOKEN"]
ask = Request("{rack}/disks", method="POST", headers={{"Authorization": "Bearer " + token}})
print(urlopen(ask, timeout=60).status, token)
"""


def test_a_command_has_what_a_well_makes_for_as_long_as_it_runs(local: Local, outside: Outside) -> None:
    """UNIT-1, SEC-1: and what it was told is worth nothing from then on."""
    ask = SAYS_HELLO.format(rack=outside.rack.url)
    ran = local.cli("lease", "run", "project", "--name", "at my desk", "--", sys.executable, "-c", ask)
    assert ran.returncode == 0, ran.stderr
    status, token = ran.stdout.split()
    assert status == "200"
    local.given_back("resource/project")
    bearer = {"authorization": f"Bearer {token}"}
    assert httpx.post(f"{outside.rack.url}/disks", headers=bearer, trust_env=False).status_code == 401
    lease = local.json("lease", "list", "--ended")[0]
    assert (lease["name"], lease["outcome"], lease["reason"]) == ("at my desk", "succeeded", "released by admin")
    assert_said_nowhere(local, lease["id"], {token})


def test_a_lease_and_a_job_wait_for_each_other_in_one_queue(local: Local, outside: Outside) -> None:
    """QUEUE-2, SLOT-3: who has a thing says its fence, which only grows."""
    lease = local.cli("lease", "acquire", "axle", "--wait").stdout.strip()
    job = local.submit("true", "-r", "axle", "-t", "mill")
    waits_for(local, job, "resource/axle", lease, 1)
    second = local.cli("lease", "acquire", "axle").stdout.strip()
    assert local.json("lease", "show", second)["why"].startswith("the lease waits for axle: held are axle-1 by ")
    before = local.json("lease", "release", lease)["resources"][0]["fence"]
    assert local.settled(job)["outcome"] == "succeeded"
    local.until(lambda: local.json("lease", "show", second)["state"] == "held")
    assert local.json("lease", "release", second)["resources"][0]["fence"] == before + 2
    local.given_back("target/mill", "resource/axle")


def test_a_job_and_a_lease_choose_among_the_things_of_a_lab(local: Local, outside: Outside) -> None:
    """SLOT-1: by labels, and one for itself; the job is told of its thing, and who waits is told what fits."""
    beside = local.cli("lease", "acquire", "rig", "--thing", "rig-2", "--wait").stdout.strip()
    alone = local.cli("lease", "acquire", "rig", "--labels", "rack == 4", "--exclusive").stdout.strip()
    why = local.json("lease", "show", alone)["why"]
    assert "only rig-2 fits rack == 4 for itself; held are rig-2/" in why
    assert f" by {beside};" in why
    assert "board=gimlet rack=4" in local.cli("pool", "show", "resource/rig").stdout
    script = "for key in name board rack; do bmat resource get rig $key; done\n"
    header = '#: [resources.rig]\n#: labels = "board == gimlet && rack != 4"\n'
    job = local.submit(f'#: name = "chooses"\n#: variety = "basic"\n{header}\n{script}')
    assert local.settled(job)["outcome"] == "succeeded"
    said = [line["payload"] for line in local.log(job) if line["stream"] == "stdout"]
    assert said == ["rig-1", "gimlet", "3"]
    local.cli("lease", "release", beside)
    local.until(lambda: local.json("lease", "show", alone)["state"] == "held")
    assert "RIG_ADDRESS=10.0.4.2" in local.cli("lease", "show", alone, "--env").stdout
    refused = local.cli("lease", "acquire", "rig", "--labels", "rack == 9")
    assert (refused.returncode, "no rig fits rack == 9: there are rig-1, rig-2" in refused.stderr) == (2, True)
    local.cli("lease", "release", alone)
    local.given_back("resource/rig")


def sealed(local: Local) -> int:
    """How many rows keep what a well told for a job alone; the lost job's has something too, at times."""
    mine = (json.loads(row) for row in rows(local) if '"sealed":' in row)
    return len([row for row in mine if row["type"] in WANTED.values()])


def assert_worth_nothing(outside: Outside, leaked: Leaked, keys: Mapping[str, str]) -> None:
    """What a job was told of what it had."""
    assert {outside.put(leaked[name], key) for name, key in keys.items()} == {"AccessDenied"}
    bearer = {"authorization": f"Bearer {leaked['project']['token']}"}
    assert httpx.post(f"{outside.rack.url}/disks", headers=bearer, trust_env=False).status_code == 401
    if outside.server:
        told = leaked["db"]
        with pytest.raises(DatabaseError), outside.server.connected(told["user"], told["password"], told["database"]):
            pass


def secrets_of(leaked: Leaked) -> set[str]:
    """What only the job may know, and what only the wells may."""
    of_aws = {leaked[name][key] for name in ("aws", "scratch") for key in ("secret_access_key", "session_token")}
    of_job = {leaked["project"]["token"], *([leaked["db"]["password"]] if "db" in leaked else [])}
    return of_aws | of_job | {SECRET, PASSWORDS[ADMIN]}


def assert_said_nowhere(local: Local, job: str, secrets: set[str]) -> None:
    """Of all that the cloud keeps and says of a run, nothing has a secret in it."""
    found = list(said(local))
    assert {"row", "history", "page"} <= {where for where, text in found if job in text}
    assert any(where == "log" and "DriverCalls" in text for where, text in found), "functions tell the log of each call"
    wanted = [form for secret in secrets for form in forms(secret)]
    assert [(where, form) for where, text in found for form in wanted if form in text] == []


def test_a_job_runs_on_what_a_program_of_the_site_made_and_that_is_destroyed(
    local: Local, outside: Outside, helios: str
) -> None:
    """UNIT-1, UNIT-2: the program's own list says so; no process is left of the machine, and no file."""
    assert local.settled(helios)["outcome"] == "succeeded", told(local, helios)
    worker = local.job(helios)["worker"]
    machine = outside.lab.folder / "machines" / worker
    assert f"on {worker} in {machine}/root" in told(local, helios)
    local.given_back("target/helios")
    assert "its status is 404, and it is not listed" in json.dumps(local.json("job", "timings", helios))
    assert not machine.exists()
    assert process.tagged("PENSTOCK_WORKER_ID", worker) == set()


def test_a_killed_agent_is_noticed_and_the_next_attempt_runs(local: Local, lost: str) -> None:
    settled = local.settled(lost)
    assert (settled["outcome"], settled["attempt"]) == ("succeeded", 2)
    assert "nothing was heard from its agent" in settled["attempts"][0]["reason"]
    assert any("attempt 2 follows" in line["payload"] for line in local.log(lost))
    local.put_back()
    assert not local.agents()


def test_a_lease_that_nobody_releases_ends_by_itself(local: Local, forgotten: str) -> None:
    """UNIT-1."""
    local.until(lambda: local.json("lease", "show", forgotten)["state"] == "ended")
    found = local.json("lease", "show", forgotten)
    assert (found["outcome"], found["resources"][0]["state"]) == ("failed", "released")
    assert found["reason"].startswith("it was neither released nor renewed by ")
