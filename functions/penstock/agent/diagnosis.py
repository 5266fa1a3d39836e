"""Why a task did not succeed: what the machine has to show for it. An exit code alone is no proof of a cause."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

from . import disk, memory
from .job import Job
from .log import duration_text, signal_name, size_text
from .order import Task
from .outcome import Failure

SHELL = 128  # what a shell adds to the number of the signal that ended its command


def diagnose(
    job: Job, task: Task, code: int, lines: list[str], before: dict[memory.Record, int]
) -> tuple[str, Failure]:
    """Return how a task failed, in words and as a failure. A negative `code` is a signal's number."""
    how, failure = _plain(code)
    was_killed = code in (-signal.SIGKILL, SHELL + signal.SIGKILL)
    kills = memory.since(before, was_killed)
    full = disk.full(job.places) or disk.said(lines)
    if kills:
        known = {"oom_kills": kills.count, "source": kills.source, "memory_limit_bytes": kills.limit}
        how += f": out of memory, of which the kernel killed {kills.count} process(es) ({kills.source})"
        failure = Failure("out_of_memory", {**failure.evidence, **known})
    elif full:
        how += f": {_full(full)}"
        failure = Failure("disk_full", {**failure.evidence, **full})
    elif "perhaps" in failure.evidence:
        how += f": {failure.evidence['perhaps']}"
    return how, about(failure, task, lines)


def about(failure: Failure, task: Task, lines: list[str]) -> Failure:
    """Return a failure as that of a task, with its last lines."""
    return replace(failure, task=task.index, task_name=task.name, lines=lines)


def not_started(task: Task, why: Exception) -> Failure:
    """Return why a task could not start."""
    full = disk.refused(why)
    return about(Failure("disk_full", full) if full else Failure("not_started", {"error": str(why)}), task, [])


def too_long(task: Task, seconds: float, lines: list[str]) -> tuple[str, Failure]:
    """Return how a task failed that has a bound of its own."""
    bound = {"bound": f"that of the task {task.name}", "bound_seconds": int(seconds)}
    return f"took longer than {duration_text(seconds)}", about(Failure("exited", bound), task, lines)


def ending(code: int) -> dict[str, Any]:
    """Return how a process ended, as evidence."""
    if code >= 0:
        return {"exit_code": code}
    name = signal_name(-code)
    return {"signal": -code, "signal_name": name.partition("(")[2].rstrip(")") or name}


def _plain(code: int) -> tuple[str, Failure]:
    known = ending(code)
    if code < 0:
        if code == -signal.SIGKILL:
            known["perhaps"] = "perhaps for want of memory, but there is no record of that"
        return f"was killed by signal {signal_name(-code)}", Failure("killed", known)
    if code > SHELL and "(" in signal_name(code - SHELL):
        known["perhaps"] = f"killed, perhaps: a shell says {code} for signal {signal_name(code - SHELL)}"
    return f"exited with code {code}", Failure("exited", known)


def _full(evidence: dict[str, Any]) -> str:
    if "path" not in evidence:
        return f"a disk was full: {evidence['error']}"
    files = "" if evidence.get("free_files", disk.FULL_FILES) >= disk.FULL_FILES else ", and room for no more files"
    free, total = size_text(evidence["free_bytes"]), size_text(evidence["total_bytes"])
    return f"the disk of {evidence['path']} is full: {free} of {total} are free{files}"
