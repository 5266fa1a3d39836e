"""What a job waits for that depends on others, for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.domain.dependencies import Dependency, On
from penstock.domain.estimates import Unblock, Way
from penstock.domain.holds import clock
from penstock.domain.inputs import Input
from penstock.domain.jobs import Job
from penstock.domain.judging import Verdict
from penstock.domain.why import TOLD, Why

DEEP = 5
"""How many jobs, each waiting for the next, an explanation follows."""

_VERBS = {On.SUCCESS: "succeed", On.FAILURE: "fail", On.ALWAYS: "end"}


def explain(job: Job, verdict: Verdict, priors: Mapping[str, Job], next_: Why | None) -> Why:
    """Why a job still waits, given the jobs that it depends on; `next_` explains the first of those that it waits for.

    When that will be over nobody can say: a job runs for as long as it takes.
    """
    told = [_jobs(job, verdict.waiting, priors)] if verdict.waiting else []
    told += [f"job {next_.job}: {next_.summary}"] if next_ else []
    told += [_files(verdict.inputs)] if verdict.inputs else []
    unblocks = [Unblock(Way.END, what=f"{_VERBS[each.on]}s", job=each.job) for each in verdict.waiting]
    unblocks += [Unblock(Way.ARRIVE, what=each.name) for each in verdict.inputs]
    of = [*(f"job {each.job}" for each in verdict.waiting), *(f"input {each.name}" for each in verdict.inputs), None][0]
    summary = "; ".join(told) or "the job waits for nothing any more, and is about to take its next step"
    return Why(job.id, job.state, summary, None, of, job.times.submitted, unblocks=tuple(unblocks))


def _files(missing: Sequence[Input]) -> str:
    named = ", ".join(f"{each.name} (until {clock(each.until)})" for each in missing[:TOLD])
    more = f" and {len(missing) - TOLD} more" if len(missing) > TOLD else ""
    return f"the job waits for its user to send {named}{more}"


def _jobs(job: Job, waiting: Sequence[Dependency], priors: Mapping[str, Job]) -> str:
    named = [f"job {each.job} ({priors[each.job].name}) to {_VERBS[each.on]}" for each in waiting[:TOLD]]
    more = f" and {len(waiting) - TOLD} more" if len(waiting) > TOLD else ""
    return (
        f"the job waits for {len(waiting)} of the {len(job.dependencies)} that it depends on: {', '.join(named)}{more}"
    )


def planned(job: Job, priors: Mapping[str, Job]) -> list[str]:
    """What a job would wait for before anything else, a sentence each; of other files only the names are known."""
    files = [f"first it would wait for its user to send {', '.join(job.inputs)}"] if job.inputs else []
    jobs = (each for each in job.dependencies if _open(each, priors))
    return [*files, *(f"first it would wait for {_of(each, priors.get(each.job))}" for each in jobs)]


def _open(dependency: Dependency, priors: Mapping[str, Job]) -> bool:
    prior = priors.get(dependency.job)
    return prior is None or not prior.is_settled


def _of(dependency: Dependency, prior: Job | None) -> str:
    verb = _VERBS[dependency.on]
    if prior is None:
        return f"the job of {dependency.job!r} to {verb}"
    return f"job {prior.id} ({prior.name}), which is {prior.state}, to {verb}"
