"""From a request to an accepted lease without a job: the checks of a submit, and the row of a job without a worker."""

from __future__ import annotations

from typing import Any

from penstock.domain.commands import AcquireLease
from penstock.domain.jobfile import JobFile, check_key
from penstock.domain.jobs import admission
from penstock.domain.jobs.jobs import START_WITHIN, Job, JobLimits, Request, Spec, State, Times
from penstock.domain.site.site import Site
from penstock.domain.users.users import User
from penstock.kernel.errors import Fault, Refused
from penstock.system import System, current_site
from penstock.usecases.jobs import extending, submit
from penstock.usecases.jobs.submit import Draft
from penstock.usecases.users import users

NAME = "lease"
"""What a lease is called that was given no name."""

KEYS = {name: name for name in ("name", "resources", "max_wait", "priority", "tags")} | {"for": "timeout"}
"""What a request says, and the key of job files whose values it takes."""


def acquire(on: System, user: User, ask: AcquireLease, key: str | None) -> str:
    """Accept a lease, which waits in its queues as a job does, and return its id. Raises Refused.

    The same key and the same request return the same lease.
    """
    return submit.once(on, user, submit.given(ask), key, lambda: _accept(on, user, ask, key))


def _accept(on: System, user: User, ask: AcquireLease, key: str | None) -> str:
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
