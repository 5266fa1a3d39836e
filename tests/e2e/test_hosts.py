"""Machines that exist already, end to end: two hosts' agents as processes, each with a root of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.drivers.factories import process
from penstock.testing.site import site_toml
from tests.e2e.conftest import SITE, Local

pytestmark = pytest.mark.xdist_group("e2e")

LAB = site_toml(
    factories={"lab": "hosts"},
    targets={"benches": {"factory": "lab", "names": ["bench-7", "bench-8"]}},
)


class Bench:
    """A host with its agent, as a person starts it."""

    def __init__(self, local: Local, name: str, folder: Path) -> None:
        self.local, self.name, self.state = local, name, folder / name
        folder.mkdir(exist_ok=True)
        assert local.cli("user", "create", name).returncode == 0
        assert local.cli("user", "grant", name, f"host.{name}").returncode == 0
        self.token = folder / f"{name}.token"
        scope = f"host:target/benches/{name}"
        self.token.write_text(local.json("token", "create", "--user", name, "--scope", scope)["token"])
        self.agent: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["agent", "--host", self.name, "--token-file", str(self.token), "--state", str(self.state)]
        with self.state.with_suffix(".log").open("ab") as log:
            self.agent = subprocess.Popen(
                [sys.executable, "-m", "penstock.cli", *words],
                env=self.local.environment(),
                stderr=log,
                start_new_session=True,
            )

    def standing(self) -> dict[str, Any]:
        return dict(json.loads((self.state / "standing.json").read_text()))

    def lose_power(self) -> None:
        """Everything on the machine ends at once."""
        assert self.agent
        self.agent.kill()
        os.kill(self.standing()["pid"], signal.SIGKILL)
        process.kill(process.tagged("PENSTOCK_WORKER_ID", self.standing()["worker"]), signal.SIGKILL)
        self.agent.wait(25)

    def stop(self) -> int | None:
        if self.agent is None:
            return None
        self.agent.terminate()
        return self.agent.wait(25)


@pytest.fixture
def bench(local: Local, tmp_path: Path) -> Iterator[Callable[[str], Bench]]:
    site = tmp_path / "site.toml"
    site.write_text(SITE.read_text() + LAB)
    made: list[Bench] = []

    def make(name: str) -> Bench:
        made.append(Bench(local, name, tmp_path / "benches"))
        return made[-1]

    with local.having(site):
        yield make
        for one in made:
            one.stop()


def pool(local: Local) -> dict[str, Any]:
    return dict(local.call("GET", "/v1/pools/target/benches").json())


def slots(local: Local) -> dict[str, dict[str, Any]]:
    return {slot["slot"]: slot for slot in pool(local)["slots"]}


def hosts(local: Local) -> dict[str, bool]:
    """Whether the host of each slot is there."""
    return {name: slot["host"]["is_there"] for name, slot in slots(local).items()}


def test_two_benches_serve_five_jobs_and_one_of_them_loses_power(local: Local, bench: Callable[[str], Bench]) -> None:
    """JOB-2, UNIT-2: the job goes on elsewhere; who comes back cleans up before it serves again."""
    one, two = bench("bench-7"), bench("bench-8")
    waiting = local.submit('echo first; [ "$PENSTOCK_ATTEMPT" = 2 ] || sleep 600\n', "-t", "benches")
    local.until(lambda: "away are bench-7" in local.json("job", "why", waiting)["summary"])
    one.start()
    local.until(lambda: [line for line in local.log(waiting) if line["payload"] == "first"])
    two.start()
    left = one.state / "root" / "work" / "left"
    left.write_text("of the job")
    one.lose_power()
    others = [local.submit("ls -A $PENSTOCK_WORK; echo other\n", "-t", "benches") for _ in range(3)]
    with local.sweeping():
        settled = local.settled(waiting)
    assert (settled["outcome"], settled["attempt"]) == ("succeeded", 2)
    assert {local.settled(job)["outcome"] for job in others} == {"succeeded"}
    local.until(lambda: hosts(local) == {"bench-7": False, "bench-8": True})
    assert slots(local)["bench-7"]["state"] == "held"
    assert left.exists()
    one.start()
    local.until(lambda: pool(local)["free"] == 2)
    assert not left.exists()
    assert two.stop() == 0
    local.until(lambda: pool(local)["away"] == 1)
    last = local.submit("ls -A $PENSTOCK_WORK; echo last\n", "-t", "benches")
    assert local.settled(last)["outcome"] == "succeeded"
    assert [line["payload"] for line in local.log(last) if line["stream"] == "stdout"] == ["last"]
    local.until(lambda: pool(local)["free"] == 1)
    assert list((one.state / "root").iterdir()) == list((two.state / "root").iterdir()) == []
    local.until(lambda: one.standing()["worker"] == "")  # the host hears only then that it is free
    local.until(lambda: not local.call("GET", "/v1/workers").json()["items"])
