"""Artifacts as people see them: which exist, why each is kept, and what the sweep would delete by when. Read-only."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice

from penstock.domain.artifacts import retention
from penstock.domain.artifacts import why as artifacts_why
from penstock.domain.artifacts.artifacts import (
    CACHE,
    JOB,
    PIN,
    PUBLISHED,
    Artifact,
    ArtifactState,
    Pin,
    id_of,
    job_of,
    owner,
    parts,
)
from penstock.domain.artifacts.retention import Retention, retention_key
from penstock.domain.artifacts.why import Explanation, OwnerReason
from penstock.domain.caches import CacheEntry
from penstock.domain.jobs import places
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.published import Published, published_key
from penstock.domain.replies import SignedOutput
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Due, Key, shards_of
from penstock.system import System
from penstock.usecases import caches
from penstock.usecases.artifacts import outputs, owners
from penstock.usecases.artifacts import pins as artifacts_pins
from penstock.usecases.jobs import listing

DRY_RUN_ROWS = 500
"""How many rows a dry run reads."""

JOBS_AT_ONCE = 100
"""How many jobs a page of a list looks at."""


@dataclass(frozen=True)
class Deletion:
    """What would be deleted when, if nothing changes: an artifact, and why."""

    id: str
    path: str
    size: int
    at: datetime
    why: str


@dataclasses.dataclass
class DryRun:
    """What a dry run found. `is_whole` says that it read all rows."""

    going: list[Deletion]
    is_whole: bool


class RowCache:
    """Jobs and retentions that were read already: a job's artifacts share theirs."""

    def __init__(self, on: System) -> None:
        self._on = on
        self._rows: dict[str, tuple[Job | None, Retention | None]] = {}

    def of(self, job: str) -> tuple[Job | None, Retention | None]:
        """A job and its retention."""
        if job not in self._rows:
            store = self._on.store
            found = store.get(job_key(job), Job)
            told = retention.told_by(found) if found else None
            self._rows[job] = found, told or store.get(retention_key(job), Retention)
        return self._rows[job]

    def named(self, name: str) -> Published | None:
        """A published name, by its text."""
        of, series, version, last = name.split("/")
        return self._on.store.get(published_key(of, series, version, last), Published)


def list_artifacts(on: System, user: User, by: str, limit: int, page: str) -> tuple[list[Explanation], str | None]:
    """A user's artifacts, and the next page. Those of the newest job come first. Raises Refused 403.

    A page is an artifact's id, or as much of one as says that all of its job's artifacts were listed.
    """
    if by and not user.may_see(by):
        raise Refused(
            403, "privilege-missing", f"only operators, and who may act for it, list the artifacts of {by[:200]}"
        )
    names, last, known = [by] if by else user.names, job_of(page), RowCache(on)
    further = _newest_jobs(on, names, last)
    found: list[Explanation] = []
    for job in [last, *further] if last else further:
        for row in reversed([row for row in owners.made_for(on, job) if row.by in names]):
            if job != last or row.id < page:
                found.append(why(on, row, known))
            if len(found) == limit:
                return found, row.id
    return found, id_of(further[-1], "") if len(further) == JOBS_AT_ONCE else None


def _newest_jobs(on: System, owners: Sequence[str], after: str) -> list[str]:
    """The newest jobs before one, of all names that a user has had."""
    names = [name for owner in owners for name in places.every_listing(owner)]
    found = (places.id_in(entry.sort) for _, entry in listing.entries(on, names, after, JOBS_AT_ONCE))
    return list(islice(dict.fromkeys(found), JOBS_AT_ONCE))


def why(on: System, artifact: Artifact, known: RowCache | None = None) -> Explanation:
    """Why an artifact is kept, and until when."""
    known, pins = known or RowCache(on), artifacts_pins.pins_of(on, artifact)
    found = [_keeper(on, known, owner, pins.get(owner)) for owner in artifact.owners]
    return artifacts_why.explain(artifact, found)


def _keeper(on: System, known: RowCache, owner: str, pin: Pin | None) -> OwnerReason:
    kind, id = parts(owner)
    if kind == PIN:
        return artifacts_why.by_pin(pin, owner)
    if kind == PUBLISHED:
        return artifacts_why.by_name(known.named(id), owner)
    if kind == CACHE:
        return artifacts_why.by_cache(caches.entry_of_owner(on, owner), owner)
    return artifacts_why.by_job(*known.of(id), owner)


def sign(on: System, artifact: Artifact, seconds: int) -> SignedOutput:
    """A URL to download an artifact for some seconds. Raises Refused 409 if its bytes have not arrived."""
    if artifact.state is not ArtifactState.CREATED:
        raise Refused(409, "no-bytes", f"the bytes of artifact {artifact.id} have not arrived")
    return outputs.sign_artifact(on, artifact.id, artifact.path, artifact.content, seconds)


def dry_run(on: System, within: int) -> DryRun:
    """What the sweep would delete within some seconds, if nothing changes. Nothing is written.

    A later failure, or a new dependent, may change it; what has two owners goes with the last.
    """
    now = on.world.now()
    by = now + timedelta(seconds=within)
    tidied, jobs = _due(on, on.store.shards(later=True), by), _due(on, shards_of(Job, later=False), by)
    is_whole = max(len(tidied), len(jobs)) < DRY_RUN_ROWS
    going = [each for due in (*tidied, *jobs) for each in _deletions(on, due.kind, due.key, now, by)]
    going.sort(key=lambda each: each.at)
    return DryRun(going[:DRY_RUN_ROWS], is_whole and len(going) <= DRY_RUN_ROWS)


def _due(on: System, shards: Sequence[str], by: datetime) -> list[Due]:
    """What some shards have due by then. A job's entry may still be where it was while the job ran."""
    found = (on.store.overdue(shard, by) for shard in shards)
    return list(islice(merge(*found, key=lambda due: due.look.at), DRY_RUN_ROWS))


def _deletions(on: System, kind: str, key: Key, now: datetime, by: datetime) -> Iterator[Deletion]:
    id = key.pk.partition("#")[2]
    if kind == "artifact":
        row = on.store.get(key, Artifact)
        if row and row.due and row.due <= by:
            told = f"nobody owns it; tried {row.tries} times" if row.tries else "nobody owns it"
            yield Deletion(row.id, row.path, row.size, max(row.due, now), told)
    elif kind == "pin":
        pin = on.store.get(key, Pin)
        if pin and pin.until:
            yield from _deletion_if_last(on, id, [pin.owner], pin.until, now, by)
    elif kind == "cache":
        entry = on.store.get(key, CacheEntry)
        if entry:
            yield from _deletion_if_last(on, entry.id, [entry.owner], entry.until, now, by)
    elif kind in ("retention", Job.ends_as, Job.kind):
        yield from _deletions_of_job(on, id, now, by)


def _deletion_if_last(
    on: System, id: str, who: Sequence[str], at: datetime, now: datetime, by: datetime
) -> Iterator[Deletion]:
    """An artifact that loses these owners, if they are the last; else the last owner's row reports it."""
    row = owners.find(on, id)
    found = why(on, row) if row else None
    if row is None or found is None or found.until is None or found.until > by:
        return
    last = next(keeper for keeper in found.keepers if keeper.until == found.until) if found.keepers else None
    if last and last.owner in who:
        yield Deletion(row.id, row.path, row.size, max(at, now), last.why)


def _deletions_of_job(on: System, job: str, now: datetime, by: datetime) -> Iterator[Deletion]:
    _, row = RowCache(on).of(job)
    end = (row.ended or row.end) if row else None
    if row is None or end is None or end > by or row.dependents:
        return
    for output in owners.outputs_of(on, job):
        yield from _deletion_if_last(on, output.id, [owner(JOB, job)], end, now, by)
