"""Several jobs on one host, end to end: a real engine, the host's agent as a person starts it, the local cloud."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.site import site_toml
from tests.containers import podman
from tests.containers.podman import NoEngine, Podman
from tests.e2e.benches import Bench
from tests.e2e.conftest import SITE, Local

pytestmark = [pytest.mark.networks, pytest.mark.xdist_group("e2e")]

JOB = """#: name = "{name}"
#: variety = "basic"
#: target = "rigs"
#: output_rules = ["/work/out.txt"]

ls -A /work /tmp
echo "up, user=$(id -un)"
echo {name} > /work/out.txt
while ! [ -e /tmp/go ]; do sleep 0.2; done
"""

WAITS = (
    "the job waits for a worker of rigs: it wants 1 of the 4 parts of one host, on which only jobs of its owner run; "
    "held are rig-1/"
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Podman]:
    with tempfile.TemporaryDirectory(prefix="engine") as folder:
        try:
            made = podman.found(Path(folder))
        except NoEngine as why:
            pytest.skip(f"no container engine: {why}")
        try:
            yield made
        finally:
            made.run("rm", "--all", "--force", check=False)
            made.run("network", "prune", "--force", "--filter", "label=penstock.host=rig-1", check=False)
            made.run("image", "rm", "--all", "--force", check=False)


@pytest.fixture
def rig(local: Local, engine: Podman, tmp_path: Path) -> Iterator[Bench]:
    """A host of four parts, on which its agent runs."""
    site = tmp_path / "site.toml"
    rigs: dict[str, Any] = {"factory": "rigs", "names": ["rig-1"], "share": True, "sudo": False}
    rigs["machine"] = {"cpus": 4, "memory": "2GiB"}
    shared = site_toml(factories={"rigs": {"driver": "hosts", "image": engine.image}}, targets={"rigs": rigs})
    site.write_text(SITE.read_text() + shared)
    with local.having(site):
        made = Bench(local, "rig-1", tmp_path / "rigs", "rigs", "--containers", str(engine.program()))
        made.start()
        yield made
        made.stop()


def containers(engine: Podman) -> set[str]:
    return set(engine.run("ps", "--format", "{{.Names}}").stdout.split())


def up(local: Local, job: str) -> str:
    """Wait until a job runs. Returns its worker."""
    local.until(lambda: any("up, user=build" in str(line["payload"]) for line in local.log(job)))
    return str(local.job(job)["worker"])


def go(engine: Podman, *workers: str) -> None:
    """Let jobs go on. Their container may be gone before the engine has seen how the command ended."""
    for worker in workers:
        engine.run("exec", worker, "touch", "/tmp/go", check=False)


def test_four_jobs_of_one_user_run_side_by_side_and_anothers_waits_until_the_host_is_empty(
    local: Local, rig: Bench, engine: Podman
) -> None:
    """UNIT-2, SEC-2: each has a container of its own, of which nothing is left."""
    assert local.cli("user", "create", "eve").returncode == 0
    token = local.json("token", "create", "--user", "eve")["token"]
    jobs = [local.submit(JOB.format(name=f"job{number}")) for number in range(4)]
    workers = {up(local, job) for job in jobs}
    assert containers(engine) == workers
    assert len(workers) == 4
    answer = local.call(
        "POST", "/v1/jobs", json={"script": f"#!/bin/bash\n{JOB.format(name='eves')}"},
        headers={"authorization": f"Bearer {token}"},
    )  # fmt: skip
    assert answer.status_code == 201, answer.text
    eves = answer.json()["id"]
    *first, last = sorted(workers)
    go(engine, *first)
    local.until(lambda: local.call("GET", "/v1/pools/target/rigs").json()["free"] == 3)
    assert local.json("job", "why", eves)["summary"].startswith(WAITS)
    assert local.job(eves)["state"] == "waiting"
    go(engine, last)
    go(engine, up(local, eves))
    for job in (*jobs, eves):
        settled = local.settled(job)
        assert (settled["outcome"], settled["attempt"]) == ("succeeded", 1), (local.log(job), rig.log())
        said = [str(line["payload"]) for line in local.log(job) if line["stream"] == "stdout"]
        assert not [line for line in said if line.endswith(("out.txt", "go"))], said
    local.given_back("target/rigs")
    assert engine.run("ps", "--all", "--quiet").stdout == ""
    assert engine.run("network", "ls", "--quiet", "--filter", "label=penstock.host=rig-1").stdout == ""
    assert not list((rig.state / "parts").glob("*/worker"))
    assert rig.stop() == 0
