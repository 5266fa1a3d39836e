"""A host that several jobs share, each in a container of a real engine: apart from each other, through crashes.

[JOB-2] [UNIT-1] [UNIT-2] [SEC-2]
"""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agent.conftest import PYTHON
from tests.agent.control_plane import PATIENCE_SECONDS
from tests.agent.lab import TOKEN
from tests.agent.shared_lab import SharedLab
from tests.containers import podman
from tests.containers.podman import NoEngine, Podman

pytestmark = [pytest.mark.e2e, pytest.mark.networks, pytest.mark.xdist_group("engine")]
STRAY = f"stray-{secrets.token_hex(6)}"
UP = "echo up; while ! [ -e /tmp/go ]; do sleep 0.1; done;"
SERVE = "python3 -m http.server 8000 > /dev/null 2>&1 &"
LABELS = "{{range $name, $value := .Config.Labels}}{{$name}}={{$value}} {{end}}"
ADDRESS = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
LOOK = """
echo "user=$(id -un)"
ls -A /work /tmp
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; echo
cat /opt/penstock/agent.json 2>/dev/null && echo "the key is shown"
grep -E 'NoNewPrivs|CapEff' /proc/self/status
cat /proc/self/mountinfo
env
"""


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
            made.run("image", "rm", "--all", "--force", check=False)


class SharedHost:
    """A host with a folder of its own, and the agent on it."""

    def __init__(self, agent: Path, folder: Path, lab: SharedLab, engine: Podman) -> None:
        self.agent, self.folder, self.lab, self.engine = agent, folder, lab, engine
        (folder / "token").write_text(TOKEN)
        self.agents: list[subprocess.Popen[bytes]] = []

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        words = ["--url", self.lab.url, "--host", "bench-7", "--state", str(self.folder / "state")]
        words += ["--token-file", str(self.folder / "token"), "--containers", str(self.engine.program())]
        with open(self.folder / "agent.log", "ab") as log:
            agent = subprocess.Popen([PYTHON, str(self.agent), "host", *words, *more], cwd=self.folder, stderr=log)
        self.agents.append(agent)
        return agent

    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    def inside(self, worker: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.engine.run("exec", worker, *words, check=False)

    def go(self, *workers: str) -> None:
        """Let jobs that wait for it go on. Their container may be gone before the engine has seen how this ended."""
        for worker in workers:
            self.inside(worker, "touch", "/tmp/go")

    def connects(self, worker: str, address: str) -> bool:
        """Whether something in a container reaches what listens at an address."""
        script = f"import socket; socket.create_connection(({address!r}, 8000), 2)"
        return self.inside(worker, "python3", "-c", script).returncode == 0

    def leave_behind(self, name: str, like: str) -> None:
        """Make a container and a network as an agent that died did, of which nobody knows."""
        labels = self.engine.run("container", "inspect", "--format", LABELS, like).stdout.split()
        words = [word for label in labels if label.startswith("penstock.") for word in ("--label", label)]
        self.engine.run("network", "create", *words, name)
        self.engine.run("create", "--name", name, "--network", name, *words, self.engine.image, "sleep", "300")

    def left(self) -> list[str]:
        """What the engine has of this host. It shows the networks of other tests' engines too."""
        said = self.engine.run("ps", "--all", "--format", "{{.Names}}").stdout.split()
        networks = self.engine.run("network", "ls", "--format", "{{.Name}}").stdout.split()
        return [*said, *(name for name in networks if name in self.lab.planes or name == STRAY)]

    def remove_all(self) -> None:
        """Remove whatever a test that failed left."""
        for name in self.left():
            self.engine.run("rm", "--force", name, check=False)
            self.engine.run("network", "rm", "--force", name, check=False)

    def stop(self) -> None:
        for agent in self.agents:
            if agent.poll() is None:
                agent.terminate()
                agent.wait(PATIENCE_SECONDS)


Make = Callable[..., SharedHost]


@pytest.fixture
def shared(agent: Path, tmp_path: Path, engine: Podman) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(parts: int = 2) -> SharedHost:
            made = SharedHost(agent, tmp_path, stack.enter_context(SharedLab(engine.image, parts)), engine)
            stack.callback(made.remove_all)
            stack.callback(made.stop)
            return made

        yield make


def test_two_jobs_at_once_are_apart_and_leave_nothing(shared: Make) -> None:
    """SEC-2: neither has the other's files, processes or network, nor anything of the host's own."""
    host = shared()
    mine = host.lab.add(1, script=f"touch /work/mine /tmp/mine; sleep 4321 & {SERVE} {UP}")
    other = host.lab.add(2, script=f"{UP} {LOOK}")
    agent = host.start()
    for worker in (mine, other):
        host.lab.line(worker, "up")
    address = host.engine.run("container", "inspect", "--format", ADDRESS, mine).stdout.strip()
    host.lab.wait_for(lambda: host.connects(mine, address))
    assert not host.connects(other, address)
    host.go(mine, other)
    host.lab.wait_until_clean(mine, other)
    assert host.lab.results(mine, other) == ["succeeded"] * 2, host.log()
    assert_apart(host.lab.planes[other].lines("stdout"), host)
    assert host.lab.proofs[mine] == f"podman has no container and no network {mine} any more; its files are removed"
    assert host.left() == []
    agent.terminate()
    assert agent.wait(PATIENCE_SECONDS) == 0


def assert_apart(said: list[str], host: SharedHost) -> None:
    """Check what a job saw of its machine: nothing of the other job's, one folder of the host's, no right to gain."""
    text = "\n".join(said)
    assert "user=build" in said
    assert "NoNewPrivs:\t1" in said
    assert "CapEff:\t0000000000000000" in said
    for absent in ("mine", "sleep 4321", TOKEN, "the key is shown"):
        assert absent not in text
    shown = [line for line in said if str(host.folder) in line]
    assert [("/service " in line, " ro" in line) for line in shown] == [(True, True)]


def test_a_job_gets_no_more_memory_than_its_part_has(shared: Make) -> None:
    host = shared()
    host.lab.limits["memory"] = 128
    worker = host.lab.add(1, script="echo begun; python3 -c 'x = bytearray(300 << 20)'")
    host.start()
    host.lab.wait_until_clean(worker)
    (told,) = host.lab.planes[worker].finishes
    assert (told["result"], told["failure"]["kind"]) == ("failed", "out_of_memory")
    assert host.lab.planes[worker].lines("stdout")[-1] == "begun"
    assert not (host.folder / "oom").exists(), "Podman leaves it where its command runs"


def test_jobs_go_on_when_the_hosts_agent_dies(shared: Make) -> None:
    """JOB-2: who is started again finds them, begins none beside them, and removes what nobody knows. [UNIT-1]"""
    host = shared()
    workers = [host.lab.add(part, script=f"{UP} echo done") for part in (1, 2)]
    first = host.start()
    for worker in workers:
        host.lab.line(worker, "up")
    first.kill()
    first.wait(PATIENCE_SECONDS)
    host.leave_behind(STRAY, like=workers[0])
    asked = len(host.lab.asks)
    host.start()
    host.lab.wait_for(lambda: len(host.lab.asks) > asked + 6)
    assert {ask["stage"] for ask in host.lab.asks[asked:] if ask.get("part")} == {"working"}
    host.go(*workers)
    host.lab.wait_until_clean(*workers)
    assert host.lab.results(*workers) == ["succeeded"] * 2
    assert [len(host.lab.planes[worker].hellos) for worker in workers] == [1, 1]
    assert host.left() == []


def test_a_container_that_ended_while_no_agent_ran_is_reported_and_not_started_again(shared: Make) -> None:
    """JOB-2, UNIT-2."""
    host = shared()
    worker, gone = (host.lab.add(part, script=f"{UP} echo done") for part in (1, 2))
    first = host.start()
    for each in (worker, gone):
        host.lab.line(each, "up")
    first.kill()
    first.wait(PATIENCE_SECONDS)
    host.engine.run("kill", worker)
    host.engine.run("rm", "--force", gone)
    host.start()
    host.lab.wait_until_clean(worker, gone)
    for each in (worker, gone):
        stages = [ask["stage"] for ask in host.lab.of(each)]
        assert stages.index("ended") < stages.index("clean")
        assert len(host.lab.planes[each].hellos) == 1
    (trouble,) = {ask["trouble"] for ask in host.lab.of(gone) if ask["trouble"]}
    assert trouble.endswith("it was started before, and podman does not have it any more")
    assert host.left() == []


def test_sigterm_ends_all_jobs_and_reports_that_the_host_leaves(shared: Make) -> None:
    host = shared()
    workers = [host.lab.add(part, script="echo up; sleep 300") for part in (1, 2)]
    agent = host.start()
    for worker in workers:
        host.lab.line(worker, "up")
    agent.terminate()
    assert agent.wait(PATIENCE_SECONDS) == 0
    for part, worker in enumerate(workers, 1):
        last = host.lab.told(part)[-1]
        assert (last["worker"], last["stage"], last["leaving"]) == (worker, "ended", True)
    assert host.lab.told(0)[-1]["leaving"]
    assert host.engine.run("ps", "--quiet").stdout == ""
    host.start()
    host.lab.wait_until_clean(*workers)
    assert host.left() == []


def test_a_worker_that_was_taken_away_is_removed_before_the_part_has_another(shared: Make) -> None:
    host = shared()
    first, second = host.lab.add(1, script="echo up; sleep 300"), host.lab.add(1, script="echo second")
    host.start()
    host.lab.line(first, "up")
    host.lab.take_back(1)
    host.lab.wait_until_clean(second)
    assert host.lab.planes[second].lines("stdout")[-1] == "second"
    assert host.lab.results(first) == []
    assert host.left() == []


def test_an_image_that_cannot_be_pulled_is_reported_in_the_engines_words(shared: Make) -> None:
    host = shared()
    host.lab.image = f"localhost:1/nothing@sha256:{'0' * 64}"
    worker = host.lab.add(1)
    host.start()
    host.lab.wait_until_clean(worker)
    troubles = [ask["trouble"] for ask in host.lab.of(worker) if ask["trouble"]]
    assert len(troubles) == 1
    assert troubles[0].startswith("its container cannot be started: `podman pull` failed: ")
    assert "localhost:1" in troubles[0]
    assert host.lab.planes[worker].hellos == []


def test_a_host_that_is_no_longer_shared_ends_its_parts_and_runs_one_job_at_a_time(shared: Make) -> None:
    """The job on the machine itself begins when all parts are free."""
    host = shared()
    worker = host.lab.add(1, script=f"{UP} echo done")
    host.start()
    host.lab.line(worker, "up")
    with host.lab.changed:
        host.lab.parts = 0
    alone = host.lab.add(0, script="echo alone")
    asked = len(host.lab.told(0))
    host.lab.wait_for(lambda: len(host.lab.told(0)) > asked)
    assert host.lab.planes[alone].hellos == []
    host.go(worker)
    host.lab.wait_until_clean(worker, alone)
    assert host.lab.planes[alone].lines("stdout") == ["alone"]
    ends = [ask["cleaned"] for ask in host.lab.asks if ask["stage"] == "clean"]
    assert [end.split()[0] for end in dict.fromkeys(ends)] == ["podman", "no"]
    assert host.lab.results(worker, alone) == ["succeeded"] * 2
