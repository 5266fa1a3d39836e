"""A well on the tests' server, and jobs that use what it makes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pg8000.native import Connection

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.wells.postgres import session
from penstock.drivers.wells.postgres.names import Names
from penstock.drivers.wells.postgres.session import Connect
from penstock.drivers.wells.postgres.well import SITE, PostgresWell
from penstock.ports import Order, Ready
from tests.postgres.cluster import ADMIN, PASSWORDS, Cluster

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = "r-01KDVDNA02G83EFRTNJJN6PQ8A", "r-01KDVDNA02G83EFRTNJJN6PQ8B"
HERE = {SITE: "Penstock.eu-west-1", MAKER: "databases"}
SETTINGS = {"host": "db.internal", "user": "penstock", "password": "secretsmanager:penstock/postgres#password"}
NAMES = Names(HERE[SITE], HERE[MAKER])


def environment(site: str = HERE[SITE], well: str = HERE[MAKER]) -> dict[str, str]:
    """A function's environment, with the admin's password."""
    return {SITE: site, MAKER: well, "PG_ADMIN": PASSWORDS[ADMIN]}


def well(cluster: Cluster, connect: Connect = session.Connection, **settings: Any) -> PostgresWell:
    """A well of this site on the server."""
    return PostgresWell(cluster.settings(**settings), environment(), connect)


def order(unit: str = ONE, key: str = "k" * 64, **options: Any) -> Order:
    """What a unit is ordered with."""
    return Order(unit, "database", "1", options=options, key=key)


def made(driver: PostgresWell, unit: str = ONE, **options: Any) -> Mapping[str, Any]:
    """The metadata of a database that is ready."""
    done = driver.create(order(unit, **options))
    assert isinstance(done, Ready)
    return done.metadata


def insisted(driver: PostgresWell, unit: str = ONE, **options: Any) -> Mapping[str, Any]:
    """The same, asked for as often as it takes: another call, or what is left of one that died, may be at it."""
    for _ in range(200):
        done = driver.create(order(unit, **options))
        if isinstance(done, Ready):
            return done.metadata
        time.sleep(0.02)
    raise AssertionError("it does not come to be")


@contextmanager
def used(cluster: Cluster, told: Mapping[str, Any], database: str = "") -> Iterator[Connection]:
    """A connection as a job has it."""
    with cluster.connected(told["user"], told["password"], database or told["database"]) as job:
        yield job


def gone(driver: PostgresWell, unit: str = ONE) -> CleanProof:
    """The proof that a unit is gone, asked for as often as it takes."""
    for _ in range(100):
        done = driver.destroy(unit, NOW)
        if isinstance(done, CleanProof):
            return done
        assert 0 < done.after <= 900
        time.sleep(0.02)
    raise AssertionError("it does not get clean")
