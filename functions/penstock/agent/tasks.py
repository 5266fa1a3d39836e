"""The job's tasks, one after the other."""

from __future__ import annotations

from .ending import end
from .job import Job
from .outcome import Outcome
from .run import Run


def run_tasks(job: Job) -> Outcome:
    """Run the tasks in their order, up to the first that fails or the wish to stop, and what is to be run after them.

    Then end what they left running.
    """
    outcome = _run_posts(job, _run_each(job))
    job.control.deadline = None
    strays = end(job.family.everybody, job.control.short_grace)
    if strays.count:
        job.outbox.put("worker", None, f"ended {strays.count} process(es) that the job left running; they got {strays}")
    return outcome


def _run_each(job: Job) -> Outcome:
    outcome = Outcome()
    for task in job.order.tasks:
        if job.control.stopping:
            return job.stopped(task.index, f"{task} did not start")
        outcome = Run(job, task).run()
        if outcome.result != "succeeded":
            break
    return outcome


def _run_posts(job: Job, outcome: Outcome) -> Outcome:
    """Run what the tasks asked for, each whatever became of the one before; the first that fails fails a good job."""
    for task in job.posts.due(outcome.result, len(job.order.tasks)):
        if job.control.stopping:
            return outcome if outcome.result == "failed" else job.stopped(task.index, f"{task} did not start")
        done = Run(job, task).run()
        outcome = done if outcome.result == "succeeded" else outcome
    return outcome
