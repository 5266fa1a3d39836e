"""The agent of a machine that exists already, as a process: one job after the other, clean in between, through crashes.

[JOB-2] [UNIT-2] [UNIT-3]
"""

import configparser
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.drivers.factories import process
from tests.agent.conftest import PYTHON, is_alive
from tests.agent.control_plane import PATIENCE_SECONDS
from tests.agent.lab import TOKEN, WORKERS, Lab


class Machine:
    """A host with a folder of its own, and the agent on it."""

    def __init__(self, agent: Path, folder: Path, lab: Lab) -> None:
        self.agent, self.folder, self.lab = agent, folder, lab
        (folder / "token").write_text(TOKEN + "\n")
        self.agents: list[subprocess.Popen[bytes]] = []

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        words = ["--url", self.lab.url, "--host", "bench-7", "--state", str(self.folder / "state")]
        command = [PYTHON, str(self.agent), "host", *words, "--token-file", str(self.folder / "token"), *more]
        with open(self.folder / "agent.log", "ab") as log:
            agent = subprocess.Popen(command, stderr=log, start_new_session=True)
        self.agents.append(agent)
        return agent

    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    def stop(self) -> None:
        for agent in self.agents:
            if agent.poll() is None:
                agent.terminate()
                agent.wait(PATIENCE_SECONDS)
        for worker in WORKERS:
            process.kill(process.tagged("PENSTOCK_WORKER_ID", worker), signal.SIGKILL)


@pytest.fixture
def machine(agent: Path, tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    with ExitStack() as stack:

        def make(**changes: Any) -> Machine:
            made = Machine(agent, tmp_path, stack.enter_context(Lab(**changes)))
            stack.callback(made.stop)
            return made

        yield make


def finished(lab: Lab, count: int) -> Callable[[], bool]:
    return lambda: len(lab.finishes) == count


DIRTY = 'mkdir -p "$PENSTOCK_WORK/deep"; echo mine > "$PENSTOCK_WORK/deep/left"; setsid sleep 300 & echo $!'


@pytest.mark.e2e
def test_jobs_one_after_the_other_and_nothing_of_one_is_left_for_the_next(machine):
    host = machine(script=f'ls "$PENSTOCK_WORK"; {DIRTY}')
    host.lab.left = WORKERS[:3]
    agent = host.start()
    host.lab.wait_until_clean(*WORKERS[:3])
    assert [told["result"] for told in host.lab.finishes] == ["succeeded"] * 3
    (orphan,) = host.lab.lines("stdout")  # and nothing of the jobs before it
    assert not is_alive(orphan)
    assert list((host.folder / "state" / "root").iterdir()) == []
    assert host.lab.proofs[WORKERS[0]] == f"no process of worker {WORKERS[0]} is left; nothing is in its root"
    assert len({ask["session"] for ask in host.lab.asks}) == 1
    host.lab.wait_for(lambda: host.lab.asks[-1]["worker"] == "")
    agent.terminate()
    assert agent.wait(25) == 0
    assert host.lab.asks[-1]["leaving"]
    assert not (host.folder / "state" / "worker").exists()


@pytest.mark.e2e
def test_jobs_cannot_read_the_hosts_token_and_it_can_be_replaced(machine):
    """SEC-1: nothing of the host's own is in the job's environment."""
    host = machine(script="env")
    agent = host.start()
    host.lab.wait_until_clean(WORKERS[0])
    host.lab.wait_for(lambda: host.lab.asks[-1]["worker"] == "")
    (host.folder / "token").write_text("revoked")
    assert agent.wait(25) == 1
    assert TOKEN not in "\n".join(host.lab.lines())
    assert "pst_" not in host.log()
    assert (host.folder / "state" / "session").stat().st_mode & 0o777 == 0o600


@pytest.mark.e2e
def test_a_machine_that_lost_power_cleans_up_and_serves_again(machine):
    """JOB-2, UNIT-2: everything died at once; the job is not run again, and its traces go."""
    host = machine(script=f"{DIRTY}; echo up; sleep 300")
    first = host.start()
    host.lab.wait_for_line("up")
    power_off(host, first)
    host.lab.wait_for(lambda: True)
    host.lab.left = WORKERS[1:2]
    host.lab.reply["tasks"][0]["script"] = 'ls "$PENSTOCK_WORK"; echo second'
    host.start()
    host.lab.wait_until_clean(*WORKERS[:2])
    assert host.lab.lines("stdout") == ["second"]
    assert len(host.lab.finishes) == 1
    stages = [ask["stage"] for ask in host.lab.asks if ask["worker"] == WORKERS[0]]
    assert stages.index("ended") < stages.index("clean")
    assert len({ask["session"] for ask in host.lab.asks}) == 1


def power_off(host: Machine, agent: subprocess.Popen[bytes]) -> None:
    standing = json.loads((host.folder / "state" / "standing.json").read_text())
    agent.kill()
    os.kill(standing["pid"], signal.SIGKILL)
    process.kill(process.tagged("PENSTOCK_WORKER_ID", standing["worker"]), signal.SIGKILL)
    agent.wait(25)


@pytest.mark.e2e
def test_a_job_continues_when_only_the_hosts_agent_dies(machine):
    """JOB-2: who is started again waits for the job, and begins none beside it."""
    host = machine(script='echo up; while ! [ -e "$PENSTOCK_WORK/go" ]; do sleep 0.05; done; echo done')
    first = host.start()
    host.lab.wait_for_line("up")
    first.kill()
    first.wait(25)
    host.start()
    asked = len(host.lab.asks)
    host.lab.wait_for(lambda: len(host.lab.asks) > asked + 2)
    assert {ask["stage"] for ask in host.lab.asks[asked:]} == {"working"}
    (host.folder / "state" / "root" / "work" / "go").touch()
    host.lab.wait_until_clean(WORKERS[0])
    assert host.lab.lines("stdout") == ["up", "done"]
    assert len(host.lab.hellos) == 1


@pytest.mark.e2e
def test_a_worker_that_was_taken_away_is_ended_and_cleaned_first(machine):
    host = machine(script=f"{DIRTY}; echo up; sleep 300")
    host.start()
    host.lab.wait_for_line("up")
    pid = host.lab.lines("stdout")[0]
    with host.lab.changed:
        host.lab.on, host.lab.left = "", WORKERS[1:2]
        host.lab.reply["tasks"][0]["script"] = 'ls "$PENSTOCK_WORK"; echo second'
    host.lab.wait_until_clean(WORKERS[1])
    assert not is_alive(pid)
    assert host.lab.lines("stdout") == ["second"]


@pytest.mark.e2e
def test_nothing_is_touched_while_an_operator_holds_the_machine(machine):
    """UNIT-3: also when the worker's agent is dead."""
    host = machine(script=f"{DIRTY}; echo up; sleep 300")
    host.lab.held = True
    agent = host.start()
    host.lab.wait_for_line("up")
    power_off(host, agent)
    host.start()
    host.lab.wait_for(lambda: host.lab.asks[-1]["stage"] == "ended")
    asked = len(host.lab.asks)
    host.lab.wait_for(lambda: len(host.lab.asks) > asked + 2)
    assert (host.folder / "state" / "root" / "work" / "deep" / "left").exists()
    host.lab.held = False
    host.lab.wait_until_clean(WORKERS[0])
    assert not (host.folder / "state" / "root" / "work").exists()


@pytest.mark.e2e
def test_sigterm_ends_the_job_and_reports_that_the_host_leaves(machine):
    host = machine(script="echo up; sleep 300")
    agent = host.start()
    host.lab.wait_for_line("up")
    agent.terminate()
    assert agent.wait(25) == 0
    last = host.lab.asks[-1]
    assert (last["worker"], last["stage"], last["leaving"]) == (WORKERS[0], "ended", True)
    assert process.tagged("PENSTOCK_WORKER_ID", WORKERS[0]) == set()
    host.start()
    host.lab.wait_until_clean(WORKERS[0])


@pytest.mark.e2e
def test_only_one_agent_serves_a_state_folder(machine):
    host = machine(script="true")
    host.lab.left = []
    host.start()
    host.lab.wait_for(lambda: host.lab.asks)
    assert host.start().wait(25) == 2
    assert "another agent of a host works in" in host.log()


@pytest.mark.e2e
@pytest.mark.parametrize("status", [401, 403, 404, 422])
def test_a_refused_host_ends(machine, status):
    host = machine()
    host.lab.refusal = status
    assert host.start().wait(25) == 1
    assert f"the service refuses this host: HTTP {status}: as the test wants" in host.log()


@pytest.mark.e2e
def test_a_second_machine_of_one_name_waits(machine):
    host = machine()
    host.lab.refusal = 409
    agent = host.start()
    host.lab.wait_for(lambda: host.lab.asks)
    agent.terminate()
    assert agent.wait(25) == 0
    assert "refuses this host for now: HTTP 409" in host.log()


@pytest.mark.e2e
def test_calls_to_an_unreachable_service_are_repeated(machine):
    host = machine()
    host.lab.misbehave = lambda endpoint, count: (
        (503, "drop")[count % 2] if endpoint == "bench-7" and count < 4 else None
    )
    host.start()
    host.lab.wait_until_clean(WORKERS[0])


@pytest.mark.e2e
def test_a_host_without_a_token_or_folder_does_not_start(machine):
    host = machine()
    (host.folder / "token").write_text("")
    assert host.start().wait(25) == 2
    assert "it has no token" in host.log()
    (host.folder / "file").write_text("")
    assert host.start("--state", str(host.folder / "file" / "state")).wait(25) == 2


def test_files_that_cannot_be_removed_are_reported(tmp_path, monkeypatch):
    """UNIT-2: a machine that is not clean does not say so."""
    from penstock.agent import hostprocess
    from penstock.agent.hostloop import STUCK_SECONDS, HostLoop, HostState
    from penstock.agent.machine import Machine

    class Office:
        host, url = "bench-7", "http://nowhere"

        def __init__(self) -> None:
            self.asked: list[tuple[Any, ...]] = []

        def ask(self, *said: Any) -> dict[str, Any]:
            self.asked.append(said)
            return {"do": "clean", "worker": WORKERS[0], "seconds": 0}

    def busy(*given: Any) -> str:
        raise OSError("a mount is busy")

    def process(state: HostState, changed: Callable[[], None]) -> hostprocess.WorkerProcess:
        return hostprocess.WorkerProcess(state, b"none", office.url, Machine(str(tmp_path / "root")), changed)

    office, standing = Office(), HostState(tmp_path)
    standing.note(WORKERS[0], "ended")
    bench = HostLoop(office, standing, process)  # type: ignore[arg-type]
    # The host is this process here: all that its worker could have left are processes that other tests need.
    monkeypatch.setattr(hostprocess, "JobProcesses", lambda worker: SimpleNamespace(kill_all=list))
    with monkeypatch.context() as patch:
        patch.setattr(hostprocess, "remove_leftovers", busy)
        assert bench.turn() == STUCK_SECONDS
    assert standing.stage == "ended"
    bench.turn()
    assert office.asked[1] == (WORKERS[0], "ended", "", "a mount is busy", False, 0)
    assert HostState.load(tmp_path).stage == "clean"


def test_a_host_asks_when_its_bell_rings(machine) -> None:
    """Its poll would come an hour later."""
    host = machine()
    lab, told = host.lab, []
    bell = f"{lab.url}/kept/bell"
    say = lab._say

    def patient(do: str, worker: str = "") -> dict[str, Any]:
        told.append(do)
        return say(do, worker) | ({"seconds": 3600, "bell": bell} if do == "wait" and not worker else {})

    lab._say, lab.left = patient, []  # type: ignore[method-assign]
    lab.kept["bell"] = b""
    lab.misbehave = lambda endpoint, count: 404 if endpoint == "kept" and not lab.left else None
    host.start()
    lab.wait_for(lambda: lab.calls.count("kept") >= 2)
    assert told == ["wait"]
    with lab.changed:
        lab.left = [WORKERS[0]]
    lab.wait_until_clean(WORKERS[0])


def test_each_worker_of_a_host_starts_from_a_compiled_copy_that_no_job_has_changed(machine) -> None:
    """SEC-2: a job may write whatever its user may, so the copy of the job before it is not used."""
    spoil = (
        'set -e; pyz="$(dirname "$PENSTOCK_ROOT")/worker/agent.pyz"; grep -q worker.pyc "$pyz"; echo broken > "$pyz"'
    )
    host = machine(script=spoil)
    host.lab.left = WORKERS[:2]
    host.start()
    host.lab.wait_until_clean(*WORKERS[:2])
    assert [told["result"] for told in host.lab.finishes] == ["succeeded"] * 2


def test_the_unit_of_the_example_goes_on_when_the_kernel_kills_a_job_for_its_memory() -> None:
    """By default systemd ends the whole unit then, and with it the agent: systemd.service(5)."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(Path(__file__).parents[2] / "examples" / "penstock-agent.service")
    assert unit["Service"]["OOMPolicy"] == "continue"
