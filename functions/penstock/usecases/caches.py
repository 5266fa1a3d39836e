"""Caches: what jobs restore, and what they save for others. The first to save a key has it, and it never changes.

An entry's row is created in the write that says that its bytes have arrived; until then there is only an artifact
without an owner. So whoever saves at the same time, or dies meanwhile, disturbs nobody. Entries go when they are unused
for too long, pushed out, deleted or lost. Every write of an entry also writes its owner's count of bytes. [ART-1]
[ART-2]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from penstock.domain import caches
from penstock.domain.artifacts import artifacts
from penstock.domain.artifacts.artifacts import CACHE, Artifact, id_of, parts
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.caches import CacheEntry, CacheUse, Shelf, collection, entry_key, use_key
from penstock.domain.commands import AgentParts, CacheName, SaveCache
from penstock.domain.jobs.jobs import Job
from penstock.domain.replies import (
    CacheDropped,
    CacheHit,
    CacheMiss,
    CacheRefused,
    CacheSaved,
    CacheTaken,
    CacheUpload,
    PartUploads,
)  # fmt: skip
from penstock.domain.users.users import User, is_name
from penstock.kernel import limits
from penstock.kernel.errors import Moved, Refused, not_found
from penstock.kernel.rows import Change, Create, Delete, Key, Replace
from penstock.system import TRIES, System, current_site, transact
from penstock.usecases.artifacts import owners, uploads
from penstock.usecases.jobs.flow import fence, fenced
from penstock.usecases.users import audit

ROUNDS = 1 + limits.CACHE_ENTRIES // caches.EVICTIONS_PER_WRITE + TRIES
"""How many writes may make room for one entry, with some to spare for entries that others add meanwhile."""


def find(on: System, job: Job, ask: CacheName, restore_keys: Sequence[str] = ()) -> CacheHit | CacheMiss:
    """The entry that a job restores, with a URL: that of its key; else the newest whose key begins with the first of
    `restore_keys` that any begins with. Each is looked up in the job's own scope, then in the trunk's.
    """
    shelf = _shelf(job, ask)
    if len(restore_keys) > limits.CACHE_RESTORE_KEYS or not all(map(caches.is_key, restore_keys)):
        raise Refused(
            400, "bad-request", f"there are at most {limits.CACHE_RESTORE_KEYS} restore keys, each like a key"
        )
    for found in _matching(on, job, shelf, ask.key, restore_keys):
        if has_bytes(on, found):
            return _download(on, found, is_exact=found.words == ask.key)
        remove(on, found.key)
    return CacheMiss()


def _shelf(job: Job, ask: CacheName) -> Shelf:
    """Where a job's entries are: those of its owner and its target alone. Raises Refused 400. [SEC-2]"""
    if not caches.is_name(ask.name):
        raise Refused(400, "bad-request", f"a cache's name is 1 to {limits.CACHE_NAME_CHARS} of A-Z a-z 0-9 . _ -")
    if not caches.is_key(ask.key):
        raise Refused(400, "bad-request", f"a key is at most {limits.CACHE_KEY_CHARS} printable ASCII characters")
    most = 4 * limits.CACHE_PATH_CHARS
    if not 0 < len(ask.paths) <= limits.CACHE_PATHS or any(len(each) > most for each in ask.paths):
        raise Refused(400, "bad-request", f"a cache has 1 to {limits.CACHE_PATHS} paths of at most {most} characters")
    return Shelf(job.owner, job.request.target_resolved, ask.name, caches.digest(ask.paths))


def _matching(on: System, job: Job, shelf: Shelf, key: str, restore_keys: Sequence[str]) -> Iterator[CacheEntry]:
    """What may be restored, best first."""
    scopes = caches.sources(job.request.cache_scope)
    for scope in scopes:
        exact = on.store.get(entry_key(shelf, scope, key), CacheEntry)
        if exact:
            yield exact
    for prefix in restore_keys:
        for scope in scopes:
            place = entry_key(shelf, scope, prefix)
            best = caches.newest(on.store.find(place.pk, place.sk, CacheEntry, limit=limits.CACHE_ENTRIES))
            if best:
                yield best


def _download(on: System, entry: CacheEntry, *, is_exact: bool) -> CacheHit:
    """A URL for an entry, and that it was used. A lost write means that it is going; its URL still works."""
    span = timedelta(seconds=current_site(on).retention.cache)
    touched = caches.touch(entry, on.world.now(), span)
    if touched != entry:
        on.store.commit([Replace(entry, touched)])
    signed = on.objects.download(
        object_name(entry.id), int(caches.DOWNLOAD_SECONDS.total_seconds()), f"{entry.shelf.name}.tar.gz"
    )  # fmt: skip
    return CacheHit(
        exact=is_exact, id=entry.id, key=entry.words, scope=entry.scope, url=signed.url,
        **uploads.described(entry.content),
    )  # fmt: skip


def begin(on: System, job: Job, ask: SaveCache) -> CacheUpload | CacheTaken | CacheRefused:
    """Where to upload an archive; the rows come first. Or that the key is taken, or why nothing is saved. [SLOT-3]

    Raises Refused 400 for an invalid digest, 409 for too many saves, 413 for an archive that is too big.
    """
    shelf, site = _shelf(job, ask), current_site(on)
    uploads.check("cache", "the archive", ask, site.limits.archive_bytes)
    if not job.request.cache_scope:
        return CacheRefused("this job was submitted without a scope, and adds to no cache (docs/users/caches.md)")
    taken = on.store.get(entry_key(shelf, job.request.cache_scope, ask.key), CacheEntry)
    if taken and has_bytes(on, taken):
        return CacheTaken(taken.id, taken.job, taken.scope)
    made = Artifact(
        id=id_of(job.id, on.world.ulid()), path=_description(ask), size=ask.size, sha256=ask.sha256,
        composite=ask.composite, by=job.owner, time=on.world.now(), sort=CACHE,
    )  # fmt: skip
    transact(on, lambda: _begin_changes(on, job, made, timedelta(seconds=site.retention.upload)))
    return CacheUpload(**vars(uploads.sign_upload(on, made)), id=made.id)


def _description(ask: CacheName) -> str:
    """An archive's name for people: the paths that are in it."""
    return ", ".join(ask.paths)[: limits.CACHE_PATH_CHARS]


def _begin_changes(on: System, job: Job, made: Artifact, upload: timedelta) -> tuple[Sequence[Change], None]:
    fresh = fenced(on, job)
    if fresh.usage.cache_saves >= limits.CACHE_SAVES:
        raise Refused(409, "too-many-saves", f"a job saves caches at most {limits.CACHE_SAVES} times")
    counted = replace(fresh, usage=replace(fresh.usage, cache_saves=fresh.usage.cache_saves + 1))
    return [Replace(fresh, counted), owners.begin(made, upload)], None


def sign_parts(on: System, job: Job, ask: AgentParts) -> PartUploads:
    """Where to upload some parts of an archive. Raises Refused 400 or 404."""
    return uploads.sign_parts(on, _find_upload(on, job, ask.id), ask)


def _find_upload(on: System, job: Job, id: str) -> Artifact:
    found = owners.find(on, id)
    if found is None or found.sort != CACHE or found.job != job.id:
        raise not_found("archive", id[:64])
    return found


def commit(on: System, job: Job, ask: CacheName, id: str) -> CacheSaved | CacheDropped:
    """Record that an archive has arrived, after checking: if it is the first, it is the key's entry.

    Raises Refused 404 for an archive that this job did not begin, 409 if its bytes are incomplete, or not those that
    were announced.
    """
    shelf = _shelf(job, ask)
    begun = _find_upload(on, job, id)
    refused = uploads.refuse_arrival(on, "cache", id, "the archive", begun.content)
    if refused:
        raise refused
    for _ in range(ROUNDS):
        found = transact(on, partial(_save_changes, on, job, shelf, ask, id))
        if found:
            return found
    raise Moved()


def _save_changes(
    on: System, job: Job, shelf: Shelf, ask: CacheName, id: str
) -> tuple[Sequence[Change], CacheSaved | CacheDropped | None]:
    """The one write that makes an entry; or one that makes room for it, and then None. [ART-1] [SLOT-3]"""
    taken = on.store.get(entry_key(shelf, job.request.cache_scope, ask.key), CacheEntry)
    if taken and taken.id == id:
        return [], _saved(taken, is_new=True)
    artifact = _find_upload(on, job, id)
    if taken and has_bytes(on, taken):
        return _give_up(on, job, artifact), _saved(taken, is_new=False)
    if taken:
        return [fence(on, job), *remove_changes(on, shelf.owner, [taken])], None
    use = usage(on, shelf.owner)
    site, now = current_site(on), on.world.now()
    if not caches.is_room(use, artifact.size, site.limits.cache_bytes):
        return _make_room(on, job, artifact, use, site.limits.cache_bytes)
    made = CacheEntry(
        shelf=shelf, scope=job.request.cache_scope, words=ask.key, id=id, job=job.id, **vars(artifact.content),
        about=artifact.path, made=now, used=now,
        until=now + timedelta(seconds=site.retention.cache),
    )  # fmt: skip
    there = Replace(artifact, artifacts.arrive(artifact, made.owner))
    return [fence(on, job), Create(made), there, count_change(use, [made], 1)], _saved(made, is_new=True)


def _saved(entry: CacheEntry, *, is_new: bool) -> CacheSaved:
    return CacheSaved(is_new, entry.id, entry.job, entry.scope)


def _make_room(
    on: System, job: Job, artifact: Artifact, use: CacheUse, most: int
) -> tuple[Sequence[Change], CacheDropped | None]:
    """Push out what was unused for longest; if that is not enough, the new archive goes instead."""
    entries = entries_of(on, use.owner)
    gone = caches.entries_to_evict(use, entries, artifact.size, most, job.request.cache_scope, on.world.now())
    if not gone:
        full = f"the caches of {use.owner} take {use.size} of {most} bytes, and none of them may go for this one"
        return _give_up(on, job, artifact), CacheDropped(full)
    return [fence(on, job), *remove_changes(on, use.owner, gone[: caches.EVICTIONS_PER_WRITE])], None


def _give_up(on: System, job: Job, artifact: Artifact) -> list[Change]:
    """The changes by which an archive goes that becomes no entry. One that has an owner stays. [ART-1]"""
    return [] if artifact.owners else [fence(on, job), owners.destroy_change(on, artifact)]


def list_caches(on: System, user: User, owner: str, limit: int, page: str) -> tuple[list[CacheEntry], str | None]:
    """An owner's entries, newest first, and the next page. Raises Refused 400 or 403."""
    if not is_name(owner):
        raise Refused(400, "bad-request", "owner is the name of a user or a repository")
    if not user.may_see(owner):
        raise Refused(403, "privilege-missing", f"only operators, and who may act for it, list the caches of {owner}")
    rows = on.store.listed(collection(owner), CacheEntry, limit=limit, after=page, newest=True)
    return rows, rows[-1].id if len(rows) == limit else None


def find_entry(on: System, user: User, id: str) -> CacheEntry:
    """An entry that a user may see, by its artifact's id. Raises Refused 404. [SEC-2]"""
    artifact = owners.find(on, id)
    if artifact is None or not user.may_see(artifact.by):
        raise not_found("cache", id[:64])
    row = entry_of_owner(on, next((each for each in artifact.owners if parts(each)[0] == CACHE), ""))
    if row is None:
        raise not_found("cache", id[:64])
    return row


def delete(on: System, user: User, id: str) -> CacheEntry:
    """Remove an entry for a user. Raises Refused 404."""

    def decide() -> tuple[Sequence[Change], CacheEntry]:
        row = find_entry(on, user, id)
        by = user.name if user.name != row.shelf.owner else ""
        changes = remove_changes(on, row.shelf.owner, [row])
        what = f"{row.shelf.name}, {row.scope}: {row.words}"
        return audit.record(on, changes, by, "delete cache", f"cache {id}", what), row

    return transact(on, decide)


def expire(on: System, owner: str, place: str) -> None:
    """Remove an entry that nobody restored for too long. [ART-2]"""

    def decide() -> tuple[Sequence[Change], None]:
        row = on.store.get(Key(collection(owner), f"{CACHE}#{place}"), CacheEntry)
        if row is None or row.until > on.world.now():
            return [], None
        return remove_changes(on, owner, [row]), None

    transact(on, decide)


def remove(on: System, key: Key) -> None:
    """Remove an entry, if it still exists."""

    def decide() -> tuple[Sequence[Change], None]:
        row = on.store.get(key, CacheEntry)
        return (remove_changes(on, row.shelf.owner, [row]) if row else []), None

    transact(on, decide)


def usage(on: System, owner: str) -> CacheUse:
    """How many entries an owner has, and how many bytes these take."""
    return on.store.get(use_key(owner), CacheUse) or CacheUse(owner=owner)


def entries_of(on: System, owner: str) -> list[CacheEntry]:
    """All entries of an owner."""
    return on.store.find(collection(owner), "cache#", CacheEntry, limit=limits.CACHE_ENTRIES)


def entry_of_owner(on: System, owner: str) -> CacheEntry | None:
    """The entry that an artifact names as its owner, if it exists."""
    return on.store.get(caches.of_owner(owner), CacheEntry)


def has_bytes(on: System, entry: CacheEntry) -> bool:
    """Whether an entry's bytes are where they should be."""
    artifact = owners.find(on, entry.id)
    return artifact is not None and artifact.has_bytes


def remove_changes(on: System, owner: str, entries: Sequence[CacheEntry]) -> list[Change]:
    """The changes that remove entries of an owner: they own their archives no longer. [ART-1]"""
    changes: list[Change] = [count_change(usage(on, owner), entries, -1)]
    for entry in entries:
        changes += [Delete(entry), *owners.release_changes(on, owners.find(on, entry.id), entry.owner)]
    return changes


def count_change(use: CacheUse, entries: Sequence[CacheEntry], by: int) -> Change:
    """The change of an owner's count by some entries."""
    after = caches.count(use, entries, by)
    return Replace(use, after) if use.version else Create(after)
