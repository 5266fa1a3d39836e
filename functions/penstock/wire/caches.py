"""Caches: what is in them, for whom, and until when."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CacheView:
    """An entry of a cache: an archive that jobs restore. `size` in bytes, `sha256` in hex; `id` is its artifact's.

    It goes at `until` unless a job restores it before. `used` is exact to an hour.
    """

    id: str
    owner: str
    name: str
    key: str
    scope: str
    target: str
    paths: str
    size: int
    sha256: str
    job: str
    time: str
    used: str
    until: str


@dataclass(frozen=True)
class CachePage:
    """Some entries, newest first. All entries of the owner take `bytes` of `quota`, which is in bytes as well.

    `next` is the page to ask for next, or null.
    """

    items: list[CacheView]
    bytes: int
    quota: int
    next: str | None
