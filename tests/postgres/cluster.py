"""A PostgreSQL server of the tests' own, in a folder that goes with it. It listens on this machine alone."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection

MISSING = "there is no PostgreSQL server here that the tests could start: `apt-get install postgresql`"
OWNER = "postgres"
"""The server's superuser; and where the tests run as root, which the server refuses, the account that it runs as."""

ADMIN = "penstock"
"""The well's role, made as docs/operators/wells/postgres.md says."""

SETUP = """
CREATE ROLE penstock LOGIN CREATEDB CREATEROLE PASSWORD '{password}';
REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC;
GRANT CONNECT ON DATABASE postgres TO penstock;
"""
CONFIGURATION = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{folder}'
ssl = on
ssl_cert_file = '{folder}/server.crt'
ssl_key_file = '{folder}/server.key'
fsync = off
full_page_writes = off
synchronous_commit = off
shared_buffers = 32MB
max_connections = 60
max_prepared_transactions = 30
wal_level = logical
log_statement = 'all'
"""
PASSWORDS = {OWNER: "the-superuser's-own", ADMIN: "the-admin's-own"}


@dataclass(frozen=True)
class Cluster:
    """A server that is up."""

    folder: Path
    port: int

    @property
    def ca(self) -> str:
        """Who vouches for its certificate: itself."""
        return (self.folder / "server.crt").read_text()

    @property
    def log(self) -> str:
        """Everything that it logged, every statement among it."""
        return (self.folder / "log").read_text(errors="replace")

    @contextmanager
    def connected(self, user: str = OWNER, password: str = "", database: str = "postgres") -> Iterator[Connection]:
        """A connection as anybody."""
        found = self.connect(user, password, database)
        try:
            yield found
        finally:
            with suppress(Exception):
                found.close()

    def connect(self, user: str = OWNER, password: str = "", database: str = "postgres") -> Connection:
        """A connection as anybody, to be closed by whoever asked."""
        password = password or PASSWORDS[user]
        return Connection(
            user, host="127.0.0.1", port=self.port, database=database, password=password, timeout=120, ssl_context=False
        )

    def names(self) -> tuple[set[str], set[str]]:
        """All databases and roles that were not there from the start."""
        with self.connected() as root:
            databases = {name for (name,) in root.run("SELECT datname FROM pg_database")}
            roles = {name for (name,) in root.run("SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_'")}
        return databases - {"postgres", "template0", "template1"}, roles - {OWNER, ADMIN}

    def clear(self) -> None:
        """Drop whatever a test that failed has left, so that only that one fails."""
        databases, roles = self.names()
        with self.connected() as root:
            for gid, database in root.run("SELECT gid, database FROM pg_prepared_xacts"):
                with self.connected(database=database) as inside:
                    inside.run("ROLLBACK PREPARED '{}'".format(gid.replace("'", "''")))
            for database in databases:
                root.run(f'DROP DATABASE "{database}" WITH (FORCE)')
            for role in roles:
                root.run(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')

    def settings(self, **more: Any) -> dict[str, Any]:
        """What a site says of a well on this server."""
        return {"host": "127.0.0.1", "port": self.port, "user": ADMIN, "password": "env:PG_ADMIN", **more}


def programs() -> Path | None:
    """Where the server's programs are; the newest, where there are several. None where they could not be run."""
    if os.getuid() == 0 and not (_has_account() and shutil.which("setpriv")):
        return None
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: int(each.parent.name.split(".")[0]))
    which = shutil.which("postgres")
    found = [*([Path(which).parent] if which else []), *folders]
    fit = [each for each in found if (each / "initdb").exists() and (each / "postgres").exists()]
    return fit[-1] if fit else None


@contextmanager
def running(programs: Path) -> Iterator[Cluster]:
    """A fresh server, until the end of the block. It ends with this process, however that ends."""
    with TemporaryDirectory(prefix="penstock-postgres-") as text:
        folder, port = Path(text), _free_port()
        (folder / "password").write_text(PASSWORDS[OWNER])
        _certify(folder)
        _give_away(folder)
        how = ["--auth=scram-sha-256", f"--pwfile={folder}/password", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run(_as_owner(programs / "initdb", "-D", folder / "data", "-U", OWNER, *how), check=True, **_QUIET)
        configuration = CONFIGURATION.format(port=port, folder=folder)
        (folder / "data" / "postgresql.auto.conf").write_text(configuration)
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(
                _as_owner(programs / "postgres", "-D", folder / "data"), stdout=log, stderr=log, cwd="/"
            )
        try:
            cluster = Cluster(folder, port)
            _wait(cluster, server)
            with cluster.connected() as root:
                for statement in SETUP.format(password=PASSWORDS[ADMIN].replace("'", "''")).split(";"):
                    root.run(statement)
            yield cluster
        finally:
            server.send_signal(2)  # SIGINT is its fast shutdown
            server.wait(120)


_QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "cwd": "/"}


def _as_owner(*command: object) -> list[str]:
    """A command as an account that may run a server, and that ends with us."""
    who = ["--reuid", OWNER, "--regid", OWNER, "--clear-groups"] if os.getuid() == 0 else []
    prefix = ["setpriv", *who, "--pdeathsig", "INT"] if shutil.which("setpriv") else []
    return [*prefix, *map(str, command)]


def _has_account() -> bool:
    return any(each.pw_name == OWNER for each in pwd.getpwall())


def _give_away(folder: Path) -> None:
    if os.getuid() == 0:
        owner = pwd.getpwnam(OWNER)
        for path in (folder, *folder.iterdir()):
            os.chown(path, owner.pw_uid, owner.pw_gid)


def _wait(cluster: Cluster, server: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        with suppress(DatabaseError, InterfaceError), cluster.connected():
            return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"the server does not come up: {cluster.log}")


def _free_port() -> int:
    """A port below those that systems give to whoever asks for any: no other test takes it before the server does."""
    for port in random.sample(range(20_000, 32_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError("no port is free")


def _certify(folder: Path) -> None:
    """A key, and a certificate of its own making for this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "server.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "server.key").chmod(0o600)
