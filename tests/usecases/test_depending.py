"""Settling, submitting, cancelling, lost messages and the sweep, in any order: nobody who depends is lost. [JOB-1]"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.domain.jobs.dependencies import On
from penstock.domain.jobs.jobs import Job, Outcome, State
from penstock.domain.jobs.prerequisites import ENDS
from penstock.domain.users.users import User
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep
from penstock.usecases.jobs import cancel, settle
from tests.usecases.conftest import new_twin
from tests.usecases.steps import job_of, submit, told

ADA = User(name="ada", created=START, version=1)
ENDINGS = ((None, None), ("Unsatisfiable", "no"), ("Cancelled", "stopped"), ("QueueDeadline", "late"))

numbers = st.integers(0, 5)
submits = st.tuples(st.just("submit"), st.lists(numbers, max_size=3), st.sampled_from(On))
steps = st.lists(
    st.one_of(
        submits,
        st.tuples(st.just("end"), numbers, st.sampled_from(ENDINGS)),
        st.tuples(st.just("cancel"), numbers, st.none()),
        st.tuples(st.just("deliver"), numbers, st.none()),
        st.tuples(st.just("lose"), numbers, st.none()),
        st.tuples(st.just("twice"), numbers, st.none()),
        st.tuples(st.just("sweep"), st.integers(1, 700), st.none()),
    ),
    min_size=4,
    max_size=25,
)


class Story:
    """A twin in which flows do nothing by themselves: jobs end when a step says so."""

    def __init__(self) -> None:
        self.twin: Twin = new_twin()
        self.jobs: list[str] = []
        self.starts: Counter[str] = Counter()
        self.twin.flows.start = self._start  # type: ignore[method-assign]

    def _start(self, job: str, attempt: int, steps: object) -> None:
        del attempt, steps
        self.starts[job] += 1

    def take(self, step: tuple[str, Any, Any]) -> None:
        do, which, how = step
        getattr(self, do)(which, how)

    def submit(self, which: list[int], on: On) -> None:
        priors = {f"n{at}": {"job": self.jobs[at], "on": on.value} for at in which if at < len(self.jobs)}
        self.jobs.append(submit(self.twin, ADA, dependencies=priors or None))

    def end(self, which: int, how: tuple[str | None, str | None]) -> None:
        if which < len(self.jobs) and self.job(which).state is not State.WAITING:
            settle.settle(self.twin.on, self.jobs[which], self.job(which).attempt, *how)

    def cancel(self, which: int, _: None) -> None:
        if which < len(self.jobs) and not self.job(which).is_settled:
            cancel.cancel(self.twin.on, ADA, self.jobs[which])

    def deliver(self, which: int, _: None) -> None:
        if which < len(self.twin.queues.messages):
            due, queue, message = self.twin.queues.messages[which]
            del self.twin.queues.messages[which]
            del due
            self.twin.take(queue, message)

    def lose(self, which: int, _: None) -> None:
        if which < len(self.twin.queues.messages):
            del self.twin.queues.messages[which]

    def twice(self, which: int, _: None) -> None:
        if which < len(self.twin.queues.messages):
            self.twin.queues.messages.append(self.twin.queues.messages[which])

    def sweep(self, seconds: int, _: None) -> None:
        self.twin.pass_time(seconds)
        sweep.sweep(self.twin.on)

    def job(self, which: int) -> Job:
        return job_of(self.twin, self.jobs[which])

    def over(self) -> None:
        """Let what is under way end well, with every message lost that could be."""
        for _ in range(3 * len(self.jobs) + 3):
            for which in range(len(self.jobs)):
                self.end(which, (None, None))
            self.twin.queues.messages.clear()
            self.sweep(700, None)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(steps)
def test_every_dependent_is_judged_once_and_none_is_lost(story: list[tuple[str, Any, Any]]) -> None:
    found = Story()
    for step in story:
        found.take(step)
        check(found)
    found.over()
    check(found)
    assert all(job_of(found.twin, job).is_settled for job in found.jobs)


def check(found: Story) -> None:
    for job in (job_of(found.twin, each) for each in found.jobs):
        priors = {prior.id: prior for prior in (job_of(found.twin, each.job) for each in job.request.dependencies)}
        outcomes = [(priors[each.job].end.outcome, ENDS[each.on]) for each in job.request.dependencies]
        good = all(outcome in wanted for outcome, wanted in outcomes)
        broken = any(outcome and outcome not in wanted for outcome, wanted in outcomes)
        lines = told(found.twin, job.id)
        assert sum(line.startswith("job dependencies complete") for line in lines) <= 1
        assert sum(line.startswith("settled:") for line in lines) <= 1
        if job.times.ready:
            assert good, "it went on before it was time, or although it never was"
        elif job.is_settled:
            assert broken or job.end.outcome is Outcome.CANCELLED
        if found.starts[job.id]:
            assert job.times.ready
