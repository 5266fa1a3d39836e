"""Does the job, with threads that help, and reports it."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import asdict, replace

from . import disk, health
from .control import Abandon, ServiceError, start_thread
from .declared import Declared
from .desk import desk
from .ending import end
from .events import Delivery
from .faults import Fault
from .inputs import Inputs
from .job import Job
from .log import log, now
from .outcome import REASON_CHARS, TEXT_CHARS, Failure, Outcome
from .progress import Progress, Step
from .tasks import run_tasks
from .uploads import Uploads

LAST_CALL_SECONDS = 15.0  # how long a call that is under way may take when the lease is lost


def attend(job: Job, progress: Progress) -> int:
    """Check, run, upload, report. Return the exit code. Whatever happens, no process of the job is left. [UNIT-2]"""
    control, delivery = job.control, Delivery(job.service, job.control, job.outbox, job.order.job)
    start_thread(control, "clock", control.watch_clock)
    start_thread(control, "pulse", lambda: keep_lease(job))
    sender = start_thread(control, "outbox", delivery.run)
    log(f"job {job.order.job}: {len(job.order.tasks)} task(s)")
    try:
        outcome = prepare(job) or work(job)
        job.outbox.flush()
        job.outbox.tell_dropped()  # which is known when all is delivered
        job.outbox.flush()
        if not control.abandoned:
            report(job, outcome)
            note_finished(job, progress)
            control.abandon(Abandon.DONE)
            return 1 if outcome.broken else 0
        say_last(delivery, sender)
    except ServiceError as why:
        log(f"ending early: {why}")
    finally:
        end(job.family.everybody, lambda: 0.0)
    return 0 if control.abandoned is Abandon.GONE else 1


def prepare(job: Job) -> Outcome | None:
    """Make the job's folders, and see whether the machine is fit. Return how the job stands if it is not."""
    try:
        job.places.make()
    except OSError as why:
        return unfit(why)
    wrong = health.check(job, "before")
    return Outcome("broken", wrong, broken=wrong) if wrong else None


def unfit(why: OSError) -> Outcome:
    """Return how the job stands when its machine cannot even be made ready, such as one whose disk is full."""
    text = f"the machine cannot be made ready for the job: {why}"
    full = disk.refused(why)
    failure = Failure("disk_full", full) if full else Failure("machine_broken", {"error": str(why)})
    return Outcome("broken", text, broken=text, failure=failure)


def note_finished(job: Job, progress: Progress) -> None:
    """Note that the job is reported. Without the note, a restart runs nothing either: it was begun. [JOB-2]"""
    try:
        progress.note(Step.FINISHED, job.order.job)
    except OSError as why:
        log(f"it could not be noted that job {job.order.job} is finished: {why}")


def work(job: Job) -> Outcome:
    """Fetch, run the tasks and upload; then see whether the machine is still fit for others. Raises ServiceError."""
    until = now() + job.order.timeout  # which the inputs are part of
    job.control.deadline = until
    wrong = Inputs(job).fetch() if job.order.reply.get("inputs") else None
    if wrong:
        return wrong
    caches = Declared(job, until)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(desk(job))
        except OSError as why:
            return unfit(why)
        outcome = run_tasks(job, caches.restore)
    job.control.check()
    if outcome.result in ("broken", "unprepared"):
        return outcome  # there is nothing to upload: the script has not begun
    outcome = with_fault(outcome, Uploads(job).run())
    if outcome.result == "succeeded":
        caches.save()
    return replace(outcome, broken=health.check(job, "after"))


def keep_lease(job: Job) -> None:
    """Renew the lease until the work is abandoned. Runs as a thread."""
    while job.control.sleep(job.order.heartbeat):
        job.service.renew(job.order.job, "heartbeat", {})


def with_fault(outcome: Outcome, fault: Fault | None) -> Outcome:
    """Return the outcome of a job whose outputs have a fault: the script is to blame before the outputs."""
    if fault is None or outcome.result != "succeeded":
        return outcome
    return replace(outcome, result="failed", reason=fault.text, failure=fault.failure)


def report(job: Job, outcome: Outcome) -> None:
    """Say how the job went, and no secret. Raises ServiceError. [JOB-1] [SEC-1]"""
    reason = outcome.reason and tell(job, outcome.reason)[:REASON_CHARS]
    broken = outcome.broken and tell(job, outcome.broken)[: health.BROKEN_CHARS]
    log(f"job {job.order.job}: {outcome.result}: {reason or 'all tasks exited with code 0'}")
    failure = outcome.failure and tell_failure(job, outcome.failure)
    job.call("finish", asdict(replace(outcome, reason=reason, broken=broken, failure=failure)))


def tell(job: Job, text: str) -> str:
    """Return a text without secrets, and without what JSON cannot say, such as a name that is not UTF-8. [SEC-1]"""
    return job.mask.text(text).encode("utf-8", "replace").decode("utf-8")


def tell_failure(job: Job, failure: Failure) -> Failure:
    """Return a failure without the secrets in its texts. [SEC-1]"""
    evidence = {
        name: tell(job, value)[:TEXT_CHARS] if isinstance(value, str) else value
        for name, value in failure.evidence.items()
    }
    lines = [tell(job, line) for line in failure.lines]
    return replace(failure, evidence=evidence, task_name=tell(job, failure.task_name), lines=lines)


def say_last(delivery: Delivery, sender: threading.Thread) -> None:
    """Try to deliver the last events of a lost lease, in the place of the thread that did it so far."""
    sender.join(LAST_CALL_SECONDS)
    if not sender.is_alive():
        delivery.try_rest()
