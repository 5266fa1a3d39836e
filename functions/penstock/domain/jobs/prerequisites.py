"""What becomes of a job that waits for others, and for files that its user sends.

              all have ended as they were to, and all files are there
    waiting ──────────────────────────────────▶ queued
       │ └── looked at again, for a message may be lost
       └── one has ended otherwise: what it waits for cannot happen any more ──▶ settled: failed

Nobody can wait in a circle: a job depends on jobs that were there before it. So each of them settles, and it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from penstock.domain.artifacts.inputs import ARRIVE_WITHIN, Input
from penstock.domain.jobs.dependencies import Dependency, On
from penstock.domain.jobs.jobs import START_WITHIN, Job, Outcome, State

DEPENDENCY_ERROR = "Dependency"
"""What ends a job that depends on what cannot happen any more."""

MAX_RECHECK = timedelta(minutes=10)
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
    """What becomes of a job: `broken` says why it never can run; else it waits for `waiting` and `inputs`, if any."""

    broken: str | None = None
    waiting: tuple[Dependency, ...] = ()
    inputs: tuple[Input, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether there is nothing to wait for any more."""
        return self.broken is None and not self.waiting and not self.inputs


def judge(
    dependencies: Sequence[Dependency], priors: Mapping[str, Job], inputs: Sequence[Input], now: datetime
) -> Verdict:
    """The verdict on a job, given the jobs that it depends on, by id, and its inputs. What is wrong counts at once."""
    missing = tuple(each for each in inputs if not each.is_committed)
    sentences = [_broken(each, priors.get(each.job)) for each in dependencies]
    sentences += [_late(each) for each in missing if each.until <= now]
    broken = next((sentence for sentence in sentences if sentence), None)
    if broken:
        return Verdict(broken)
    return Verdict(None, tuple(each for each in dependencies if not priors[each.job].is_settled), missing)


def _broken(dependency: Dependency, prior: Job | None) -> str | None:
    """Why what is waited for cannot happen any more, if it cannot."""
    if prior is None:
        return f"this job depends on job {dependency.job} ({dependency.name}) which has been deleted; failing job"
    if prior.outcome is None or prior.outcome in ENDS[dependency.on]:
        return None
    wanted, has = _WANTED[dependency.on], _HAS[prior.outcome]
    return f"this job depends on job {prior.id} ({prior.name}) {wanted}, but it {has}; failing job"


def _late(missing: Input) -> str:
    minutes = int(ARRIVE_WITHIN.total_seconds() // 60)
    begun = "its upload was begun and not finished" if missing.artifact else "nobody began to send it"
    return f"the input {missing.name} did not arrive within {minutes} min: {begun}; failing job"


def outputs_gone(dependency: Dependency, why: str) -> str:
    """Why a job fails whose inputs are not kept any more, although their job ended as it was to."""
    return f"this job needs what job {dependency.job} ({dependency.name}) kept, but {why}; failing job"


def ready(job: Job, now: datetime) -> Job:
    """A job that waits for nothing any more: its queue deadline begins when it claims something."""
    return replace(job, state=State.QUEUED, times=replace(job.times, ready=now), due=now + START_WITHIN)


def recheck(job: Job, verdict: Verdict, now: datetime) -> Job:
    """A job that waits on, and is looked at again: the later, the longer it has waited, or when a file is late."""
    waited = (now - job.times.submitted) / 4
    later = now + max(START_WITHIN, min(waited, MAX_RECHECK))
    return replace(job, due=min([later, *(each.until for each in verdict.inputs)]))
