"""A call that dies anywhere leaves nothing that the next does not take up, or put away. [UNIT-1]"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from penstock.drivers.wells.postgres.well import PostgresWell
from penstock.kernel.errors import DriverError
from tests.postgres.cluster import Cluster
from tests.postgres.faults import UNANSWERED, WAYS, Breaking
from tests.postgres.helpers import NOW, ONE, gone, insisted, made, order, used, well

pytestmark = pytest.mark.xdist_group("postgres")

EACH = [pytest.param(way, marks=() if way == UNANSWERED else pytest.mark.long) for way in WAYS]
OPTIONS = {"extensions": ["citext"]}


def site(cluster: Cluster, **more: Any) -> PostgresWell:
    return well(cluster, extensions=["citext"], **more)


def each_fault(cluster: Cluster, way: str, begin: Callable[[], None], call: Callable[[PostgresWell], Any]) -> list[str]:
    """Let a call break at each thing that it asks in turn, until it asks nothing more; what it broke at."""
    met = []
    while True:
        begin()
        faults = Breaking(cluster, len(met) + 1, way)
        with suppress(DriverError):
            call(well(cluster, faults, extensions=["citext"]))
        if not faults.met:
            return met
        met.append(faults.met)
        yielded(cluster, met)


def yielded(cluster: Cluster, met: list[str]) -> None:
    """After a fault: whatever there is can be put away, and then there is nothing."""
    gone(site(cluster))
    assert cluster.names() == (set(), set()), met[-1]


@pytest.mark.parametrize("way", EACH)
def test_a_create_that_dies_is_put_away(cluster: Cluster, way: str) -> None:
    met = each_fault(cluster, way, lambda: None, lambda driver: driver.create(order(**OPTIONS)))
    for what in ("CREATE ROLE", "CREATE DATABASE", "COMMENT ON DATABASE", "CREATE EXTENSION", "ALTER SCHEMA", "GRANT"):
        assert any(each.startswith(what) for each in met), what
    gone(site(cluster))


@pytest.mark.parametrize("way", EACH)
def test_a_create_that_dies_is_taken_up(cluster: Cluster, way: str) -> None:
    """And what is listed after it is at least what there is."""

    def call(driver: PostgresWell) -> None:
        with suppress(DriverError):
            driver.create(order(**OPTIONS))
        left = cluster.names()
        assert list(site(cluster).list()) == ([ONE] if left != (set(), set()) else [])
        with used(cluster, insisted(site(cluster), **OPTIONS)) as job:
            assert job.run("SELECT 'a'::public.citext = 'A'") == [[True]]

    assert len(each_fault(cluster, way, lambda: None, call)) >= 12
    gone(site(cluster))


@pytest.mark.parametrize("way", EACH)
def test_a_destroy_that_dies_is_taken_up(cluster: Cluster, way: str) -> None:
    """It stays listed for as long as anything is left."""

    def begin() -> None:
        with used(cluster, made(well(cluster))) as job:
            job.run("BEGIN; CREATE TABLE t (i int); PREPARE TRANSACTION 'p'")

    def call(driver: PostgresWell) -> None:
        with suppress(DriverError):
            driver.destroy(ONE, NOW)
        assert list(site(cluster).list()) == ([ONE] if cluster.names() != (set(), set()) else [])

    met = each_fault(cluster, way, begin, call)
    for what in ("REVOKE", "ROLLBACK PREPARED", "ALTER ROLE", "DROP DATABASE", "DROP OWNED"):
        assert any(each.startswith(what) for each in met), what
