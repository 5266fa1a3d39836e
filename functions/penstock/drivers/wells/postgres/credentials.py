"""Where the admin's password is: as for other clouds, or in a file, for the local cloud's functions have no secrets.

file:/home/ada/.penstock/postgres           all of a file but for the end of its line
env:NAME, secretsmanager:…, ssm:…           drivers/secrets.py
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.drivers import secrets
from penstock.drivers.secrets import Resolve
from penstock.kernel.errors import Misconfigured

FILE = "file:"
REFERENCE = rf"{FILE}/[^\x00]+|{secrets.REFERENCE}"


def resolver(surroundings: Mapping[str, str]) -> Resolve:
    """What finds the value behind a reference. It raises Misconfigured, or Unknown when a store does not answer."""
    others = secrets.resolver(surroundings)
    return lambda reference: _read(reference) if reference.startswith(FILE) else others(reference)


def _read(reference: str) -> str:
    try:
        found = Path(reference.removeprefix(FILE)).read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"the password cannot be read from {reference}: {type(error).__name__}") from error
    if not found:
        raise Misconfigured(f"there is no password in {reference}")
    return found
