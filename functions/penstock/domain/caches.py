"""Caches: archives that jobs save for later jobs of their owner, each under a key. They never change.

    uploaded ──(the first to commit)──▶ entry ──unused for too long, evicted, or deleted──▶ no row

An entry is found by its owner, the target, the cache's name, its paths, a scope and a key. The submission sets the
scope that a job saves to, never the script; the job restores from that scope and from the trunk's. [SEC-2]
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.artifacts.artifacts import CACHE, DOWNLOAD_WITHIN, owner
from penstock.domain.artifacts.content import Content
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

TRUNK = "trunk"
"""The scope that jobs of every scope restore from."""

TOUCH_INTERVAL = timedelta(hours=1)
"""The shortest time between two writes that record a restore."""

TRUNK_SPARED = timedelta(days=1)
"""For how long after its last use no job of another scope evicts an entry of the trunk."""

DOWNLOAD_SECONDS = DOWNLOAD_WITHIN - timedelta(minutes=10)
"""How long an agent may take to download an entry: shorter than the bytes of an evicted entry stay. [ART-1]"""

EVICTIONS_PER_WRITE = 45
"""How many entries one write evicts: each is two rows, and a write has room for a hundred."""

_NAME = rf"[0-9A-Za-z][0-9A-Za-z._-]{{0,{limits.CACHE_NAME_CHARS - 1}}}"
_KEY = rf"[ -~]{{0,{limits.CACHE_KEY_CHARS}}}"
_SCOPE = rf"[!-\"$-~]{{1,{limits.CACHE_SCOPE_CHARS}}}"


@dataclass(frozen=True)
class Shelf:
    """What entries must share to replace each other: everything but the scope and the key. `paths` is a digest."""

    owner: str
    target: str
    name: str
    paths: str

    def place(self, scope: str, key: str) -> str:
        """The place of an entry in its owner's collection. Only the last part may contain the separator."""
        return f"cache#{self.target}#{self.name}#{self.paths}#{scope}#{key}"


@dataclass(frozen=True, kw_only=True)
class CacheEntry(Row):
    """A saved archive. `id`: its artifact; `size` in bytes; `words`: its key; `about`: its paths.

    `sha256` or, for one that was sent in parts, `composite`, in hex: its digest (see artifacts/content).
    `used`: when it was saved or last restored, give or take TOUCH_INTERVAL; it expires at `until`.
    """

    kind: ClassVar[str] = "cache"
    is_recreated: ClassVar[bool] = True
    later: ClassVar[bool] = True
    shelf: Shelf
    scope: str
    words: str
    id: str
    job: str
    size: int
    sha256: str
    about: str
    made: datetime
    used: datetime
    until: datetime
    composite: str = ""

    @property
    def content(self) -> Content:
        """What its bytes are."""
        return Content(self.size, self.sha256, self.composite)

    @property
    def key(self) -> Key:
        return entry_key(self.shelf, self.scope, self.words)

    @property
    def deadline(self) -> datetime | None:
        return self.until

    @property
    def place(self) -> Place:
        return Place(collection(self.shelf.owner), self.id)

    @property
    def owner(self) -> str:
        """The entry as an owner in its artifact's row."""
        return owner(CACHE, "/".join((self.shelf.owner, self.key.sk.partition("#")[2])))


@dataclass(frozen=True, kw_only=True)
class CacheUse(Row):
    """What all entries of one owner take: their number and bytes. Written with each entry that comes or goes."""

    kind: ClassVar[str] = "cacheuse"
    owner: str
    size: int = 0
    count: int = 0

    @property
    def key(self) -> Key:
        return use_key(self.owner)


def collection(owner: str) -> str:
    """The collection of an owner's entries."""
    return f"caches#{owner}"


def entry_key(shelf: Shelf, scope: str, words: str) -> Key:
    """The key of an entry."""
    return Key(collection(shelf.owner), shelf.place(scope, words))


def use_key(owner: str) -> Key:
    """The key of an owner's CacheUse."""
    return Key(collection(owner), "use")


def of_owner(name: str) -> Key:
    """The key of the entry that an artifact names as its owner."""
    whose, _, place = name.partition("#")[2].partition("/")
    return Key(collection(whose), f"cache#{place}")


def digest(paths: Iterable[str]) -> str:
    """A digest of some paths, independent of their order."""
    return hashlib.sha256(json.dumps(sorted(set(paths))).encode()).hexdigest()[:16]


def is_name(text: str) -> bool:
    """Whether a text can name a cache."""
    return re.fullmatch(_NAME, text) is not None


def is_key(text: str) -> bool:
    """Whether a text can be a key, or the beginning of one."""
    return re.fullmatch(_KEY, text) is not None


def is_scope(text: str) -> bool:
    """Whether a text can be a scope."""
    return re.fullmatch(_SCOPE, text) is not None


def sources(scope: str) -> tuple[str, ...]:
    """The scopes that a job restores from, its own first."""
    return tuple(dict.fromkeys(each for each in (scope, TRUNK) if each))


def newest(entries: Iterable[CacheEntry]) -> CacheEntry | None:
    """The entry that was saved last."""
    return max(entries, key=lambda entry: (entry.made, entry.id), default=None)


def touch(entry: CacheEntry, now: datetime, span: timedelta) -> CacheEntry:
    """A restored entry. Unchanged if its last use was recorded not long ago."""
    if now < entry.used + TOUCH_INTERVAL:
        return entry
    return replace(entry, used=now, until=now + span)


def count(use: CacheUse, entries: Sequence[CacheEntry], by: int) -> CacheUse:
    """The use with these entries added (`by` 1) or removed (-1)."""
    size = use.size + by * sum(entry.size for entry in entries)
    return replace(use, size=size, count=use.count + by * len(entries))


def is_room(use: CacheUse, size: int, most: int) -> bool:
    """Whether an owner has room for one more entry of `size` bytes."""
    return use.size + size <= most and use.count < limits.CACHE_ENTRIES


def entries_to_evict(
    use: CacheUse, entries: Sequence[CacheEntry], size: int, most: int, scope: str, now: datetime
) -> list[CacheEntry]:
    """The entries to evict so that a job of a scope can save `size` bytes: the longest unused, and no more than
    needed. None if evicting all that may go would not be enough.
    """
    gone: list[CacheEntry] = []
    for entry in sorted(entries, key=lambda entry: (entry.used, entry.id)):
        if is_room(count(use, gone, -1), size, most):
            return gone
        if not _is_spared(entry, scope, now):
            gone.append(entry)
    return gone if is_room(count(use, gone, -1), size, most) else []


def _is_spared(entry: CacheEntry, scope: str, now: datetime) -> bool:
    return entry.scope == TRUNK != scope and now < entry.used + TRUNK_SPARED
