"""What a site says of a `postgres` well, and a job of its database. See docs/operators/wells/postgres.md."""

from __future__ import annotations

from dataclasses import dataclass

VERIFIED, UNVERIFIED, PLAIN = "verify-full", "require", "disable"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
ANY = "*"
"""In `reachable`: whatever else jobs can connect to is of no account."""


@dataclass(frozen=True)
class Settings:
    """A server, how to reach it, and how much of it a job may have. Timeouts are in seconds."""

    host: str
    user: str
    password: str
    port: int = 5432
    database: str = "postgres"
    sslmode: str = ""
    ca: str = ""
    connections: int = 20
    extensions: tuple[str, ...] = ()
    reachable: tuple[str, ...] = ()
    statement_timeout: int = 1800
    idle_timeout: int = 1800

    @property
    def tls(self) -> str:
        """How the well itself connects: verified, unless the server is on this machine or the site says otherwise."""
        return self.sslmode or (PLAIN if self.host in LOOPBACK else VERIFIED)

    @property
    def place(self) -> str:
        """The server, for people."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Options:
    """What a job asks for."""

    version: int | None = None
    extensions: tuple[str, ...] = ()
    connections: int | None = None
