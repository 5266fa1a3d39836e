"""Jobs that save caches and find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.domain.artifacts.volumes import (
    object_name,
)
from penstock.domain.caches import CacheEntry
from penstock.domain.commands import CacheName, SaveCache
from penstock.domain.jobs.jobs import Job
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases import caches
from tests.usecases.inputs import digest
from tests.usecases.retained_jobs import of
from tests.usecases.steps import finish, hello, submit

SMALL = 10**6
DIGEST = digest(b"x" * 10)


def run(twin: Twin, user: User, scope: str | None = None, **ask: Any) -> Job:
    """A job that runs; all that ran before are over."""
    for each in of(twin, Job):
        if not each.is_settled:
            finish(twin, each.id)
    job = submit(twin, user, cache_scope=scope, **ask)
    twin.run()
    return hello(twin, job).job


def ask(key: str = "k", name: str = "deps", paths: tuple[str, ...] = ("/work/deps",)) -> CacheName:
    return CacheName(name, paths, key)


def archive(
    size: int, key: str = "k", paths: tuple[str, ...] = ("/work/deps",), sha256: str = "", composite: str = ""
) -> SaveCache:
    sha256 = sha256 or (digest(b"x" * size) if 0 <= size < SMALL else DIGEST)
    return SaveCache("deps", list(paths), key, size=size, sha256=sha256, composite=composite)


def sent(twin: Twin, job: Job, key: str = "k", size: int = 10, **more: Any) -> str:
    """An archive whose bytes are there, and of which nobody was told yet."""
    begun = caches.begin(twin.on, job, archive(size, key, **more))
    assert begun.there is False
    twin.objects.objects[object_name(begun.id)] = b"x" * size
    return str(begun.id)


def save(twin: Twin, job: Job, key: str = "k", size: int = 10, **more: Any) -> str:
    id = sent(twin, job, key, size, **more)
    kept = caches.commit(twin.on, job, ask(key, **more), id)
    assert kept.kept is True
    return id


def found(twin: Twin, job: Job, key: str = "k", *restore: str, **more: Any) -> str | None:
    answer = caches.find(twin.on, job, ask(key, **more), restore)
    return answer.id if answer.hit else None


def entries(twin: Twin) -> set[str]:
    return {row.id for row in of(twin, CacheEntry)}


def adds_up(twin: Twin) -> bool:
    """What is said to be taken is what the entries take."""
    rows = of(twin, CacheEntry)
    use = caches.usage(twin.on, "ada")
    return (use.size, use.count) == (sum(row.size for row in rows), len(rows))


def refused(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(Refused) as told:
        call()
    return told.value.status, told.value.code
