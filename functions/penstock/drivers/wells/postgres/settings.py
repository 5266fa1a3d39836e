"""The settings of a `postgres` well, the options of its jobs, and the checks of both."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from penstock.domain.site.sections import duration
from penstock.drivers.checks import sentences
from penstock.drivers.wells.postgres.passwords import REFERENCE
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.kernel.frozen import dataclass
from penstock.ports import Option
from penstock.toml.checks import Check, Place, clip, listed, matching, number, record, text, wanted

VERIFIED, UNVERIFIED, PLAIN = "verify-full", "require", "disable"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
ANY = "*"
"""In `reachable`: allow every database but the admin's."""

LOCKS_THERE = "is the database where the well takes locks, which jobs must not: close it, or set `database` to another"


@dataclass(frozen=True)
class Settings:
    """A server, how to connect to it, and what a job may have. Timeouts are in seconds."""

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
        """The sslmode of the well's own connections: verify-full by default, or none for a server on this machine."""
        return self.sslmode or (PLAIN if self.host in LOOPBACK else VERIFIED)

    def lets_reach(self, database: str) -> bool:
        """Whether jobs may be able to connect to this database, which is not their own."""
        return database != self.database and not {database, ANY}.isdisjoint(self.reachable)

    @property
    def place(self) -> str:
        """The server as `host:port`, for messages."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Options:
    """The options of a job."""

    version: int | None = None
    extensions: tuple[str, ...] = ()
    connections: int | None = None


MISSING = "the postgres driver needs pg8000, which is not installed here: `pip install penstock[postgres]`"
MOST_EXTENSIONS = 30
MOST_CONNECTIONS = 10_000
CA_BYTES = 8 * 1024
"""The certificate is part of the job's metadata, which may have twice as many bytes in all."""

EXAMPLE = '{ host = "db.internal", user = "penstock", password = "secretsmanager:penstock/postgres" }'
OPTIONS_EXAMPLE = '{ extensions = ["pgcrypto"], connections = 5, version = 16 }'


def read(given: Mapping[str, Any]) -> Settings:
    """The settings in a site's table. Raises Misconfigured."""
    top = Place(("postgres",))
    values = _keys(given, top)
    if top.faults:
        raise Misconfigured("; ".join(sentences(top)))
    if not is_installed():
        raise Misconfigured(MISSING)
    return Settings(**values)


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, one sentence each; also whether pg8000 is missing."""
    top = Place(("postgres",))
    values = _keys(given, top)
    return [*sentences(top), *_too_open(values), *([] if is_installed() else [MISSING])]


def _too_open(values: Mapping[str, Any]) -> Iterator[str]:
    """A site may not say so. `read` takes it nevertheless: what was made by an older Penstock must be destroyed."""
    admins = values.get("database") or Settings.database
    if admins in values.get("reachable", ()):
        yield f"`reachable` names {admins}: it {LOCKS_THERE}"


def is_installed() -> bool:
    """Whether pg8000 is installed."""
    return find_spec("pg8000") is not None


def read_options(given: Mapping[str, Any], settings: Settings) -> Options:
    """The options of a job. Raises Unsatisfiable for what the settings do not allow."""
    top = Place(("options",))
    values = _options(given, top)
    wrong = sentences(top) or list(denied(settings, Options(**values)))
    if wrong:
        raise Unsatisfiable("; ".join(wrong))
    return Options(**values)


def objections(given: Mapping[str, Any], well: Mapping[str, Any] | None = None) -> Sequence[str]:
    """What is wrong with a job's options, one sentence each; with a well's settings, also what these do not allow."""
    top = Place(("options",))
    values = _options(given, top)
    if top.faults or not well:
        return sentences(top)
    return list(denied(read(well), Options(**values)))


def available_options(well: Mapping[str, Any]) -> Sequence[Option]:
    """The options of jobs, within what the well's settings allow, if these are given."""
    settings = read(well) if well else Settings("", "", "")
    most = f"how many connections at once, at most {settings.connections}"
    return [
        Option("connections", "whole number", most, settings.connections),
        Option("extensions", "list", f"of {', '.join(settings.extensions) or 'those that the well names'}"),
        Option("version", "whole number", "the major version that the server must have"),
    ]


def denied(settings: Settings, options: Options) -> Iterator[str]:
    """Options that the site does not allow, one sentence each with what is allowed."""
    if options.connections and options.connections > settings.connections:
        yield f"{options.connections} connections are too many: at most {settings.connections} are allowed"
    for name in options.extensions:
        if name not in settings.extensions:
            yield f"the extension {name!r} is not allowed; allowed are: {', '.join(settings.extensions) or 'none'}"


def _one_of(*choices: str) -> Check:
    def check(value: object, place: Place) -> str:
        found = text(value, place)
        if found and found not in choices:
            place.fault(f"{place.label}: `{clip(found)}` is not one of {', '.join(choices)}")
        return found

    return check


def _reference(value: object, place: Place) -> str:
    """A reference to the password. An invalid one may be the password itself, so messages never repeat it."""
    if not isinstance(value, str):
        wanted("a reference", value, place)
    elif not re.fullmatch(REFERENCE, value):
        hint = "like env:NAME or secretsmanager:penstock/postgres#password: never the secret itself"
        place.fault(f"{place.label} is not a reference to a secret", hint)
    else:
        return value
    return ""


def _certificates(value: object, place: Place) -> str:
    if not isinstance(value, str):
        wanted("certificates as text", value, place, "PEM")
        return ""
    if len(value.encode()) > CA_BYTES:
        place.fault(f"{place.label} has more than {CA_BYTES} bytes", "one root certificate is enough")
    try:
        ssl.create_default_context(cadata=value)
    except (ssl.SSLError, TypeError):  # TypeError for text that is not ASCII
        place.fault(
            f"{place.label} is not a certificate", 'give it as PEM, beginning with "-----BEGIN CERTIFICATE-----"'
        )
    return value


_extension = matching(r"[a-z0-9_-]{1,63}", "an extension", 'like "pgcrypto"')


_keys = record(
    {
        "host": matching(r"[A-Za-z0-9._:-]+", "a host", 'like "db.internal"'),
        "user": text,
        "password": _reference,
    },
    {
        "port": number(1, 65535),
        "database": text,
        "sslmode": _one_of(VERIFIED, UNVERIFIED, PLAIN),
        "ca": _certificates,
        "connections": number(1, MOST_CONNECTIONS),
        "extensions": listed(_extension, MOST_EXTENSIONS, "extensions"),
        "reachable": listed(text, MOST_EXTENSIONS, "databases"),
        "statement_timeout": duration(86400, "1d"),
        "idle_timeout": duration(86400, "1d"),
    },
    EXAMPLE,
)


_options = record(
    {},
    {
        "version": number(1, 1000),
        "extensions": listed(_extension, MOST_EXTENSIONS, "extensions"),
        "connections": number(1, MOST_CONNECTIONS),
    },
    OPTIONS_EXAMPLE,
)
