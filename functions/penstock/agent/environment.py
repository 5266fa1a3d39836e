"""The environment of a task. Nothing of the agent's own gets in."""

from __future__ import annotations

import contextlib
import locale
import os

from .job import Job
from .order import Task
from .shims import BASE_PATH

MIRRORS = ("RUSTUP_UPDATE_ROOT", "RUSTUP_DIST_SERVER")
"""Where a site has Rust come from: the one thing that whoever starts the agent may say to its jobs."""


def environment(job: Job, task: Task) -> dict[str, str]:
    """Return a task's whole environment. What the agent says about the job can't be overridden by it. [SEC-2]

    The worker's id is there whatever a job wants: by it the job's processes are found and ended. [JOB-2]
    """
    identity = _identity(job, task)
    if task.as_root:
        return {"PATH": BASE_PATH, "HOME": job.places.own_home, "LC_ALL": installed_locale(), **identity}
    base = {} if task.env_clear else {**_machine(job), **identity}
    wished = {name: value for name, value in {**job.order.env, **task.env}.items() if name not in identity}
    return {**base, **wished, "PENSTOCK_WORKER_ID": job.config.worker}


def _machine(job: Job) -> dict[str, str]:
    user, language = job.places.user, installed_locale()
    return {
        "HOME": job.places.home,
        "USER": user,
        "LOGNAME": user,
        "TZ": "UTC",
        "LANG": language,
        "LC_ALL": language,
        "CI": "true",
        "TMPDIR": job.places.on_machine("/tmp"),
        "PATH": f"{job.places.home}/.cargo/bin:{job.places.bin}:{BASE_PATH}",
        **{name: os.environ[name] for name in MIRRORS if name in os.environ},
    }


def _identity(job: Job, task: Task) -> dict[str, str]:
    reply = job.order.reply
    return {
        "BUILDOMAT_JOB_ID": job.order.job,
        "BUILDOMAT_TASK_ID": str(task.index),
        "PENSTOCK_JOB_ID": job.order.job,
        "PENSTOCK_WORKER_ID": job.config.worker,
        "PENSTOCK_ATTEMPT": str(reply["attempt"]),
        "PENSTOCK_TARGET": reply["target"],
        "PENSTOCK_DEADLINE": reply.get("deadline") or "",
        "PENSTOCK_ROOT": job.places.root,
        "PENSTOCK_WORK": job.places.on_machine("/work"),
        "PENSTOCK_INPUT": job.places.on_machine("/input"),
    }


def installed_locale() -> str:
    """Return en_US.UTF-8 where there is one: bash complains in every job's log about a locale that is not."""
    for name in ("en_US.UTF-8", "C.UTF-8"):
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, name)
            locale.setlocale(locale.LC_ALL, "C")
            return name
    return "C"
