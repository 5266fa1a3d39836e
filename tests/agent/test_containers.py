"""What a host that several jobs share asks of its container engine, and what it does if the engine fails. [UNIT-2]"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock import agentfile
from penstock.agent.containers import Containers
from penstock.agent.engine import Engine, find_engine
from penstock.agent.host import Host
from penstock.agent.hostloop import STUCK_SECONDS, HostLoop, HostState
from penstock.agent.hostparts import NO_ENGINE, HostParts
from penstock.agent.machine import Machine
from penstock.agent.relay import SOCKET, loopback_port, serve_loopback, serve_socket
from tests.agent.fake_engine import FakeEngine

IMAGE = f"docker.io/library/python@sha256:{'0' * 64}"
CONTAINER = {"image": IMAGE, "cpus": 1.5, "memory": 2048}
WORK = {"do": "work", "worker": "w1", "key": "the-key", "container": CONTAINER, "lease_seconds": 60, "seconds": 0}
WAIT = {"do": "wait", "seconds": 1, "lease_seconds": 60}
CLEAN = {"do": "clean", "worker": "w1", "seconds": 0, "lease_seconds": 60}


class Office:
    """The service: it answers what it is to answer, the last over and over."""

    host = "bench-7"

    def __init__(self, *answers: dict[str, Any], url: str = "https://penstock.example.com") -> None:
        self.url, self.answers = url, list(answers)
        self.asked: list[tuple[str, str, str, bool, int]] = []

    def ask(
        self, worker: str, stage: str, cleaned: str, trouble: str = "", leaving: bool = False, part: int = 0
    ) -> dict[str, Any]:
        self.asked.append((worker, stage, trouble, leaving, part))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    return FakeEngine(tmp_path / "engine")


def made(engine: FakeEngine, tmp_path: Path, office: Office) -> tuple[HostLoop, HostState]:
    """A part of a host, and its state."""
    folder = tmp_path / "part"
    folder.mkdir(exist_ok=True)
    state = HostState.load(folder)
    of = Containers(Engine(str(engine.program)), "bench-7", office.url, tmp_path, b"the agent")
    return HostLoop(office, state, of.worker, 1), state  # type: ignore[arg-type]


def until(happened: Callable[[], Any]) -> None:
    end = time.monotonic() + 120  # for machines that do much else
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def turn(loop: HostLoop) -> float:
    """A turn, and what it begins."""
    seconds = loop.turn()
    assert loop.worker._is_up.wait(30)  # type: ignore[attr-defined]
    return seconds


def test_a_container_is_made_with_its_limits_and_nothing_of_the_hosts(engine: FakeEngine, tmp_path: Path) -> None:
    """SEC-1, SEC-2: no mount, no right but the agent's, a network of its own, and no key where the engine shows it."""
    loop, state = made(engine, tmp_path, Office(WORK, WAIT))
    turn(loop)
    assert engine.states() == {"w1": "running"}
    (words,) = engine.calls("create")
    assert words[words.index("--entrypoint") + 1] == "python3"
    assert words[-5:] == [IMAGE, "/opt/penstock-agent.pyz", "run", "--config", "/opt/penstock/agent.json"]
    given = dict(pairwise(words))
    expected = {"--name": "w1", "--network": "w1", "--cpus": "1.5", "--memory": "2048m", "--memory-swap": "2048m"}
    expected |= {"--cap-drop": "ALL", "--security-opt": "no-new-privileges", "--user": "0:0", "--restart": "no"}
    expected |= {"--tmpfs": "/tmp:rw,exec,nosuid,nodev,mode=1777,size=1024m", "--pids-limit": "4096", "--pull": "never"}
    assert expected.items() <= given.items()
    assert [words[at + 1] for at, word in enumerate(words) if word == "--cap-add"] == [
        "CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID",
    ]  # fmt: skip
    assert "--init" in words
    assert not {"--volume", "--mount", "-v", "--env", "--privileged"} & set(words)
    assert "penstock.host=bench-7" in words
    assert "penstock.worker=w1" in words
    assert "the-key" not in (engine.folder / "calls").read_text()
    assert state.worker_folder.stat().st_mode & 0o777 == 0o700
    order = [call[0] for call in map(json.loads, (engine.folder / "calls").read_text().splitlines())]
    assert [word for word in order if word in ("pull", "create", "cp", "start")] == ["create", "cp", "start"]


@pytest.mark.parametrize(("name", "options"), [("podman", ["--opt", "isolate=true"]), ("docker", [])])
def test_networks_keep_each_other_out(tmp_path: Path, name: str, options: list[str]) -> None:
    """Podman's are asked to; Docker's always do."""
    engine = FakeEngine(tmp_path / "engine", name)
    turn(made(engine, tmp_path, Office(WORK))[0])
    (words,) = [call for call in engine.calls("network") if call[1] == "create"]
    assert words[-1] == "w1"
    assert words[-1 - len(options) : -1] == options


def test_an_image_that_is_missing_is_pulled(engine: FakeEngine, tmp_path: Path) -> None:
    engine.fail("image", "no such image")
    turn(made(engine, tmp_path, Office(WORK))[0])
    assert engine.calls("pull") == [["pull", IMAGE]]
    assert engine.states() == {"w1": "running"}


@pytest.mark.parametrize("word", ["network", "create", "cp", "start"])
def test_a_container_that_cannot_be_started_is_said_once(engine: FakeEngine, tmp_path: Path, word: str) -> None:
    engine.fail(word, "first\nno more room")
    office = Office(WORK, WAIT)
    loop, state = made(engine, tmp_path, office)
    for _ in range(3):
        turn(loop)
    trouble = f"its container cannot be started: `podman {word}` failed: first\nno more room"
    assert office.asked == [
        ("", "working", "", False, 1), ("w1", "ended", trouble, False, 1), ("w1", "ended", "", False, 1),
    ]  # fmt: skip
    assert state.stage == "ended"


def test_a_service_that_says_nothing_of_a_container_is_told(engine: FakeEngine, tmp_path: Path) -> None:
    office = Office({**WORK, "container": None}, WAIT)
    loop, _ = made(engine, tmp_path, office)
    for _ in range(2):
        turn(loop)
    assert office.asked[1][1:3] == ("ended", "its container cannot be started: 'image'")


@pytest.mark.parametrize(("state", "started"), [("created", True), ("running", False), ("exited", False)])
def test_who_is_started_again_begins_only_what_never_began(
    engine: FakeEngine, tmp_path: Path, state: str, started: bool
) -> None:
    """JOB-2."""
    turn(made(engine, tmp_path, Office(WORK))[0])
    engine.put("w1", state)
    before = len(engine.calls("start"))
    loop, _ = made(engine, tmp_path, Office(WAIT))
    loop.resume()
    turn(loop)
    assert (len(engine.calls("start")) > before) is started
    assert len(engine.calls("create")) == 1


def test_a_container_that_is_gone_is_not_made_again(engine: FakeEngine, tmp_path: Path) -> None:
    """JOB-2."""
    turn(made(engine, tmp_path, Office(WORK))[0])
    (engine.folder / "container" / "w1").unlink()
    office = Office(WAIT)
    loop, _ = made(engine, tmp_path, office)
    loop.resume()
    for _ in range(2):
        turn(loop)
    assert len(engine.calls("create")) == 1
    assert "it was started before, and podman does not have it any more" in office.asked[1][2]


def test_while_the_engine_is_silent_a_worker_is_taken_to_live(engine: FakeEngine, tmp_path: Path) -> None:
    office = Office(WORK, WAIT)
    loop, state = made(engine, tmp_path, office)
    turn(loop)
    for word in ("container", "ps"):
        engine.fail(word, "cannot connect")
    turn(loop)
    assert (office.asked[1][1], state.stage) == ("working", "working")
    assert office.asked[1][2] == "`podman ps` failed: cannot connect"
    for word in ("container", "ps"):
        engine.mend(word)
    turn(loop)
    assert office.asked[2][1:3] == ("working", "")


@pytest.mark.parametrize("word", ["rm", "network"])
def test_a_part_is_not_clean_before_the_engine_says_so(engine: FakeEngine, tmp_path: Path, word: str) -> None:
    office = Office(WORK, CLEAN)
    loop, state = made(engine, tmp_path, office)
    turn(loop)
    engine.put("w1", "exited")
    engine.fail(word, "device is busy")
    assert turn(loop) == STUCK_SECONDS
    assert state.stage == "ended"
    engine.mend(word)
    assert turn(loop) == 0
    assert office.asked[-1][2] == f"`podman {word}` failed: device is busy"
    assert (state.stage, engine.states(), engine.networks()) == ("clean", {}, set())
    assert state.cleaned == "podman has no container and no network w1 any more; its files are removed"
    assert not state.worker_folder.exists()


def test_what_an_agent_that_failed_said_is_logged(
    engine: FakeEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop, _ = made(engine, tmp_path, Office(WORK, CLEAN))
    turn(loop)
    engine.put("w1", "exited")
    turn(loop)
    assert "worker w1 ended with 3, and said last:\ngiving up" in capsys.readouterr().err


def parts(engine: FakeEngine | None, tmp_path: Path, office: Office) -> HostParts:
    of = Engine(str(engine.program)) if engine else None
    return HostParts(office, tmp_path, b"the agent", of)  # type: ignore[arg-type]


def host(engine: FakeEngine | None, tmp_path: Path, office: Office) -> tuple[Host, HostParts]:
    made, machine = parts(engine, tmp_path, office), Machine(str(tmp_path / "root"))
    return Host(office, HostState(tmp_path), machine, agentfile.build(), made), made  # type: ignore[arg-type]


SHARED = {**WAIT, "parts": 2, "busy": [1, 2]}


def test_a_shared_host_without_an_engine_says_what_to_do_once_and_is_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    office = Office(SHARED)
    bench, shares = host(None, tmp_path, office)
    for _ in range(4):
        bench._turn()
    assert capsys.readouterr().err.count(NO_ENGINE) == 1
    assert [asked[3] for asked in office.asked] == [False, True]
    assert not (tmp_path / "parts").exists()
    assert not shares.are_busy


def test_a_shared_host_whose_engine_is_silent_is_away_until_it_answers(
    engine: FakeEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    office = Office(SHARED)
    engine.fail("ps", "cannot connect")
    bench, shares = host(engine, tmp_path, office)
    for _ in range(4):
        bench._turn()
    of_host = [asked[3] for asked in office.asked if not asked[4]]
    assert of_host == [False, True]
    engine.mend("ps")
    bench._turn()
    assert [asked[3] for asked in office.asked if not asked[4]] == [False, True, False]
    until(lambda: {1, 2} <= {asked[4] for asked in office.asked})
    shares.leave()
    said = capsys.readouterr().err
    assert said.count("cannot connect") == 1
    assert said.count("the engine answers") == 1


def test_what_nobody_knows_is_removed_before_the_host_serves(engine: FakeEngine, tmp_path: Path) -> None:
    """UNIT-1: what a part knows stays."""
    folder = tmp_path / "parts" / "2"
    folder.mkdir(parents=True)
    HostState(folder).note("known", "ended")
    for name in ("known", "stray"):
        engine.put(name, "running")
        (engine.folder / "network" / name).touch()
    office = Office(SHARED)
    shares = parts(engine, tmp_path, office)
    shares.resume()
    assert shares.are_busy
    assert not shares.check()
    assert (set(engine.states()), engine.networks()) == ({"known"}, {"known"})
    (first, *_) = engine.calls("ps")
    assert first[2:6:2] == ["--filter", "--filter"]
    assert first[3] == "label=penstock.host=bench-7"
    shares.leave()


def test_a_command_that_is_no_longer_wanted_is_ended(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 300\n")
    slow.chmod(0o755)
    engine, unwanted = Engine(str(slow)), threading.Event()
    threading.Timer(0.3, unwanted.set).start()
    with pytest.raises(OSError, match="`slow pull` did not end"):
        engine.run("pull", is_unwanted=unwanted.is_set)
    with pytest.raises(OSError, match="`slow ps` did not end within 0 s"):
        engine.run("ps", seconds=0.3)
    with pytest.raises(OSError, match="`slow cp` did not end"):
        engine.run("cp", seconds=0.3, given=b"x" * 300000)


def test_the_commands_of_an_engine_are_not_reaped_by_others(engine: FakeEngine, tmp_path: Path) -> None:
    """Else a command that failed would look as if it had not."""
    engine.fail("create", "no")
    made, enough = Engine(str(engine.program)), threading.Event()

    def reap() -> None:
        while not enough.is_set():
            made.reap_orphans(set())

    reaper = threading.Thread(target=reap)
    reaper.start()
    try:
        for _ in range(5):
            with pytest.raises(OSError, match="`podman create` failed: no"):
                made.run("create")
    finally:
        enough.set()
        reaper.join()


def test_an_engine_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="--containers no-such-engine: this machine has no such command"):
        find_engine("no-such-engine", tmp_path)
    assert find_engine("sh", tmp_path).name == "sh"


def test_the_commands_of_an_engine_run_in_a_folder_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that is given by its path from here is found there too."""
    (tmp_path / "state").mkdir()
    (tmp_path / "mine").symlink_to("/bin/sh")
    monkeypatch.chdir(tmp_path)
    assert find_engine("./mine", tmp_path / "state").run("-c", "pwd").strip() == str(tmp_path / "state")


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://127.0.0.1:8080", 8080), ("http://localhost", 80), ("https://localhost/x", 443), ("http://[::1]:9", 9),
        ("https://penstock.example.com", None), ("http://10.0.0.1:8080", None),
    ],
)  # fmt: skip
def test_which_urls_are_on_the_loopback(url: str, port: int | None) -> None:
    assert loopback_port(url) == port


def test_a_service_on_the_loopback_is_reached_through_a_socket(tmp_path: Path) -> None:
    """Both ways, however long the folder's path is, and again after the socket was made anew."""
    folder = tmp_path / ("long" * 30)
    with socket.create_server(("127.0.0.1", 0)) as service, socket.create_server(("127.0.0.1", 0)) as taken:
        threading.Thread(target=echo, args=(service,), daemon=True).start()
        port = taken.getsockname()[1]
        taken.close()
        url = f"http://127.0.0.1:{service.getsockname()[1]}"
        serve_socket(folder, url)
        serve_socket(folder, url)
        short = tmp_path.parent / "s"
        short.unlink(missing_ok=True)
        short.symlink_to(folder)
        serve_loopback(f"http://127.0.0.1:{port}", f"{short}/{SOCKET}")
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port), 10) as end:
                end.sendall(b"x" * 300000)
                end.shutdown(socket.SHUT_WR)
                assert len(received(end)) == 300000


def received(end: socket.socket) -> bytes:
    return b"".join(iter(lambda: end.recv(65536), b""))


def echo(listener: socket.socket) -> None:
    while True:
        inner, _ = listener.accept()
        with inner:
            inner.sendall(received(inner))


def test_an_engine_that_bounds_no_memory_starts_no_job(engine: FakeEngine, tmp_path: Path) -> None:
    """Jobs of others on the host would pay for it. Nor is one started that was made before this was asked."""
    (engine.folder / "unbounded").touch()
    office = Office(WORK, WAIT)
    loop, _ = made(engine, tmp_path, office)
    for _ in range(2):
        turn(loop)
    why = "podman bounds no memory here: run it as root, or on a machine with cgroups v2"
    assert office.asked[1][1:3] == ("ended", f"its container cannot be started: {why}")
    assert engine.states() == {"w1": "created"}
    loop, _ = made(engine, tmp_path, Office(WAIT))
    loop.resume()
    turn(loop)
    assert engine.calls("start") == []
