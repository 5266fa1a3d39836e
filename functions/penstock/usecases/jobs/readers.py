"""Jobs of public repositories are read by everybody, without a token: the site says whose they are. [SEC-2]

Everybody else's are as nonexistent to strangers as those that there never were: both get the same answer.
docs/decisions/0087-public-repositories.md
"""

from __future__ import annotations

from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import why
from penstock.domain.pools.why import Why
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused, not_found
from penstock.system import System, current_site
from penstock.usecases.jobs import jobs


def find(on: System, user: User | None, job_id: str) -> Job:
    """A job that somebody may read; without a user, one of a public repository. Raises Refused 401 or 404. [SEC-2]"""
    job = jobs.by_id(on, job_id)
    if job and (_may_see(user, job) or is_public(on, job.owner)):
        return job
    raise not_found("job", job_id[:64]) if user else _sign_in()


def is_public(on: System, owner: str) -> bool:
    """Whether everybody may read an owner's jobs."""
    return current_site(on).console.shows(owner)


def require_public(on: System, owner: str) -> None:
    """Raises Refused 401 unless everybody may read an owner's jobs. [SEC-2]"""
    if not is_public(on, owner):
        raise _sign_in()


def is_stranger(user: User | None, job: Job) -> bool:
    """Whether somebody reads a job only because it is public. They see nothing of other jobs, or of people. [SEC-2]"""
    return not _may_see(user, job)


def explain(on: System, user: User | None, job: Job) -> Why:
    """Why a job is where it is, as somebody may know it."""
    found = jobs.explain(on, job)
    return why.for_strangers(found) if is_stranger(user, job) else found


def _may_see(user: User | None, job: Job) -> bool:
    return user is not None and user.may_see(job.owner)


def _sign_in() -> Refused:
    return Refused(401, "no-token", "this is not public: sign in, or show a token: Authorization: Bearer <token>")
