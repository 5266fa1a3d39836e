"""Sets: jobs that were submitted as one, or that check one commit."""

from __future__ import annotations

from typing import Annotated

from penstock.api.app import Caller, Limit, Router, UlidPage
from penstock.api.jobs import JobDependency, JobTimes
from penstock.api.shapes import JobOutcome, JobState, NextPage, view
from penstock.domain.jobs import states
from penstock.domain.users.users import READ
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.jobs import sets
from penstock.usecases.jobs.sets import SetJob

router = Router("jobs")


@dataclass(frozen=True)
class SetJobView:
    """A job of a set."""

    id: Annotated[str, "The job's id."]
    name: Annotated[str, "Its name. Of several jobs of one name, the last was submitted last."]
    state: Annotated[JobState, "How far it is."]
    outcome: Annotated[JobOutcome | None, "How it ended; null until it is settled."]
    reason: Annotated[str | None, "Why it ended that way, in a sentence."]
    failure: Annotated[str | None, "The kind of failure; null until it is settled, and if it succeeded."]
    attempt: Annotated[int, "The number of its attempt. Attempts count from 1."]
    target: Annotated[str, "The target that was asked for."]
    target_resolved: Annotated[str, "The target that it runs on: where redirects lead, or one of a family."]
    times: Annotated[JobTimes, "When it reached each of its states."]
    waits_for: Annotated[str | None, "What it waits for, such as the pool `target/linux`; null if it does not wait."]
    dependencies: Annotated[list[JobDependency], "The jobs that it waits for, or waited for: of this set or another."]
    matrix: Annotated[dict[str, str], "The combination of its file's matrix: a value for each axis; else empty."]


@dataclass(frozen=True)
class SetView:
    """Some jobs of a set, in the order in which they were submitted."""

    set: Annotated[str, "The set's id."]
    owner: Annotated[str, "The user or repository that owns the jobs."]
    items: Annotated[list[SetJobView], "The jobs."]
    next: NextPage


@router.get("/v1/sets/{set}", "List the jobs of a set, with what each waits for", READ)
def get_set(
    on: System,
    user: Caller,
    set: str,
    *,
    owner: Annotated[str | None, "Whose set it is: a user or a repository. By default you."] = None,
    limit: Limit = limits.PAGE,
    page: UlidPage = "",
) -> SetView:
    found = sets.jobs_of(on, user, set, owner, limit, page)
    return SetView(set, found.owner, [show(each) for each in found.jobs], found.next)


def show(each: SetJob) -> SetJobView:
    """A job of a set."""
    job = each.job
    return view(
        SetJobView,
        job,
        job.request,
        job.end,
        state=states.shown(job.state, is_in_queue=each.queue is not None),
        waits_for=states.waits_for(job, each.queue),
        failure=job.run.failure.kind if job.is_settled and job.run.failure else None,
        matrix=each.matrix,
    )
