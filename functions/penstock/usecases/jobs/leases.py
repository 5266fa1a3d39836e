"""Leases without a job: acquired, renewed, released, and ended when their time is over. [UNIT-1]

To the rest of the system such a lease is a job without a worker: domain/jobs/bare.py. What stands here is what its
owner does in the place of an agent, and the sweep for those who forget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.domain.commands import AcquireLease
from penstock.domain.jobfile import JobFile, check_key
from penstock.domain.jobs import admission, bare, deadlines
from penstock.domain.jobs.jobs import (
    START_WITHIN,
    Job,
    JobLimits,
    Request,
    Spec,
    State,
    Times,
)
from penstock.domain.site.site import Site
from penstock.domain.users.users import User
from penstock.kernel.errors import Fault, Refused, not_found
from penstock.kernel.rows import Change
from penstock.system import System, current_site, transact
from penstock.usecases.jobs import cancel, extending, jobs, settle, submit
from penstock.usecases.jobs.settle import Ended
from penstock.usecases.jobs.submit import Draft
from penstock.usecases.users import audit, users

NAME = "lease"
"""What a lease is called that was given no name."""

KEYS = {name: name for name in ("name", "resources", "max_wait", "priority", "tags")} | {"for": "timeout"}
"""What a request says, and the key of job files whose values it takes."""


def acquire(on: System, user: User, ask: AcquireLease, key: str | None) -> str:
    """Accept a lease, which waits in its queues as a job does, and return its id. Raises Refused.

    The same key and the same request return the same lease.
    """
    owner, site = users.resolve_owner(on, user, ask.owner), current_site(on)
    file = _asked(ask)
    submit.accepted_or_raise(admission.check_types(site, file.resources))
    job = _row(on, owner, file, site)
    submit.accepted_or_raise(
        admission.check_satisfiable(site, owner, file, job.request.needs, on.drivers.objections, None)
    )
    spec = Spec(job=job.id, path="", script="")
    submit.check_fits(job, spec)
    return submit.accept(on, user, Draft(job, spec, file, site, {}), submit.given(ask), key)


def _asked(ask: AcquireLease) -> JobFile:
    """What is asked for, checked as if it stood in a job file without a target. Raises Refused 400."""
    said: dict[str, Any] = {
        "name": ask.name or NAME,
        "resources": ask.resources,
        "for": ask.for_,
        "max_wait": ask.max_wait,
        "priority": ask.priority,
        "tags": ask.tags,
    }
    checked = {name: _check(name, value) for name, value in said.items() if value not in (None, {})}
    faults = [each for _, wrong in checked.values() for each in wrong]
    if not ask.resources:
        faults.append(Fault("a lease is of one resource at least", where="resources"))
    if faults:
        raise Refused(400, "bad-request", faults[0].message, faults)
    values = {KEYS[name]: value for name, (value, _) in checked.items()}
    return JobFile(path="", script="", target="", **values)


def _check(name: str, value: object) -> tuple[Any, list[Fault]]:
    """A value as job files have it, and what is wrong with it."""
    found, wrong = check_key(KEYS[name], value)
    said = [each.message.replace(KEYS[name], name, 1) for each in wrong]
    return found, [Fault(text, where=name, hint=each.hint) for text, each in zip(said, wrong, strict=True)]


def _row(on: System, owner: User, file: JobFile, site: Site) -> Job:
    """The row of a new lease. Raises Refused 422 for one that is too long."""
    now, bounds = on.world.now(), site.limits
    if file.timeout:
        extending.check(file.timeout, bounds)
    return Job(
        id=on.world.ulid(),
        name=file.name or NAME,
        owner=owner.name,
        request=Request(
            target="",
            target_resolved="",
            needs=tuple(submit.resources(site, file.resources)),
            priority=file.priority,
            tags=file.tags,
        ),
        state=State.QUEUED,
        times=Times(submitted=now, ready=now),
        limits=JobLimits(
            timeout=file.timeout or min(bounds.timeout, bounds.timeout_most),
            queue_seconds=min(file.max_wait or bounds.queue, bounds.queue),
            grace=0,
            idle_hold=bounds.idle_hold,
            retries=bounds.retries,
        ),
        due=now + START_WITHIN,
    )


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

    return extending.extend(on, held, length)


def require_held(job: Job) -> None:
    """Raises Refused 409 for a lease that its owner does not have yet, or no more."""
    if job.is_settled:
        raise Refused(409, "lease-ended", f"lease {job.id} has ended: {job.end.outcome}: {job.end.reason}")
    if deadlines.ends(job) is None or job.cancellation.cancelled_by:
        raise Refused(409, "lease-not-held", f"lease {job.id} is not held: it waits, or is being cancelled")


def release(on: System, user: User, lease: str) -> Job:
    """Give back what a lease has; one that waits for something is cancelled. Safe to repeat. Raises Refused 404."""
    job = find(on, user, lease)
    if job.is_settled:
        return job
    if job.state is not State.RUNNING:
        return cancel.cancel(on, user, lease)
    _end(on, lambda: _released(on, user, lease))
    return find(on, user, lease)


def _released(on: System, user: User, lease: str) -> tuple[Sequence[Change], Ended | None]:
    was = find(on, user, lease)
    if was.state is not State.RUNNING:
        return [], None
    changes, ended = settle.report_changes(on, was, bare.released(was, user.name, on.world.now()), {})
    by = user.name if user.name != was.owner else ""  # the lease's log shows what its owner does
    return audit.record(on, changes, by, "release", f"lease {was.id}", f"of {was.owner}"), ended


def expire(on: System, job: Job) -> None:
    """End a held lease whose time is over, unless it was renewed meanwhile. [UNIT-1]"""
    _end(on, lambda: _expired(on, job.id))


def _expired(on: System, lease: str) -> tuple[Sequence[Change], Ended | None]:
    was, now = jobs.by_id(on, lease), on.world.now()
    until = deadlines.ends(was) if was else None
    if was is None or until is None or until > now:
        return [], None
    return settle.report_changes(on, was, bare.expired(was, now), {})


def _end(on: System, decide: Callable[[], tuple[Sequence[Change], Ended | None]]) -> None:
    """Write the end of a lease, and begin to release what it had. What a crash leaves, the sweep does."""
    ended = transact(on, decide)
    if ended:
        settle.attempt_ended(on, *ended)
        settle.go_on(on, ended[0].before.id, ended[0].before.attempt)
