"""A release is deployed over the one before while jobs are in every state, and taken back again: nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.local import cloud, stack
from penstock.local.state import StateFolder
from tests.e2e.conftest import SITE, Local

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("upgrade")]

ROOT = Path(__file__).parents[2]
COMMIT = tomllib.loads((ROOT / "tests/stored/released/release.toml").read_text())["commit"]

RUNS = 'echo begun; until [ -e "{gate}" ]; do sleep 0.2; done; echo through; echo kept > "$PENSTOCK_WORK/kept.txt"\n'


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembly of the release before, synthesised from its own sources."""
    folder = tmp_path_factory.mktemp("before")
    archive = subprocess.run(["git", "archive", COMMIT], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip(f"the release before, {COMMIT[:10]}, is not in this clone: it has too little history")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    out = folder / "build" / "out"
    environment = {**os.environ, "PYTHONPATH": f"{folder / 'functions'}:{folder}", "CDK_OUTDIR": str(out)}
    subprocess.run([sys.executable, "app.py"], cwd=folder, env=environment, check=True)
    return out


@pytest.fixture
def old(before: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    """A cloud with the release before."""
    place = StateFolder(tmp_path / "state")
    site = tmp_path / "site.toml"
    patient = SITE.read_text().replace('lease = "8s"', 'lease = "2m"')  # a deployment starts all functions anew
    assert patient != SITE.read_text()
    site.write_text(patient)
    with monkeypatch.context() as patch:
        patch.setattr(stack, "assembly", lambda *_: before)
        running = cloud.up(report=print, config=site, tied=True, place=place)
    try:
        yield Local(running, tmp_path, place.key(), place)
    finally:
        cloud.down(print, place)


def deploy(local: Local, assembly: Path) -> None:
    """Deploy another release over what is there."""
    cloud.deploy(assembly, local.place, local.running.url, print)


class Jobs:
    """A job in each state: what it does when its gate opens, and what the others wait for."""

    def __init__(self, local: Local, name: str) -> None:
        self.local = local
        self.gate = local.folder / f"{name}.gate"
        self.settled = local.submit("echo done\n")
        local.settled(self.settled)
        self.running = local.submit(RUNS.format(gate=self.gate), "-r", "bench", "-O", "=/work/kept.txt")
        local.until(lambda: local.job(self.running)["state"] == "running")
        self.queued = local.submit("echo queued\n", "-r", "bench")
        self.after = local.submit("cat /dev/null; echo after\n", "-d", f"first={self.running}")
        self.input = local.folder / f"{name}.csv"
        self.input.write_text("1,2\n")
        answer = local.call(
            "POST",
            "/v1/jobs",
            json={"script": '#!/bin/bash\ncat "$PENSTOCK_INPUT/data"\n', "inputs": ["data"]},
        )
        self.sent = str(answer.json()["id"])
        local.until(lambda: local.call("GET", f"/v1/jobs/{self.queued}/why").json()["blocked_on"])

    def go_on(self) -> None:
        """Open the gate, and send what is waited for; then see that every job has ended well, and nothing is left."""
        self.gate.touch()
        sent = self.local.cli("job", "send", self.sent, f"data={self.input}")
        assert sent.returncode == 0, sent.stderr
        jobs = (self.settled, self.running, self.queued, self.after, self.sent)
        ended = {job: self.local.settled(job) for job in jobs}
        assert [one.get("attempts") for one in ended.values() if one["attempt"] > 1] == []
        assert [one["outcome"] for one in ended.values()] == ["succeeded"] * len(jobs)
        said = [line["payload"] for line in self.local.log(self.running) if line["stream"] == "stdout"]
        assert said == ["begun", "through"]
        (output,) = self.local.json("job", "outputs", self.running)
        assert output["path"] == "/work/kept.txt"
        copied = self.local.cli("job", "copy", self.running, "/work/kept.txt", str(self.local.folder / "copy"))
        assert copied.returncode == 0, copied.stderr
        assert (self.local.folder / "copy").read_text() == "kept\n"
        self.local.put_back()


def test_jobs_in_flight_survive_an_upgrade_and_the_way_back(old: Local, before: Path) -> None:
    present = stack.assembly(print)
    jobs = Jobs(old, "up")
    deploy(old, present)
    assert old.call("GET", "/v1/jobs").status_code == 200
    new = old.submit("echo new\n")
    assert old.settled(new)["outcome"] == "succeeded"
    jobs.go_on()

    jobs = Jobs(old, "back")
    deploy(old, before)
    assert old.settled(old.submit("echo old\n"))["outcome"] == "succeeded"
    jobs.go_on()
