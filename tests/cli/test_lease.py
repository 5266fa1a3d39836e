"""penstock lease, and penstock.lease() for programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import penstock as package
from penstock import leasing
from penstock.cli.client import Transport
from penstock.cli.commands.lease import Child, interruptible
from penstock.cli.errors import Refused
from penstock.leasing import LeaseEnded
from tests.cli.conftest import Run
from tests.cli.leases import HELD
from tests.cli.service import TOKEN, Service

ID = str(HELD["id"])


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leasing, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(leasing, "LONGEST_PAUSE", 0.01)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease is renewed many times a second."""
    monkeypatch.setattr(leasing, "RENEWALS", 60_000)


def test_it_is_acquired_and_its_id_is_the_result(penstock: Run, service: Service) -> None:
    run = penstock("lease", "acquire", "bench", "licence", "--for", "2h", "--name", "mine", "--tag", "a=b")
    assert run.stdout == f"{ID}\n"
    assert run.stderr == f"held until {HELD['until']}: bench=bench-3\n"
    assert service.leases.bodies == [
        {"resources": ["bench", "licence"], "for": 7200, "name": "mine", "tags": {"a": "b"}}
    ]
    assert json.loads(penstock("lease", "acquire", "bench", "--json").stdout) == HELD


def test_without_wait_it_may_still_wait(penstock: Run, service: Service) -> None:
    service.leases.looks = 9
    run = penstock("lease", "acquire", "bench")
    assert run.stdout == f"{ID}\n"
    assert run.stderr.startswith("the lease waits for bench: held are bench-3 by j1; ")


def test_with_wait_it_is_told_once_why_it_waits(penstock: Run, service: Service) -> None:
    service.leases.looks = 3
    run = penstock("lease", "acquire", "bench", "--wait", "--max-wait", "1m")
    assert run.stderr.splitlines() == [
        "the lease waits for bench: held are bench-3 by j1",
        f"held until {HELD['until']}: bench=bench-3",
    ]
    assert service.leases.bodies[0]["max_wait"] == 60


def test_what_never_comes_is_an_error(penstock: Run, service: Service) -> None:
    service.leases.looks, service.leases.never = 1, True
    run = penstock("lease", "acquire", "bench", "--wait")
    assert run.exit_code == 4
    assert "has ended: failed: nobody renewed it" in run.stderr


def test_several_of_one_type_and_options_are_a_table(penstock: Run, service: Service) -> None:
    penstock("lease", "acquire", "bench", "--count", "2")
    penstock("lease", "acquire", "database", "--option", "version=16", "--option", "name=x")
    assert [body["resources"] for body in service.leases.bodies] == [
        {"bench-1": {"type": "bench", "options": {}}, "bench-2": {"type": "bench", "options": {}}},
        {"database": {"type": "database", "options": {"version": 16, "name": "x"}}},
    ]


def test_a_lease_says_which_thing_it_is_to_be(penstock: Run, service: Service) -> None:
    penstock("lease", "acquire", "bench", "--labels", "rack == 4", "--exclusive", "--placement", "packed")
    penstock("lease", "acquire", "bench", "--thing", "bench-3")
    chosen = {"labels": "rack == 4", "exclusive": True, "placement": "packed"}
    assert [body["resources"]["bench"] for body in service.leases.bodies] == [
        {"type": "bench", "options": {}, **chosen},
        {"type": "bench", "options": {}, "thing": "bench-3"},
    ]


@pytest.mark.parametrize(
    "words", [("--count", "2"), ("--option", "a=b"), ("--thing", "b"), ("--labels", "a"), ("--placement", "packed")]
)
def test_what_is_for_one_type_is_refused_for_more(penstock: Run, service: Service, words: tuple[str, str]) -> None:
    run = penstock("lease", "acquire", "bench", "licence", *words)
    assert (run.exit_code, service.leases.bodies) == (2, [])
    assert "are for one TYPE" in run.stderr


def test_renew_release_and_list(penstock: Run, service: Service) -> None:
    assert penstock("lease", "renew", ID, "--for", "1h").stdout == f"lease {ID} is held until {HELD['until']}\n"
    assert penstock("lease", "release", ID, ID).stdout == f"lease {ID} is released\n" * 2
    lines = penstock("lease", "list", "--ended", "--all").stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["STATE", "waiting", "held", "failed"]
    assert service.asked[-1][1] == "/v1/leases?ended=true&all=true&limit=100"
    assert penstock("lease", "list", "--owner", "oxide:hubris").exit_code == 0


def test_it_is_shown_and_what_it_has_as_variables(penstock: Run, service: Service) -> None:
    shown = penstock("lease", "show", ID).stdout
    assert "until     2026-01-01T10:10:05.000Z" in shown
    assert "bench     bench  ready  bench-3  7" in shown
    assert json.loads(penstock("lease", "show", ID, "--json").stdout) == HELD
    assert sorted(penstock("lease", "show", ID, "--env").stdout.splitlines()) == [
        """export BENCH_DEEP_KEY='it'"'"'s secret'""",
        "export BENCH_NAME=bench-3",
        "export BENCH_PGHOST=db.example",
        "export PGHOST=db.example",
    ]
    service.leases.metadata = {"a.b": "1", "a_b": "2"}
    assert "would both be BENCH_A_B" in penstock("lease", "show", ID, "--env").stderr


def run(service: Service, *words: str) -> subprocess.Popen[str]:
    """The command, as a process of its own."""
    env = {**os.environ, "PENSTOCK_URL": service.url, "PENSTOCK_TOKEN": TOKEN}
    command = [sys.executable, "-m", "penstock.cli", "lease", "run", *words]
    return subprocess.Popen(
        command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_hear_hangups
    )


def _hear_hangups() -> None:
    """Programs that nohup starts ignore SIGHUP, and so do those that these start: a shell cannot trap it then."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_a_command_runs_with_what_the_lease_has_and_ends_it(service: Service) -> None:
    process = run(service, "bench", "--for", "5m", "--", "sh", "-c", "echo $PGHOST $PENSTOCK_LEASE; exit 7")
    out, _ = process.communicate()
    assert (process.returncode, out) == (7, f"db.example {ID}\n")
    assert (service.leases.bodies, service.leases.released) == ([{"resources": ["bench"], "for": 300}], 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whatever_ends_the_command_the_lease_is_released(service: Service, tmp_path: Path, number: int) -> None:
    """UNIT-1: a signal goes to the command, and its end is that of the lease."""
    script = f"trap 'echo told; exit 9' INT TERM HUP; touch {tmp_path}/there; while :; do sleep 0.05; done"
    process = run(service, "bench", "--", "sh", "-c", script)
    while not (tmp_path / "there").exists():
        time.sleep(0.01)
    process.send_signal(number)
    out, _ = process.communicate()
    assert (process.returncode, out, service.leases.released) == (9, "told\n", 1)


def test_a_signal_that_comes_while_the_command_starts_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """UNIT-1: the command would go on otherwise, with what is released."""
    popen = subprocess.Popen

    def slowly(*given: Any, **how: Any) -> subprocess.Popen[bytes]:
        process = popen(*given, **how)
        os.kill(os.getpid(), signal.SIGTERM)
        return process

    monkeypatch.setattr(subprocess, "Popen", slowly)
    held = SimpleNamespace(id=ID, resources={}, lost=threading.Event())
    with interruptible():
        assert Child(held, ["sleep", "600"]).run() == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_stops_waiting_releases_it(service: Service, number: int) -> None:
    service.leases.looks = 10**9
    process = run(service, "bench", "--", "true")
    while service.leases.looks > 10**9 - 2:
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate()
    assert (process.returncode, f"lease {ID} is released" in said) == (130, True)
    assert service.leases.released


def test_a_command_that_is_not_there_is_an_error_and_releases_it(penstock: Run, service: Service) -> None:
    found = penstock("lease", "run", "bench", "--", "no-such-command-here")
    assert (found.exit_code, service.leases.released) == (2, 1)
    assert "cannot run `no-such-command-here`: No such file or directory" in found.stderr


def test_a_killed_command_is_told_as_shells_tell_it(penstock: Run, service: Service) -> None:
    assert penstock("lease", "run", "bench", "--", "sh", "-c", "kill -9 $$").exit_code == 137


@pytest.mark.usefixtures("often")
def test_it_is_renewed_while_the_command_runs(penstock: Run, service: Service) -> None:
    assert penstock("lease", "run", "bench", "--", "sleep", "0.5").exit_code == 0
    assert service.leases.renewed > 3


@pytest.mark.usefixtures("often")
def test_a_lost_lease_ends_the_command(penstock: Run, service: Service) -> None:
    service.leases.ends = True
    found = penstock("lease", "run", "bench", "--", "sleep", "600")
    assert found.exit_code == 4
    assert "the lease was lost, and the command told to end: lease L has ended" in found.stderr


@pytest.mark.parametrize("words", [("bench",), ("bench", "--"), ("--", "true"), ()])
def test_it_needs_a_type_and_a_command(penstock: Run, service: Service, words: tuple[str, ...]) -> None:
    found = penstock("lease", "run", *words)
    assert (found.exit_code, service.leases.bodies) == (2, [])
    assert "--" in found.stderr or "TYPE" in found.stderr


@pytest.mark.usefixtures("penstock", "often")
def test_a_program_has_it_while_a_block_runs(service: Service) -> None:
    with package.lease("bench", for_="10m", name="mine") as found:
        assert found.resources["bench"]["PGHOST"] == "db.example"
        while not service.leases.renewed:
            time.sleep(0.01)
    assert service.leases.released == 1
    assert service.leases.bodies == [{"resources": ["bench"], "for": "10m", "name": "mine"}]


@pytest.mark.usefixtures("penstock")
def test_it_is_released_when_the_block_fails(service: Service) -> None:
    def fail() -> None:
        with package.lease(resources={"db": {"type": "database"}}):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
    assert service.leases.released == 1
    assert service.leases.bodies[0]["resources"] == {"db": {"type": "database"}}


@pytest.mark.usefixtures("penstock", "often")
def test_a_program_learns_that_it_is_lost(service: Service) -> None:
    service.leases.ends = True
    with package.lease("bench") as found:
        assert found.lost.wait(30)
        assert found.why_lost.startswith("lease L has ended")


def test_what_fails_otherwise_is_tried_again(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = [Refused("wait", code="too-many"), Refused("it is over", code="lease-ended")]

    def renew(length: str | int) -> dict[str, Any]:
        raise said.pop(0)

    found = leasing.Lease(None, ID)  # type: ignore[arg-type]
    monkeypatch.setattr(found, "renew", renew)
    monkeypatch.setattr(leasing, "RENEWALS", 6000)
    found.keep("1m", 60)
    assert found.lost.wait(30)
    assert (found.why_lost, said) == ("it is over", [])


def test_it_is_lost_in_time_when_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while a renewal is under way that takes for ever."""
    asked, never = threading.Event(), threading.Event()

    def renew(length: str | int) -> dict[str, Any]:
        asked.set()
        never.wait()
        return {}

    found = leasing.Lease(None, ID)  # type: ignore[arg-type]
    monkeypatch.setattr(found, "renew", renew)
    found.keep("1s", 1)
    assert asked.wait(30)
    assert found.lost.wait(30)
    assert "could not be renewed in time" in found.why_lost
    never.set()


def test_what_was_released_while_it_was_renewed_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    found = leasing.Lease(None, ID)  # type: ignore[arg-type]

    def renew(length: str | int) -> dict[str, Any]:
        found._done.set()
        raise Refused("it has ended", code="lease-ended")

    monkeypatch.setattr(found, "renew", renew)
    monkeypatch.setattr(leasing, "RENEWALS", 360_000)
    found._renew_often("1h", 3600)
    assert not found.lost.is_set()


@pytest.mark.parametrize(("before", "first"), [(0.0, 20.0), (5.0, 15.0), (70.0, 0.0)])
def test_it_is_renewed_first_after_a_third_of_its_time_which_counts_from_when_it_was_last_not_held(
    monkeypatch: pytest.MonkeyPatch, before: float, first: float
) -> None:
    found, clock = leasing.Lease(None, ID, 1000.0 - before), [1000.0]  # type: ignore[arg-type]
    renewals, waits = [], []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        clock[0] += seconds
        return len(waits) == 3

    def renew(length: str | int) -> dict[str, Any]:
        renewals.append(clock[0])
        return {}

    monkeypatch.setattr(leasing, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(found, "renew", renew)
    monkeypatch.setattr(found._done, "wait", wait)
    found._renew_often("1m", 60)
    assert (waits, renewals) == ([first, 20.0, 20.0], [1000.0 + first, 1020.0 + first])
    assert found._ends == 1020.0 + first + 60 * (1 - leasing.MARGIN)


def test_the_time_of_a_lease_that_had_to_wait_counts_from_the_last_look_that_saw_it_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And is lost so long before its end, if no renewal succeeds."""
    found, clock = leasing.Lease(None, ID, 0.0), [100.0]  # type: ignore[arg-type]
    looks = [{"state": "waiting", "why": None}, {"state": "waiting", "why": None}, {"state": "held"}]

    def view() -> dict[str, Any]:
        clock[0] += 1
        return looks.pop(0)

    def sleep(seconds: float) -> None:
        clock[0] += 10

    monkeypatch.setattr(found, "view", view)
    monkeypatch.setattr(leasing, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    found.wait()
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)
    found.keep("100s", 100)
    assert found._ends == 111.0 + 90


def test_a_lease_that_need_not_wait_counts_from_when_it_was_asked_for(service: Service) -> None:
    before = time.monotonic()
    found = leasing.acquire(leasing.Api(Transport(service.url, TOKEN, lambda text: None)), {"resources": ["bench"]})
    assert before <= found._since <= time.monotonic()
    waited = found._since
    found.wait()
    assert found._since == waited


def test_a_command_that_is_short_needs_no_renewal(penstock: Run, service: Service) -> None:
    assert penstock("lease", "run", "bench", "--", "true").exit_code == 0
    assert service.leases.renewed == 0


def test_each_renewal_moves_the_time_when_it_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    found, moved = leasing.Lease(None, ID), threading.Event()  # type: ignore[arg-type]
    ends: list[float] = []

    def renew(length: str | int) -> dict[str, Any]:
        ends.append(found._ends)
        if len(ends) == 10:
            moved.set()
        return {}

    monkeypatch.setattr(found, "renew", renew)
    monkeypatch.setattr(leasing, "RENEWALS", 360_000)
    found.keep("1h", 3600)
    assert moved.wait(60)
    found._done.set()
    assert ends[:10] == sorted(set(ends[:10]))
    assert not found.lost.is_set()


def test_a_waiting_lease_that_ends_is_no_lease(service: Service) -> None:
    service.leases.looks, service.leases.never = 0, True
    with pytest.raises(LeaseEnded), package.lease("bench", url=service.url, token=TOKEN):
        pytest.fail("nobody has it")
    assert service.leases.released == 1


def test_the_package_has_nothing_else() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'leese'"):
        _ = package.leese
