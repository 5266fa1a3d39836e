"""Many jobs over few databases, through the real use cases and a real server. [SLOT-1] [UNIT-1] [UNIT-2] [SEC-1]

POSTGRES_JOBS=100 is the full size.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from pg8000.exceptions import DatabaseError, InterfaceError

from penstock.domain.commands import Hello, SubmitJob
from penstock.domain.jobs.jobs import Job, Outcome, Result, State, job_key
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import settle, submit
from penstock.usecases.site import apply
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.postgres.cluster import Cluster
from tests.postgres.helpers import environment, gone, insisted, used, well

pytestmark = pytest.mark.xdist_group("postgres")

JOBS = int(os.environ.get("POSTGRES_JOBS", "15"))
LIMIT = 3
TOKEN = "t" * 43
ADA = User(name="ada", created=START, version=1)
SITE = """
[factories.hand]
driver = "hand"
[targets.default]
factory = "hand"
limit = 10
[wells.databases]
driver = "postgres"
host = "127.0.0.1"
port = {port}
user = "penstock"
password = "env:PG_ADMIN"
connections = 5
extensions = ["citext"]
[resources.database]
well = "databases"
limit = {limit}
"""
MESSES = (
    "CREATE TABLE t AS SELECT generate_series(1, 1000) AS i",
    "BEGIN; CREATE TABLE t (i int); PREPARE TRANSACTION '{name}'",
    "BEGIN; ALTER ROLE CURRENT_USER PASSWORD 'mine'",
    "SELECT lo_from_bytea(0, 'x') FROM generate_series(1, 10)",
    "DROP SCHEMA public CASCADE",
    "ALTER ROLE CURRENT_USER SET statement_timeout = 0",
)


@dataclass
class Story:
    """Jobs that hold a database, at a time: what they were told, and the connections that they never close."""

    cluster: Cluster
    twin: Twin
    dice: random.Random
    running: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    open_ones: list[Any] = field(default_factory=list)
    passwords: set[str] = field(default_factory=set)
    most: int = 0

    def settle(self) -> None:
        """Deliver messages one by one; at no instant are there more databases than slots."""
        for _ in range(10_000):
            self.most = max(self.most, *map(len, self.cluster.names()))
            assert self.most <= LIMIT
            if not self.twin.flows.settling and not self.twin.deliver():
                return
            self._settle_flows()
        raise AssertionError("the messages never end")

    def _settle_flows(self) -> None:
        while self.twin.flows.settling:
            settle.settle(self.twin.on, *self.twin.flows.settling.popleft(), unbegun=True)

    def greet(self) -> None:
        """Let every worker that was ordered say hello, and its job make its mess."""
        for unit in self.units(UnitKind.WORKER, UnitState.CREATING):
            if not unit.creation.made:
                continue
            key = drivers.bootstrap_key(self.twin.on.signing_key(), unit.id)
            told = agents.hello(self.twin.on, Hello(unit.id, key, TOKEN)).resources["db"].metadata
            self._use(told)
            self.running[unit.lease.job] = told

    def _use(self, told: Mapping[str, Any]) -> None:
        assert told["password"] not in self.passwords
        self.passwords.add(told["password"])
        job = self.cluster.connect(told["user"], told["password"], told["database"])
        assert job.run("SELECT count(*) FROM pg_class WHERE relname = 't'") == [[0]]
        job.run("SELECT 'a'::public.citext")
        job.run(self.dice.choice(MESSES).format(name=told["database"]))  # names of transactions are the server's
        self.open_ones.append(job)
        for other in self.running.values():
            with pytest.raises(DatabaseError), used(self.cluster, told, other["database"]):
                pass

    def finish(self, job: str) -> None:
        """End a job, well or not; what it was told is worth nothing when its database is put back."""
        result = self.dice.choice([Result.SUCCEEDED, Result.FAILED])
        agents.report_finished(self.twin.on, agents.authenticate(self.twin.on, job, TOKEN), result, "it ended", 0)
        told = self.running.pop(job)
        self.settle()
        with pytest.raises(DatabaseError), used(self.cluster, told):
            pass

    def units(self, is_a: UnitKind, state: UnitState) -> list[Unit]:
        rows = [row for row in self.twin.store.rows.values() if isinstance(row, Unit)]
        return [unit for unit in rows if unit.is_a is is_a and unit.state is state]


@pytest.fixture
def story(cluster: Cluster) -> Story:
    twin = Twin(7)
    twin.drivers._environment = environment()
    apply.apply(twin.on, "admin", SITE.format(port=cluster.port, limit=LIMIT), "site.toml")
    twin.run()
    return Story(cluster, twin, random.Random(7))


def test_many_jobs_share_a_few_databases_and_leave_nothing(story: Story) -> None:
    twin = story.twin
    ask = {"db": {"type": "database", "options": {"extensions": ["citext"], "connections": 2}}}
    jobs = [submit.submit(twin.on, ADA, SubmitJob("#!/bin/sh\n", resources=ask), None) for _ in range(JOBS)]
    for _ in range(10 * JOBS):
        story.settle()
        story.greet()
        if story.running:
            story.finish(story.dice.choice(sorted(story.running)))
        elif all(is_settled(twin, job) for job in jobs):
            break
        else:
            twin.pass_time(20)
    assert all(is_settled(twin, job) for job in jobs)
    assert (story.most, len(story.passwords)) == (LIMIT, JOBS)
    assert story.cluster.names() == (set(), set())
    for job in story.open_ones:
        with pytest.raises((DatabaseError, InterfaceError)):
            job.run("SELECT 1")
    proofs = [unit.cleaning.proof for unit in story.units(UnitKind.RESOURCE, UnitState.GONE)]
    assert len(proofs) == JOBS
    assert all(proof and "0 databases, 0 roles, 0 connections and 0 prepared" in proof.checked for proof in proofs)
    with story.cluster.connected() as root:
        others = "pid <> pg_backend_pid() AND backend_type = 'client backend' AND usename <> 'penstock'"
        assert root.run(f"SELECT count(*) FROM pg_stat_activity WHERE {others}") == [[0]]
        assert root.run("SELECT count(*) FROM pg_prepared_xacts") == [[0]]
    assert not [password for password in story.passwords if password in story.cluster.log]


def is_settled(twin: Twin, job: str) -> bool:
    found = twin.store.get(job_key(job), Job)
    assert found
    is_over = found.state is State.SETTLED
    assert not is_over or found.end.outcome in (Outcome.SUCCEEDED, Outcome.FAILED)
    return is_over


def with_options(**options: Any) -> SubmitJob:
    return SubmitJob("#!/bin/sh\n", resources={"db": {"type": "database", "options": options}})


def test_an_option_that_there_is_not_is_refused_at_submit(story: Story) -> None:
    with pytest.raises(Refused) as caught:
        submit.submit(story.twin.on, ADA, with_options(speed=1), None)
    assert any("speed" in fault.message for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"connections": 6}, "at most 5"),
        ({"extensions": ["hstore"]}, "allowed are: citext"),
    ],
)
def test_an_option_that_the_site_does_not_have_is_refused_at_submit(story: Story, options: Any, why: str) -> None:
    with pytest.raises(Refused) as caught:
        submit.submit(story.twin.on, ADA, with_options(**options), None)
    assert any(why in fault.message for fault in caught.value.faults)


@pytest.mark.parametrize(("options", "why"), [({"version": 1}, "not 1")])
def test_what_only_the_server_knows_fails_the_job_at_once(story: Story, options: Any, why: str) -> None:
    job = submit.submit(story.twin.on, ADA, with_options(**options), None)
    story.settle()
    found = story.twin.store.get(job_key(job), Job)
    assert found
    assert (found.state, found.end.outcome) == (State.SETTLED, Outcome.FAILED)
    assert why in (found.end.reason or "")
    assert story.most == 0


def test_calls_at_the_same_time(cluster: Cluster) -> None:
    """Handlers are many: what two of them make at once is one, and what they make of different units is several."""
    driver = well(cluster)
    names = [f"r-{number}" for number in range(4)]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda name: insisted(driver, name), names * 2))
        assert told[:4] == told[4:]
        assert sorted(driver.list()) == names
        list(pool.map(lambda name: gone(driver, name), names * 2))
