"""The controller of examples/http_hosts.py, as a process of its own, does what a controller that switches hosts must.

So does the controller of the other tests. [JOB-2] [UNIT-2]
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.hosts import HostsFactory
from penstock.drivers.factories.process import kill_all, tagged
from penstock.kernel.errors import Unknown
from penstock.ports import NotYet, Ready, Switching, UnitContext
from tests.controllers.benches import FaultyBenches
from tests.wells.service import NOW, SURROUNDINGS, Program

EXAMPLE = Path(__file__).parents[2] / "examples" / "http_hosts.py"
HOST = f"bench-of-the-example-{os.getpid()}"
"""A host's processes are found by its name, on the whole machine: tests that run at the same time have others."""

AGENT = b"import pathlib, sys, time\npathlib.Path('words').write_text(' '.join(sys.argv[1:]))\ntime.sleep(600)\n"

Make = Callable[[], HostsFactory]


class Agents(BaseHTTPRequestHandler):
    """A deployment that has an agent which only waits. It does not answer the first requests: `trouble` of them."""

    trouble = 0

    def do_GET(self) -> None:
        assert self.path == "/v1/agent/agent.pyz"
        if Agents.trouble:
            Agents.trouble -= 1
            self.send_error(503)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(AGENT)))
        self.end_headers()
        self.wfile.write(AGENT)

    def log_message(self, *told: object) -> None:
        pass


@pytest.fixture
def deployment() -> Iterator[str]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Agents)
    Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    found = tmp_path / "hosts" / HOST
    found.mkdir(parents=True)
    return found


def factory(url: str) -> HostsFactory:
    given = {"url": url, "secret": "env:RACK", "timeout": "5s", "power": True}
    return HostsFactory(given, {**SURROUNDINGS, MAKER: "lab"})


@pytest.fixture
def example(tmp_path: Path, home: Path, deployment: str) -> Iterator[Make]:
    program = Program(tmp_path, EXAMPLE, "HOSTS_SECRET", str(home.parent), deployment)
    yield partial(factory, program.url)
    program.end()
    assert kill_all("LAB_HOST", HOST)


@pytest.fixture(params=["the example", "the fake"])
def controller(request: pytest.FixtureRequest) -> Iterator[Make]:
    if request.param == "the example":
        yield request.getfixturevalue("example")
        return
    benches = FaultyBenches(HOST)
    yield partial(factory, benches.url)
    benches.end()


def until(is_so: Callable[[], Any]) -> None:
    end = time.monotonic() + 120  # for machines that do much else
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def switch(make: Make, serial: int, *, is_on: bool, missed: int = 0) -> Ready | NotYet:
    return make().switch(HOST, Switching(is_on, serial, missed))


def test_a_controller_switches_and_may_be_asked_again(controller: Make) -> None:
    for _ in range(2):
        assert switch(controller, 1, is_on=True) == Ready()
    for _ in range(2):
        assert switch(controller, 2, is_on=False) == Ready()
    assert switch(controller, 5, is_on=True) == Ready()


def test_a_controller_refuses_a_late_order(controller: Make) -> None:
    """JOB-2"""
    switch(controller, 2, is_on=True)
    with pytest.raises(Unknown, match="stale-serial"):
        switch(controller, 1, is_on=False)
    assert switch(controller, 2, is_on=True) == Ready()


def test_a_controller_knows_which_hosts_there_are(controller: Make) -> None:
    with pytest.raises(Unknown, match="does not know"):
        controller().switch("another", Switching(is_on=True, serial=1))


def test_a_controller_cleans_after_a_lease_and_switches_on_for_the_next(controller: Make) -> None:
    """UNIT-2"""
    switch(controller, 1, is_on=True)
    for fence in (3, 3, 4):
        done = controller().with_context(UnitContext(HOST, fence)).destroy("w-1", NOW)
        assert isinstance(done, CleanProof)
    late = controller().with_context(UnitContext(HOST, 3)).destroy("w-1", NOW)
    assert isinstance(late, NotYet)
    assert "stale-fence" in str(late.reason)
    assert switch(controller, 2, is_on=True) == Ready()


def running() -> set[int]:
    """The processes of the host: that which keeps the agent running, and the agent."""
    until(lambda: len(tagged("LAB_HOST", HOST)) == 2)
    return tagged("LAB_HOST", HOST)


def runs_the_agent(process: int) -> bool:
    """Whether a process is the agent, and not what keeps it running."""
    return b"\0agent.pyz\0" in Path(f"/proc/{process}/cmdline").read_bytes()


def test_a_host_of_the_example_runs_the_agent(example: Make, home: Path, deployment: str) -> None:
    switch(example, 1, is_on=True)
    until((home / "words").exists)
    until(lambda: (home / "words").read_text())
    said = f"host --url {deployment} --host {HOST} --token-file {home}/token --state {home}/disk"
    assert (home / "words").read_text() == said
    first = running()
    switch(example, 1, is_on=True)
    switch(example, 2, is_on=True)
    assert tagged("LAB_HOST", HOST) == first
    switch(example, 3, is_on=True, missed=1)
    assert not running() & first, "who did not come is switched off and on"
    switch(example, 4, is_on=False)
    assert not tagged("LAB_HOST", HOST)


def test_a_host_of_the_example_runs_the_agent_again_when_it_ended(
    example: Make, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the deployment does not answer for a while."""
    monkeypatch.setattr(Agents, "trouble", 1)
    switch(example, 1, is_on=True)
    until((home / "words").exists)
    assert "503" in (home / "console").read_text()
    (agent,) = filter(runs_the_agent, running())
    os.kill(agent, signal.SIGKILL)
    until(lambda: len(tagged("LAB_HOST", HOST)) == 2 and agent not in tagged("LAB_HOST", HOST))
    switch(example, 2, is_on=False)
    assert not tagged("LAB_HOST", HOST)


def test_a_host_of_the_example_tells_what_it_printed(tmp_path: Path, home: Path, deployment: str) -> None:
    with_console = {"url": "", "secret": "env:RACK", "timeout": "5s", "console": True}
    program = Program(tmp_path, EXAMPLE, "HOSTS_SECRET", str(home.parent), deployment)
    made = HostsFactory({**with_console, "url": program.url}, {**SURROUNDINGS, MAKER: "lab"})
    host = made.with_context(UnitContext(HOST, 1))
    assert host.evidence("w-1") is None
    (home / "console").write_text("login:")
    assert host.evidence("w-1") == f"end of what host {HOST} printed:\nlogin:"
    program.end()


def test_a_host_of_the_example_has_a_new_disk_after_a_lease(example: Make, home: Path) -> None:
    """UNIT-2"""
    switch(example, 1, is_on=True)
    first = running()
    (home / "disk").mkdir()
    (home / "disk" / "left").write_text("of the job")
    for _ in range(2):
        assert isinstance(example().with_context(UnitContext(HOST, 3)).destroy("w-1", NOW), CleanProof)
    assert not (home / "disk" / "left").exists()
    assert not running() & first
    (home / "disk").mkdir(exist_ok=True)
    (home / "disk" / "left").write_text("of the next")
    example().with_context(UnitContext(HOST, 3)).destroy("w-1", NOW)
    assert (home / "disk" / "left").exists(), "a repeated request begins nothing"
