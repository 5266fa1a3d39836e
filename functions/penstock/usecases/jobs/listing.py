"""Lists of jobs: what is looked for is read from the indexes, and then only the rows that are shown, and few others.

A listing has each job's name, targets and tags, and the due index the state of each that has not settled: see
domain/jobs/places.py. Where these leave it open, the row is read too. A page looks at so many entries and rows at most,
and the next goes on.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from itertools import accumulate, chain

from penstock.domain.jobs import jobs, places, states
from penstock.domain.jobs.jobs import Job, State
from penstock.domain.users import users
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import EPOCH, Key, Listed, Look, shards_of, ulid_time
from penstock.system import System
from penstock.usecases.jobs import flow, readers

SCANNED = 1000
"""How many rows one page of a list reads at most."""

LOOKED = 20_000
"""How many entries of listings it looks at."""

AT_ONCE = 1000
"""How many entries a filtered list reads at once: they have keys only."""

DUE_AT_ONCE = 5000
"""How many entries of the due index are read at once."""

PAGE_BYTES = 3 * 1024**2
"""How much of a reply tags take: Lambda passes 6 MB, as text within JSON (Developer Guide, Quotas)."""

WHENEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""Later than every deadline."""


@dataclass(frozen=True)
class Wanted:
    """Which jobs are looked for. `state` is a state, as it is shown, or an outcome; `name` is a pattern.

    `leases`: those without a worker, instead of all others; `is_open`: those that have not ended.
    """

    state: str = ""
    target: str = ""
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    leases: bool = False
    is_open: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether entries are left out that a listing has."""
        return bool(self.state or self.target or self.name or self.tags or self.is_open)


def list_jobs(
    on: System, user: User | None, owner: str | None, wanted: Wanted, limit: int, page: str, *, everybody: bool = False
) -> tuple[list[Job], str | None]:
    """Some of an owner's jobs, or of everybody's, newest first; and the next page. Raises Refused. [SEC-2]"""
    owners = _owners(on, user, owner, everybody=everybody)
    walk = _Walk(_candidates(on, owners, wanted, limit, page))
    found: list[Job] = []
    size = limit
    while len(found) < limit and not walk.is_over:
        keys = walk.take(min(size, limits.BATCH_KEYS))
        hits = [job for job in _read(on, keys) if is_wanted(on, job, wanted)]
        found += hits
        size = limit - len(found) if 2 * len(hits) >= len(keys) else 2 * len(keys)
    shown = _fitting(found[:limit])
    return shown, shown[-1].id if len(found) > len(shown) else None if walk.is_at_end else walk.last


def _fitting(found: Sequence[Job]) -> list[Job]:
    """As many of the first jobs as a reply has room for, and one at least: of a job only its tags are long."""
    sizes = accumulate(len(json.dumps(json.dumps(job.request.tags))) for job in found)
    return [job for at, (job, size) in enumerate(zip(found, sizes, strict=True)) if size <= PAGE_BYTES or not at]


def _read(on: System, keys: Sequence[Key]) -> list[Job]:
    """The jobs at some keys, in their order."""
    rows = on.store.rows_at(keys) if keys else {}
    return [row for key in keys if isinstance(row := rows.get(key), Job)]


def _owners(on: System, user: User | None, owner: str | None, *, everybody: bool) -> Sequence[str]:
    """Whose jobs are listed. Raises Refused 401 or 403 for those that may not be seen. [SEC-2]"""
    if everybody and owner:
        raise Refused(400, "bad-request", "all is for the jobs of every owner, and owner for those of one: give one")
    if user is None:
        readers.require_public(on, owner or "")
        return [str(owner)]
    if everybody:
        if not user.is_admin:
            raise Refused(403, "privilege-missing", "only operators list the jobs of every owner")
        return [entry.sort for name in (users.LISTING, users.FORMER) for entry in on.store.entries(name, page=AT_ONCE)]
    if owner and not (user.may_see(owner) or readers.is_public(on, owner)):
        raise Refused(
            403, "privilege-missing", f"only operators, and who may act for it, list the jobs of {owner[:200]}"
        )
    if owner and not users.is_name(owner):
        raise Refused(400, "bad-request", "owner is the name of a user")
    return [owner] if owner else user.names


def entries(
    on: System, names: Iterable[str], after: str, page: int, wanted: Wanted | None = None
) -> Iterator[tuple[bool, Listed]]:
    """The entries of some listings of jobs, newest first, without those before a time; and whether each may be one of
    those that are looked for."""
    since = ulid_time(max(wanted.since, EPOCH)) if wanted and wanted.since else ""
    found = (on.store.entries(name, after=after, newest=True, page=page) for name in names)
    for entry in heapq.merge(*found, reverse=True):
        if entry.sort < since:
            return
        yield not wanted or places.may_match(entry.sort, wanted.name, wanted.target, wanted.tags), entry


def _candidates(
    on: System, owners: Sequence[str], wanted: Wanted, limit: int, page: str
) -> Iterator[tuple[bool, Listed]]:
    """The entries of listings that may have a job that is looked for, and for each whether it may be one."""
    names = [name for owner in owners for name in _listings(owner, wanted)]
    live = _unsettled(on) if wanted.is_open or (wanted.state and wanted.state not in jobs.APART) else {}
    now = on.world.now()
    for may, entry in entries(on, names, page, AT_ONCE if wanted.is_narrow else limit, wanted):
        may_be = entry.key in live if wanted.is_open else _may_be(wanted.state, live.get(entry.key), now)
        yield may and may_be, entry


def _listings(owner: str, wanted: Wanted) -> list[str]:
    """The listings that have jobs which are what a word says."""
    if wanted.leases:
        return [jobs.leases_of(owner)]
    return places.listings(owner) if wanted.state in ("", State.SETTLED) else [jobs.listing(owner, wanted.state)]


def _unsettled(on: System) -> dict[Key, Look]:
    """What the due index has of every job that has not settled, and of some that just have."""
    shards = shards_of(Job, later=False)
    found = chain.from_iterable(on.store.overdue(shard, WHENEVER, page=DUE_AT_ONCE) for shard in shards)
    return {due.key: due.look for due in found}


def _may_be(word: str, look: Look | None, now: datetime) -> bool:
    """Whether a job may be what a word says, by what the due index has of it: None once it has settled."""
    if not word or word in jobs.APART:
        return True
    may = states.rows_of(word)
    if look is None:
        return not may
    return look.tag in may if places.is_sure(look, now) else True


def is_wanted(on: System, job: Job, wanted: Wanted) -> bool:
    """Whether a job is one of those that are looked for."""
    asked = job.request
    return (
        not (wanted.is_open and job.is_settled)
        and (not wanted.target or wanted.target in (asked.target, asked.target_resolved))
        and (not wanted.name or places.is_called(job.name, wanted.name))
        and all(asked.tags.get(name) == value for name, value in wanted.tags.items())
        and (not wanted.state or states.is_state(wanted.state, job, is_in_queue=_stands(on, job, wanted.state)))
    )


def queue_of(on: System, job: Job) -> str | None:
    """The pool in whose queue a job stands; None if it stands in none."""
    return states.queue_in(flow.lease_rows(on, job.id, job.attempt)) if job.state is State.ACQUIRING else None


def _stands(on: System, job: Job, word: str) -> bool:
    """Whether a job stands in the queue of a pool: that is read only where it decides."""
    return word in (State.WAITING, State.ACQUIRING) and queue_of(on, job) is not None


class _Walk:
    """A way along entries, which counts them. `last` is the job that it came to."""

    def __init__(self, candidates: Iterator[tuple[bool, Listed]]) -> None:
        self._left = candidates
        self._looked, self._read = 0, 0
        self.last = ""
        self.is_at_end = False

    @property
    def is_over(self) -> bool:
        """Whether the page ends here, however much was found."""
        return self.is_at_end or self._looked >= LOOKED or self._read >= SCANNED

    def take(self, most: int) -> list[Key]:
        """The keys of the next rows to read. A job that moves meanwhile may be in two listings."""
        found: list[Key] = []
        while len(found) < most and not self.is_over:
            may, entry = next(self._left, (False, None))
            if entry is None:
                self.is_at_end = True
                break
            self._looked += 1
            is_new = places.id_in(entry.sort) != self.last
            self.last = places.id_in(entry.sort)
            found += [entry.key] if may and is_new else []
        self._read += len(found)
        return found
