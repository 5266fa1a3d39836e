"""The jobs of a set, read for a page at once: a query for the set, and batches for the rows of its jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.domain.jobs import states
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.jobs.members import MEMBER, Member, is_set_id, set_pk
from penstock.domain.pools.pools import Lease, lease_key
from penstock.domain.users import users
from penstock.domain.users.users import User
from penstock.kernel.errors import not_found
from penstock.kernel.frozen import dataclass
from penstock.listings import rows_at
from penstock.system import System


@dataclass(frozen=True)
class SetJob:
    """A job of a set. `queue`: the pool in whose queue it stands; None if it stands in none."""

    job: Job
    matrix: Mapping[str, str]
    queue: str | None


@dataclass(frozen=True)
class SetPage:
    """Some jobs of a set, the first submitted first. `next`: the last job here, if others follow."""

    owner: str
    jobs: Sequence[SetJob]
    next: str | None


def jobs_of(on: System, user: User, id: str, owner: str | None, limit: int, after: str) -> SetPage:
    """Some jobs of an owner's set, by default the user's own. Raises Refused 404. [SEC-2]"""
    for name in _owners(user, id, owner):
        members = _members(on, name, id, limit + 1, after)
        if members or after:
            following = members[limit - 1].job if len(members) > limit else None
            return SetPage(name, list(_read(on, members[:limit])), following)
    raise not_found("set", id[:100])


def _owners(user: User, id: str, owner: str | None) -> Sequence[str]:
    """Whose set may be meant: nobody's that the user may not see, and nobody's if no set has such an id. [SEC-2]"""
    if not is_set_id(id) or not (owner is None or users.is_name(owner)):
        return []
    if owner is None:
        return user.names
    return [owner] if user.may_see(owner) else []


def _members(on: System, owner: str, id: str, limit: int, after: str) -> list[Member]:
    place = f"{MEMBER}{after}" if after else ""
    return on.store.find(set_pk(owner, id), MEMBER, Member, limit=limit, after=place)


def _read(on: System, members: Sequence[Member]) -> Iterator[SetJob]:
    """The jobs that are still there, each with the queue that it stands in."""
    rows = rows_at(on, [job_key(each.job) for each in members])
    jobs = {row.id: row for row in rows.values() if isinstance(row, Job)}
    queues = _queues(on, [job for job in jobs.values() if job.state is State.ACQUIRING])
    for each in members:
        if each.job in jobs:
            yield SetJob(jobs[each.job], each.matrix, queues.get(each.job))


def _queues(on: System, acquiring: Sequence[Job]) -> Mapping[str, str | None]:
    """The pool in whose queue each of some jobs stands, by their ids."""
    keys = [lease_key(job.id, job.attempt, need.order) for job in acquiring for need in job.request.needs]
    leases = [row for row in rows_at(on, keys).values() if isinstance(row, Lease)]
    return {job.id: states.queue_in(lease for lease in leases if lease.job == job.id) for job in acquiring}
