"""Connections that break: at the how-manieth thing that a call asks of the server, and in which way."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from penstock.drivers.wells.postgres.session import Connection
from penstock.drivers.wells.postgres.settings import Settings
from tests.postgres.cluster import Cluster

T = TypeVar("T")

LOST, UNANSWERED, ENDED = "lost before it was asked", "done and not answered", "ended by the server"
WAYS = (LOST, UNANSWERED, ENDED)
NOBODY = 1
"""A port at which nobody listens."""


@dataclass
class Breaking:
    """Opens connections of which one breaks, at number `at` of everything that is asked. `met` says of what."""

    cluster: Cluster
    at: int
    way: str
    count: int = 0
    met: str = ""
    asked: list[str] = field(default_factory=list)

    def __call__(self, settings: Settings, password: str, database: str) -> Connection:
        if self.is_now(f"connect to {database}") and self.way != UNANSWERED:
            settings = replace(settings, port=NOBODY)
        made = _Breaking(settings, password, database)
        made.faults = self
        if self.count == self.at and self.way == UNANSWERED:
            made.cut()
        return made

    def is_now(self, what: str) -> bool:
        """Count one thing that is asked; whether it is the one."""
        self.count += 1
        self.asked.append(what)
        if self.count == self.at:
            self.met = what
        return self.count == self.at


class _Breaking(Connection):
    faults: Breaking

    def run(self, sql: str) -> None:
        self._break(sql, lambda: Connection.run(self, sql))

    def rows(self, sql: str, **values: Any) -> list[list[Any]]:
        return self._break(sql, lambda: Connection.rows(self, sql, **values))

    def _break(self, sql: str, ask: Callable[[], T]) -> T:
        if self.faults.is_now(" ".join(sql.split()[:3])):
            if self.faults.way == UNANSWERED:
                ask()
            if self.faults.way == ENDED:
                self._end()
            else:
                self.cut()
        return ask()

    def cut(self) -> None:
        """Nothing comes through any more, in either direction."""
        self._native._usock.shutdown(socket.SHUT_RDWR)

    def _end(self) -> None:
        """Let the server end this connection, as an operator would."""
        pid = self._native.run("SELECT pg_backend_pid()")[0][0]
        with self.faults.cluster.connected() as root:
            root.run("SELECT pg_terminate_backend(:pid, 5000)", pid=pid)
