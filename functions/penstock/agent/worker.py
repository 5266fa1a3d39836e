"""A worker's life, from hello to its exit code. docs/internals/agent.md describes it.

Exit codes: 0, done or no longer wanted; 1, the worker must be counted as lost, and the log says why.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from . import VERSION
from .account import BUILD_USER, Account, existing_account
from .caches import JobCaches
from .client import (
    Abandon,
    Client,
    Control,
    Refused,
    ServiceError,
    Unreachable,
    identity_document,
    looks,
    start_thread,
    wait_for_bell,
)
from .diagnosis import full_disk_error
from .downloads import Copies, remove_copies
from .health import check_health, clean_machine
from .inputs import Inputs
from .job import BROKEN_CHARS, EVIDENCE_CHARS, REASON_CHARS, Background, Failure, Job, Order, Outcome, Posts
from .joblog import Delivery, Outbox
from .keyrings import join_new_session
from .machine import Config, JobProcesses, Machine, Progress, Step, adopt_orphans, end_processes, log, now
from .masking import Mask, resource_secrets
from .outputs import OutputFault, Outputs, commit_outputs
from .tasks import needs_own_home, plan_tasks, run_tasks, serve_bmat

LAST_CALL_SECONDS = 15.0  # how long a call that is under way may take when the lease is lost
REST_SECONDS = 4.0  # for the rest of the log after SIGTERM: Docker kills 10 s after it, and the job has 2 s of them
CLEANED_CHARS = 300  # the service refuses longer texts
HELD_TRIES = 5  # per poll; the agent polls for as long as the hold lasts
BROKEN_TRIES = 5  # without the report the service finds out later


def run_worker(path: Path) -> int:
    """Say hello, and do the job in the answer; where workers are reused, job after job. Return the exit code."""
    config = Config.load(path)
    progress = Progress(config.folder)
    if progress.read() is not Step.NONE:
        return _restarted(config, progress)
    adopt_orphans()
    if config.socket:
        from .relay import serve_loopback

        serve_loopback(config.url, config.socket)
    introduction = {"worker": config.worker, "key": config.key}
    try:
        copies: Copies | None = None
        had_root = False
        while True:
            job = _next_job(config, introduction, copies)
            copies = job.copies
            progress.note(Step.STARTED, job.order.job)
            code = do_job(job, progress, had_root)
            had_root = had_root or not job.machine.is_confined
            introduction["previous"] = config.token()
            if not _wait_if_held(config, introduction, job.control):
                return code
            if code or not job.order.reuse or job.control.abandoned is not Abandon.DONE:
                return code
            try:
                introduction["cleaned"] = (clean_machine(job) + (copies.summary() if copies else ""))[:CLEANED_CHARS]
            except OSError as why:
                return _report_unclean(config, introduction, job.mask.text(str(why)))
            config.new_token()
    except Refused as why:
        log(f"hello was refused: {why}")
        return 0 if why.status == 410 else 1
    except (ServiceError, OSError) as why:
        log(f"giving up: {why}")
        return 1


def _restarted(config: Config, progress: Progress) -> int:
    """End after a restart: a worker never continues a job, nor starts it a second time. [JOB-2]"""
    if progress.read() is Step.FINISHED:
        log("this worker's job is finished already; nothing to do")
        return 0
    log("this agent was restarted in the middle of its job, which it will not run twice; the worker is lost")
    left = end_processes(JobProcesses(config.worker).all_of_job, lambda: 2.0)
    log(f"ended {left.count} process(es) of the job")
    return 1


def _next_job(config: Config, introduction: dict[str, Any], copies: Copies | None) -> Job:
    """Exchange the key, or the last job's token, for a job and its lease. Raises ServiceError."""
    control = Control()
    handle_signals(control)
    service = Client(config.url, config.token(), control)
    order = _hello(config, service, control, introduction, copies)
    copies = copies_for(str(order.reply.get("owner") or ""), order.reuse, copies, config.folder / "copies")
    mask = Mask([config.key, config.token(), *resource_secrets(order.reply.get("resources") or {})])
    outbox = Outbox(control, order.limits, mask, order.heartbeat)
    processes = JobProcesses(config.worker)
    machine = _machine(config, order)
    background = Background(outbox.put, mask, processes, order.limits["line_bytes"], machine)
    order, posts = plan_tasks(order, machine), Posts(order.posts)
    return Job(config, order, machine, control, service, outbox, processes, mask, background, posts, copies)


def copies_for(owner: str, is_reused: bool, copies: Copies | None, folder: Path) -> Copies | None:
    """Return the copies that a job of `owner` may use: those of the same owner's jobs. All others are removed. [SEC-2]

    A worker that ends with this job needs none.
    """
    if copies and is_reused and copies.owner == owner:
        return copies
    if os.path.lexists(folder):
        remove_copies(folder)
    return Copies(folder, owner) if is_reused else None


def _machine(config: Config, order: Order) -> Machine:
    """Return the job's side of the machine, with the job's user. Raises OSError if that user cannot be one. [SEC-2]"""
    account = _account(config, order)
    machine = Machine(config.root, account, apart=needs_own_home(order.reply))
    if account:
        join_new_session()
    if account and machine.is_confined:
        os.setgroups(account.groups())  # of all threads: `acting` changes the user and its group only
    return machine


def _account(config: Config, order: Order) -> Account | None:
    """Return the user of the job's own. There is one where the machine has one, or is made for its jobs. [SEC-2]"""
    if config.user:
        return existing_account(config.user)
    is_alone = config.alone and config.root == "/" and os.geteuid() == 0
    return replace(BUILD_USER, may_be_root=order.sudo) if is_alone else None


def _hello(
    config: Config, service: Client, control: Control, introduction: dict[str, Any], copies: Copies | None
) -> Order:
    """Say hello until the answer is a job. Raises ServiceError."""
    log(f"worker {config.worker}: saying hello to {config.url}")
    here: dict[str, Any] = {"host": socket.gethostname(), "pid": os.getpid(), "version": VERSION}
    if config.identity and "document" not in introduction:  # it stays the same; every later call shows it, too
        introduction.update(identity_document(config.identity, control))
    waits = looks()
    while True:
        due = copies.due_for_check() if copies else []
        reply = service.hello({**introduction, **here, **({"copies": due} if due else {})})
        if copies and due:
            copies.keep_only(reply.get("copies") or [])
        if not reply.get("idle"):
            return Order.read(reply)
        wait_for_bell(reply.get("bell"), float(reply["seconds"]), waits, lambda part: not control.sleep(part))


def _report_unclean(config: Config, introduction: dict[str, Any], why: str) -> int:
    """Report that this machine cannot be cleaned, so that the service does not wait for it. [UNIT-2]"""
    log(f"this machine cannot be cleaned: {why}")
    introduction.pop("cleaned", None)
    control = Control()
    handle_signals(control)
    try:
        service = Client(config.url, config.token(), control)
        service.hello({**introduction, "broken": why[:BROKEN_CHARS]}, BROKEN_TRIES)
    except ServiceError as answer:
        log(f"the service answered the report: {answer}")
    return 1


def _wait_if_held(config: Config, introduction: dict[str, Any], control: Control) -> bool:
    """Wait while an operator holds this worker, whatever its job's result. Return whether the service still wants it.

    The answer to a job's report says whether the worker is held. A worker whose job the service ended early has made
    no report, so it asks; its token may not be valid for the job any more.
    """
    if control.held_until <= now() and control.abandoned not in (Abandon.GONE, Abandon.REFUSED):
        return True
    introduction.pop("cleaned", None)
    try:
        wait_while_held(config, introduction, control.held_until)
    except Refused as why:
        log(f"this worker is not held: {why}")
        return False
    return True


def wait_while_held(config: Config, introduction: dict[str, Any], until: float) -> None:
    """Poll the service until the hold is over, and change nothing on the machine. [UNIT-3]

    `until` is the last known end of the hold, which counts while the service cannot be reached; 0 if the agent knows of
    no hold. Raises ServiceError.
    """
    control = Control()
    handle_signals(control)
    service = Client(config.url, config.token(), control)
    while True:
        try:
            reply = service.hello(introduction, HELD_TRIES)
        except Unreachable:
            if until <= now():
                raise
            continue
        held = float(reply.get("held_seconds") or 0.0)
        if not held:
            return
        log(f"an operator holds this worker; its machine is left as it is for at most {held:.0f} s")
        until = now() + held
        control.sleep(min(float(reply["seconds"]), held))


def do_job(job: Job, progress: Progress, had_root: bool = False) -> int:
    """Check the machine, run, upload and report. Return the exit code. No process of the job is left. [UNIT-2]"""
    control, delivery = job.control, Delivery(job.service, job.control, job.outbox, job.order.job)
    start_thread(control, "clock", control.watch_clock)
    start_thread(control, "pulse", lambda: keep_lease(job))
    sender = start_thread(control, "outbox", delivery.run)
    log(f"job {job.order.job}: {len(job.order.tasks)} task(s)")
    try:
        outcome = prepare_machine(job, had_root) or run_job(job)
        job.outbox.flush()
        job.outbox.report_dropped()  # after the flush: the service counts what it dropped in its answers
        job.outbox.flush()
        if not control.abandoned:
            report_outcome(job, outcome)
            note_finished(job, progress)
            control.abandon(Abandon.DONE)
            return 1 if outcome.broken else 0
        if control.abandoned is Abandon.LOST:
            deliver_rest(delivery, sender)
    except ServiceError as why:
        log(f"ending early: {why}")
    finally:
        end_processes(job.processes.all_of_job, lambda: 0.0)
    if control.abandoned is Abandon.TERMINATED:
        send_rest(delivery, sender)
    return 0 if control.abandoned is Abandon.GONE else 1


def why_not_confined(order: Order, machine: Machine, had_root: bool) -> str | None:
    """Return why a job that must not become root cannot run here; None if it can, or if it may. [SEC-2]

    `had_root`: an earlier job of this worker could become root, so what it left can be anywhere.
    """
    if order.sudo:
        return None
    if had_root:
        return "this target's jobs must not become root (sudo = false), but an earlier job of this machine could"
    if not machine.is_confined:
        return (
            "this target's jobs must not become root (sudo = false), but this machine runs them as the agent's user: "
            "start the agent of a host as root, with --user"
        )
    return None


def prepare_machine(job: Job, had_root: bool) -> Outcome | None:
    """Make the job's folders, and check the machine's health. Return the job's outcome if the machine is unfit."""
    wrong = why_not_confined(job.order, job.machine, had_root)
    if wrong:
        return Outcome("broken", wrong, broken=wrong, failure=Failure("machine_broken", {"error": wrong}))
    try:
        job.machine.make()
    except OSError as why:
        return unfit_outcome(why)
    wrong = check_health(job, "before") if job.order.health.get("before") else None
    return Outcome("broken", wrong, broken=wrong) if wrong else None


def unfit_outcome(why: OSError) -> Outcome:
    """Return the outcome of a job whose machine cannot be made ready, for example because its disk is full."""
    text = f"the machine cannot be made ready for the job: {why}"
    full = full_disk_error(why)
    failure = Failure("disk_full", full) if full else Failure("machine_broken", {"error": str(why)})
    return Outcome("broken", text, broken=text, failure=failure)


def note_finished(job: Job, progress: Progress) -> None:
    """Note that the job is reported. Without the note, a restart runs nothing either: the job was started. [JOB-2]"""
    try:
        progress.note(Step.FINISHED, job.order.job)
    except OSError as why:
        log(f"job {job.order.job} is finished, but no file could record it: {why}")


def run_job(job: Job) -> Outcome:
    """Fetch inputs, run the tasks, upload outputs, and check the machine's health. Raises ServiceError."""
    job.control.start_clock(job.order.timeout)  # the inputs count, too
    failed = Inputs(job).fetch() if job.order.reply.get("inputs") else None
    if failed:
        return failed
    caches = JobCaches(job) if job.order.reply.get("caches") else None
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(serve_bmat(job))
        except OSError as why:
            return unfit_outcome(why)
        outcome = run_tasks(job, caches)
    job.control.check()
    if outcome.result in ("broken", "unprepared"):
        return outcome  # there is nothing to upload: the script has not begun
    if job.order.rules:
        outputs = Outputs(job, with_outcome=not caches and not job.order.health.get("after"))
        with job.machine.acting():
            fault = outputs.run()
        outcome = with_fault(outcome, fault)
        outcome = replace(outcome, outputs=tuple(outputs.uncommitted))
    if caches and outcome.result == "succeeded":
        caches.save()
    return replace(outcome, broken=check_health(job, "after")) if job.order.health.get("after") else outcome


def keep_lease(job: Job) -> None:
    """Renew the lease until the work is abandoned, unless events renew it. Runs as a thread."""
    while job.control.sleep(job.control.until_beat(job.order.heartbeat)):
        if not job.control.until_beat(job.order.heartbeat):
            job.service.renew(job.order.job, "heartbeat", {})


def with_fault(outcome: Outcome, fault: OutputFault | None) -> Outcome:
    """Return the outcome with a fault of the outputs. A script that failed comes first."""
    if fault is None or outcome.result != "succeeded":
        return outcome
    return replace(outcome, result="failed", reason=fault.text, failure=fault.failure)


def report_outcome(job: Job, outcome: Outcome) -> None:
    """Report the outcome with the last outputs, or first these, if they are refused. Raises ServiceError. [JOB-1]"""
    try:
        finish(job, outcome)
    except Refused:
        if not outcome.outputs:
            raise
        fault = commit_outputs(job, outcome.outputs)
        finish(job, with_fault(replace(outcome, outputs=()), fault))


def finish(job: Job, outcome: Outcome) -> None:
    """Report the outcome, without secrets. Raises ServiceError. [SEC-1]"""
    reason = outcome.reason and masked_text(job, outcome.reason)[:REASON_CHARS]
    broken = outcome.broken and masked_text(job, outcome.broken)[:BROKEN_CHARS]
    log(f"job {job.order.job}: {outcome.result}: {reason or 'all tasks exited with code 0'}")
    failure = outcome.failure and masked_failure(job, outcome.failure)
    job.call("finish", asdict(replace(outcome, reason=reason, broken=broken, failure=failure)))


def masked_text(job: Job, text: str) -> str:
    """Return a text without secrets, and without characters that JSON cannot hold. [SEC-1]"""
    return job.mask.text(text).encode("utf-8", "replace").decode("utf-8")


def masked_failure(job: Job, failure: Failure) -> Failure:
    """Return a failure without the secrets in its texts. [SEC-1]"""
    evidence = {
        name: masked_text(job, value)[:EVIDENCE_CHARS] if isinstance(value, str) else value
        for name, value in failure.evidence.items()
    }
    lines = [masked_text(job, line) for line in failure.lines]
    return replace(failure, evidence=evidence, task_name=masked_text(job, failure.task_name), lines=lines)


def deliver_rest(delivery: Delivery, sender: threading.Thread) -> None:
    """Try to deliver the last events after the lease was lost, in place of the thread that did so before."""
    sender.join(LAST_CALL_SECONDS)
    if not sender.is_alive():
        delivery.try_rest()


def send_rest(delivery: Delivery, sender: threading.Thread) -> None:
    """Send the last events after a signal to terminate, whose sender does not wait for long. None is sent twice."""
    until = now() + REST_SECONDS
    sender.join(REST_SECONDS)
    if not sender.is_alive():
        try:
            delivery.send_rest(until)
        except ServiceError as why:
            log(f"the rest of the log cannot be sent: {why}")


def handle_signals(control: Control) -> None:
    """Abandon the work on SIGTERM or SIGINT: in a thread, because a signal handler must not wait for a lock."""

    def terminate(number: int, frame: Any) -> None:
        threading.Thread(target=control.abandon, args=(Abandon.TERMINATED,), daemon=True).start()

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGINT, terminate)
