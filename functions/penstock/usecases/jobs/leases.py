"""Leases without a job: renewed, released, and ended when their time is over. [UNIT-1]

To the rest of the system such a lease is a job without a worker: domain/jobs/bare_leases.py. What stands here is what
its owner does in the place of an agent, and the sweep for those who forget. submit_lease.py accepts new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from penstock.domain.jobs import bare_leases, deadlines
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change
from penstock.system import System, transact
from penstock.usecases.jobs import cancel, extending, jobs, settle
from penstock.usecases.jobs.settle import Ended
from penstock.usecases.users import audit


def find(on: System, user: User, lease: str) -> Job:
    """A lease without a job that the user may see. Raises Refused 404. [SEC-2]"""
    found = jobs.by_id(on, lease)
    if found is None or not found.is_lease or not user.may_see(found.owner):
        raise not_found("lease", lease[:64])
    return found


def renew(on: System, user: User, lease: str, length: int | str) -> Job:
    """Have a held lease end that long from now, unless it ends later anyway.

    Raises Refused 400 for no length, 404, 409 if it is not held, 422 if it would be longer than the site allows.
    """

    def held() -> Job:
        found = find(on, user, lease)
        require_held(found)
        return found

    return extending.extend(on, held, length)[0]


def require_held(job: Job) -> None:
    """Raises Refused 409 for a lease that its owner does not have yet, or no more."""
    if job.is_settled:
        raise Refused(409, "lease-ended", f"lease {job.id} has ended: {job.end.outcome}: {job.end.reason}")
    if deadlines.ends(job) is None or job.cancellation.cancelled_by:
        raise Refused(409, "lease-not-held", f"lease {job.id} is not held: it waits, or is being cancelled")


def release(on: System, user: User, lease: str) -> Job:
    """Give back what a lease has; one that waits for something is cancelled. Safe to repeat. Raises Refused 404."""
    if find(on, user, lease).state is State.RUNNING:
        _end(on, lambda: _released(on, user, lease))
    else:
        with suppress(Refused):  # it has ended
            cancel.cancel(on, user, lease)
    return find(on, user, lease)


def _released(on: System, user: User, lease: str) -> tuple[Sequence[Change], Ended | None]:
    was = find(on, user, lease)
    if was.state is not State.RUNNING:
        return [], None
    changes, ended = settle.report_changes(on, was, bare_leases.released(was, user.name, on.world.now()), {})
    by = user.name if user.name != was.owner else ""  # the lease's log shows what its owner does
    return audit.record(on, changes, by, "release", f"lease {was.id}", f"of {was.owner}"), ended


def expire(on: System, job: Job) -> None:
    """End a held lease whose time is over, unless it was renewed meanwhile. [UNIT-1]"""
    _end(on, lambda: _expired(on, job.id))


def _expired(on: System, lease: str) -> tuple[Sequence[Change], Ended | None]:
    was, now = on.store.get(job_key(lease), Job), on.world.now()
    if was is None or not bare_leases.is_over(was, now):
        return [], None
    return settle.report_changes(on, was, bare_leases.expired(was, now), {})


def _end(on: System, decide: Callable[[], tuple[Sequence[Change], Ended | None]]) -> None:
    """Write the end of a lease, and begin to release what it had. What a crash leaves, the sweep does."""
    ended = transact(on, decide)
    if ended:
        settle.attempt_ended(on, *ended)
        settle.go_on(on, ended[0].before.id, ended[0].before.attempt)
