"""What a machine does when it boots, done here: a real bash, a real agent, a real way to fetch it. Only the power
switch is a file. [SEC-1]
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from penstock import agentfile
from penstock.agent.machine import Step
from penstock.drivers import checks
from penstock.drivers.factories import userdata as common
from penstock.drivers.factories.ec2 import launch
from penstock.drivers.factories.ec2 import settings as ec2_settings
from penstock.drivers.factories.ec2.settings import Settings
from penstock.kernel.errors import Misconfigured
from penstock.ports import Order
from tests.ec2.authority import authority
from tests.ec2.helpers import KEY, LEAST, WORKER, order

SHUTDOWN = '#!/bin/sh\necho "$@" >> "$POWER"\n'
SLEEP = "#!/bin/sh\n"
AGENT = b"""
import json, os, sys
print("agent", *sys.argv[1:])
json.dump({"config": json.load(open("agent.json")), "mode": os.stat("agent.json").st_mode & 0o777}, open("ran", "w"))
open("progress", "w").write(os.environ["PROGRESS"])
sys.exit(int(os.environ["ENDS_WITH"]))
"""
STORED = "/stored/agent?X-Amz-Signature=1"
"""Where the service leads a machine that asks for the agent."""
FINISHED, STARTED = (f"{step.value} 01J\n" for step in (Step.FINISHED, Step.STARTED))


@dataclass
class Machine:
    """A folder that stands for a machine."""

    folder: Path
    url: str
    served: dict[str, bytes]
    asked: list[tuple[str, set[str]]]

    def boot(self, given: Settings, ends_with: int = 0, progress: str = FINISHED) -> subprocess.CompletedProcess[str]:
        script = launch.user_data_of(Order(WORKER, "linux", "1", url=self.url, key=KEY), given)
        path = self.folder / "user-data"
        path.write_text(script.replace(common.HOME, str(self.folder / "opt")))
        path.chmod(0o700)
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "POWER": str(self.folder / "power"),
            "ENDS_WITH": str(ends_with),
            "PROGRESS": progress,
        }
        return subprocess.run([path], env=environment, capture_output=True, text=True, timeout=60, check=False)

    @property
    def power(self) -> str:
        return (self.folder / "power").read_text()

    @property
    def ran(self) -> dict[str, object] | None:
        path = self.folder / "opt" / "ran"
        return json.loads(path.read_text()) if path.exists() else None


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    asked: list[tuple[str, set[str]]] = []
    served = {STORED: AGENT}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, {name.lower() for name in self.headers}))
            if self.path == "/v1/agent/agent.pyz":
                self.send_response(302)
                self.send_header("location", STORED)
                self.end_headers()
                return
            found = served.get(self.path)
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, *given: object) -> None:
            del given

    monkeypatch.setattr(agentfile, "build", lambda: AGENT)
    for name, text in (("shutdown", SHUTDOWN), ("sleep", SLEEP)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o700)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Machine(tmp_path, f"http://127.0.0.1:{server.server_address[1]}", served, asked)
        server.shutdown()


@pytest.fixture
def given() -> Settings:
    return ec2_settings.read({**LEAST, "linger": 30})


def test_the_user_data_runs_the_agent_with_its_config(machine: Machine, given: Settings) -> None:
    done = machine.boot(given)
    assert machine.ran == {
        "config": {"url": machine.url, "worker": WORKER, "key": KEY, "alone": True},
        "mode": 0o600,
    }, done
    assert "agent run --config agent.json" in done.stdout


def test_fetching_the_agent_tells_nobody_anything(machine: Machine, given: Settings) -> None:
    """SEC-1: neither the service nor the store that it leads to is sent a key, or anything else of this machine's."""
    machine.boot(given)
    assert machine.asked == [
        (path, {"accept-encoding", "connection", "host", "user-agent"}) for path in ("/v1/agent/agent.pyz", STORED)
    ]


def test_its_config_says_where_to_ask_what_the_machine_is_if_its_factory_wants_to_know(machine: Machine) -> None:
    machine.boot(ec2_settings.read({**LEAST, "identity": authority().pem}))
    assert machine.ran["config"]["identity"] == "http://169.254.169.254"


@pytest.mark.parametrize(
    ("ends_with", "progress", "power"),
    [
        (0, FINISHED, "-h +30\n"),
        (0, "", "-h +0\n"),
        (1, STARTED, "-h +0\n"),
        (137, STARTED, "-h +0\n"),
    ],
    ids=["reported", "not wanted", "lost", "killed"],
)
def test_a_machine_ends_with_its_agent(
    machine: Machine, given: Settings, ends_with: int, progress: str, power: str
) -> None:
    """UNIT-1: also when nobody is left to end it. Only one whose job was reported stays, for people to hold it."""
    machine.boot(given, ends_with, progress)
    assert machine.power == power


def test_an_agent_that_is_not_ours_is_not_run(machine: Machine, given: Settings) -> None:
    machine.served[STORED] = AGENT + b"\nprint('evil')\n"
    done = machine.boot(given)
    assert machine.ran is None
    assert "this is not the agent" in done.stdout
    assert machine.power == "-h +0\n"


def test_the_download_of_the_agent_is_retried_and_then_given_up(machine: Machine, given: Settings) -> None:
    machine.served.clear()
    done = machine.boot(given)
    assert done.stdout.count("cannot be fetched") == 8
    assert machine.ran is None
    assert machine.power == "-h +0\n"


def test_the_sites_own_commands_come_first(machine: Machine, given: Settings) -> None:
    machine.boot(replace(given, user_data='echo "{$HOME} %s" > before; cd /; exit 0'))
    assert (machine.folder / "opt" / "before").exists()
    assert machine.ran


def test_the_sites_own_commands_may_fail_the_boot(machine: Machine, given: Settings) -> None:
    done = machine.boot(replace(given, user_data="false\nexit 7"))
    assert "user_data failed: 7" in done.stdout
    assert machine.ran is None
    assert machine.power == "-h +0\n"


def test_the_key_is_not_on_the_console(machine: Machine, given: Settings) -> None:
    """SEC-1: what is printed ends in the job's log when boot failed."""
    for ends_with in (0, 1):
        done = machine.boot(given, ends_with)
        assert KEY not in done.stdout + done.stderr
    machine.served.clear()
    done = machine.boot(given)
    assert KEY not in done.stdout + done.stderr


def test_the_user_data_fits_ec2s_limit(given: Settings) -> None:
    longest = replace(given, user_data="#" * checks.SHELL_BYTES)
    assert len(launch.user_data_of(order(), longest).encode()) <= common.MAX_BYTES
    with pytest.raises(Misconfigured, match="16384"):
        launch.user_data_of(order(), replace(given, user_data="#" * 16 * 1024))


def test_the_user_data_of_a_worker_never_changes(given: Settings) -> None:
    """Or EC2 would see another request under the same worker."""
    assert launch.user_data_of(order(), given) == launch.user_data_of(order(), given)
