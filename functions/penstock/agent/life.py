"""The agent's life, from hello to its exit code. docs/agent.md tells it.

Exit codes: 0, done or no longer wanted; 1, the worker must be counted as lost, and the log says why.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from . import VERSION, orphans, signals
from .attend import attend
from .config import Config
from .control import Control
from .ending import end
from .errors import Refused, ServiceError
from .family import Family
from .job import Job
from .log import log
from .order import Order
from .outbox import Outbox
from .places import Places
from .progress import Progress, Step
from .service import Service


def live(path: Path) -> int:
    """Say hello and do the one job that the answer is. Return the exit code."""
    config, control = Config.load(path), Control()
    progress = Progress(config.folder)
    if progress.read() is not Step.NONE:
        return _live_again(config, progress)
    orphans.adopt()
    signals.obey(control)
    service = Service(config.url, config.token(), control)
    try:
        order = _hello(config, service)
    except Refused as why:
        log(f"hello was refused: {why}")
        return 0 if why.status == 410 else 1
    except ServiceError as why:
        log(f"giving up on hello: {why}")
        return 1
    outbox = Outbox(control, order.limits)
    progress.note(Step.STARTED, order.job)
    return attend(Job(config, order, Places(config.root), control, service, outbox, Family(config.worker)), progress)


def _hello(config: Config, service: Service) -> Order:
    """Exchange the bootstrap key for a working token and the job. Raises ServiceError."""
    log(f"worker {config.worker}: saying hello to {config.url}")
    here = {"host": socket.gethostname(), "pid": os.getpid(), "version": VERSION}
    return Order.read(service.hello({"worker": config.worker, "key": config.key, **here}))


def _live_again(config: Config, progress: Progress) -> int:
    """A job can't be gone on with, nor begun again by a worker that began it once. [JOB-2]"""
    if progress.read() is Step.FINISHED:
        log("this worker's job is finished already; nothing to do")
        return 0
    log("this agent was restarted in the middle of its job, which it will not run twice; the worker is lost")
    left = end(Family(config.worker).everybody, lambda: 2.0)
    log(f"ended {left.count} process(es) of the job")
    return 1
