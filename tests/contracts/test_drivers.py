"""What every driver promises, asked of each that there is and of the one that tests use. [UNIT-1] [UNIT-2]"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from penstock import drivers
from penstock.domain.units.units import CleanProof
from penstock.domain.users.users import User
from penstock.drivers import FACTORIES, MAKER, WELLS, Registry
from penstock.drivers.factories import process as processes
from penstock.drivers.factories.process import TAG
from penstock.kernel.errors import DriverError, Misconfigured
from penstock.ports import Driver, NotYet, Order, Ready
from penstock.testing import contract
from penstock.testing.contract import CHECKS
from penstock.testing.fake import Cloud, FakeDriver, driver
from penstock.testing.twin import ScriptedDriver
from penstock.usecases.jobs import cancel
from tests.aws import helpers as wells
from tests.aws.account import Account
from tests.clouds import helpers as libcloud
from tests.clouds.fake import Books
from tests.containers import helpers as containers
from tests.controllers.lab import Lab
from tests.ec2 import helpers as ec2
from tests.ec2.fake import Ec2
from tests.fargate import helpers as fargate
from tests.fargate.fake import Ecs
from tests.postgres import helpers as postgres
from tests.postgres.cluster import Cluster
from tests.usecases.lab_hosts import Bench, lab
from tests.usecases.steps import submit, worker_of
from tests.wells.service import Service

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO, TEN = (f"w-{os.getpid()}-{number}" for number in (1, 2, 10))
RUNS = count(100)
"""Ids of this run's own: a worker's processes are found on the whole machine."""

AGENT = """#!/usr/bin/env python3
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
open("up", "w").close()
time.sleep(600)
"""
"""Stands for the agent: it leaves a process behind that is no longer its child, nor in its session."""

CLEANER = "import json, sys; json.dump({'state': 'clean', 'checked': json.load(sys.stdin)['name']}, sys.stdout)"
"""Stands for what a site cleans with."""


@dataclass(frozen=True)
class Rig:
    """A driver, how to make another of it that shares nothing but the outside, and whether its units exist outside.

    `is_whole` says that it is scripted: two threads, or a call that dies in its midst, would break the script.
    """

    driver: Driver
    another: Callable[[], Driver]
    lasting: bool = True
    type: str = "linux"
    is_whole: bool = False
    own: str = ""
    end: Callable[[], object] = bool

    def contract(self, kind: str) -> contract.Rig:
        """The same, as the contract suite wants it: with ids of this run's own, and no time to lose."""
        return contract.Rig(
            self.another, kind, self.type, is_listed=self.lasting, is_threadsafe=not self.is_whole,
            points=0 if self.is_whole else 8, own=self.own, pause=lambda seconds: time.sleep(0.01), now=lambda: NOW,
            name=f"w-{os.getpid()}-{next(RUNS)}-{{}}".format,
        )  # fmt: skip


def process(home: Path, settings: Mapping[str, Any] | None = None) -> Driver:
    agent = home.parent / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o700)
    return Registry({"PENSTOCK_HOME": str(home)}).factory("process", settings or {"python": str(agent)})


def hand(home: Path) -> Rig:
    made = ScriptedDriver()
    return Rig(made, lambda: made)


def elastic(home: Path) -> Rig:
    del home
    cloud = Ec2()
    return Rig(ec2.factory(cloud), lambda: ec2.factory(cloud))


def tasks(home: Path) -> Rig:
    del home
    cluster = Ecs()
    return Rig(fargate.factory(cluster), lambda: fargate.factory(cluster))


def other_clouds(home: Path) -> Rig:
    del home
    books = Books()
    return Rig(libcloud.factory(books), lambda: libcloud.factory(books))


def boxes(home: Path) -> Rig:
    del home
    place = containers.Place()
    return Rig(place.factory(), place.factory, end=place.end)


def sessions(home: Path) -> Rig:
    """AWS lists no sessions: what is lent is in our rows, and ends by itself."""
    del home
    account = lending()
    return Rig(wells.sts_well(account), lambda: wells.sts_well(account), lasting=False)


def prefixes(home: Path) -> Rig:
    del home
    account = lending()
    return Rig(wells.s3_well(account), lambda: wells.s3_well(account))


def lending() -> Account:
    account = Account()
    account.role()
    account.bucket()
    return account


class Attended:
    """The `hosts` driver with two scripted hosts that dial in: what the one leaves to the other, both promise together.

    A worker's id is that of a job's worker in a system of its own.
    """

    def __init__(self) -> None:
        self.twin, self.driver = lab(), Registry({}).factory("hosts", {})
        self.benches = {name: Bench(self.twin, name) for name in ("bench-7", "bench-8")}
        self.jobs: dict[str, str] = {}
        for bench in self.benches.values():
            bench.ask()

    def create(self, order: Order) -> Ready | NotYet:
        if order.id not in self.jobs:
            self.jobs[order.id] = submit(self.twin, User(name="ada", created=NOW), target="lab")
            self.twin.run()
            self.benches[worker_of(self.twin, self.jobs[order.id]).lease.slot].ask()
        return self.driver.create(order)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        said = self.driver.destroy(unit, now)
        assert isinstance(said, NotYet)
        assert said.stops_itself
        if unit not in self.jobs:
            return CleanProof(by="hosts", time=now, checked="no host was ever given it")
        worker = worker_of(self.twin, self.jobs[unit])
        if worker.cleaning.proof:
            return replace(worker.cleaning.proof, time=now)
        cancel.cancel(self.twin.on, User(name="ada", created=NOW), worker.lease.job)
        self.twin.run()
        self.benches[worker.lease.slot].clean()
        return said

    def list(self) -> Iterable[str]:
        return self.driver.list()


def attended(home: Path) -> Rig:
    del home
    made = Attended()
    return Rig(made, lambda: made, lasting=False, is_whole=True)


def fake(key: str) -> Callable[[Path], Rig]:
    def made(home: Path) -> Rig:
        del home
        cloud = Cloud()
        own = str(Path(driver.__file__))  # the cloud is beside it, and a function that dies takes no cloud with it
        return Rig(FakeDriver({}, {MAKER: key}, cloud), lambda: FakeDriver({}, {MAKER: key}, cloud), own=own)

    return made


def databases(cluster: Cluster) -> Rig:
    def made() -> Driver:
        return Registry(postgres.environment()).well("postgres", cluster.settings(), "databases")

    return Rig(made(), made)


OVER_HTTP = str(Path(drivers.__file__).parent) + "/"
"""Where the code of both drivers for HTTP is: what they share is beside them."""


def rack(home: Path) -> Rig:
    """The service of examples/, as a process of its own."""
    service = Service(home.parent)
    return Rig(service.well(), service.well, type="project", own=OVER_HTTP, end=service.end)


def controller(home: Path) -> Rig:
    """The controller of examples/, as a process of its own, whose machines are processes."""
    made = Lab(home.parent)
    return Rig(made.factory(), made.factory, own=OVER_HTTP, end=made.end)


def sandboxes(home: Path) -> Rig:
    """What exists already, cleaned by a command, twice in a row."""
    home.mkdir(exist_ok=True)
    cleaner = home / "clean.py"
    cleaner.write_text(CLEANER)
    settings = {"command": [sys.executable, "-S", str(cleaner)], "cleanings": 2}

    def made() -> Driver:
        return Registry({"PENSTOCK_HOME": str(home)}).well("accounts", settings, "sandboxes")

    return Rig(made(), made, lasting=False)


RIGS: dict[str, Callable[[Path], Rig]] = {
    "factory container": boxes,
    "factory hand": hand,
    "factory ec2": elastic,
    "factory fargate": tasks,
    "factory hosts": attended,
    "factory http": controller,
    "factory libcloud": other_clouds,
    "factory fake": fake("aws"),
    "well fake": fake("spring"),
    "well http": rack,
    "well accounts": sandboxes,
    "well s3": prefixes,
    "well sts": sessions,
    "factory process": lambda home: Rig(process(home), lambda: process(home)),
    "well lock": lambda home: Rig(Registry({}).well("lock", {}), lambda: Registry({}).well("lock", {}), lasting=False),
}
ON_A_SERVER: dict[str, Callable[[Cluster], Rig]] = {"well postgres": databases}
"""Those that need a server which not every machine has."""

COMPLAINTS: list[tuple[str, str, dict[str, Any]]] = [
    ("factory", "container", containers.SETTINGS),
    ("factory", "ec2", ec2.SETTINGS),
    ("factory", "fargate", fargate.SETTINGS),
    ("factory", "hosts", {}),
    ("factory", "http", {"url": "https://lab.example.com", "secret": "env:LAB"}),
    ("factory", "libcloud", libcloud.SETTINGS),
    ("factory", "process", {}),
    ("well", "accounts", {"lambda": "clean-sandboxes"}),
    ("well", "http", {"url": "https://rack.example.com", "secret": "env:RACK"}),
    ("well", "lock", {}),
    ("well", "postgres", postgres.SETTINGS),
    ("well", "s3", wells.S3),
    ("well", "sts", wells.STS),
]


@pytest.fixture(
    params=[*RIGS, *(pytest.param(each, marks=pytest.mark.xdist_group("postgres")) for each in ON_A_SERVER)]
)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    name: str = request.param
    if name in ON_A_SERVER:
        made = ON_A_SERVER[name](request.getfixturevalue("postgres"))
    else:
        made = RIGS[name](tmp_path / "home")
    yield made
    made.end()


def clean(driver: Driver, unit: str) -> CleanProof:
    """Clean until it is clean."""
    for _ in range(100):
        done = driver.destroy(unit, NOW)
        if isinstance(done, CleanProof):
            return done
        assert isinstance(done, NotYet)
        assert 0 < done.after <= 900
        time.sleep(0.02)
    raise AssertionError("it does not get clean")


def order(unit: str = ONE) -> Order:
    return Order(unit, "linux", "1", url="http://127.0.0.1:9", key="k" * 64)


def test_every_driver_is_held_to_this() -> None:
    assert {f"factory {name}" for name in FACTORIES} | {f"well {name}" for name in WELLS} <= {*RIGS, *ON_A_SERVER}


@pytest.mark.parametrize("says", CHECKS)
def test_every_driver_keeps_every_promise(rig: Rig, says: str, request: pytest.FixtureRequest) -> None:
    asked = rig.contract(request.node.callspec.params["rig"].partition(" ")[0])
    try:
        CHECKS[says](asked)
    finally:
        for unit in asked.used:
            asked.destroy(unit)


@pytest.mark.parametrize(("kind", "name", "good"), COMPLAINTS)
def test_settings_are_checked(kind: str, name: str, good: Mapping[str, Any]) -> None:
    registry = Registry({})
    assert list(registry.complaints(kind, name, good)) == []
    complaints = registry.complaints(kind, name, {"no_such_setting": 1})
    assert any("no_such_setting" in complaint for complaint in complaints)


def test_a_driver_that_there_is_not() -> None:
    for kind in ("factory", "well"):
        assert "installed are" in Registry({}).complaints(kind, "none", {})[0]
    with pytest.raises(Misconfigured, match="there is no factory driver"):
        Registry({}).factory("none", {})
    assert Registry({}).objections("well", "none", {})


def test_a_lock_takes_no_options() -> None:
    assert Registry({}).objections("well", "lock", {}) == []
    assert "speed" in Registry({}).objections("well", "lock", {"speed": 1})[0]


class TestProcess:
    """The `process` factory, with real processes."""

    @pytest.fixture
    def factory(self, tmp_path: Path) -> Iterator[Driver]:
        made = process(tmp_path / "home")
        yield made
        for unit in (ONE, TEN):
            clean(made, unit)

    def test_strays_are_killed(self, factory: Driver, tmp_path: Path) -> None:
        """UNIT-1: also those that left their session and their parent."""
        start(factory, tmp_path, ONE)
        assert len(processes.tagged(TAG, ONE)) == 2
        clean(factory, ONE)
        assert processes.tagged(TAG, ONE) == set()

    def test_other_workers_are_left_alone(self, factory: Driver, tmp_path: Path) -> None:
        start(factory, tmp_path, ONE)
        start(factory, tmp_path, TEN)
        clean(factory, ONE)
        assert len(processes.tagged(TAG, TEN)) == 2
        clean(factory, TEN)

    def test_an_order_that_comes_after_the_cleaning_makes_nothing(self, factory: Driver) -> None:
        """JOB-2: a late create never brings a worker back."""
        clean(factory, ONE)
        factory.create(order())
        assert processes.tagged(TAG, ONE) == set()
        assert list(factory.list()) == []

    def test_what_a_worker_starts_while_it_is_killed_is_killed_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """UNIT-1: one look at all processes misses those that are started behind it, or have no environment yet."""
        sleepers = [subprocess.Popen(["sleep", "60"], env={**os.environ, TAG: ONE}) for _ in range(2)]
        looks, tagged = [{sleepers[0].pid}, *[set[int]()] * (processes.LOOKS - 1)], processes.tagged
        until(lambda: len(tagged(TAG, ONE)) == len(sleepers))
        monkeypatch.setattr(processes, "tagged", lambda name, value: looks.pop(0) if looks else tagged(name, value))
        assert processes.kill_all(TAG, ONE)
        assert [sleeper.wait() for sleeper in sleepers] == [-signal.SIGKILL] * 2

    def test_a_worker_that_is_cleaned_while_it_is_made_does_not_live(
        self, factory: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """JOB-2 and UNIT-1: the two write first and read after, so that one of them sees the other."""
        spawn = factory._spawn

        def late(*given: Any) -> None:
            clean(factory, ONE)
            spawn(*given)

        monkeypatch.setattr(factory, "_spawn", late)
        (Path(factory._workers) / ONE).mkdir(parents=True)
        factory.create(order())
        until(lambda: processes.tagged(TAG, ONE) == set())

    def test_a_process_id_that_was_reused_is_not_mistaken(self, factory: Any, tmp_path: Path) -> None:
        """UNIT-1: nothing of somebody else's is touched."""
        folder = tmp_path / "home" / "workers" / ONE
        folder.mkdir(parents=True)
        (folder / "pid").write_text(f'{{"pid": {os.getpid()}, "started": "long ago"}}')
        clean(factory, ONE)

    @pytest.mark.parametrize("text", ["", "{", "[]", "1", '{"pid": "x", "started": 1}', '{"pid": -1, "started": ""}'])
    def test_a_record_that_is_none(self, factory: Any, tmp_path: Path, text: str) -> None:
        folder = tmp_path / "home" / "workers" / ONE
        folder.mkdir(parents=True)
        (folder / "pid").write_text(text)
        clean(factory, ONE)

    def test_the_key_is_for_the_agents_eyes(self, factory: Any, tmp_path: Path) -> None:
        """SEC-1: only the owner may read it, and it goes with the worker."""
        factory.create(order())
        config = tmp_path / "home" / "workers" / ONE / "agent.json"
        assert "k" * 64 in config.read_text()
        assert config.stat().st_mode & 0o777 == 0o600
        assert config.parent.stat().st_mode & 0o077 == 0
        clean(factory, ONE)
        assert not config.exists()
        assert "k" * 64 not in "".join(path.read_text() for path in config.parent.iterdir())

    def test_a_wrong_python_is_reported_and_can_be_corrected(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        broken = process(home, {"python": "/no/such/python"})
        with pytest.raises(Misconfigured):
            broken.create(order())
        mended = process(home)
        start(mended, tmp_path, ONE)
        clean(mended, ONE)

    def test_a_home_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        broken = Registry({"PENSTOCK_HOME": str(tmp_path / "file")}).factory("process", {})
        for call in (lambda: broken.create(order()), lambda: broken.destroy(ONE, NOW)):
            with pytest.raises(DriverError):
                call()
        with pytest.raises(Misconfigured):
            Registry({}).factory("process", {})


def start(factory: Driver, folder: Path, unit: str) -> None:
    """Make a worker and wait until its agent is up, with its stray."""
    factory.create(order(unit))
    until((folder / "home" / "workers" / unit / "up").exists)


def until(is_so: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.02)
