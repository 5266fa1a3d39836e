"""The names of machines, by which they are found again: every cloud has names and lists them.

A name is `<prefix>-<site>-<factory>-<worker>`. Site and factory are digests, because a name has at most 63 characters
and no dots. The prefix is for people. Machines are found by the rest, so the prefix may change. Disks are found by a
machine's name in theirs: libcloud and the clouds put something before or behind it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from penstock.domain.account import DIGEST
from penstock.kernel import rows
from penstock.kernel.frozen import dataclass

SITE_DIGITS, FACTORY_DIGITS = 10, 8
TAG = re.compile(r"[^a-z0-9_-]")
LONGEST_TAG = 63
DISK_WORKER = r"[a-z]+-[a-z0-9]{26}"
"""A worker's id in the name of a disk: its end is known by the length of its ULID."""


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

    def of_site(self, name: str, extra: Mapping[str, object]) -> tuple[str, str] | None:
        """The worker of a machine or network card, and the factory that made it; None if it is of another site.

        The factory is "" for this one. Any other is named by the tags in `extra`, if the cloud shows them, or else by
        its digest: it may be one that the site does not have any more.
        """
        found = self._parsed(name)
        return (found[1], self._maker(found[0], extra)) if found else None

    def disk(self, name: str, extra: Mapping[str, object]) -> tuple[str, str] | None:
        """The worker and the factory of a disk, as in `of_site`; None if its name has no machine's name in it."""
        found = re.search(rf"-{self._site}-([0-9a-f]{{{FACTORY_DIGITS}}})-({DISK_WORKER})(?![a-z0-9])", name.lower())
        worker = _worker(found[2]) if found else ""
        return (worker, self._maker(found[1], extra)) if found and rows.ulid_in(worker) else None

    def _maker(self, digest: str, extra: Mapping[str, object]) -> str:
        if digest == _digest(self.factory, FACTORY_DIGITS):
            return ""
        named = tag_in(extra, "factory") or ""
        return named if _digest(named, FACTORY_DIGITS) == digest else f"{DIGEST}{digest}"

    def tags(self, worker: str, way: str) -> dict[str, str]:
        """Tags for people to search by, in characters that every cloud takes. The driver reads `way` and `factory`."""
        tags = {"site": self.site, "factory": self.factory, "worker": worker, "way": way}
        return {f"penstock-{key}": tag(value) for key, value in tags.items()}

    @property
    def _site(self) -> str:
        return _digest(self.site, SITE_DIGITS)

    def _parsed(self, name: str) -> tuple[str, str] | None:
        shape = rf"[a-z][a-z0-9-]*-{self._site}-([0-9a-f]{{{FACTORY_DIGITS}}})-([a-z0-9-]+)"
        found = re.fullmatch(shape, name)
        return (found[1], _worker(found[2])) if found else None


def _worker(text: str) -> str:
    """A worker's id as it was before it became part of a name."""
    kind, dash, ulid = text.rpartition("-")
    return f"{kind}{dash}{ulid.upper()}" if rows.is_ulid(ulid.upper()) else text


def tag(text: str) -> str:
    """A string as a valid label, by the rules of the strictest cloud."""
    return TAG.sub("-", text.lower())[:LONGEST_TAG]


def way_of(extra: Mapping[str, object]) -> str | None:
    """The alternative by which a listed machine was made, if its cloud shows tags."""
    return tag_in(extra, "way")


def tag_in(extra: Mapping[str, object], key: str) -> str | None:
    """One of our tags of a listed machine or disk, if its cloud shows tags."""
    for place in ("metadata", "tags", "labels"):
        found = extra.get(place)
        if isinstance(found, Mapping) and f"penstock-{key}" in found:
            return str(found[f"penstock-{key}"])
    return None


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
