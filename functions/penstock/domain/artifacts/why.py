"""Why an artifact is kept: who owns it, until when each owner keeps it, and what would free it. Texts for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from penstock.domain.artifacts.artifacts import Artifact, ArtifactState, Pin, parts
from penstock.domain.artifacts.retention import Retention
from penstock.domain.caches import CacheEntry
from penstock.domain.jobs.jobs import Job
from penstock.domain.published import Published
from penstock.kernel.frozen import dataclass

MAX_NAMED = 5
"""How many dependents are named; the others are counted."""


@dataclass(frozen=True)
class OwnerReason:
    """One owner: why it keeps the artifact, until when (None: unknown), and what would end that sooner."""

    owner: str
    why: str
    until: datetime | None
    frees: str


@dataclass(frozen=True)
class Explanation:
    """An artifact with all its owners' reasons. `until` is None if unknown."""

    artifact: Artifact
    keepers: Sequence[OwnerReason]
    until: datetime | None
    summary: str


def format_time(time: datetime) -> str:
    """A time as text in sentences."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def by_job(job: Job | None, row: Retention | None, owner: str) -> OwnerReason:
    """Why a job keeps it."""
    id = parts(owner)[1]
    if job and not job.is_settled:
        row = row or Retention(job=id)
    if job is None or row is None:
        return OwnerReason(owner, f"job {id} owns it, and no row says for how long", None, "an operator's look at it")
    if row.ended:
        return OwnerReason(owner, f"what job {id} owned is being taken apart", row.ended, "the next sweep")
    if row.dependents:
        names = ", ".join(row.dependents[:MAX_NAMED])
        more = len(row.dependents) - MAX_NAMED
        told = f"{names} and {more} more" if more > 0 else names
        why = f"job {id} owns it, and jobs that are not settled depend on that: {told}"
        return OwnerReason(owner, why, None, "their end; then the time of job " + id)
    if row.end is None:
        why = f"job {id} owns it, and is {job.state}"
        return OwnerReason(owner, why, None, "the job's end, and from then on the time that its outcome gives it")
    share = f"job {id} owns it, and {job.end.outcome}"
    if row.longer == row.end:
        why = f"{share}: the latest failure of {job.owner}'s jobs called {job.name}"
        return OwnerReason(
            owner, why, row.end, f"a later failure of that name: from then on, {format_time(row.until or row.end)}"
        )
    return OwnerReason(owner, share, row.end, "that time alone")


def by_pin(pin: Pin | None, owner: str) -> OwnerReason:
    """Why a user's pin keeps it."""
    by = parts(owner)[1]
    if pin is None:
        return OwnerReason(owner, f"{by} pinned it, and no row says why", None, "an operator's look at it")
    return OwnerReason(owner, f"{by} pinned it: {pin.reason}", pin.until, f"{by}, with `penstock artifact unpin`")


def by_name(row: Published | None, owner: str) -> OwnerReason:
    """Why a published name keeps it. It never ends."""
    name = parts(owner)[1]
    if row is None:
        return OwnerReason(owner, f"it is published as {name}, and no row says so", None, "an operator's look at it")
    why = f"{row.by} published it as {name}"
    return OwnerReason(owner, why, None, f"{row.of}, or an operator, with `penstock published unpublish`")


def by_cache(entry: CacheEntry | None, owner: str) -> OwnerReason:
    """Why a cache entry keeps it."""
    if entry is None:
        return OwnerReason(owner, "a cache owns it, and no row says for how long", None, "an operator's look at it")
    shelf = entry.shelf
    why = f"the cache {shelf.name} of {shelf.owner} has it in the scope {entry.scope} under the key {entry.words!r}"
    frees = f"`penstock cache delete {entry.id}`, or others that need its room; who restores it keeps it for longer"
    return OwnerReason(owner, why, entry.until, frees)


def explain(artifact: Artifact, keepers: Sequence[OwnerReason]) -> Explanation:
    """Explain in one sentence why an artifact is kept. It is deleted when its last owner is gone."""
    if not keepers:
        says = f"nobody owns it: it goes at {format_time(artifact.due)}" if artifact.due else "nobody owns it"
        return Explanation(artifact, (), artifact.due, says + _lost(artifact))
    ends = [keeper.until for keeper in keepers if keeper.until]
    until = max(ends) if len(ends) == len(keepers) else None
    last = next(keeper for keeper in keepers if keeper.until == until)
    says = (
        f"it goes at {format_time(until)}, when {last.owner} lets it go"
        if until
        else f"nobody knows until when: {last.why}"
    )
    return Explanation(artifact, keepers, until, says + _lost(artifact))


def _lost(artifact: Artifact) -> str:
    if artifact.lost:
        return f"; its bytes are lost, and were missed first at {format_time(artifact.lost)}"
    return "; its bytes have not arrived" if artifact.state is ArtifactState.CREATING else ""
