"""Reviews: what a job is that waits for approval; and to approve or refuse it."""

from __future__ import annotations

from typing import Annotated

from penstock.api.app import Caller, Limit, Router, UlidPage
from penstock.api.jobs import JobDependency
from penstock.api.shapes import NextPage, view
from penstock.domain.jobs.jobs import Job
from penstock.domain.pools.pools import WORKER
from penstock.domain.users.users import READ, REVIEW
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.jobs import reviews
from penstock.usecases.jobs.reviews import Asked

router = Router("reviews")


@dataclass(frozen=True)
class RequestView:
    """A job that waits for a review."""

    job: Annotated[str, "The job's id."]
    name: Annotated[str, "Its name."]
    owner: Annotated[str, "The user or repository that owns it."]
    environment: Annotated[str, "The environment that it asks for."]
    until: Annotated[str, "When it fails if nobody has approved it, as RFC 3339."]
    source: Annotated[dict[str, str], "What is vouched for of the script's source, such as `ref` and `sha`."]


@dataclass(frozen=True)
class RequestPage:
    """Some of the jobs that wait for your review, oldest first."""

    items: Annotated[list[RequestView], "The jobs."]
    next: NextPage


@dataclass(frozen=True)
class ReviewView(RequestView):
    """A job that asks for an environment, and what it runs."""

    privileges: Annotated[list[str], "The privileges that it has once it is approved."]
    reviewers: Annotated[list[str], "The users who may approve it. Nobody approves a job of their own as a rule."]
    logins: Annotated[list[str], "The people who may approve it at GitHub, by the button of its check."]
    by: Annotated[str | None, "Who approved it; null until somebody has. `github/` stands before a login."]
    target: Annotated[str, "The target that it runs on."]
    resources: Annotated[list[str], "The types of the resources that it asks for."]
    inputs: Annotated[list[str], "Names of files that its user sends, also after it is approved."]
    dependencies: Annotated[list[JobDependency], "The jobs whose outputs it may use."]
    env: Annotated[dict[str, str], "Environment variables of the script, by name."]
    script: Annotated[str | None, "What it runs; null when that is no longer kept."]


@dataclass(frozen=True)
class Decision:
    """What a reviewer decides of a job."""

    refuse: Annotated[bool, "Whether to refuse it: the job fails. By default it is approved."] = False


@router.get("/v1/reviews", "List the jobs that wait for your review, oldest first", READ)
def list_reviews(on: System, user: Caller, *, limit: Limit = 50, page: UlidPage = "") -> RequestPage:
    found, following = reviews.list_requests(on, user, limit, page)
    return RequestPage([_request(job) for job in found], following)


@router.get("/v1/jobs/{job}/review", "Show what a job is that asks for an environment", READ)
def get_review(on: System, user: Caller, job: str) -> ReviewView:
    found = reviews.find(on, user, job)
    return _show(found.job, found)


@router.post("/v1/jobs/{job}/review", "Approve a job for its environment, or refuse it", REVIEW)
def review_job(on: System, user: Caller, job: str, ask: Decision) -> ReviewView:
    reviews.decide(on, user, job, refuse=ask.refuse)
    found = reviews.find(on, user, job)
    return _show(found.job, found)


def _request(job: Job) -> RequestView:
    assert job.review, "it waits for a review"
    return view(RequestView, job, job.review, job=job.id, source=dict(job.provenance.vouched))


def _show(job: Job, asked: Asked) -> ReviewView:
    environment = asked.environment
    return view(
        ReviewView,
        job,
        job.request,
        asked.review,
        job=job.id,
        by=asked.review.by or None,
        reviewers=list(environment.reviewers) if environment else [],
        logins=list(environment.logins) if environment else [],
        source=dict(job.provenance.vouched),
        target=job.request.target_resolved,
        resources=[need.type for need in job.request.needs if need.order != WORKER],
        env=dict(asked.spec.env) if asked.spec else {},
        script=asked.spec.source if asked.spec else None,
    )
