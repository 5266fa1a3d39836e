"""A worker: the real agent as a process with a root of its own, as the process factory starts it."""

import importlib.util
import json
import marshal
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock import agentfile
from penstock.domain.jobs import failures
from tests.agent import fork_server, layered
from tests.agent.control_plane import KEY, PATIENCE_SECONDS, WORKER, ControlPlane, Misbehave, order
from tests.agent.fork_server import Forked, ForkServer

PYTHON = os.environ.get("PENSTOCK_AGENT_PYTHON", sys.executable)
SHORT_WAITS = {
    "agent/prepare.py": {"FIRST_SECONDS, MOST_SECONDS = 1.0, 30.0": "FIRST_SECONDS, MOST_SECONDS = 0.05, 0.2"},
    "agent/bmat.py": {"POLL_SECONDS = 2.0": "POLL_SECONDS = 0.1"},
    "agent/hostprocess.py": {"POLL_SECONDS = 0.5": "POLL_SECONDS = 0.05"},
}
"""What tests replace in the agent's modules: the waits between two tries."""


class Worker:
    """A folder with a config and, once started, an agent."""

    def __init__(self, agent: Path, folder: Path, plane: ControlPlane, forks: ForkServer | None = None) -> None:
        self.agent, self.folder, self.plane, self.root, self.forks = agent, folder, plane, folder / "root", forks
        config = {"url": plane.url, "worker": WORKER, "key": KEY, "root": str(self.root)}
        (folder / "agent.json").write_text(json.dumps(config))
        self.preloaded = agent  # the file that `forks` has loaded
        self.within: list[str] = []  # the command that the agent's own is said to
        self.agents: list[subprocess.Popen[bytes] | Forked] = []

    def start(self, before: Callable[[], None] | None = None) -> subprocess.Popen[bytes] | Forked:
        """Start the agent; in its process, `before` comes first."""
        arguments = ["run", "--config", str(self.folder / "agent.json")]
        environment = {**os.environ, "PENSTOCK_WORKER_ID": WORKER, "SECRET_OF_THE_MACHINE": "leaked"}
        agent: subprocess.Popen[bytes] | Forked
        with open(self.folder / "agent.log", "ab") as log:
            if self.forks and self.agent == self.preloaded and before is None and not self.within:
                agent = self.forks.start(arguments, environment, log.fileno())
            else:
                command = [*self.within, PYTHON, str(self.agent), *arguments]
                agent = subprocess.Popen(
                    command, env=environment, stderr=log, start_new_session=True, preexec_fn=before
                )
        self.agents.append(agent)
        return agent

    def run(self) -> int:
        """Start the agent and return its exit code."""
        return self.start().wait(PATIENCE_SECONDS)

    def finish(self) -> dict[str, Any]:
        """Run the agent to its good end and return the one outcome it reported."""
        assert self.run() == 0, self.log()
        return self.outcome()

    def outcome(self) -> dict[str, Any]:
        first, *repeats = self.plane.finishes
        assert repeats == [first] * len(repeats)
        return first

    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    def stop(self) -> None:
        for agent in self.agents:
            if agent.poll() is None:
                agent.terminate()
                agent.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="session")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent as machines get it."""
    path = tmp_path_factory.mktemp("agent") / "agent.pyz"
    path.write_bytes(agentfile.build())
    return path


@pytest.fixture(scope="session")
def swift(agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with short waits between tries, and with its modules compiled beside them: tests start it often."""
    path = tmp_path_factory.mktemp("swift") / "agent.pyz"
    with zipfile.ZipFile(agent) as packed, zipfile.ZipFile(path, "w") as file:
        for name in packed.namelist():
            source = packed.read(name).decode()
            for old, new in SHORT_WAITS.get(name, {}).items():
                assert source.count(old) == 1, f"{name} does not have {old}"
                source = source.replace(old, new)
            file.writestr(name, source)
            if sys.executable == PYTHON:
                module = compile(source, f"{path}/{name}", "exec")
                header = importlib.util.MAGIC_NUMBER + b"\1" + bytes(11)  # PEP 552: not to be compared with its source
                file.writestr(f"{name}c", header + marshal.dumps(module))
    return path


@pytest.fixture(scope="session")
def forks(swift: Path) -> Iterator[ForkServer]:
    """A server that forks agents: to start one takes a tenth of the time."""
    with tempfile.TemporaryDirectory() as short, fork_server.running(PYTHON, swift, Path(short)) as server:
        yield server


@pytest.fixture
def worker(swift: Path, forks: ForkServer, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Make a worker whose service answers hello with `order(**changes)`."""
    with ExitStack() as stack:

        def make(misbehave: Misbehave = lambda endpoint, count: None, **changes: Any) -> Worker:
            plane = stack.enter_context(ControlPlane(order(**changes), misbehave))
            made = Worker(swift, tmp_path, plane, forks)
            stack.callback(made.stop)
            return made

        yield make


@pytest.fixture
def machine(agent: Path, tmp_path: Path, worker: Callable[..., Worker]) -> Callable[..., Worker]:
    """Run an agent as root on a machine made for it; `before` is done to that machine first."""
    return layered.runner(agent, tmp_path, worker)


def accepted(failure: dict[str, Any]) -> dict[str, Any]:
    """Return a failure that an agent reported, after a check that the service takes it whole."""
    stored = failures.from_agent(**{("name" if key == "task_name" else key): value for key, value in failure.items()})
    assert stored is not None
    assert dict(stored.evidence) == {name: value for name, value in failure["evidence"].items() if value is not None}
    assert list(stored.lines) == failure["lines"]
    return failure


def is_alive(pid: str) -> bool:
    """Tell whether a process runs; a zombie doesn't."""
    try:
        return Path("/proc", pid.strip(), "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
