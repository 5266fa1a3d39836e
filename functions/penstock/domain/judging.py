"""What becomes of a job that waits for others.

              all have ended as they were to
    waiting ──────────────────────────────────▶ queued
       │ └── looked at again, for a message may be lost
       └── one has ended otherwise: what it waits for cannot happen any more ──▶ settled: failed

Nobody can wait in a circle: a job depends on jobs that were there before it. So each of them settles, and it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from penstock.domain.dependencies import Dependency, On
from penstock.domain.jobs import START_WITHIN, Job, Outcome, State

ERROR = "Dependency"
"""What ends a job that depends on what cannot happen any more."""

LOOK_MOST = timedelta(minutes=10)
"""After how long a waiting job is looked at again at the latest. It is woken by what it waits for, and needs it not."""

ENDS = {
    On.SUCCESS: (Outcome.SUCCEEDED,),
    On.FAILURE: (Outcome.FAILED, Outcome.ERRORED),
    On.ALWAYS: tuple(Outcome),
}
"""How a job must end for those that depend on it."""

_WANTED = {On.SUCCESS: "completing", On.FAILURE: "failing", On.ALWAYS: "ending"}
_HAS = {
    Outcome.SUCCEEDED: "has completed",
    Outcome.FAILED: "has failed",
    Outcome.CANCELLED: "was cancelled",
    Outcome.ERRORED: "has errored",
}


@dataclass(frozen=True)
class Verdict:
    """What becomes of a job: `broken` says why it never can run; else it waits for `waiting`, and is ready without."""

    broken: str | None = None
    waiting: tuple[Dependency, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether there is nothing to wait for any more."""
        return self.broken is None and not self.waiting


def judge(dependencies: Sequence[Dependency], priors: Mapping[str, Job]) -> Verdict:
    """The verdict on a job, given the jobs that it depends on, by id. What has ended wrong counts at once."""
    sentences = (_broken(each, priors.get(each.job)) for each in dependencies)
    broken = next((sentence for sentence in sentences if sentence), None)
    waiting = tuple(each for each in dependencies if not (priors.get(each.job) and priors[each.job].is_settled))
    return Verdict(broken, () if broken else waiting)


def _broken(dependency: Dependency, prior: Job | None) -> str | None:
    """Why what is waited for cannot happen any more, if it cannot."""
    if prior is None:
        return f"this job depends on job {dependency.job} ({dependency.name}) which has been deleted; failing job"
    if prior.outcome is None or prior.outcome in ENDS[dependency.on]:
        return None
    wanted, has = _WANTED[dependency.on], _HAS[prior.outcome]
    return f"this job depends on job {prior.id} ({prior.name}) {wanted}, but it {has}; failing job"


def ready(job: Job, now: datetime) -> Job:
    """A job that waits for nothing any more: its queue deadline begins when it claims something."""
    return replace(job, state=State.QUEUED, times=replace(job.times, ready=now), due=now + START_WITHIN)


def look_again(job: Job, now: datetime) -> Job:
    """A job that waits on, and is looked at again: the later, the longer it has waited."""
    waited = (now - job.times.submitted) / 4
    return replace(job, due=now + max(START_WITHIN, min(waited, LOOK_MOST)))
