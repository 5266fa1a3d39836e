"""Connections to the server. None of them hangs, and what comes out of them is an error that the core knows."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.drivers.wells.postgres.codes import understood
from penstock.drivers.wells.postgres.settings import PLAIN, UNVERIFIED, Settings
from penstock.kernel.errors import Unknown

CONNECT_SECONDS = 10
STATEMENT_SECONDS = 20
DROP_SECONDS = 60
"""DROP DATABASE waits for a checkpoint of the whole server."""

CALL_SECONDS = 40
"""After so long a call begins no further statement: with the longest one it ends before the function does."""

PARAMETERS = {
    # Whatever the server, the role or a database says: names are the server's own, and texts are what they look like.
    "search_path": "pg_catalog",
    "standard_conforming_strings": "on",
    "role": "none",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "lock_timeout": "10s",
    # A function that was ended, or lost its network, holds nothing for longer than this.
    "idle_session_timeout": "90s",
    "idle_in_transaction_session_timeout": "30s",
    "tcp_keepalives_idle": "20",
}


class Session(Protocol):
    """A connection to one database."""

    def run(self, sql: str) -> None:
        """Run what needs no parameters: one statement, or several that happen together. Raises DriverError."""

    def rows(self, sql: str, **values: Any) -> list[list[Any]]:
        """What a statement answers. Raises DriverError."""

    def close(self) -> None:
        """End the connection."""


Connect = Callable[[Settings, str, str], Session]
"""Opens a session with a database, with the admin's password. Raises DriverError."""


class Connection:
    """A session over pg8000, which is imported when the first is opened: no other driver pays for it."""

    def __init__(self, settings: Settings, password: str, database: str) -> None:
        from pg8000.native import Connection as Native

        with understood(f"connecting to {settings.place}/{database}"):
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
            self._native._usock.settimeout(DROP_SECONDS + 5)  # the server's own limit comes first, if it is there

    def run(self, sql: str) -> None:
        with understood(_what(sql)):
            self._native.run(sql)

    def rows(self, sql: str, **values: Any) -> list[list[Any]]:
        with understood(_what(sql)):
            return list(self._native.run(sql, **values) or ())

    def close(self) -> None:
        with suppress(Exception):
            self._native.close()


@dataclass(frozen=True)
class Server:
    """A server, for the time of one call of the driver."""

    settings: Settings
    password: Callable[[], str]
    connect: Connect = Connection
    clock: Callable[[], float] = time.monotonic
    _until: list[float] = field(default_factory=list)

    @contextmanager
    def session(self, database: str = "") -> Iterator[Session]:
        """A session with a database, or with the one that the settings name."""
        self.go_on()
        opened = self.connect(self.settings, self.password(), database or self.settings.database)
        try:
            yield _Bounded(opened, self)
        finally:
            opened.close()

    def go_on(self) -> None:
        """Raises Unknown when the call has taken so long that nothing more is begun."""
        now = self.clock()
        if not self._until:
            self._until.append(now + CALL_SECONDS)
        if now >= self._until[0]:
            raise Unknown(f"{self.settings.place} is too slow: the call goes on later", "slow")


@dataclass(frozen=True)
class _Bounded:
    """A session that begins nothing when it is late."""

    inner: Session
    server: Server

    def run(self, sql: str) -> None:
        self.server.go_on()
        self.inner.run(sql)

    def rows(self, sql: str, **values: Any) -> list[list[Any]]:
        self.server.go_on()
        return self.inner.rows(sql, **values)

    def close(self) -> None:
        self.inner.close()


def _context(settings: Settings) -> ssl.SSLContext | bool:
    """How pg8000 is to protect the connection; False is not at all."""
    if settings.tls == PLAIN:
        return False
    context = ssl.create_default_context(cadata=settings.ca or None)
    if settings.tls == UNVERIFIED:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _what(sql: str) -> str:
    """A statement for people: its first words, which have no values."""
    return " ".join(sql.split()[:2])
