"""Jobs in containers, end to end: a real engine, the factory `container` in the local cloud, the agent as the entry."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.container.factory import SITE as DEPLOYMENT
from penstock.drivers.factories.container.factory import ContainerFactory
from penstock.kernel.errors import QuotaReached
from penstock.ports import Order
from tests.containers import podman
from tests.containers.podman import NoEngine, Podman
from tests.e2e.conftest import SITE, Local, cloud_wait

pytestmark = [pytest.mark.networks, pytest.mark.xdist_group("e2e")]

BOXES = """
[factories.boxes]
driver = "container"
image = "{image}"
socket = "{socket}"
memory = 512
tmp = 64

[targets.box]
factory = "boxes"
limit = 1
sudo = false
"""
OTHER = f"docker.io/library/other@sha256:{'0' * 64}"
WARM = 'warm = { max = 1, idle = "10m" }\n'
JOB = """#: name = "boxed"
#: variety = "basic"
#: target = "box"
#: output_rules = ["/work/out.txt"]

echo "user=$(id -un)"
cat /opt/penstock/agent.json 2>/dev/null && echo "the key is shown"
(echo > /opt/penstock-agent.pyz) 2>/dev/null && echo "the agent is changed"
grep -E 'NoNewPrivs|CapEff' /proc/self/status
(echo > /dev/tcp/127.0.0.1/{cloud}) 2>/dev/null && echo "the cloud is reached"
(echo > /dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo "the machine is reached"
test -e /tmp/left && echo "something is left"
touch /tmp/left
setsid sleep 600 > /dev/null 2>&1 < /dev/null &
echo "on=$(cat /etc/hostname)"
echo done > /work/out.txt
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Podman]:
    with tempfile.TemporaryDirectory(prefix="engine") as folder:  # a socket's path must be short
        try:
            made = podman.found(Path(folder))
        except NoEngine as why:
            pytest.skip(f"no container engine: {why}")
        with made.serving():
            yield made


def test_jobs_run_in_a_container_which_is_gone_afterwards(local: Local, engine: Podman, tmp_path: Path) -> None:
    """SEC-1, SEC-2 and UNIT-1: they have a user of their own, no rights to gain, and not the machine's loopback."""
    site = tmp_path / "site.toml"
    site.write_text(SITE.read_text() + BOXES.format(image=engine.image, socket=engine.socket) + WARM)
    cloud = local.running.url.rpartition(":")[2]
    with local.having(site), socket.create_server(("127.0.0.1", 0)) as service:
        script = JOB.replace("{port}", str(service.getsockname()[1])).replace("{cloud}", cloud)
        workers = {look_at(local, script) for _ in range(2)}
        site.write_text(site.read_text().replace(WARM, ""))  # the factory has to be there for the container to go
        local.apply(site)
        local.put_back()
    assert len(workers) == 1, "the second job has the container of the first"
    assert engine.run("ps", "--all", "--quiet").stdout == ""
    assert engine.run("network", "ls", "--quiet", "--filter", "label=penstock.site").stdout == ""


def look_at(local: Local, script: str) -> str:
    """Run the job, and check what it saw. Returns its worker, which is kept for the next."""
    job = local.submit(script)
    settled, log = local.settled(job), local.log(job)
    assert settled["outcome"] == "succeeded", log
    said = [str(each["payload"]) for each in log if each["stream"] == "stdout"]
    for there in ("user=build", "NoNewPrivs:\t1", "CapEff:\t0000000000000000", "the cloud is reached"):
        assert there in said, log
    for absent in ("the key is shown", "the agent is changed", "the machine is reached", "something is left"):
        assert absent not in said, log
    outputs = local.call("GET", f"/v1/jobs/{job}/outputs").json()["items"]
    assert [each["path"] for each in outputs] == ["/work/out.txt"]
    local.until(lambda: "idle" in [each["state"] for each in local.call("GET", "/v1/workers").json()["items"]])
    return next(each for each in said if each.startswith("on="))


OWN = """#: name = "with a service"
#: variety = "basic"
#: target = "box"
#: image = "{image}"
#: [services.db]
#: image = "{server}"
#: env = {{ GREETING = "hello" }}
#: ready = "bash -c 'echo > /dev/tcp/localhost/{port}'"

python3 -c 'import urllib.request as r; print(r.urlopen("http://db:{port}/greeting").read().decode().strip())'
"""


def test_a_job_has_an_image_of_its_own_and_a_service_beside_it(local: Local, engine: Podman, tmp_path: Path) -> None:
    """Both are gone with it, although the target keeps workers."""
    site = tmp_path / "site.toml"
    more = f'images = ["{engine.image}", "{engine.server.partition("@")[0]}"]\nservices = 1\n'
    boxes = BOXES.format(image=engine.image, socket=engine.socket).replace("memory", f"{more}memory")
    site.write_text(SITE.read_text() + boxes + WARM)
    script = OWN.format(image=engine.image, server=engine.server, port=podman.PORT)
    with local.having(site):
        job = local.submit(script)
        settled, log = local.settled(job), local.log(job)
        assert settled["outcome"] == "succeeded", log
        assert "hello" in [each["payload"] for each in log if each["stream"] == "stdout"], log
        local.until(lambda: engine.run("ps", "--all", "--quiet").stdout == "")
        wrong = f"#!/bin/bash\n{script}".replace(engine.server, OTHER)
        answer = local.call("POST", "/v1/jobs", json={"script": wrong})
        local.put_back()
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert "does not let jobs name the image docker.io/library/other" in fault["message"]
    assert (fault["where"], fault["line"]) == ("services", 6)


def test_a_service_that_ends_fails_its_job_and_says_why(local: Local, engine: Podman, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    more = f'images = ["{engine.image}"]\nservices = 1\n'
    boxes = BOXES.format(image=engine.image, socket=engine.socket).replace("memory", f"{more}memory")
    site.write_text(SITE.read_text() + boxes)
    with local.having(site):
        job = local.submit(OWN.format(image=engine.image, server=engine.image, port=podman.PORT))
        settled = local.settled(job)
        local.until(lambda: engine.run("ps", "--all", "--quiet").stdout == "")
        local.put_back()
    assert (settled["outcome"], "service db" in str(settled["failure"])) == ("failed", True), settled


WORKERS = ("w-01kdvg4000000000000000001a", "w-01kdvg4000000000000000001b")
SHARED = "shared-by-workers"
NEVER_READY = "exit 1"
REACH = """import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 3).close()
except OSError as error:
    sys.exit(f"not reached: {error}")
"""


@pytest.fixture
def boxes(engine: Podman, tmp_path: Path) -> Iterator[Callable[..., ContainerFactory]]:
    """Makes factories. Workers of theirs are gone in the end."""
    made: list[ContainerFactory] = []

    def make(**more: str) -> ContainerFactory:
        settings = {"image": engine.image, "images": [engine.server.partition("@")[0]], "services": 1, "memory": 256}
        surroundings = {"PENSTOCK_HOME": str(tmp_path), DEPLOYMENT: "Penstock.here", MAKER: "boxes"}
        made.append(ContainerFactory({**settings, "socket": engine.socket, **more}, surroundings))
        return made[-1]

    yield make
    for factory in made:
        for worker in factory.list():
            assert isinstance(factory.destroy(worker, datetime.now(UTC)), CleanProof)
        assert list(factory.things()) == []
    assert engine.run("network", "ls", "--quiet", "--filter", "label=penstock.site").stdout == ""


def begin(factory: ContainerFactory, engine: Podman, worker: str) -> None:
    """Make a worker whose service listens on all addresses. It waits for it without end, so nothing else happens."""
    services = {"db": {"image": engine.server, "ready": NEVER_READY}}
    asked = Order(worker, "linux", "1", url="https://penstock.example", key="k", options={"services": services})
    while "is not ready" not in str(getattr(factory.create(asked), "reason", "")):
        pass


def reaches(engine: Podman, worker: str, other: str) -> bool:
    """Whether a program in a worker connects to the service of a worker, by its address."""
    shown = engine.run("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", other)
    command = ("exec", worker, "python3", "-c", REACH, shown.stdout.strip(), str(podman.PORT))
    done = engine.run(*command, check=False)
    assert not done.returncode or "not reached" in done.stderr, done.stderr
    return not done.returncode


@pytest.fixture(params=[SHARED, ""])
def network(engine: Podman, request: pytest.FixtureRequest) -> Iterator[str]:
    """The network that the site names for all workers, and none."""
    if request.param:
        engine.run("network", "create", request.param)
    yield request.param
    if request.param:
        engine.run("network", "rm", request.param)


def test_what_a_service_listens_on_is_not_reached_by_other_workers(
    engine: Podman, network: str, boxes: Callable[..., ContainerFactory]
) -> None:
    """SEC-2. Where the site names a network for all of them, it is: so what is tried can succeed."""
    factory = boxes(**({"network": network} if network else {}))
    for worker in WORKERS:
        begin(factory, engine, worker)
    one, two = WORKERS
    for each in WORKERS:
        cloud_wait(lambda each=each: reaches(engine, each, each))  # what listens there takes its time to start
    assert (reaches(engine, one, two), reaches(engine, two, one)) == (network == SHARED, network == SHARED)


def test_addresses_that_are_used_up_are_a_quota_of_workers(
    engine: Podman, boxes: Callable[..., ContainerFactory]
) -> None:
    factory = boxes()
    workers = [f"w-01kdvg4000000000000000002{each}" for each in "abcdefghj"[: podman.NETWORKS]]
    for worker in workers:
        begin(factory, engine, worker)
    with pytest.raises(QuotaReached, match="lower the limit of the target"):
        begin(factory, engine, WORKERS[0])
    assert isinstance(factory.destroy(workers[0], datetime.now(UTC)), CleanProof)
    begin(factory, engine, WORKERS[0])
