"""Services: containers beside a worker's, which live and die with it. [SEC-1] [SEC-2] [UNIT-1] [UNIT-2]"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers import Registry
from penstock.drivers.factories.container import services, wait
from penstock.drivers.factories.container.spec import AGENT, CONFIG, GO, RELAY, WAIT, WAITING
from penstock.kernel.errors import DriverError, Unknown, Unsatisfiable
from penstock.ports import NotYet, Order, Ready
from tests.containers.fake import Box
from tests.containers.helpers import IMAGE, KEY, NOW, SETTINGS, WORKER, Place, order

DB = f"docker.io/library/postgres@sha256:{'cd' * 32}"
SAID = {"db": {"image": DB, "env": {"A": "b c"}, "ready": "pg_isready"}}
ALLOWED: dict[str, Any] = {"images": ["docker.io/library/*"], "services": 2}


def ask(said: Mapping[str, Any] = SAID, url: str = "https://penstock.example") -> Order:
    return replace(order(url=url), options={"services": said})


def box(place: Place, name: str) -> Box:
    found = place.engine.box(name)
    assert found
    return found


@pytest.fixture
def ready(place: Place) -> Place:
    place.engine.images.add(DB)
    place.engine.commands["pg_isready"] = 0
    return place


def test_a_service_is_in_the_network_of_its_worker_and_has_no_more_rights(ready: Place) -> None:
    assert isinstance(ready.factory(**ALLOWED, memory=100).create(ask()), Ready)
    worker, service = box(ready, WORKER), box(ready, f"{WORKER}-db")
    host = service.spec["HostConfig"]
    assert host["NetworkMode"] == f"container:{worker.id}"
    assert worker.spec["HostConfig"]["ExtraHosts"] == ["db:127.0.0.1"]
    assert (service.spec["Image"], service.spec["Env"]) == (DB, ["A=b c"])
    assert (host["Privileged"], host["CapDrop"], host["SecurityOpt"]) == (False, ["ALL"], ["no-new-privileges"])
    assert (host["Memory"], host["MemorySwap"]) == (100 << 20, 100 << 20)
    assert "Mounts" not in host
    assert KEY not in json.dumps(service.spec)
    assert service.files == {}


def test_the_agent_begins_when_its_services_are_ready(ready: Place) -> None:
    driver = ready.factory(**ALLOWED)
    ready.engine.commands["pg_isready"] = 1
    assert driver.create(ask()) == NotYet(1, "its service db is not ready yet")
    worker = box(ready, WORKER)
    assert worker.spec["Entrypoint"] == ["python3", WAIT, WAITING, GO, "python3", AGENT, "run", "--config", CONFIG]
    assert GO not in worker.files
    ready.engine.commands["pg_isready"] = 0
    assert isinstance(driver.create(ask()), Ready)
    assert GO in worker.files
    assert (worker.starts, box(ready, f"{WORKER}-db").starts) == (1, 1)


def test_the_local_clouds_port_is_taken_before_a_service_starts(ready: Place) -> None:
    """SEC-2: it shares the loopback, and could wait there for the agent's key. The program that waits starts after the
    relay listens, and says so by a file.
    """
    driver, asked = ready.factory(**ALLOWED), ask(url="http://127.0.0.1:4566")
    driver.create(asked)
    worker = box(ready, WORKER)
    assert worker.spec["Entrypoint"][:5] == ["python3", RELAY, "4566", "/opt/penstock-cloud.sock", "python3"]
    assert worker.spec["Entrypoint"][5] == WAIT
    driver.destroy(WORKER, NOW)
    ready.engine.calls.clear()
    ready.engine.fail("HEAD", 404)
    assert driver.create(asked) == NotYet(1, "its container does not wait for its services yet")
    assert ready.engine.box(f"{WORKER}-db") is None


def test_a_service_without_a_command_is_ready_when_it_runs(ready: Place) -> None:
    assert isinstance(ready.factory(**ALLOWED).create(ask({"db": {"image": DB}})), Ready)
    assert ready.engine.runs == []


def test_an_image_of_a_service_is_pulled(ready: Place) -> None:
    ready.engine.images.discard(DB)
    ready.engine.registry.add(DB)
    assert isinstance(ready.factory(**ALLOWED).create(ask()), Ready)
    assert DB in ready.engine.images


def test_a_pull_that_takes_longer_goes_on_with_the_next_call(ready: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.drivers.factories.container.containers.pull", lambda *_: False)
    ready.engine.images.discard(DB)
    done = ready.factory(**ALLOWED).create(ask())
    assert done == NotYet(1, "its service db waits for its image, which is being pulled")


@pytest.mark.parametrize("state", ["exited", "stopped"])
def test_a_service_that_ended_fails_the_job(ready: Place, state: str) -> None:
    driver = ready.factory(**ALLOWED)
    driver.create(ask())
    service = box(ready, f"{WORKER}-db")
    service.state, service.code = state, 3
    with pytest.raises(Unsatisfiable, match=r"service db ended with exit code 3; end of its output:\n(.*\n)+the end"):
        driver.create(ask())


def test_a_service_that_is_not_ready_in_time_fails_the_job(ready: Place) -> None:
    driver = ready.factory(**ALLOWED)
    ready.engine.commands["pg_isready"] = 1
    driver.create(ask())
    long_ago = datetime.now(UTC) - services.READY_WITHIN - timedelta(seconds=1)
    box(ready, f"{WORKER}-db").started = long_ago.isoformat()
    with pytest.raises(Unsatisfiable, match="service db is not ready 5 minutes after its start: `pg_isready` fails"):
        driver.create(ask())


@pytest.mark.parametrize("started", ["", "yesterday"])
def test_a_time_that_cannot_be_read_is_no_reason_to_fail(ready: Place, started: str) -> None:
    driver = ready.factory(**ALLOWED)
    ready.engine.commands["pg_isready"] = 1
    driver.create(ask())
    box(ready, f"{WORKER}-db").started = started
    assert isinstance(driver.create(ask()), NotYet)


def test_a_command_that_does_not_end_is_no_success(ready: Place) -> None:
    ready.engine.commands["pg_isready"] = None
    assert isinstance(ready.factory(**ALLOWED).create(ask()), NotYet)


def test_a_service_that_is_being_removed_is_waited_for(ready: Place) -> None:
    driver = ready.factory(**ALLOWED)
    driver.create(ask())
    box(ready, f"{WORKER}-db").state = "removing"
    assert driver.create(ask()) == NotYet(1, "its service db does not run yet")


def test_a_service_that_cannot_be_started_now_is_started_later(ready: Place) -> None:
    driver = ready.factory(**ALLOWED)
    ready.engine.commands["pg_isready"] = 1
    driver.create(ask())
    service = box(ready, f"{WORKER}-db")
    service.state = "created"
    ready.engine.fail(f"POST /containers/{service.id}/start", 500, "try again")
    with pytest.raises(Unknown, match="try again"):
        driver.create(ask())
    assert driver.create(ask()) == NotYet(1, "its service db is not ready yet")
    assert service.state == "running"


def test_what_the_engine_refuses_of_a_service_fails_its_job_alone(ready: Place) -> None:
    ready.engine.images.discard(DB)
    with pytest.raises(Unsatisfiable, match=r"service db cannot be had: .*manifest unknown"):
        ready.factory(**ALLOWED).create(ask())


def test_an_image_that_there_is_not_fails_the_job_that_names_it(place: Place) -> None:
    with pytest.raises(Unsatisfiable, match=r"the image docker\.io.* cannot be had: .*manifest unknown"):
        place.factory(**ALLOWED).create(replace(order(), options={"image": DB}))


@pytest.mark.parametrize("call", ["POST /containers/ID/exec", "GET /exec"])
def test_a_garbled_answer_about_a_command_is_an_error(ready: Place, call: str) -> None:
    driver = ready.factory(**ALLOWED)
    driver.create(ask())
    ready.engine.fail(call.replace("ID", box(ready, f"{WORKER}-db").id), way="odd")
    with pytest.raises(DriverError):
        driver.create(ask())


def test_services_end_with_their_worker(ready: Place) -> None:
    """An engine keeps a container whose network others use; so they go first."""
    driver = ready.factory(**ALLOWED)
    driver.create(ask())
    assert list(driver.list()) == [WORKER]
    assert [each.kind for each in driver.things() if each.unit == WORKER] == ["container", "container", "network"]
    assert isinstance(driver.destroy(WORKER, NOW), CleanProof)
    assert ready.engine.boxes == {}


def test_a_service_alone_is_a_leftover_of_its_worker(ready: Place) -> None:
    driver = ready.factory(**ALLOWED)
    driver.create(ask())
    del ready.engine.boxes[box(ready, WORKER).id]
    assert list(driver.list()) == [WORKER]
    ready.engine.removals = 1
    assert isinstance(driver.destroy(WORKER, NOW), NotYet)
    assert isinstance(driver.destroy(WORKER, NOW), CleanProof)


def test_the_evidence_has_the_output_of_services(ready: Place) -> None:
    driver = ready.factory(**ALLOWED)
    driver.create(ask())
    found = driver.evidence(WORKER)
    assert found is not None
    assert (found.count("the end"), "service db: end of its output" in found) == (2, True)


@pytest.mark.parametrize(
    ("settings", "said", "why"),
    [
        ({}, SAID, "a job may have no services there, not 1"),
        ({**ALLOWED, "services": 1}, {"a": {"image": DB}, "b": {"image": DB}}, "at most 1 services there, not 2"),
        ({"services": 1}, SAID, "jobs may not name images there"),
        ({**ALLOWED, "images": ["docker.io/other"]}, SAID, "does not let jobs name the image docker.io/library/postgr"),
        (ALLOWED, SAID, None),
    ],
)
def test_what_the_site_allows(place: Place, settings: dict[str, Any], said: dict[str, Any], why: str | None) -> None:
    found = Registry({}).objections("factory", "container", {"services": said}, {**SETTINGS, **settings})
    assert [why in each for each in found if why] == ([True] if why else [])
    if why:
        with pytest.raises(Unsatisfiable):
            place.factory(**settings).create(ask(said))
        assert place.engine.boxes == {}


def test_the_program_that_waits_becomes_the_command(tmp_path: Path) -> None:
    waiting, go = tmp_path / "waiting", tmp_path / "go"
    words = [sys.executable, wait.__file__, str(waiting), str(go), "echo", "begun"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
        while not waiting.exists():
            assert program.poll() is None
        assert program.poll() is None
        go.touch()
        assert program.communicate(timeout=30)[0] == "begun\n"
    assert program.returncode == 0


def test_a_plain_worker_waits_for_nothing(place: Place) -> None:
    assert isinstance(place.factory(**ALLOWED).create(order()), Ready)
    assert box(place, WORKER).spec["Image"] == IMAGE
    assert not any(call.startswith("HEAD") for call in place.engine.calls)
