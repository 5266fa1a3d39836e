"""Caches: archives that jobs save and restore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from penstock.api.app import Caller, FilePage, Limit, Router
from penstock.api.shapes import JobName, NextPage, digests, view
from penstock.domain.caches import CacheEntry
from penstock.domain.replies import COMPOSITE
from penstock.domain.users.users import READ, SUBMIT
from penstock.kernel.frozen import dataclass
from penstock.system import System, current_site
from penstock.usecases import caches
from penstock.usecases.jobs.names import Named, name_of, names_of

router = Router("caches")


@dataclass(frozen=True)
class CacheView:
    """An entry of a cache: an archive that jobs restore."""

    id: Annotated[str, "Its id, which is also its artifact's."]
    owner: Annotated[str, "The user or repository whose cache it is in."]
    name: Annotated[str, "The cache's name."]
    key: Annotated[str, "Its key."]
    scope: Annotated[str, "The branch that added it; empty for one that every branch may restore."]
    target: Annotated[str, "The target of the jobs that may restore it."]
    paths: Annotated[str, "The cached paths."]
    size: Annotated[int, "Its size in bytes."]
    sha256: Annotated[str | None, "Its SHA-256 in hex, as the store verified it; null for a file in parts."]
    composite: Annotated[str | None, COMPOSITE]
    job: Annotated[str, "The id of the job that saved it."]
    job_name: JobName
    time: Annotated[str, "When it was saved, as RFC 3339."]
    used: Annotated[str, "When a job restored it last, exact to an hour, as RFC 3339."]
    until: Annotated[str, "When it is deleted unless a job restores it before, as RFC 3339."]


@dataclass(frozen=True)
class CachePage:
    """Some entries of an owner's caches, newest first."""

    items: Annotated[list[CacheView], "The entries."]
    bytes: Annotated[int, "How many bytes all entries of the owner take."]
    quota: Annotated[int, "How many bytes they may take."]
    next: NextPage


@router.get("/v1/caches", "List the entries of your caches, newest first", READ)
def list_caches(
    on: System,
    user: Caller,
    *,
    owner: Annotated[str, "The owner. By default you."] = "",
    limit: Limit = 50,
    page: FilePage = "",
) -> CachePage:
    of = owner or user.name
    found, after = caches.list_caches(on, user, of, limit, page)
    quota = current_site(on).limits.cache_bytes
    names = names_of(on, [one.job for one in found])
    return CachePage([show(one, names) for one in found], caches.usage(on, of).size, quota, after)


@router.get("/v1/caches/{cache}", "Show an entry of a cache", READ)
def get_cache(on: System, user: Caller, cache: str) -> CacheView:
    return _show_one(on, caches.find_entry(on, user, cache))


@router.delete("/v1/caches/{cache}", "Delete an entry of a cache", SUBMIT)
def delete_cache(on: System, user: Caller, cache: str) -> CacheView:
    return _show_one(on, caches.delete(on, user, cache))


def _show_one(on: System, row: CacheEntry) -> CacheView:
    return show(row, names_of(on, [row.job]))


def show(row: CacheEntry, names: Mapping[str | None, Named]) -> CacheView:
    """An entry of a cache; with the name of its job, of some names."""
    shelf = row.shelf
    return view(
        CacheView,
        row,
        name_of(names, row.job),
        owner=shelf.owner,
        name=shelf.name,
        key=row.words,
        target=shelf.target,
        paths=row.about,
        time=row.made,
        **digests(row.content),
    )
