"""The controller of examples/ec2_hosts.py: one instance for each host that is on, whatever crashes or lags. [JOB-2]

EC2 is played behind boto3's own client.
"""

from __future__ import annotations

import base64
import os
import runpy
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.hosts import HostsFactory
from penstock.drivers.http.protocol import HOSTS
from penstock.drivers.http.serving import Endpoint, Later, Refused, server
from penstock.kernel.errors import PenstockError, Unknown
from penstock.ports import NotYet, Ready, Switching, UnitContext
from tests.ec2.fake import Ec2
from tests.played import Crash
from tests.played import Refusal as Ec2Refusal
from tests.wells.service import NOW, SECRET, SURROUNDINGS

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "ec2_hosts.py"))
URL = "https://penstock.example.com"
HOST = "build-1"


@pytest.fixture
def ec2() -> Ec2:
    return Ec2()


@pytest.fixture
def machines(ec2: Ec2, tmp_path: Path) -> Any:
    """The controller, without HTTP."""
    (tmp_path / HOST).mkdir()
    (tmp_path / HOST / "token").write_text("it's secret\n")
    return EXAMPLE["Machines"](tmp_path, URL, "lt-0123", "m7g.large", ec2.client("eu-west-1"))


@pytest.fixture
def driver(machines: Any) -> Iterator[HostsFactory]:
    http = server(Endpoint(machines, SECRET, of=HOSTS), 0)
    Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    given = {"url": f"http://127.0.0.1:{http.server_port}", "secret": "env:RACK", "timeout": "5s", "power": True}
    yield HostsFactory({**given, "console": True}, {**SURROUNDINGS, MAKER: "lab"})
    http.shutdown()
    http.server_close()


def order(serial: int, missed: int = 0) -> dict[str, Any]:
    return {"serial": serial, "missed": missed, "owner": "Penstock"}


def patiently(call: Any, *given: Any) -> Any:
    """Ask again for as long as it is not done."""
    for _ in range(20):
        try:
            return call(*given)
        except Later:
            pass
    raise AssertionError("it never ends")


def test_a_host_is_an_instance_while_it_is_on(driver: HostsFactory, ec2: Ec2) -> None:
    for _ in range(2):
        assert driver.switch(HOST, Switching(is_on=True, serial=1)) == Ready()
    (made,) = ec2.alive()
    assert made.wanted["LaunchTemplate"] == {"LaunchTemplateId": "lt-0123"}
    assert made.tags == {"Name": HOST, "penstock-host": HOST}
    off = Switching(is_on=False, serial=2)
    assert driver.switch(HOST, off) == NotYet(5, "its instance is being terminated")
    while driver.switch(HOST, off) != Ready():
        pass
    assert ec2.state(made) == "terminated"
    assert driver.switch(HOST, Switching(is_on=True, serial=3)) == Ready()
    assert len(list(ec2.alive())) == 1
    with pytest.raises(Unknown, match="stale-serial"):
        driver.switch(HOST, off)


def test_jobs_cannot_read_the_token_from_the_instances_metadata(machines: Any, ec2: Ec2) -> None:
    """SEC-2: a container is one hop further away than the instance is."""
    machines.on(HOST, order(1))
    (made,) = ec2.alive()
    assert made.wanted["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}


def test_an_instance_becomes_the_agent_when_it_boots(machines: Any, ec2: Ec2, tmp_path: Path) -> None:
    machines.on(HOST, order(1))
    (made,) = ec2.alive()
    boot, home = base64.b64decode(made.wanted["UserData"]), tmp_path / "agent"
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("curl", "systemd-run"):
        (programs / name).write_text(f'#!/bin/sh\nfor word; do echo "$word"; done > {tmp_path}/{name}\n')
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "AGENT_HOME": str(home)}
    subprocess.run(["/bin/sh"], input=boot, check=True, env=environment)
    assert (home / "token").read_text() == "it's secret"
    assert (home / "token").stat().st_mode & 0o077 == 0
    assert (tmp_path / "curl").read_text().split()[-2:] == ["agent.pyz", f"{URL}/v1/agent/agent.pyz"]
    words = f"agent.pyz host --url {URL} --host {HOST} --token-file token --state state --containers podman"
    assert (tmp_path / "systemd-run").read_text().split()[-len(words.split()) - 1 :] == ["python3", *words.split()]
    assert "--property=OOMPolicy=continue" in (tmp_path / "systemd-run").read_text().split(), "else it ends with a job"
    (tmp_path / "systemd-run").unlink()
    (programs / "curl").write_text("#!/bin/sh\nexit 22\n")
    assert subprocess.run(["/bin/sh"], input=boot, check=False, env=environment).returncode == 22
    assert not (tmp_path / "systemd-run").exists(), "without the agent's file nothing is started"


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_launches_nothing_twice_and_leaves_nothing(machines: Any, ec2: Ec2, side: str) -> None:
    ec2.crashes["RunInstances", side] = 1
    with pytest.raises(Crash):
        machines.on(HOST, order(1))
    machines.on(HOST, order(1))
    assert len(ec2.instances) == 1
    patiently(machines.off, HOST, order(2))
    ec2.crashes["RunInstances", side] = 1
    with pytest.raises(Crash):
        machines.on(HOST, order(3))
    patiently(machines.off, HOST, order(4))
    assert list(ec2.alive()) == []


def test_what_ended_by_itself_is_launched_anew(machines: Any, ec2: Ec2) -> None:
    machines.on(HOST, order(1))
    (made,) = ec2.alive()
    ec2.end(made.id, "Server.SpotInstanceTermination")
    patiently(machines.on, HOST, order(2))
    assert len(list(ec2.alive())) == 1


def test_what_ended_after_a_crash_is_launched_anew(machines: Any, ec2: Ec2) -> None:
    ec2.crashes["RunInstances", "after"] = 1
    with pytest.raises(Crash):
        machines.on(HOST, order(1))
    (made,) = ec2.alive()
    ec2.end(made.id, "Server.SpotInstanceTermination")
    ec2.now += 10
    machines.on(HOST, order(1))
    assert len(list(ec2.alive())) == 1


def test_what_did_not_come_is_replaced(machines: Any, ec2: Ec2) -> None:
    machines.on(HOST, order(1))
    (first,) = ec2.alive()
    patiently(machines.on, HOST, order(2, missed=1))
    (second,) = ec2.alive()
    assert second is not first


def test_what_ec2_does_not_list_yet_is_waited_for(machines: Any, ec2: Ec2) -> None:
    ec2.lag = 20
    for _ in range(3):
        machines.on(HOST, order(1))
    assert len(ec2.instances) == 1
    with pytest.raises(Refused, match=r"InvalidInstanceID\.NotFound"):
        machines.off(HOST, order(2))
    ec2.lag = 0
    patiently(machines.off, HOST, order(2))
    assert list(ec2.alive()) == []


def test_what_ec2_has_forgotten_is_over(machines: Any, ec2: Ec2, monkeypatch: pytest.MonkeyPatch) -> None:
    machines.on(HOST, order(1))
    ec2.instances.clear()
    monkeypatch.setitem(EXAMPLE["Machines"].state.__globals__, "LISTED_AFTER", 0)
    machines.off(HOST, order(2))
    machines.on(HOST, order(3))
    assert len(list(ec2.alive())) == 1


def test_without_capacity_nothing_is_on_and_nothing_is_launched_to_be_ended(driver: HostsFactory, ec2: Ec2) -> None:
    ec2.answers["RunInstances"] = [Ec2Refusal("InsufficientInstanceCapacity", "none left")]
    with pytest.raises(PenstockError, match="InsufficientInstanceCapacity: none left"):
        driver.switch(HOST, Switching(is_on=True, serial=1))
    assert driver.switch(HOST, Switching(is_on=False, serial=2)) == Ready()
    assert ec2.instances == {}


def test_who_had_the_whole_host_leaves_it_to_be_made_anew(driver: HostsFactory, ec2: Ec2) -> None:
    """UNIT-2"""
    driver.switch(HOST, Switching(is_on=True, serial=1))
    (first,) = ec2.alive()
    host = driver.with_context(UnitContext(HOST, 3))
    while isinstance(done := host.destroy("w-1", NOW), NotYet):
        assert "terminated" in str(done.reason)
    assert isinstance(done, CleanProof)
    (second,) = ec2.alive()
    assert second is not first
    assert isinstance(driver.with_context(UnitContext(HOST, 3)).destroy("w-1", NOW), CleanProof)
    assert list(ec2.alive()) == [second], "a repeated request begins nothing"


def test_what_an_instance_printed_is_shown(driver: HostsFactory, ec2: Ec2) -> None:
    host = driver.with_context(UnitContext(HOST, 1))
    assert host.evidence("w-1") is None
    driver.switch(HOST, Switching(is_on=True, serial=1))
    (made,) = ec2.alive()
    ec2.consoles[made.id] = "login:"
    assert host.evidence("w-1") == f"end of what host {HOST} printed:\nlogin:"


@pytest.mark.parametrize("name", ["another", "..", "a/b"])
def test_only_what_has_a_folder_is_a_host(machines: Any, name: str) -> None:
    with pytest.raises(Refused, match="there is no host"):
        machines.on(name, order(1))
