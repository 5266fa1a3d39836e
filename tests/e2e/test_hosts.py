"""Machines that exist already, end to end: two hosts' agents as processes, each with a root of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.site import site_toml
from tests.controllers.benches import FaultyBenches
from tests.e2e.benches import Bench
from tests.e2e.conftest import SITE, Local
from tests.wells.faulty import Asked
from tests.wells.service import SECRET

pytestmark = pytest.mark.xdist_group("e2e")

LAB = site_toml(
    factories={"lab": "hosts"},
    targets={"benches": {"factory": "lab", "names": ["bench-7"], "hosts": {"bench-8": {"labels": {"rack": "4"}}}}},
)
CHOOSES = """#: name = "chooses"
#: variety = "basic"
#: target = "benches"
#: host = { labels = "rack == 4" }
echo chosen
"""
RACK = """
[factories.rack]
driver = "hosts"
url = "{url}"
secret = "file:{folder}/rack.secret"
[targets.blades]
factory = "rack"
names = ["blade-1"]
"""


class Rack(FaultyBenches):
    """A controller that writes its one blade anew: everything there ends, and an agent starts that knows of nothing."""

    blade: Bench

    def __init__(self) -> None:
        super().__init__("blade-1")
        self.service.write = self.write

    def write(self, unit: str) -> None:
        assert unit == self.blade.name
        self.blade.lose_power()
        shutil.rmtree(self.blade.state)
        self.blade.start()


@pytest.fixture
def rack() -> Iterator[Rack]:
    made = Rack()
    yield made
    made.end()


@pytest.fixture
def bench(local: Local, rack: Rack, tmp_path: Path) -> Iterator[Callable[[str], Bench]]:
    site = tmp_path / "site.toml"
    (tmp_path / "rack.secret").write_text(SECRET)
    site.write_text(SITE.read_text() + LAB + RACK.format(url=rack.url, folder=tmp_path))
    made: list[Bench] = []

    def make(name: str, target: str = "benches") -> Bench:
        made.append(Bench(local, name, tmp_path / "benches", target))
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


def unanswered(asked: Asked) -> bool:
    """Do what is asked, and lose the answer: whoever asked asks again."""
    asked.act()
    return True


def begin_blade(local: Local, rack: Rack, blade: Bench) -> list[str]:
    """Two jobs for a blade, of which the first leaves something where no agent cleans."""
    rack.blade = blade
    rack.on("POST", unanswered, 1)
    blade.start()
    first = local.submit(f'echo secret > "{blade.state}/left"\n', "-t", "blades")
    return [first, local.submit(f'ls -A "{blade.state}"; echo second\n', "-t", "blades")]


def assert_written_between(local: Local, rack: Rack, jobs: Sequence[str]) -> None:
    """The second job found a machine that knew of nothing, and the proof of the first is the controller's."""
    assert {local.settled(job)["outcome"] for job in jobs} == {"succeeded"}
    printed = [line["payload"] for line in local.log(jobs[1]) if line["stream"] == "stdout"]
    assert printed[-1] == "second"
    assert "left" not in printed
    for job in jobs:
        local.until(lambda job=job: "its disk was written" in json.dumps(local.json("job", "timings", job)))
    assert list(rack.written) == ["blade-1"]


def test_two_benches_serve_five_jobs_and_one_of_them_loses_power(
    local: Local, bench: Callable[..., Bench], rack: Rack
) -> None:
    """JOB-2, UNIT-2: the job goes on elsewhere; who comes back cleans up before it serves again.

    Meanwhile a blade is written anew between its two jobs.
    """
    on_blade = begin_blade(local, rack, bench("blade-1", "blades"))
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
    chosen = local.submit(CHOOSES)
    assert local.settled(chosen)["outcome"] == "succeeded"
    assert any("got slot bench-8" in str(line["payload"]) for line in local.log(chosen)), "bench-7 was free, too"
    local.until(lambda: pool(local)["free"] == 2)
    assert two.stop() == 0
    local.until(lambda: pool(local)["away"] == 1)
    last = local.submit("ls -A $PENSTOCK_WORK; echo last\n", "-t", "benches")
    assert local.settled(last)["outcome"] == "succeeded"
    assert [line["payload"] for line in local.log(last) if line["stream"] == "stdout"] == ["last"]
    local.until(lambda: pool(local)["free"] == 1)
    assert list((one.state / "root").iterdir()) == list((two.state / "root").iterdir()) == []
    local.until(lambda: one.standing()["worker"] == "")  # the host hears only then that it is free
    assert_written_between(local, rack, on_blade)
    local.until(lambda: not local.call("GET", "/v1/workers").json()["items"])
