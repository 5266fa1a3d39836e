"""By what databases and roles are known to be ours: their name, and a comment that says the same in words.

A name is `penstock_<site>_<well>_<unit>`, where site and well are digests, for a name may have 63 bytes. A role's
comment is written in the transaction that makes the role. A database's comes after it; until then its role's stands for
both.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from penstock.kernel import ids
from penstock.kernel.errors import Misconfigured

PREFIX = "penstock"
SITE_DIGITS, WELL_DIGITS = 10, 8
LONGEST = 63
"""Bytes of a name. What is longer PostgreSQL cuts off, and two names might become one."""

UNIT = re.compile(r"[a-z0-9-]+")


@dataclass(frozen=True)
class Names:
    """The names of one well of one deployment."""

    site: str
    well: str

    @property
    def start(self) -> str:
        """What all names of this well begin with."""
        return f"{PREFIX}_{_digest(self.site, SITE_DIGITS)}_{_digest(self.well, WELL_DIGITS)}_"

    def of(self, unit: str) -> str:
        """The name of a unit's database, and of its role: the same each time. Raises Misconfigured for a strange id."""
        name = self.start + unit.lower()
        if self.unit(name) != unit or len(name) > LONGEST:
            raise Misconfigured(f"the id {unit!r} cannot be part of a database's name")
        return name

    def unit(self, name: str) -> str | None:
        """The unit that a name is of; None for any other name."""
        rest = name.removeprefix(self.start)
        if rest == name or not UNIT.fullmatch(rest):
            return None
        kind, dash, ulid = rest.rpartition("-")
        return f"{kind}{dash}{ulid.upper()}" if ids.is_ulid(ulid.upper()) else rest

    def tag(self, unit: str) -> str:
        """The comment that a unit's database and role carry."""
        return f"penstock: site {self.site}, well {self.well}, unit {unit}"


def quoted(name: str) -> str:
    """A name as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as SQL wants it where it takes no parameters. Sessions have standard_conforming_strings on."""
    return "'" + value.replace("'", "''") + "'"


def _digest(words: str, digits: int) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:digits]
