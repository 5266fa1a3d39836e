"""Checks the settings of a `postgres` well and the options of jobs. All that is wrong is told at once."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from penstock.domain.site.sections import duration
from penstock.drivers.checks import sentences
from penstock.drivers.wells.postgres.credentials import REFERENCE
from penstock.drivers.wells.postgres.settings import PLAIN, UNVERIFIED, VERIFIED, Options, Settings
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.ports import Option
from penstock.toml.checks import Check, Place, clip, listed, matching, number, record, text, wanted

MISSING = "the postgres driver needs pg8000, which is not installed here: `pip install penstock[postgres]`"
MOST_EXTENSIONS = 30
MOST_CONNECTIONS = 10_000
CA_BYTES = 8 * 1024
"""It is part of what a job is told, which may have twice as much in all."""

EXAMPLE = '{ host = "db.internal", user = "penstock", password = "secretsmanager:penstock/postgres" }'
OPTIONS = '{ extensions = ["pgcrypto"], connections = 5, version = 16 }'


def read(given: Mapping[str, Any]) -> Settings:
    """The settings that a site gave. Raises Misconfigured."""
    top = Place(("postgres",))
    values = _keys(given, top)
    if top.faults:
        raise Misconfigured("; ".join(sentences(top)))
    if not is_installed():
        raise Misconfigured(MISSING)
    return Settings(**values)


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, a sentence each. Also that there is no pg8000 here to work with."""
    top = Place(("postgres",))
    _keys(given, top)
    return [*sentences(top), *([] if is_installed() else [MISSING])]


def is_installed() -> bool:
    """Whether there is a pg8000 here."""
    return find_spec("pg8000") is not None


def options(given: Mapping[str, Any], settings: Settings) -> Options:
    """The options that a job gave. Raises Unsatisfiable for what no job may have."""
    top = Place(("options",))
    values = _options(given, top)
    wrong = sentences(top) or list(denied(settings, Options(**values)))
    if wrong:
        raise Unsatisfiable("; ".join(wrong))
    return Options(**values)


def objections(given: Mapping[str, Any], well: Mapping[str, Any] | None = None) -> Sequence[str]:
    """What is wrong with a job's options, a sentence each; with a well's settings, also what these do not allow."""
    top = Place(("options",))
    values = _options(given, top)
    if top.faults or not well:
        return sentences(top)
    return list(denied(read(well), Options(**values)))


def offered(well: Mapping[str, Any]) -> Sequence[Option]:
    """What jobs may ask for, as far as a well's settings, if they are told, allow it."""
    settings = read(well) if well else Settings("", "", "")
    most = f"how many connections at once, {settings.connections} at the most"
    return [
        Option("connections", "whole number", most, settings.connections),
        Option("extensions", "list", f"of {', '.join(settings.extensions) or 'those that the well names'}"),
        Option("version", "whole number", "the major version that the server must have"),
    ]


def denied(settings: Settings, asked: Options) -> Iterator[str]:
    """What the site lets no job have, with what there is instead."""
    if asked.connections and asked.connections > settings.connections:
        yield f"{asked.connections} connections are too many: {settings.connections} at the most"
    for name in asked.extensions:
        if name not in settings.extensions:
            yield f"the extension {name!r} is not for jobs here; there is: {', '.join(settings.extensions) or 'none'}"


def _one_of(*choices: str) -> Check:
    def check(value: object, place: Place) -> str:
        found = text(value, place)
        if found and found not in choices:
            place.fault(f"{place.label}: `{clip(found)}` is none of {', '.join(choices)}")
        return found

    return check


def _reference(value: object, place: Place) -> str:
    """Where the password is. What is no reference may be the password, and is not repeated."""
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
    except (ssl.SSLError, TypeError):  # the latter for what is not ASCII
        place.fault(f"{place.label} is no certificate", 'PEM, from "-----BEGIN CERTIFICATE-----" on')
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
    OPTIONS,
)
