"""The job's tasks, one after the other."""

from __future__ import annotations

from collections.abc import Callable

from .ending import end
from .failing import CLONE, LOGIN, SETUP
from .job import Job
from .outcome import Outcome
from .run import Run

NEED_NO_CACHE = (SETUP, LOGIN, CLONE)


def run_tasks(job: Job, restore: Callable[[], None]) -> Outcome:
    """Run the tasks in their order, up to the first that fails or the wish to stop, and what is to be run after them.

    What caches have is restored before the first that may use it: the repository is there by then. Then end what they
    left running.
    """
    outcome = _run_posts(job, _run_each(job, restore))
    job.control.deadline = None
    strays = end(job.family.everybody, job.control.short_grace)
    if strays.count:
        job.outbox.put("worker", None, f"ended {strays.count} process(es) that the job left running; they got {strays}")
    return outcome


def _run_each(job: Job, restore: Callable[[], None]) -> Outcome:
    outcome, is_restored = Outcome(), False
    for task in job.order.tasks:
        if not is_restored and task.kind not in NEED_NO_CACHE:
            restore()
            is_restored = True
        if job.control.stopping:
            return job.stopped(task.index, f"{task} did not start")
        outcome = Run(job, task).run()
        if outcome.result != "succeeded":
            break
    return outcome


def _run_posts(job: Job, outcome: Outcome) -> Outcome:
    """Run what the tasks asked for, each whatever became of the one before; the first that fails fails a good job."""
    tasks = job.order.tasks
    if outcome.failure and any(task.kind and task.index == outcome.task for task in tasks):
        return outcome  # they are about a script that has not begun
    for task in job.posts.due(outcome.result, len(tasks), tasks[-1].workdir if tasks else "/work"):
        if job.control.stopping:
            return outcome if outcome.result == "failed" else job.stopped(task.index, f"{task} did not start")
        done = Run(job, task).run()
        outcome = done if outcome.result == "succeeded" else outcome
    return outcome
