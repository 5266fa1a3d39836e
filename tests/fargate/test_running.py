"""What a container does when it begins, done here: the program of its definition, a real agent, a real way to fetch it.

A job runs from its submission until nothing is left of it, in an emulated account whose ECS is the fake. [SEC-1]
"""

from __future__ import annotations

import ast
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.units.units import UnitState
from penstock.drivers import MAKER, Registry
from penstock.drivers.factories.aws.tags import SITE
from penstock.drivers.factories.fargate import boot, launch
from penstock.drivers.factories.fargate.factory import RECHECK_SECONDS, FargateFactory
from penstock.ports import Order
from penstock.testing.site import site_toml
from tests.ec2.account import Account, account
from tests.fargate.fake import Ecs
from tests.fargate.helpers import HERE, KEY, SETTINGS, WORKER, event, factory, only
from tests.fargate.running import finish, start

AGENT = b"""
import json, os, sys
print("agent", *sys.argv[1:])
kept = {"config": json.load(open("agent.json")), "mode": os.stat("agent.json").st_mode & 0o777}
json.dump({**kept, "folder": os.stat(".").st_mode & 0o777, "names": sorted(os.environ)}, open("ran", "w"))
sys.exit(3)
"""
CONFIG = site_toml(
    factories={"tasks": {"driver": "fargate", **SETTINGS}},
    targets={"default": {"factory": "tasks"}},
    limits={"lease": "1h"},
)


@dataclass
class Place:
    """A service that hands the agent out, and a folder for a container."""

    url: str
    folder: Path
    fails: list[int]
    asked: list[str]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr(launch.agentfile, "digest", lambda: hashlib.sha256(AGENT).hexdigest())
    made = Place("", tmp_path, [], [])

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            status = made.fails.pop(0) if made.fails else 200
            if status == 200 and self.path == "/v1/agent/agent.pyz":
                status = 302
            self.send_response(status)
            if status == 302:
                self.send_header("location", "/stored/agent?X-Amz-Signature=1")
            self.end_headers()
            self.wfile.write(AGENT if status == 200 else b"")

        def log_message(self, format: str, *given: object) -> None:
            del format, given

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    yield made
    server.shutdown()
    server.server_close()


def run(ecs: Ecs, place: Place) -> tuple[int, str]:
    """Have a worker made, and run its container to its end: with what it ends, and what it prints."""
    factory(ecs).create(Order(WORKER, "linux", "1", url=place.url, key=KEY))
    running = start(ecs, only(ecs), place.folder)
    ended = finish(running, lambda: threading.Event().wait(0.1))
    return ended, (place.folder / "console").read_text()


def test_the_agent_is_fetched_verified_and_run_with_what_only_root_reads(ecs: Ecs, place: Place) -> None:
    ended, printed = run(ecs, place)
    assert (ended, printed) == (3, "agent run --config agent.json\n")
    assert place.asked == ["/v1/agent/agent.pyz", "/stored/agent?X-Amz-Signature=1"]
    ran: dict[str, Any] = json.loads((place.folder / "opt" / "ran").read_text())
    assert ran["config"] == {
        "url": place.url, "worker": WORKER, "key": KEY, "alone": True, "root": str(place.folder / "root"),
    }  # fmt: skip
    assert (ran["mode"], ran["folder"]) == (0o600, 0o700)
    assert boot.GIVEN not in ran["names"]


def test_another_file_than_the_agent_is_not_run(ecs: Ecs, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.agentfile, "digest", lambda: "0" * 64)
    ended, printed = run(ecs, place)
    assert (ended, printed) == (1, "penstock: this is not the agent\n")
    assert not (place.folder / "opt" / "agent.pyz").exists()


def test_a_service_that_is_away_is_asked_again(ecs: Ecs, place: Place) -> None:
    place.fails = [503, 500, 404]
    ended, printed = run(ecs, place)
    assert ended == 3
    assert printed.startswith("penstock: the agent cannot be fetched, try 1 - HTTP Error 503")
    assert KEY not in printed


def test_a_service_that_stays_away_ends_the_task(ecs: Ecs, place: Place) -> None:
    place.fails = [503] * 99
    ended, printed = run(ecs, place)
    assert ended == 1
    assert len(place.asked) == boot.TRIES
    assert printed.endswith("penstock: the agent cannot be fetched\n")
    assert KEY not in printed


def test_it_needs_no_newer_python_than_the_agent(ecs: Ecs) -> None:
    """Images may have Python 3.9: nothing of the program is of a later one."""
    factory(ecs).create(Order(WORKER, "linux", "1", url="https://penstock.example", key=KEY))
    (definition,) = ecs.definitions.values()
    program = definition["containerDefinitions"][0]["entryPoint"][2]
    tree = ast.parse(program, feature_version=(3, 9))
    imported = {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    assert imported == {"hashlib", "json", "os", "sys", "time", "urllib.request"}


class Tasks(Registry):
    """The registry of a function whose ECS is the fake."""

    def __init__(self, ecs: Ecs) -> None:
        super().__init__({SITE: HERE})
        self.ecs = ecs

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Any:
        return FargateFactory(settings, {SITE: HERE, MAKER: name}, self.ecs.at)


@pytest.fixture
def aws(ecs: Ecs) -> Iterator[Account]:
    with pytest.MonkeyPatch.context() as patch, account(patch) as made:
        made.site.on = replace(made.site.on, drivers=Tasks(ecs))
        made.ask("PUT", "/v1/config", {"toml": CONFIG})
        made.rest()
        yield made


@pytest.mark.e2e
def test_a_job_runs_in_a_task_which_is_gone_afterwards(aws: Account, ecs: Ecs, tmp_path: Path) -> None:
    job = aws.ask("POST", "/v1/jobs", {"script": '#!/bin/bash\necho "on $PENSTOCK_WORKER_ID"\n'})["id"]
    aws.rest()
    task = only(ecs)

    def meanwhile() -> None:
        aws.gateway.handle_request()
        aws.rest()

    ended = finish(start(ecs, task, tmp_path), meanwhile)
    printed = (tmp_path / "console").read_text()
    assert ended == 0, printed
    assert aws.gateway.asked[0] == "GET /v1/agent/agent.pyz 302"
    aws.rest()
    settled = aws.ask("GET", f"/v1/jobs/{job}")
    assert (settled["outcome"], settled["attempt"]) == ("succeeded", 1), (settled, printed)
    said = [line["payload"] for line in aws.ask("GET", f"/v1/jobs/{job}/events")["items"]]
    assert f"on {task.worker}" in said
    ecs.now += 60
    for _ in range(3):
        aws.wait(RECHECK_SECONDS + 1)
    unit = aws.unit(task.worker)
    assert unit
    assert unit.state is UnitState.GONE
    assert list(ecs.alive()) == []
    aws.tell({**event(task, lastStatus="STOPPED", stopCode="UserInitiated"), "region": "eu-west-1"})
    assert aws.unit(task.worker) == unit
