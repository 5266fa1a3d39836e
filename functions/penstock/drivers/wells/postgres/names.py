"""The names and comments of databases and roles, by which the driver recognizes its own.

A name is `penstock_<site>_<well>_<unit>`. Site and well are digests, because a name has at most 63 bytes. The comment
has them in full. A role gets its comment in the transaction that creates it. A database gets it one statement
later; until then the role's comment counts for both.
"""

from __future__ import annotations

import hashlib
import re

from penstock.kernel import rows
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass

PREFIX = "penstock"
SITE_DIGITS, WELL_DIGITS = 10, 8
LONGEST = 63
"""Bytes of a name. PostgreSQL cuts longer names, so that two could become the same."""

UNIT = re.compile(r"[a-z0-9-]+")


@dataclass(frozen=True)
class Names:
    """The names of one well of one deployment."""

    site: str
    well: str

    @property
    def start(self) -> str:
        """The beginning of all names of this well."""
        return f"{PREFIX}_{_digest(self.site, SITE_DIGITS)}_{_digest(self.well, WELL_DIGITS)}_"

    def of(self, unit: str) -> str:
        """The name of a unit's database and role. It is always the same. Raises Misconfigured for an invalid id."""
        name = self.start + unit.lower()
        if self.unit(name) != unit or len(name) > LONGEST:
            raise Misconfigured(f"the id {unit!r} cannot be part of a database's name")
        return name

    def unit(self, name: str) -> str | None:
        """The unit whose name this is; None for other names."""
        rest = name.removeprefix(self.start)
        if rest == name or not UNIT.fullmatch(rest):
            return None
        kind, dash, ulid = rest.rpartition("-")
        return f"{kind}{dash}{ulid.upper()}" if rows.is_ulid(ulid.upper()) else rest

    @property
    def of_site(self) -> str:
        """The beginning of all names of this site, on this server."""
        return f"{PREFIX}_{_digest(self.site, SITE_DIGITS)}_"

    def tagged(self, comment: str | None) -> tuple[str, str] | None:
        """The well and the unit in a comment of this site; None for any other."""
        found = re.fullmatch(rf"penstock: site {re.escape(self.site)}, well (.+), unit (.+)", comment or "")
        return (found[1], found[2]) if found else None

    def tag(self, unit: str) -> str:
        """The comment that a unit's database and role carry."""
        return f"penstock: site {self.site}, well {self.well}, unit {unit}"


def quoted(name: str) -> str:
    """A name as a quoted identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string literal of SQL, for statements without parameters. Needs standard_conforming_strings."""
    return "'" + value.replace("'", "''") + "'"


def _digest(words: str, digits: int) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:digits]
