"""The agent's life, from hello to its exit code. docs/internals/agent.md tells it.

Exit codes: 0, done or no longer wanted; 1, the worker must be counted as lost, and the log says why.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from . import VERSION, disguises, orphans, signals
from .attend import attend
from .background import Background
from .cleaning import clean
from .clock import now
from .config import Config
from .control import Abandon, Control
from .copies import Copies
from .ending import end
from .errors import Refused, ServiceError
from .family import Family
from .health import BROKEN_CHARS
from .job import Job
from .log import log
from .mask import Mask
from .order import Order
from .outbox import Outbox
from .papers import papers
from .places import Places
from .plan import planned, wants_home
from .posts import Posts
from .progress import Progress, Step
from .service import Service
from .staying import stay

BROKEN_TRIES = 5  # the service finds out anyway, only later


def live(path: Path) -> int:
    """Say hello and do the job that the answer is; where workers are kept, job after job. Return the exit code."""
    config = Config.load(path)
    progress = Progress(config.folder)
    if progress.read() is not Step.NONE:
        return _live_again(config, progress)
    orphans.adopt()
    introduction = {"worker": config.worker, "key": config.key}
    try:
        copies = Copies(config.folder / "copies")
        while True:
            job = _next_job(config, introduction, copies)
            progress.note(Step.STARTED, job.order.job)
            code = attend(job, progress)
            introduction["previous"] = config.token()
            if not _may_leave(config, introduction, job.control):
                return code
            if code or not job.order.reuse or job.control.abandoned is not Abandon.DONE:
                return code
            try:
                introduction["cleaned"] = clean(job) + copies.told()
            except OSError as why:
                return _say_broken(config, introduction, job.mask.text(str(why)))
            config.new_token()
    except Refused as why:
        log(f"hello was refused: {why}")
        return 0 if why.status == 410 else 1
    except (ServiceError, OSError) as why:
        log(f"giving up: {why}")
        return 1


def _next_job(config: Config, introduction: dict[str, Any], copies: Copies) -> Job:
    """Exchange the key, or the last job's token, for a job and leave to work. Raises ServiceError."""
    control = Control()
    signals.obey(control)
    service = Service(config.url, config.token(), control)
    order = _hello(config, service, control, introduction, copies)
    copies.serve(str(order.reply.get("owner") or ""), order.reuse)
    mask = Mask([config.key, config.token(), *disguises.secrets(order.reply.get("resources") or {})])
    outbox = Outbox(control, order.limits, mask)
    family = Family(config.worker)
    places = _places(config, order)
    background = Background(outbox.put, mask, family, order.limits["line_bytes"], places)
    order, posts = planned(order, places), Posts(order.posts)
    return Job(config, order, places, control, service, outbox, family, mask, background, posts, copies)


def _places(config: Config, order: Order) -> Places:
    """Where the job has its files. It has a user of its own only where nobody else uses the machine. [SEC-2]"""
    is_alone = config.alone and config.root == "/" and os.geteuid() == 0
    return Places(config.root, is_alone, apart=wants_home(order.reply))


def _hello(config: Config, service: Service, control: Control, introduction: dict[str, Any], copies: Copies) -> Order:
    """Say hello until there is a job. Raises ServiceError."""
    log(f"worker {config.worker}: saying hello to {config.url}")
    here: dict[str, Any] = {"host": socket.gethostname(), "pid": os.getpid(), "version": VERSION}
    if config.identity and "previous" not in introduction:
        here.update(papers(config.identity, control))
    while True:
        asked = copies.asked()
        reply = service.hello({**introduction, **here, **({"copies": asked} if asked else {})})
        if asked:
            copies.keep_only(reply.get("copies") or [])
        if not reply.get("idle"):
            return Order.read(reply)
        control.sleep(float(reply["seconds"]))


def _say_broken(config: Config, introduction: dict[str, Any], why: str) -> int:
    """Say that this machine cannot be cleaned, so that nobody waits until it does. [UNIT-2]"""
    log(f"this machine cannot be cleaned: {why}")
    introduction.pop("cleaned", None)
    control = Control()
    signals.obey(control)
    try:
        service = Service(config.url, config.token(), control)
        service.hello({**introduction, "broken": why[:BROKEN_CHARS]}, BROKEN_TRIES)
    except ServiceError as answer:
        log(f"it was told, and the answer is: {answer}")
    return 1


def _may_leave(config: Config, introduction: dict[str, Any], control: Control) -> bool:
    """Wait while an operator holds this worker, whatever its job came to. False when it is not wanted after that.

    Who is told to stop asks whether it is held, with a token that may be none of that job's any more; who has reported
    was told in the answer.
    """
    if control.held_until <= now() and control.abandoned not in (Abandon.GONE, Abandon.REFUSED):
        return True
    introduction.pop("cleaned", None)
    try:
        stay(config, introduction, control.held_until)
    except Refused as why:
        log(f"this worker is not held: {why}")
        return False
    return True


def _live_again(config: Config, progress: Progress) -> int:
    """A job can't be gone on with, nor begun again by a worker that began it once. [JOB-2]"""
    if progress.read() is Step.FINISHED:
        log("this worker's job is finished already; nothing to do")
        return 0
    log("this agent was restarted in the middle of its job, which it will not run twice; the worker is lost")
    left = end(Family(config.worker).everybody, lambda: 2.0)
    log(f"ended {left.count} process(es) of the job")
    return 1
