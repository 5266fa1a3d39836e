"""Connections to the server. All have time limits, and raise only DriverError."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Any, Protocol

from penstock.drivers.wells.postgres.errors import server_errors
from penstock.drivers.wells.postgres.settings import PLAIN, UNVERIFIED, Settings
from penstock.kernel.errors import Unknown
from penstock.kernel.frozen import dataclass

CONNECT_SECONDS = 10
STATEMENT_SECONDS = 20
DROP_SECONDS = 60
"""DROP DATABASE waits for a checkpoint of the server."""

CALL_SECONDS = 40
"""After this time a call begins no further statement, so that even the longest ends before the function's timeout."""

PARAMETERS = {
    # Override the defaults of the server, role and database, so that names and strings mean what they say.
    "search_path": "pg_catalog",
    "standard_conforming_strings": "on",
    "role": "none",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "lock_timeout": "10s",
    # Release locks if the function was killed or lost its network.
    "idle_session_timeout": "90s",
    "idle_in_transaction_session_timeout": "30s",
    "tcp_keepalives_idle": "20",
}


class Session(Protocol):
    """A connection to one database."""

    def run(self, sql: str) -> None:
        """Run one statement, or several as one transaction, without parameters. Raises DriverError."""

    def rows(self, sql: str, **values: Any) -> list[list[Any]]:
        """The rows that a statement returns. Raises DriverError."""

    def close(self) -> None:
        """End the connection."""


Connect = Callable[[Settings, str, str], Session]
"""Opens a session: settings, the admin's password, name of the database. Raises DriverError."""


class Connection:
    """A session over pg8000, which is imported only when a session is opened."""

    def __init__(self, settings: Settings, password: str, database: str) -> None:
        from pg8000.native import Connection as Native

        with server_errors(f"connecting to {settings.place}/{database}"):
            self._native = Native(
                settings.user,
                host=settings.host,
                port=settings.port,
                database=database,
                password=password,
                timeout=CONNECT_SECONDS,
                ssl_context=_context(settings),
                application_name="penstock",
                startup_params=PARAMETERS,
            )
            self._native._usock.settimeout(
                DROP_SECONDS + 5
            )  # longer than the server's own limits, for a server that does not answer

    def run(self, sql: str) -> None:
        with server_errors(_first_words(sql)):
            self._native.run(sql)

    def rows(self, sql: str, **values: Any) -> list[list[Any]]:
        with server_errors(_first_words(sql)):
            return list(self._native.run(sql, **values) or ())

    def close(self) -> None:
        with suppress(Exception):
            self._native.close()


@dataclass(frozen=True)
class Server:
    """A server, for the length of one call of the driver."""

    settings: Settings
    password: Callable[[], str]
    connect: Connect = Connection
    clock: Callable[[], float] = time.monotonic
    _until: list[float] = field(default_factory=list)

    @contextmanager
    def session(self, database: str = "") -> Iterator[Session]:
        """A session with a database; by default with the one in the settings."""
        self.check_time()
        opened = self.connect(self.settings, self.password(), database or self.settings.database)
        try:
            yield _Bounded(opened, self)
        finally:
            opened.close()

    def check_time(self) -> None:
        """Raises Unknown if the call has used up its time."""
        now = self.clock()
        if not self._until:
            self._until.append(now + CALL_SECONDS)
        if now >= self._until[0]:
            raise Unknown(f"{self.settings.place} is too slow: the rest is done later", "slow")


@dataclass(frozen=True)
class _Bounded:
    """A session that begins no statement when the call has used up its time."""

    inner: Session
    server: Server

    def run(self, sql: str) -> None:
        self.server.check_time()
        self.inner.run(sql)

    def rows(self, sql: str, **values: Any) -> list[list[Any]]:
        self.server.check_time()
        return self.inner.rows(sql, **values)

    def close(self) -> None:
        self.inner.close()


def _context(settings: Settings) -> ssl.SSLContext | bool:
    """The TLS context for pg8000; False for no TLS."""
    if settings.tls == PLAIN:
        return False
    context = ssl.create_default_context(cadata=settings.ca or None)
    if settings.tls == UNVERIFIED:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _first_words(sql: str) -> str:
    """The first two words of a statement, for messages. They contain no values."""
    return " ".join(sql.split()[:2])
