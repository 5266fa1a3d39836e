"""Entries of caches go: unused for too long, pushed out, deleted, or lost. [ART-2]

What else owns their bytes keeps these. With each entry the count of its owner's bytes is written, so that what it says
is so at every instant.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock import transaction
from penstock.domain import caches
from penstock.domain.artifacts.artifacts import CACHE, Artifact, artifact_key, parts
from penstock.domain.caches import CacheEntry, CacheUse, collection, use_key
from penstock.domain.users.users import User, is_name
from penstock.kernel import ids, limits
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Create, Delete, Key, Replace
from penstock.system import System
from penstock.usecases import auditing, owning


def every(on: System, owner: str) -> list[CacheEntry]:
    """All entries of an owner."""
    return on.store.find(collection(owner), "cache#", CacheEntry, limit=limits.CACHE_ENTRIES)


def counted(use: CacheUse, entries: Sequence[CacheEntry], by: int) -> Change:
    """The count of an owner, with entries more or fewer."""
    after = caches.count(use, entries, by)
    return Replace(use, after) if use.version else Create(after)


def taken_out(on: System, owner: str, entries: Sequence[CacheEntry]) -> list[Change]:
    """What is written when entries of an owner go: they own their archives no longer. [ART-1]"""
    use = on.store.get(use_key(owner), CacheUse) or CacheUse(owner=owner)
    changes: list[Change] = [counted(use, entries, -1)]
    for entry in entries:
        artifact = on.store.get(artifact_key(entry.id), Artifact)
        changes += [Delete(entry), *(owning.without(on, artifact, entry.owner) if artifact else [])]
    return changes


def drop(on: System, key: Key) -> None:
    """Take an entry out, if it is there still."""

    def decide() -> tuple[Sequence[Change], None]:
        row = on.store.get(key, CacheEntry)
        return (taken_out(on, row.shelf.owner, [row]) if row else []), None

    transaction.run(on, decide)


def run_out(on: System, owner: str, place: str) -> None:
    """End an entry that nobody restored for too long. [ART-2]"""

    def decide() -> tuple[Sequence[Change], None]:
        row = on.store.get(Key(collection(owner), f"{CACHE}#{place}"), CacheEntry)
        if row is None or row.until > on.world.now():
            return [], None
        return taken_out(on, owner, [row]), None

    transaction.run(on, decide)


def find(on: System, user: User, id: str) -> CacheEntry:
    """An entry that a user may see, by the id of its artifact. Raises Refused 404. [SEC-2]"""
    artifact = on.store.get(artifact_key(id), Artifact) if ids.is_ulid(id) else None
    if artifact is None or not user.may_see(artifact.by):
        raise not_found("cache", id[:64])
    row = of(on, next((each for each in artifact.owners if parts(each)[0] == CACHE), ""))
    if row is None:
        raise not_found("cache", id[:64])
    return row


def of(on: System, owner: str) -> CacheEntry | None:
    """The entry that an artifact calls its owner, if it is there."""
    return on.store.get(caches.of_owner(owner), CacheEntry)


def delete(on: System, user: User, id: str) -> CacheEntry:
    """Take an entry out for a user. Raises Refused 404."""

    def decide() -> tuple[Sequence[Change], CacheEntry]:
        row = find(on, user, id)
        by = user.name if user.name != row.shelf.owner else ""
        changes = taken_out(on, row.shelf.owner, [row])
        what = f"{row.shelf.name}, {row.scope}: {row.words}"
        return auditing.note(on, changes, by, "delete cache", f"cache {id}", what), row

    return transaction.run(on, decide)


def listed(on: System, user: User, owner: str, limit: int, page: str) -> tuple[list[CacheEntry], str | None]:
    """An owner's entries, newest first, and the page that follows. Raises Refused 400 or 403."""
    if not is_name(owner):
        raise Refused(400, "bad-request", "owner is the name of a user or a repository")
    if not user.may_see(owner):
        raise Refused(403, "privilege-missing", f"only operators, and who may act for it, list the caches of {owner}")
    rows = on.store.listed(collection(owner), CacheEntry, limit=limit, after=page, newest=True)
    return rows, rows[-1].id if len(rows) == limit else None


def taken(on: System, owner: str) -> CacheUse:
    """How many entries an owner has, and what they take."""
    return on.store.get(use_key(owner), CacheUse) or CacheUse(owner=owner)
