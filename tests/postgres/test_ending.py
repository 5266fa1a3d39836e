"""Whatever a job does to its database and role, both are gone after it, and nobody else is harmed. [UNIT-1] [SEC-1]"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from pg8000.exceptions import DatabaseError, InterfaceError

from penstock.domain.units.units import CleanProof
from penstock.kernel.errors import Misconfigured, Unknown
from tests.postgres.cluster import ADMIN, OWNER, PASSWORDS, Cluster
from tests.postgres.helpers import NAMES, NOW, ONE, TWO, gone, made, order, used, well

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture
def neighbour(cluster: Cluster) -> Iterator[Any]:
    """Another job, which has its data and its connection before, and must have both after."""
    driver = well(cluster)
    with used(cluster, made(driver, TWO)) as job:
        job.run("CREATE TABLE kept AS SELECT 42 AS answer")
        yield job
        assert job.run("SELECT answer FROM kept") == [[42]]
    gone(driver, TWO)


def test_the_proof_says_what_was_looked_for(cluster: Cluster, neighbour: Any) -> None:
    driver = well(cluster)
    told = made(driver)
    name = NAMES.of(ONE)
    left = cluster.connected(ADMIN, PASSWORDS[ADMIN], told["database"])  # by a call of the well's own: not counted
    with left, used(cluster, told), used(cluster, told) as job:
        job.run(f"BEGIN; CREATE TABLE t (i int); PREPARE TRANSACTION '{name}'")
        proof = gone(driver)
    assert (proof.by, proof.time) == ("postgres", NOW)
    assert proof.checked == (
        f"0 databases, 0 roles, 0 connections and 0 prepared transactions named {name} are left "
        f"on 127.0.0.1:{cluster.port}; 2 connections were ended and 1 prepared transactions rolled back"
    )
    assert list(driver.list()) == [TWO]


def test_what_is_gone_or_never_was_is_clean(cluster: Cluster) -> None:
    driver = well(cluster)
    for _ in range(2):
        assert isinstance(driver.destroy(ONE, NOW), CleanProof)
    made(driver)
    for _ in range(2):
        assert isinstance(driver.destroy(ONE, NOW), CleanProof)


MESS = {
    "an open transaction": ["BEGIN", "CREATE TABLE t (i int)"],
    "a lock on everything": ["CREATE TABLE t (i int)", "BEGIN", "LOCK TABLE t", "SELECT pg_advisory_lock(1)"],
    "large objects": ["SELECT lo_from_bytea(0, '\\xdeadbeef') FROM generate_series(1, 50)"],
    "a prepared transaction": ["BEGIN", "CREATE TABLE t (i int)", "PREPARE TRANSACTION 'mine'"],
    "one with a name that is code": [
        "BEGIN",
        "CREATE TABLE t (i int)",
        """PREPARE TRANSACTION 'it''s"; DROP ROLE "x\\'';--'""",
    ],
    "its own role, locked by an open transaction": ["BEGIN", "ALTER ROLE CURRENT_USER PASSWORD 'locked'"],
    "its own role, locked by a prepared one": [
        "BEGIN",
        "ALTER ROLE CURRENT_USER PASSWORD 'locked'",
        "PREPARE TRANSACTION 'locked'",
    ],
    "another password": ["ALTER ROLE CURRENT_USER PASSWORD 'changed'"],
    "no limits": ["ALTER ROLE CURRENT_USER SET statement_timeout = 0", "SET idle_in_transaction_session_timeout = 0"],
    "settings of its own everywhere": [
        "ALTER ROLE CURRENT_USER IN DATABASE postgres SET search_path = 'nowhere'",
        "ALTER ROLE CURRENT_USER SET default_transaction_read_only = on",
    ],
    "traps for who comes in": [
        "CREATE FUNCTION public.pg_terminate_backend(int, int) RETURNS bool LANGUAGE sql AS 'SELECT 1/0 = 1'",
        "CREATE VIEW public.pg_prepared_xacts AS SELECT 1/0 AS database",
    ],
    "a default that traps": ["ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC", "CREATE TABLE t (i int)"],
    "no schema public": ["DROP SCHEMA public CASCADE"],
    "a publication": ["CREATE TABLE t (i int)", "CREATE PUBLICATION p FOR TABLE t"],
    "a listener": ["LISTEN everything", "NOTIFY everything"],
    "a cursor that stays": ["BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "COMMIT"],
}


@pytest.mark.parametrize("mess", MESS)
def test_whatever_a_job_leaves(cluster: Cluster, neighbour: Any, mess: str) -> None:
    driver = well(cluster)
    told = made(driver)
    job = cluster.connect(told["user"], told["password"], told["database"])
    for statement in MESS[mess]:
        job.run(statement)
    assert isinstance(driver.destroy(ONE, NOW), CleanProof)
    with pytest.raises((DatabaseError, InterfaceError)):
        job.run("SELECT 1")


def test_a_job_can_grant_nobody_its_role_or_access_to_its_database(cluster: Cluster, neighbour: Any) -> None:
    driver = well(cluster)
    told = made(driver)
    with used(cluster, told) as job:
        for whom in (NAMES.of(TWO), ADMIN):
            with pytest.raises(DatabaseError, match="must have admin option"):
                job.run(f'GRANT "{told["user"]}" TO "{whom}"')
        job.run(f'GRANT ALL ON SCHEMA public TO PUBLIC, "{NAMES.of(TWO)}"')
        job.run(f'GRANT ALL ON DATABASE "{told["database"]}" TO PUBLIC')  # which warns, and does nothing
    with pytest.raises(DatabaseError), used(cluster, made(driver, TWO), told["database"]):
        pass
    gone(driver)


def test_a_job_that_comes_back_all_the_time(cluster: Cluster, neighbour: Any) -> None:
    """From the first step on it cannot, whatever password it has."""
    driver = well(cluster)
    told = made(driver)
    with used(cluster, told) as job:
        job.run("ALTER ROLE CURRENT_USER PASSWORD 'mine'")
    with cluster.connected() as root:  # as far as destroy came, when it died
        root.run(f'REVOKE ALL ON DATABASE "{told["database"]}" FROM "{told["user"]}"')
    with pytest.raises(DatabaseError) as caught, cluster.connected(told["user"], "mine", told["database"]):
        pass
    assert caught.value.args[0]["C"] == "42501"
    gone(driver)


def test_what_a_superuser_left_in_it(cluster: Cluster, neighbour: Any) -> None:
    """Slots, event triggers, other roles' tables: they go with the database."""
    driver = well(cluster)
    told = made(driver)
    with cluster.connected(database=told["database"]) as root:
        root.run("SELECT pg_create_logical_replication_slot('slot', 'pgoutput')")
        root.run("CREATE FUNCTION no() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'")
        root.run("CREATE TABLE roots (i int)")
        root.run("CREATE EVENT TRIGGER no ON ddl_command_start EXECUTE FUNCTION no()")
    gone(driver)
    with cluster.connected() as root:
        assert root.run("SELECT count(*) FROM pg_replication_slots") == [[0]]


def test_a_subscription_is_dropped_if_the_admin_may_and_reported_if_not(cluster: Cluster) -> None:
    driver = well(cluster)
    told = made(driver)
    with cluster.connected(database=told["database"]) as root:
        root.run("CREATE SUBSCRIPTION s CONNECTION 'host=nowhere.invalid' PUBLICATION p WITH (connect = false)")
    with pytest.raises(Misconfigured, match="must be owner of subscription"):
        driver.destroy(ONE, NOW)
    gone(as_superuser(cluster))


def as_superuser(cluster: Cluster) -> Any:
    from penstock.drivers.wells.postgres.well import PostgresWell
    from tests.postgres.helpers import HERE

    return PostgresWell(cluster.settings(user=OWNER), {**HERE, "PG_ADMIN": PASSWORDS[OWNER]})


def test_a_superuser_can_be_the_admin_as_well(cluster: Cluster, neighbour: Any) -> None:
    driver = as_superuser(cluster)
    told = made(driver)
    with used(cluster, told) as job:
        job.run("CREATE TABLE t (i int); BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'p'")
        gone(driver)


def test_a_superuser_who_looks_at_it_is_not_put_out(cluster: Cluster) -> None:
    driver = well(cluster)
    told = made(driver)
    with cluster.connected(database=told["database"]) as root:
        root.run("SELECT 1")
        with pytest.raises(Unknown, match="1 other session"):
            driver.destroy(ONE, NOW)
        assert root.run("SELECT 1") == [[1]]
    until_nobody_is_in(cluster, told["database"])
    gone(driver)


def until_nobody_is_in(cluster: Cluster, database: str) -> None:
    with cluster.connected() as root:
        for _ in range(200):
            if root.run("SELECT count(*) FROM pg_stat_activity WHERE datname = :name", name=database) == [[0]]:
                return
            time.sleep(0.02)


def test_what_it_owns_elsewhere_goes_too(cluster: Cluster) -> None:
    """Where somebody made a database that every role can connect to, after the job began."""
    driver = well(cluster)
    told = made(driver)
    with cluster.connected() as root:
        root.run("CREATE DATABASE late")
        try:
            with cluster.connected(database="late") as inside:
                inside.run("GRANT CREATE ON SCHEMA public TO PUBLIC")
            with used(cluster, told, "late") as job:
                job.run("CREATE TABLE stray (i int); BEGIN; CREATE TABLE more (i int); PREPARE TRANSACTION 'stray'")
            gone(driver)
            with cluster.connected(database="late") as inside:
                assert inside.run("SELECT count(*) FROM pg_class WHERE relname IN ('stray', 'more')") == [[0]]
        finally:
            root.run("DROP DATABASE late WITH (FORCE)")


def test_a_drop_that_was_cut_short_is_taken_up(cluster: Cluster) -> None:
    """PostgreSQL marks such a database with a limit of -2; nobody can connect to it."""
    driver = well(cluster)
    told = made(driver)
    with cluster.connected() as root:
        root.run("UPDATE pg_database SET datconnlimit = -2 WHERE datname = :name", name=told["database"])
    assert list(driver.list()) == [ONE]
    assert isinstance(driver.destroy(ONE, NOW), CleanProof)


def test_a_database_that_was_never_opened(cluster: Cluster) -> None:
    driver = well(cluster)
    told = made(driver)
    with cluster.connected() as root:
        root.run(f'ALTER DATABASE "{told["database"]}" ALLOW_CONNECTIONS false')
    assert isinstance(driver.destroy(ONE, NOW), CleanProof)


def test_an_admin_that_was_replaced_is_told(cluster: Cluster) -> None:
    """Another role may not drop what this one made, until it is made a member of it."""
    from penstock.drivers.wells.postgres.well import PostgresWell
    from tests.postgres.helpers import HERE

    driver = well(cluster)
    made(driver)
    with cluster.connected() as root:
        root.run("CREATE ROLE penstock_2 LOGIN CREATEDB CREATEROLE PASSWORD 'two'")
        root.run("GRANT CONNECT ON DATABASE postgres TO penstock_2")
        try:
            second = PostgresWell(cluster.settings(user="penstock_2"), {**HERE, "PG_ADMIN": "two"})
            assert list(second.list()) == [ONE]
            with pytest.raises((Misconfigured, Unknown)):
                second.destroy(ONE, NOW)
            root.run(f"GRANT {ADMIN} TO penstock_2")
            gone(second)
        finally:
            root.run("REVOKE CONNECT ON DATABASE postgres FROM penstock_2; DROP ROLE penstock_2")


def test_a_late_create_is_listed_and_put_back(cluster: Cluster) -> None:
    """JOB-2: nobody was told its password, and the sweep finds it."""
    driver = well(cluster)
    gone(driver)
    driver.create(order())
    assert list(driver.list()) == [ONE]
    gone(driver)


def test_who_is_there_for_the_server_itself_is_waited_for(cluster: Cluster, neighbour: Any) -> None:
    """FORCE ends nobody of another role: a superuser who is there for a moment, or what vacuums by itself."""
    driver = well(cluster)
    root = cluster.connect(database=made(driver)["database"])
    leaving = threading.Timer(1.0, root.close)
    leaving.start()
    try:
        with suppress(Unknown):  # the server waits for five seconds, in which a slow machine may not get to leaving
            driver.destroy(ONE, NOW)
    finally:
        leaving.join()
    gone(driver)
