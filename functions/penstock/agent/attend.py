"""Does the job, with threads that help, and reports it."""

from __future__ import annotations

import threading
from dataclasses import asdict, replace

from . import health, helpers
from .clock import now
from .control import Abandon
from .declared import Declared
from .delivery import Delivery
from .desk import desk
from .ending import end
from .errors import ServiceError
from .inputs import Inputs
from .job import Job
from .log import log
from .outcome import REASON_CHARS, Outcome
from .progress import Progress, Step
from .tasks import run_tasks
from .uploads import Uploads

LAST_CALL_SECONDS = 15.0  # how long a call that is under way may take when the lease is lost


def attend(job: Job, progress: Progress) -> int:
    """Check, run, upload, report. Return the exit code. Whatever happens, no process of the job is left. [UNIT-2]"""
    control, delivery = job.control, Delivery(job.service, job.control, job.outbox, job.order.job)
    helpers.start(control, "clock", control.watch_clock)
    helpers.start(control, "pulse", lambda: keep_lease(job))
    sender = helpers.start(control, "outbox", delivery.run)
    log(f"job {job.order.job}: {len(job.order.tasks)} task(s)")
    try:
        job.places.make()
        wrong = health.check(job, "before")
        outcome = Outcome("broken", wrong, broken=wrong) if wrong else work(job)
        job.outbox.flush()
        if not control.abandoned:
            report(job, outcome)
            progress.note(Step.FINISHED, job.order.job)
            control.abandon(Abandon.DONE)
            return 1 if outcome.broken else 0
        say_last(delivery, sender)
    except ServiceError as why:
        log(f"ending early: {why}")
    finally:
        end(job.family.everybody, lambda: 0.0)
    return 0 if control.abandoned is Abandon.GONE else 1


def work(job: Job) -> Outcome:
    """Fetch, run the tasks and upload; then see whether the machine is still fit for others. Raises ServiceError."""
    until = now() + job.order.timeout  # which the inputs are part of
    job.control.deadline = until
    wrong = Inputs(job).fetch() if job.order.reply.get("inputs") else None
    if wrong:
        return wrong
    caches = Declared(job, until)
    caches.restore()
    with desk(job):
        outcome = run_tasks(job)
    job.control.check()
    outcome = with_fault(outcome, Uploads(job).run())
    if outcome.result == "succeeded":
        caches.save()
    return replace(outcome, broken=health.check(job, "after"))


def keep_lease(job: Job) -> None:
    """Renew the lease until the work is abandoned. Runs as a thread."""
    while job.control.sleep(job.order.heartbeat):
        job.service.renew(job.order.job, "heartbeat", {})


def with_fault(outcome: Outcome, fault: str | None) -> Outcome:
    """Return the outcome of a job whose outputs have a fault: the script is to blame before the outputs."""
    return replace(outcome, result="failed", reason=fault) if fault and outcome.result == "succeeded" else outcome


def report(job: Job, outcome: Outcome) -> None:
    """Say how the job went, and no secret. Raises ServiceError. [JOB-1] [SEC-1]"""
    reason = outcome.reason and job.mask.text(outcome.reason)[:REASON_CHARS]
    broken = outcome.broken and job.mask.text(outcome.broken)[: health.BROKEN_CHARS]
    log(f"job {job.order.job}: {outcome.result}: {reason or 'all tasks exited with code 0'}")
    job.call("finish", asdict(replace(outcome, reason=reason, broken=broken)))


def say_last(delivery: Delivery, sender: threading.Thread) -> None:
    """Try to deliver the last events of a lost lease, in the place of the thread that did it so far."""
    sender.join(LAST_CALL_SECONDS)
    if not sender.is_alive():
        delivery.try_rest()
