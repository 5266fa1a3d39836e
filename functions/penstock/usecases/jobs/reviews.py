"""Reviews: a job that asks for an environment waits until somebody approves it, or refuses. [SEC-2]

Called by the API for users, and by the front end for GitHub for people who press the button of a check.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock import listings
from penstock.domain.jobs import jobs as rules
from penstock.domain.jobs.jobs import Job, Spec, job_key
from penstock.domain.jobs.reviews import LISTING, Review, ReviewRequest, review_key
from penstock.domain.site.site import Environment
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Delete, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.github import hints
from penstock.usecases.jobs import jobs, prerequisites
from penstock.usecases.jobs.flow import spec_of
from penstock.usecases.logs import logs
from penstock.usecases.users import audit

GITHUB = "github/"
"""What stands before a login, where it is said who approved: no user's name begins with it."""

SCANNED = 1000
"""How many requests one page of the list reads, of all environments."""


@dataclass(frozen=True)
class Asked:
    """A job that asks for an environment; what that is now, if the site has it; what it runs, while that is kept."""

    job: Job
    review: Review
    environment: Environment | None
    spec: Spec | None


def find(on: System, user: User, job_id: str) -> Asked:
    """What a user may review, or see. Another's job is treated as nonexistent. Raises Refused 404 or 409."""
    job = jobs.by_id(on, job_id)
    if job is None:
        raise not_found("job", job_id[:64])
    found = _environment(on, job)
    if not (user.may_see(job.owner) or (found and user.name in found.reviewers)):
        raise not_found("job", job_id)
    if job.review is None:
        raise Refused(409, "no-review", f"job {job_id} asks for no environment, and needs nobody's approval")
    return Asked(job, job.review, found, spec_of(on, job))


def list_requests(on: System, user: User, limit: int, page: str) -> tuple[list[Job], str | None]:
    """Some of the jobs that wait for a user's review, oldest first, and the next page."""
    mine = {each.name for each in current_site(on).environments.values() if user.name in each.reviewers}
    found: list[Job] = []
    for read, request in enumerate(listings.every(on, LISTING, ReviewRequest, page) if mine else (), 1):
        job = jobs.by_id(on, request.job) if request.environment in mine else None
        if job and job.awaits_review:  # the index is late: somebody may have decided just now
            found.append(job)
        if len(found) == limit or read == SCANNED:
            return found, request.job
    return found, None


def _environment(on: System, job: Job) -> Environment | None:
    """The environment that a job asks for, as it is now."""
    return current_site(on).environments.get(job.review.environment) if job.review else None


def decide(on: System, user: User, job_id: str, *, refuse: bool = False) -> None:
    """Approve a job for its environment, or refuse it. Approving again changes nothing.

    Raises Refused 403, 404 or 409.
    """
    asked = find(on, user, job_id)
    environment = _present(asked)
    if user.name not in environment.reviewers:
        who = f"the environment {environment.name!r} is reviewed by {environment.people}"
        raise Refused(403, "not-a-reviewer", f"{user.name} may not review job {job_id}: {who}")
    if {asked.job.owner, *asked.review.authors}.intersection(user.names) and not environment.self_review:
        why = f"nobody reviews their own job for the environment {environment.name!r}"
        raise Refused(403, "own-job", f"{why}; its reviewers are {environment.people}")
    _decide(on, job_id, user.name, refuse=refuse)


def _present(asked: Asked) -> Environment:
    if asked.environment is None:
        why = f"the site no longer has the environment {asked.review.environment!r}"
        raise Refused(409, "environment-gone", f"{why}, so nobody can approve job {asked.job.id}: cancel it")
    return asked.environment


def decide_at_github(on: System, job: Job, login: str, pushers: Collection[str]) -> str:
    """Approve the job of a check for somebody who pressed its button. Returns what came of it, in a few words."""
    environment = _environment(on, job)
    if environment is None:
        return "ignored: there is nothing to review"
    if not environment.is_reviewed_by(login):
        return f"ignored: {login} does not review for the environment {environment.name}"
    if login.lower() in {each.lower() for each in pushers} and not environment.self_review:
        return f"ignored: {login} brought this commit, and may not review it"
    try:
        _decide(on, job.id, GITHUB + login)
    except Refused as refused:
        return f"ignored: {refused.detail}"
    return f"approved by {login} for the environment {environment.name}"


def _decide(on: System, job_id: str, by: str, *, refuse: bool = False) -> None:
    """Write that a job was approved or refused, once; then it goes on or ends. The sweep makes up for a crash."""
    job, said = transact(on, lambda: _changes(on, job_id, by, refuse=refuse))
    logs.append(on, job_id, job.attempt, said)
    prerequisites.judge(on, job_id)
    if job.provenance.check:
        hints.job_changed(on, job)


def _changes(on: System, job_id: str, by: str, *, refuse: bool) -> tuple[Sequence[Change], tuple[Job, str]]:
    """The job as it is decided, and what to tell of that; nothing if it was decided so before."""
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.is_settled or job.cancellation.cancelled_by:
        raise Refused(409, "job-settled", f"job {job_id} is over, or being cancelled: there is nothing to review")
    assert job.review, "a review is never taken away"
    if not job.review.is_open and refuse:
        raise Refused(409, "already-approved", f"job {job_id} was approved by {job.review.by}: cancel it instead")
    if not job.review.is_open:
        return [], (job, "")
    now, where = on.world.now(), f"for the environment {job.review.environment}"
    after = rules.refuse(job, f"{by} refused it {where}", now) if refuse else rules.approve(job, by)
    request = on.store.get(review_key(job_id), ReviewRequest)
    written: list[Change] = [Replace(job, after), *([Delete(request)] if request else [])]
    changes = audit.record(on, written, by, "refuse" if refuse else "approve", f"job {job_id}", where)
    return changes, (job, f"{'refused' if refuse else 'approved'} {where}, by {by}")
