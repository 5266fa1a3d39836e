"""Starts a task's script."""

from __future__ import annotations

import os
import subprocess
import tempfile

from .environment import environment
from .job import Job
from .order import Task


def write_script(job: Job, task: Task) -> str:
    """Write a task's script where only this job looks. Return its path. Raises OSError."""
    tmp = job.places.on_machine("/tmp")
    os.makedirs(tmp, exist_ok=True)  # an earlier task may have removed it
    handle, path = tempfile.mkstemp(prefix=f"task-{task.index}-", suffix=".sh", dir=tmp)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(task.script)
    return path


def launch(job: Job, task: Task, script: str) -> subprocess.Popen[bytes]:
    """Start a script in a process group of its own. Raises OSError; ValueError for a zero byte in the environment."""
    workdir = job.places.on_machine(task.workdir)
    os.makedirs(workdir, exist_ok=True)
    child = subprocess.Popen(
        ["/bin/bash", script],
        cwd=workdir,
        env=environment(job, task),
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    job.family.group = child.pid
    return child
