"""The environment of a task. Nothing of the agent's own gets in."""

from __future__ import annotations

import contextlib
import locale
import os
import pwd

from .job import Job
from .order import Task

BASE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/ooce/bin:/opt/ooce/sbin"


def environment(job: Job, task: Task) -> dict[str, str]:
    """Return a task's whole environment. What the agent says about the job can't be overridden by it. [SEC-2]

    The worker's id is there whatever a job wants: by it the job's processes are found and ended. [JOB-2]
    """
    identity = _identity(job, task)
    base = {} if task.env_clear else {**_machine(job), **identity}
    wished = {name: value for name, value in {**job.order.env, **task.env}.items() if name not in identity}
    return {**base, **wished, "PENSTOCK_WORKER_ID": job.config.worker}


def _machine(job: Job) -> dict[str, str]:
    user, language = pwd.getpwuid(os.getuid()).pw_name, installed_locale()
    return {
        "HOME": job.places.home,
        "USER": user,
        "LOGNAME": user,
        "TZ": "UTC",
        "LANG": language,
        "LC_ALL": language,
        "CI": "true",
        "TMPDIR": job.places.on_machine("/tmp"),
        "PATH": f"{job.places.bin}:{BASE_PATH}",
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
