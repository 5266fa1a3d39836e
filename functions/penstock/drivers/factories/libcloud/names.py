"""The names of machines, by which they are found again: every cloud has names and lists them.

A name is `<prefix>-<site>-<factory>-<worker>`. Site and factory are digests, because a name has at most 63 characters
and no dots. The prefix is for people. Machines are found by the rest, so the prefix may change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from penstock.kernel import rows
from penstock.kernel.frozen import dataclass

SITE_DIGITS, FACTORY_DIGITS = 10, 8
TAG = re.compile(r"[^a-z0-9_-]")
LONGEST_TAG = 63


@dataclass(frozen=True)
class Names:
    """The names of one factory of one deployment."""

    site: str
    factory: str
    prefix: str

    def of(self, worker: str) -> str:
        """The name of a worker's machine. It is always the same."""
        return f"{self.prefix}-{self._site}-{_digest(self.factory, FACTORY_DIGITS)}-{worker.lower()}"

    def worker(self, name: str) -> str | None:
        """The worker whose machine has this name; None for machines that are not of this factory."""
        found = self._parsed(name)
        return found[1] if found and found[0] == _digest(self.factory, FACTORY_DIGITS) else None

    def is_of(self, name: str, worker: str) -> bool:
        """Whether a name is that of a worker of this site, even if the factory was renamed since."""
        found = self._parsed(name)
        return found is not None and found[1] == worker

    def tags(self, worker: str, way: str) -> dict[str, str]:
        """Tags for people to search by, in characters that every cloud takes. The driver reads only `way`."""
        tags = {"site": self.site, "factory": self.factory, "worker": worker, "way": way}
        return {f"penstock-{key}": tag(value) for key, value in tags.items()}

    @property
    def _site(self) -> str:
        return _digest(self.site, SITE_DIGITS)

    def _parsed(self, name: str) -> tuple[str, str] | None:
        shape = rf"[a-z][a-z0-9-]*-{self._site}-([0-9a-f]{{{FACTORY_DIGITS}}})-([a-z0-9-]+)"
        found = re.fullmatch(shape, name)
        if not found:
            return None
        kind, dash, ulid = found[2].rpartition("-")
        return found[1], f"{kind}{dash}{ulid.upper()}" if rows.is_ulid(ulid.upper()) else found[2]


def tag(text: str) -> str:
    """A string as a valid label, by the rules of the strictest cloud."""
    return TAG.sub("-", text.lower())[:LONGEST_TAG]


def way_of(extra: Mapping[str, object]) -> str | None:
    """The alternative by which a listed machine was made, if its cloud shows tags."""
    for place in ("metadata", "tags", "labels"):
        found = extra.get(place)
        if isinstance(found, Mapping) and "penstock-way" in found:
            return str(found["penstock-way"])
    return None


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
