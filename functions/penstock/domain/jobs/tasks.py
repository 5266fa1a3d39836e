"""The tasks of a job that is submitted without a job file: scripts that run in order, until one fails.

Each may have its own user and folder. Only the HTTP API takes them; a job file is one task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, field
from typing import Annotated

from penstock.domain.jobfile.sections import check_env
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import NOT_TEXT, Fault, Place, number, text

TASKS = 64
"""How many tasks a job may have. Source: buildomat."""

WORKDIR_CHARS = 1024

MOST_ID = 2**32 - 2
"""The largest id of a user or group on Linux; one more stands for none."""

_id = number(0, MOST_ID)


@dataclass(frozen=True)
class NewTask:
    """A task of a job that has no job file."""

    name: Annotated[str, "Its name: one line of at most 128 characters."]
    script: Annotated[str, "Its script, which always runs under /bin/bash."]
    env: Annotated[dict[str, str], "Its own environment variables, by name."] = field(default_factory=dict)
    env_clear: Annotated[bool, "Whether it gets no variables but the job's and its own."] = False
    uid: Annotated[int | None, "The id of its user. By default the job's."] = None
    gid: Annotated[int | None, "The id of its group. By default its user's."] = None
    workdir: Annotated[str | None, "The absolute path of the folder in which it starts. By default /work."] = None


def as_json(tasks: Sequence[NewTask]) -> str:
    """The tasks as JSON with sorted keys."""
    return json.dumps([asdict(task) for task in tasks], sort_keys=True)


def check_tasks(tasks: Sequence[NewTask]) -> tuple[Fault, ...]:
    """What is wrong with the tasks of a request."""
    top = Place(("tasks",))
    if len(tasks) > TASKS:
        top.fault(f"`tasks` has {len(tasks)} entries; it may have at most {TASKS}")
    if (size := sum(len(task.script.encode("utf-8", "surrogatepass")) for task in tasks)) > limits.SCRIPT_BYTES:
        top.fault(f"the scripts have {size} bytes; they may have at most {limits.SCRIPT_BYTES}")
    for at, task in enumerate(tasks[:TASKS]):
        _check_task(task, top / at)
    return tuple(top.faults)


def _check_task(task: NewTask, place: Place) -> None:
    text(task.name, place / "name")
    check_env(task.env, place / "env")
    for name, id in (("uid", task.uid), ("gid", task.gid)):
        if id is not None:
            _id(id, place / name)
    script = place / "script"
    if not task.script.strip():
        script.fault(f"{script.label} is empty")
    elif bad := re.search(NOT_TEXT, task.script):
        script.fault(f"{script.label} holds the character U+{ord(bad[0]):04X}, which is no text")
    if task.workdir is not None:
        folder = place / "workdir"
        found = text(task.workdir, folder, WORKDIR_CHARS)
        if found.strip() and not found.startswith("/"):
            folder.fault(f"{folder.label} is not absolute", "as the job sees it, such as /work/tests")
