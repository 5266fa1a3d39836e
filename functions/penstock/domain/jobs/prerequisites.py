"""What a job waits for before it is queued: other jobs, files that its user uploads, and a review.

              all jobs ended as required, all files are there, and it is approved
    waiting ─────────────────────────────────────────────────────────────────────▶ queued
       │ └── checked again, because a message may be lost
       └── a job ended otherwise, or a file or the review is late ──▶ settled: failed

No circle is possible: a job depends only on jobs that existed before it. So every dependency settles, and so does it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.artifacts.inputs import ARRIVE_WITHIN, Input
from penstock.domain.jobs.dependencies import Dependency, On
from penstock.domain.jobs.jobs import START_WITHIN, Job, Outcome, State
from penstock.domain.jobs.reviews import Review
from penstock.kernel.frozen import dataclass

DEPENDENCY_ERROR = "Dependency"
"""The flow error of a job whose prerequisite cannot be met any more."""

MAX_RECHECK = timedelta(minutes=10)
"""How long until a waiting job is checked again at the latest. Normally what it waits for wakes it."""

ENDS = {
    On.SUCCESS: (Outcome.SUCCEEDED,),
    On.FAILURE: (Outcome.FAILED, Outcome.ERRORED),
    On.ALWAYS: tuple(Outcome),
}
"""The outcomes that satisfy each condition."""

_WANTED = {On.SUCCESS: "completing", On.FAILURE: "failing", On.ALWAYS: "ending"}


_HAS = {
    Outcome.SUCCEEDED: "has completed",
    Outcome.FAILED: "has failed",
    Outcome.CANCELLED: "was cancelled",
    Outcome.ERRORED: "has errored",
}


@dataclass(frozen=True)
class Verdict:
    """Whether a job can go on. `broken` says why it never can; otherwise it waits for `waiting`, `inputs`, `review`."""

    broken: str | None = None
    waiting: tuple[Dependency, ...] = ()
    inputs: tuple[Input, ...] = ()
    review: Review | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the job waits for nothing any more."""
        return self.broken is None and not self.waiting and not self.inputs and not self.review


def judge(
    dependencies: Sequence[Dependency],
    priors: Mapping[str, Job],
    inputs: Sequence[Input],
    now: datetime,
    review: Review | None = None,
) -> Verdict:
    """The verdict on a job, given its dependencies by id, its inputs and its review. A failed prerequisite counts at
    once.

    Inputs may be sent one after the other, so none is late while another has time. The verdict's have that time.
    """
    until = max((each.until for each in inputs), default=now)
    missing = tuple(replace(each, until=until) for each in inputs if not each.is_committed)
    awaited = review if review and review.is_open else None
    sentences = [_broken(each, priors.get(each.job)) for each in dependencies]
    sentences += [_late(each) for each in missing if each.until <= now]
    sentences += [_unreviewed(awaited)] if awaited and awaited.until <= now else []
    broken = next((sentence for sentence in sentences if sentence), None)
    if broken:
        return Verdict(broken)
    return Verdict(None, tuple(each for each in dependencies if not priors[each.job].is_settled), missing, awaited)


def _broken(dependency: Dependency, prior: Job | None) -> str | None:
    """Why a dependency can never be met; None if it can."""
    if prior is None:
        return f"this job depends on job {dependency.job} ({dependency.name}) which has been deleted; failing job"
    if prior.end.outcome is None or prior.end.outcome in ENDS[dependency.on]:
        return None
    wanted, has = _WANTED[dependency.on], _HAS[prior.end.outcome]
    return f"this job depends on job {prior.id} ({prior.name}) {wanted}, but it {has}; failing job"


def _late(missing: Input) -> str:
    minutes = int(ARRIVE_WITHIN.total_seconds() // 60)
    begun = "its upload was begun and not finished" if missing.artifact else "nobody began to send it"
    return f"the input {missing.name} did not arrive within {minutes} min: {begun}; failing job"


def _unreviewed(review: Review) -> str:
    return f"nobody approved this job for the environment {review.environment} in time; failing job"


def outputs_gone(dependency: Dependency, why: str) -> str:
    """Why a job fails although its dependency ended as required: the outputs were deleted."""
    return f"this job needs what job {dependency.job} ({dependency.name}) kept, but {why}; failing job"


def ready(job: Job, now: datetime) -> Job:
    """A job that waits for nothing any more. Its queue deadline starts when it claims something."""
    return replace(job, state=State.QUEUED, times=replace(job.times, ready=now), due=now + START_WITHIN)


def recheck(job: Job, verdict: Verdict, now: datetime) -> Job:
    """A job that keeps waiting: checked again at growing intervals, or when a file or its review is late."""
    waited = (now - job.times.submitted) / 4
    later = now + max(START_WITHIN, min(waited, MAX_RECHECK))
    ends = [each.until for each in verdict.inputs] + ([verdict.review.until] if verdict.review else [])
    return replace(job, due=min([later, *ends]))
