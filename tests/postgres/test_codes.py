"""What errors mean to the core, each of the table, and some of a real server. DESIGN section 6."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from pg8000.exceptions import DatabaseError, InterfaceError

from penstock.drivers.wells.postgres import errors, session
from penstock.drivers.wells.postgres.session import CALL_SECONDS, Server
from penstock.drivers.wells.postgres.settings import Settings
from penstock.drivers.wells.postgres.well import PostgresWell
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, RateLimited, Unknown
from tests.postgres.cluster import ADMIN, PASSWORDS, Cluster
from tests.postgres.helpers import HERE, NOW, ONE, SETTINGS, gone, made, order, well

MEANT: dict[type[DriverError], list[str]] = {
    Misconfigured: ["28000", "28P01", "3D000", "42501", "0A000", "58P01", "22023", "42704", "25006", "2BP01"],
    RateLimited: ["53300", "57P03"],
    NoCapacity: ["53000", "53100", "53200", "53400"],
    Unknown: [
        *("42710", "42P04", "23505", "55000", "55006", "55P03", "57014", "57P01", "57P02", "57P04", "57P05"),
        *("58000", "58030", "08006", "08P01", "40001", "40P01", "XX000", "XX001"),
    ],
}


def raised(error: Exception) -> DriverError:
    with pytest.raises(DriverError) as caught, errors.server_errors("CREATE ROLE"):
        raise error
    return caught.value


@pytest.mark.parametrize(("state", "kind"), [(state, kind) for kind in MEANT for state in MEANT[kind]])
def test_every_state_of_the_table(state: str, kind: type[DriverError]) -> None:
    said = {"C": state, "M": "it  failed.", "H": "do this", "S": "ERROR"}
    error = raised(DatabaseError(said))
    assert type(error) is kind
    assert str(error) == f"CREATE ROLE: it failed. do this ({state})"
    if isinstance(error, Unknown):
        assert error.code == state


def test_the_table_has_no_row_besides() -> None:
    tested = {state for states in MEANT.values() for state in states}
    assert set(errors.STATES) <= tested
    assert set(errors.CLASSES) <= {state[:2] for state in tested}


def test_a_server_that_is_full_or_starting_is_left_alone_for_a_while() -> None:
    full, starting = (raised(DatabaseError({"C": state, "M": "x"})) for state in ("53300", "57P03"))
    assert isinstance(full, RateLimited)
    assert isinstance(starting, RateLimited)
    assert (full.seconds, starting.seconds) == (errors.FULL_SECONDS, errors.STARTING_SECONDS)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DatabaseError({"C": "42601", "M": "syntax error"}), "42601"),
        (DatabaseError({}), ""),
        (DatabaseError("no mapping"), ""),
        (DatabaseError(), ""),
        (KeyError(b"?"), "KeyError"),
    ],
)
def test_an_unknown_code_is_unknown_and_counted(error: Exception, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[str, str]] = []
    monkeypatch.setattr(errors, "report_unknown", lambda driver, code, _: counted.append((driver, code)))
    told = raised(error)
    assert type(told) is Unknown
    assert told.code == code
    assert counted == [("postgres", code)]


def caused(by: Exception) -> InterfaceError:
    error = InterfaceError("network error")
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (caused(ConnectionRefusedError("refused")), Unknown),
        (caused(TimeoutError("timed out")), Unknown),
        (TimeoutError("timed out"), Unknown),
        (ConnectionResetError("reset"), Unknown),
        (InterfaceError("network error"), Unknown),
        (caused(socket.gaierror(socket.EAI_AGAIN, "later")), Unknown),
        (caused(socket.gaierror(socket.EAI_NONAME, "no such host")), Misconfigured),
        (ssl.SSLCertVerificationError("unknown authority"), Misconfigured),
        (ssl.SSLError("broken pipe"), Unknown),
        (InterfaceError("Server refuses SSL"), Misconfigured),
    ],
)
def test_a_network_that_fails(error: Exception, kind: type[DriverError]) -> None:
    assert type(raised(error)) is kind


def test_a_call_that_takes_long_begins_nothing_more() -> None:
    times = iter([0.0, 1.0, CALL_SECONDS - 0.5, CALL_SECONDS])

    class Slow:
        def rows(self, sql: str, **values: Any) -> list[list[Any]]:
            return [[sql]]

        def run(self, sql: str) -> None: ...

        def close(self) -> None: ...

    server = Server(Settings("h", "u", "p"), lambda: "", lambda *given: Slow(), lambda: next(times))
    with server.session() as opened:
        opened.run("SELECT 1")
        assert opened.rows("SELECT 2") == [["SELECT 2"]]
        with pytest.raises(Unknown, match="too slow"):
            opened.run("SELECT 3")


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = {**SETTINGS, "host": "127.0.0.1", "port": silent.getsockname()[1], "password": "env:PG_ADMIN"}
        with pytest.raises(Unknown, match="timed out"):
            PostgresWell(settings, {**HERE, "PG_ADMIN": "x"}).create(order())


@pytest.mark.xdist_group("postgres")
class TestReal:
    """The same, said by a server."""

    def test_a_wrong_password_or_user(self, cluster: Cluster) -> None:
        for settings, password in (
            (cluster.settings(), "wrong"),
            (cluster.settings(user="nobody"), "any"),
            (cluster.settings(database="nowhere"), PASSWORDS[ADMIN]),
        ):
            driver = PostgresWell(settings, {**HERE, "PG_ADMIN": password})
            for call in calls(driver):
                with pytest.raises(Misconfigured) as caught:
                    call()
                assert "wrong" not in str(caught.value).replace(f"127.0.0.1:{cluster.port}", "")

    def test_nobody_there(self, cluster: Cluster) -> None:
        for call in calls(well(cluster, port=1)):
            with pytest.raises(Unknown, match=r"127\.0\.0\.1:1"):
                call()

    def test_no_connection_left(self, cluster: Cluster) -> None:
        driver = well(cluster)
        told = made(driver)
        with full(cluster):
            for call in calls(driver):
                with pytest.raises(RateLimited):
                    call()
        assert made(driver) == told
        gone(driver)

    def test_an_admin_who_may_not(self, cluster: Cluster) -> None:
        for lacking in ("NOCREATEDB", "NOCREATEROLE"):
            with cluster.connected() as root:
                root.run(f"ALTER ROLE {ADMIN} {lacking}")
            try:
                with pytest.raises(Misconfigured, match="permission denied"):
                    well(cluster).create(order())
            finally:
                with cluster.connected() as root:
                    root.run(f"ALTER ROLE {ADMIN} CREATEDB CREATEROLE")
            gone(well(cluster))


def calls(driver: PostgresWell) -> list[Callable[[], object]]:
    return [lambda: driver.create(order()), lambda: driver.destroy(ONE, NOW), lambda: list(driver.list())]


CROWD = "SELECT pid FROM pg_stat_activity WHERE usename = 'crowd'"


@contextmanager
def full(cluster: Cluster) -> Iterator[None]:
    """Take every connection that the server has, but for those it keeps for superusers."""
    with cluster.connected() as root, ExitStack() as open_ones:
        limit = root.run(
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
        )[0][0]
        root.run("CREATE ROLE crowd LOGIN PASSWORD 'crowd'; GRANT CONNECT ON DATABASE postgres TO crowd")
        try:
            while len(root.run(CROWD)) < limit - 1:  # the other is this one
                with suppress(DatabaseError):  # somebody has closed one that the server has not let go of yet
                    open_ones.enter_context(cluster.connected("crowd", "crowd"))
            yield
        finally:
            open_ones.close()
            while root.run(CROWD):
                time.sleep(0.02)
            root.run("REVOKE CONNECT ON DATABASE postgres FROM crowd; DROP ROLE crowd")
