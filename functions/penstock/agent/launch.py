"""Starts a task's script."""

from __future__ import annotations

import subprocess
import tempfile

from .environment import environment
from .job import Job
from .order import Task


def write_script(job: Job, task: Task) -> str:
    """Write a task's script where only this job looks. Return its path. Raises OSError."""
    tmp = job.places.on_machine("/tmp")
    job.places.make_folder(tmp)  # an earlier task may have removed it
    handle, path = tempfile.mkstemp(prefix=f"task-{task.index}-", suffix=".sh", dir=tmp)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(task.script)
    if not task.as_root:
        job.places.give(path)
    return path


def launch(job: Job, task: Task, script: str) -> subprocess.Popen[bytes]:
    """Start a script in a process group of its own. Raises OSError; ValueError for a zero byte in the environment."""
    workdir = job.places.on_machine(task.workdir)
    if not task.as_root:
        job.places.make_folder(workdir)
    child = subprocess.Popen(
        ["/bin/bash", script],
        cwd=workdir,
        env=environment(job, task),
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **({} if task.as_root else job.places.start()),
    )
    job.family.group = child.pid
    return child
