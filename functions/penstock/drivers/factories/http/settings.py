"""The settings of an `http` factory, and their checks. docs/operators/http.md describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from penstock.drivers.checks import sentences, shell
from penstock.drivers.http.settings import NEEDED, OPTIONAL, ServiceSettings
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Place, entries, matching, number, record

SETTINGS, SETTINGS_BYTES = 50, 8 * 1024
"""How many entries the table `settings` may have, and bytes as JSON: a request has the boot script as well."""

EXAMPLE = '{ url = "https://lab.example.com/penstock", secret = "secretsmanager:penstock/lab" }'


@dataclass(frozen=True)
class Settings(ServiceSettings):
    """The program, what it is sent with every order, and how a machine runs the agent."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    user_data: str = ""
    python: str = "python3"
    linger: int = 60


def read(given: Mapping[str, Any]) -> Settings:
    """The settings in a site's table. Raises Misconfigured."""
    top = Place(("http",))
    values = _keys(given, top)
    if top.faults:
        raise Misconfigured("; ".join(sentences(top)))
    return Settings(**values)


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, one sentence each. Calls no service."""
    top = Place(("http",))
    _keys(given, top)
    return sentences(top)


def _settings(value: object, place: Place) -> dict[str, Any]:
    """A table for the program alone, which checks it itself. It must be JSON, and leave room for the rest."""
    found = dict(entries(value, place, SETTINGS, "a table"))
    try:
        size = len(json.dumps(found, allow_nan=False).encode())
    except (TypeError, ValueError):
        place.fault(f"{place.label} has what JSON has not", "write a date as a string, and leave out inf and nan")
        return {}
    if size > SETTINGS_BYTES:
        place.fault(f"{place.label} has {size} bytes as JSON; it may have at most {SETTINGS_BYTES}")
    return found


_keys = record(
    NEEDED,
    {
        **OPTIONAL,
        "settings": _settings,
        "user_data": shell,
        "python": matching(r"[A-Za-z0-9_./-]+", "a program", 'like "/usr/bin/python3.11"'),
        "linger": number(0, 1440),
    },
    EXAMPLE,
)
