"""What a job gets, on a real server: a database of its own, and no more than that. [UNIT-1] [SEC-1]"""

from __future__ import annotations

import subprocess
from typing import Any
from urllib.parse import urlsplit

import pytest
from pg8000.exceptions import DatabaseError

from penstock.kernel.errors import DriverError, Misconfigured, Unsatisfiable
from penstock.ports import NotYet, Ready
from tests.postgres import helpers
from tests.postgres.cluster import Cluster, programs
from tests.postgres.helpers import NAMES, ONE, TWO, gone, made, order, used, well

pytestmark = pytest.mark.xdist_group("postgres")


def refused(job: Any, sql: str, state: str = "42501") -> None:
    with pytest.raises(DatabaseError) as caught:
        job.run(sql)
    assert caught.value.args[0]["C"] == state, caught.value


def test_a_job_can_work_in_its_database(cluster: Cluster) -> None:
    driver = well(cluster)
    told = made(driver)
    with used(cluster, told) as job:
        job.run("CREATE TABLE public.t (i int); INSERT INTO t VALUES (7); CREATE TEMPORARY TABLE u (i int)")
        job.run("CREATE SCHEMA mine; DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        job.run("CREATE PUBLICATION p; CREATE TYPE mood AS ENUM ('good')")
        assert job.run("SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()") == [
            ["UTF8"]
        ]
    gone(driver)


def test_metadata_has_the_environment_variables_of_postgresql_clients(cluster: Cluster) -> None:
    driver = well(cluster)
    told = made(driver)
    url = urlsplit(told["url"])
    assert (url.scheme, url.hostname, url.port) == ("postgresql", told["host"], told["port"])
    assert (url.username, url.password, url.path) == (told["user"], told["password"], f"/{told['database']}")
    assert told["version"] >= 15
    psql = (programs() or cluster.folder) / "psql"
    names = {key: told[key] for key in told if key.startswith("PG")}
    for how in ([], [told["url"]]):
        environment = names if not how else {}
        asked = subprocess.run(
            [psql, *how, "-Atc", "SELECT current_user"], env=environment, capture_output=True, text=True, check=True
        )
        assert asked.stdout.strip() == told["user"]
    gone(driver)


def test_a_repeated_create_is_the_same_and_changes_nothing(cluster: Cluster) -> None:
    driver = well(cluster)
    told = made(driver)
    with used(cluster, told) as job:
        job.run("CREATE TABLE t (i int)")
    assert made(well(cluster)) == told
    with used(cluster, told) as job:
        assert job.run("SELECT count(*) FROM t") == [[0]]
    assert list(driver.list()) == [ONE]
    gone(driver)


def test_passwords_are_of_a_lease_and_in_no_log(cluster: Cluster) -> None:
    """SEC-1: the server logs every statement here, and has not seen one."""
    driver = well(cluster)
    told, again = made(driver), made(driver)
    gone(driver)
    done = driver.create(order(key="n" * 64))
    assert isinstance(done, Ready)
    assert told["password"] == again["password"] != done.metadata["password"]
    with pytest.raises(DatabaseError), used(cluster, told):
        pass
    gone(driver)
    assert "CREATE ROLE" in cluster.log
    for secret in (told["password"], done.metadata["password"], "k" * 64, "n" * 64):
        assert secret not in cluster.log


def test_the_role_may_nothing_besides(cluster: Cluster) -> None:
    driver = well(cluster)
    told = made(driver)
    with cluster.connected() as root:
        row = root.run(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls, rolcanlogin, rolconnlimit "
            "FROM pg_roles WHERE rolname = :name",
            name=told["user"],
        )
    assert row == [[False] * 5 + [True, 20]]
    with used(cluster, told) as job:
        refused(job, "CREATE DATABASE other")
        refused(job, "CREATE ROLE other")
        refused(job, "ALTER ROLE CURRENT_USER CONNECTION LIMIT 1000")
        refused(job, "ALTER ROLE CURRENT_USER CREATEDB")
        refused(job, f'ALTER DATABASE "{told["database"]}" CONNECTION LIMIT 1')
        refused(job, f'DROP DATABASE "{told["database"]}"')
        refused(job, f"COMMENT ON DATABASE \"{told['database']}\" IS 'mine'")
        refused(
            job, "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION suppress_redundant_updates_trigger()"
        )
        refused(job, "COPY (SELECT 1) TO PROGRAM 'true'")
        refused(job, "SELECT pg_read_file('/etc/passwd')")
        refused(job, "SELECT * FROM pg_authid")
        refused(job, "SET ROLE penstock")
        refused(job, "SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
        assert job.run("SHOW statement_timeout") == [["30min"]]
        assert job.run("SHOW idle_in_transaction_session_timeout") == [["30min"]]
        assert job.run("SELECT has_database_privilege('public', current_database(), 'CONNECT, TEMPORARY')") == [[False]]
    gone(driver)


def test_a_job_cannot_connect_to_any_other_database(cluster: Cluster) -> None:
    """SEC-1: neither to another job's, nor to any that was there before."""
    driver = well(cluster)
    one, two = made(driver), made(driver, TWO)
    for database in (two["database"], "postgres", "template1"):
        with pytest.raises(DatabaseError) as caught, used(cluster, one, database):
            pass
        assert caught.value.args[0]["C"] == "42501"
    with used(cluster, one) as job:
        refused(job, f'REVOKE CONNECT ON DATABASE "{two["database"]}" FROM "{two["user"]}"')
    with used(cluster, two):
        pass
    gone(driver)
    gone(driver, TWO)


def test_nothing_is_made_where_jobs_could_reach_more(cluster: Cluster) -> None:
    driver = well(cluster)
    with cluster.connected() as root:
        root.run("CREATE DATABASE somebodys")
        try:
            with pytest.raises(Misconfigured, match='REVOKE CONNECT, TEMPORARY ON DATABASE "somebodys" FROM PUBLIC'):
                driver.create(order())
            assert list(driver.list()) == []
            for reachable in (["somebodys"], ["*"]):
                accepting = well(cluster, reachable=reachable)
                assert made(accepting)
                gone(accepting)
        finally:
            root.run("DROP DATABASE somebodys")


@pytest.mark.parametrize("reachable", [["*"], ["postgres"]])
def test_nothing_is_made_where_jobs_could_take_the_locks_of_the_well(cluster: Cluster, reachable: list[str]) -> None:
    """UNIT-1: with its unit's lock a job would keep its database from being destroyed."""
    driver = well(cluster, reachable=reachable)
    with cluster.connected() as root:
        root.run("GRANT CONNECT ON DATABASE postgres TO PUBLIC")
        try:
            with pytest.raises(
                Misconfigured, match=r'ON DATABASE "postgres" FROM PUBLIC; .* where the well takes locks'
            ):
                driver.create(order())
            assert list(driver.list()) == []
        finally:
            root.run("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")
    assert made(driver)
    gone(driver)


def test_connections_are_limited_as_asked(cluster: Cluster) -> None:
    driver = well(cluster, connections=3)
    told = made(driver, connections=1)
    assert told["connections"] == 1
    with used(cluster, told), pytest.raises(DatabaseError) as caught, used(cluster, told):
        pass
    assert caught.value.args[0]["C"] == "53300"
    with pytest.raises(Unsatisfiable, match="4 connections are too many: at most 3 are allowed"):
        driver.create(order(TWO, connections=4))
    gone(driver)


def test_extensions_are_those_that_the_site_has(cluster: Cluster) -> None:
    driver = well(cluster, extensions=["pgcrypto", "uuid-ossp", "earthdistance", "nonesuch", "file_fdw"])
    told = made(driver, extensions=["pgcrypto", "uuid-ossp"])
    with used(cluster, told) as job:
        assert len(job.run("SELECT gen_random_bytes(4), uuid_generate_v4()")[0]) == 2
    with pytest.raises(Unsatisfiable, match=r"'hstore' is not allowed; allowed are: pgcrypto"):
        driver.create(order(TWO, extensions=["hstore"]))
    with pytest.raises(Misconfigured, match="does not have the extensions nonesuch"):
        driver.create(order(TWO, extensions=["pgcrypto", "nonesuch"]))
    with pytest.raises(Misconfigured, match=r"permission denied to create extension .*42501"):
        driver.create(order(TWO, extensions=["file_fdw"]))  # which only a superuser may
    assert list(driver.list()) == [ONE, TWO]
    gone(driver)
    gone(driver, TWO)


def test_the_version_is_what_there_is(cluster: Cluster) -> None:
    driver = well(cluster)
    there_is = made(driver)["version"]
    assert made(driver, version=there_is)["version"] == there_is
    with pytest.raises(Unsatisfiable, match=f"the server runs PostgreSQL {there_is}, not 999"):
        driver.create(order(TWO, version=999))
    gone(driver)


def test_options_that_are_none(cluster: Cluster) -> None:
    driver = well(cluster)
    with pytest.raises(Unsatisfiable, match="speed"):
        driver.create(order(speed=1))
    assert list(driver.list()) == []


def test_what_the_site_says_of_the_type_is_told_and_never_instead(cluster: Cluster) -> None:
    driver = well(cluster)
    asked = order()
    done = driver.create(type(asked)(asked.id, "database", "1", {"zone": "a", "host": "elsewhere"}, key=asked.key))
    assert isinstance(done, Ready)
    assert (done.metadata["zone"], done.metadata["host"]) == ("a", "127.0.0.1")
    gone(driver)


def test_names_and_comments_say_whose_it_is(cluster: Cluster) -> None:
    driver = well(cluster)
    told = made(driver)
    assert told["database"] == told["user"] == NAMES.of(ONE)
    with cluster.connected() as root:
        said = root.run(
            "SELECT shobj_description(d.oid, 'pg_database'), shobj_description(r.oid, 'pg_authid') "
            "FROM pg_database d JOIN pg_roles r ON r.rolname = d.datname WHERE datname <> 'postgres'"
        )
    assert said == [[f"penstock: site Penstock.eu-west-1, well databases, unit {ONE}"] * 2]
    gone(driver)


def test_sites_and_wells_share_a_server_and_see_their_own(cluster: Cluster) -> None:
    """UNIT-1: nothing of another's is listed, nor touched."""
    others = [
        helpers.PostgresWell(cluster.settings(), helpers.environment(site, name))
        for site, name in (("Other.eu-west-1", "databases"), ("Penstock.eu-west-1", "more"))
    ]
    ours = well(cluster)
    for driver in (ours, *others):
        made(driver)
    gone(ours)
    assert [list(driver.list()) for driver in (ours, *others)] == [[], [ONE], [ONE]]
    for driver in others:
        gone(driver)


@pytest.mark.parametrize("what", ["DATABASE", "ROLE"])
def test_what_does_not_carry_our_comment_is_left_alone(cluster: Cluster, what: str) -> None:
    """UNIT-1: neither a role that somebody made by our name, nor a database."""
    driver, name = well(cluster), NAMES.of(ONE)
    with cluster.connected() as root:
        root.run(f'CREATE {what} "{name}"')
        try:
            if what == "DATABASE":
                root.run(f'REVOKE CONNECT ON DATABASE "{name}" FROM PUBLIC')
            for said in ("NULL", "'somebody else''s'"):
                root.run(f'COMMENT ON {what} "{name}" IS {said}')
                for call in (lambda: driver.create(order()), lambda: driver.destroy(ONE, helpers.NOW)):
                    with pytest.raises(Misconfigured, match="that does not have the comment"):
                        call()
            assert list(driver.list()) == []
        finally:
            root.run(f'DROP {what} "{name}"')


def test_only_one_call_at_a_time_is_at_a_unit(cluster: Cluster) -> None:
    driver = well(cluster)
    made(driver)
    with cluster.connected() as other:
        other.run("SELECT pg_advisory_lock(hashtextextended(:name, 0))", name=NAMES.of(ONE))
        for done in (driver.create(order()), driver.destroy(ONE, helpers.NOW)):
            assert isinstance(done, NotYet)
            assert made(driver, TWO)
    gone(driver)
    gone(driver, TWO)


class TestTls:
    """The well's own connection."""

    def test_a_server_that_is_vouched_for(self, cluster: Cluster) -> None:
        driver = well(cluster, sslmode="verify-full", ca=cluster.ca)
        told = made(driver)
        assert (told["sslmode"], told["PGSSLMODE"], told["ca"]) == ("require", "require", cluster.ca)
        assert told["url"].endswith("?sslmode=require")
        gone(driver)

    def test_a_server_that_nobody_vouches_for(self, cluster: Cluster) -> None:
        with pytest.raises(Misconfigured, match="CERTIFICATE_VERIFY_FAILED"):
            well(cluster, sslmode="verify-full").create(order())

    def test_a_server_of_another_name(self, cluster: Cluster) -> None:
        driver = well(cluster, sslmode="verify-full", ca=cluster.ca, host="127.0.0.2")
        with pytest.raises(DriverError):
            driver.create(order())

    def test_encrypted_and_not_verified_where_the_site_wants_that(self, cluster: Cluster) -> None:
        driver = well(cluster, sslmode="require")
        made(driver)
        gone(driver)
