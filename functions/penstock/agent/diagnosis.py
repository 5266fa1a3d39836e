"""Why a task failed, with the machine's evidence: full disks, and processes that the kernel killed for lack of memory.

An exit code alone is no proof of a cause.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from dataclasses import replace
from typing import Any

from .job import BROKEN_CHARS, LOGIN_FAILED, SETUP_FAILED, Failure, Job, Outcome, Task
from .machine import Machine, OomCounter, duration_text, oom_kills_since, signal_name, size_text
from .prepare import EXIT_TEMPORARY

FULL_BYTES, FULL_PART, FULL_FILES = 1 << 20, 64, 8
"""A disk is full if less than 1 MiB and less than 1/64 of it is free, or if it has room for less than 8 files."""

FULL_DISK_TEXTS = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
FULL_DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
SHELL_SIGNAL_BASE = 128  # a shell's exit code is this plus the number of the signal that ended its command
EXITED = "exited"


def full_disk(machine: Machine) -> dict[str, Any] | None:
    """Return evidence of the first of the job's folders whose disk is full now."""
    for name in ("/work", "/tmp", "/home"):
        path = machine.home if name == "/home" else machine.real_path(name)
        with contextlib.suppress(OSError):
            found = _check_disk(name, os.statvfs(path))
            if found:
                return found
    return None


def _check_disk(name: str, disk: os.statvfs_result) -> dict[str, Any] | None:
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree  # some are reserved for root
    free, total = blocks * disk.f_frsize, disk.f_blocks * disk.f_frsize
    has_no_files = bool(disk.f_files) and disk.f_favail < FULL_FILES
    if free >= min(FULL_BYTES, total // FULL_PART) and not has_no_files:
        return None
    known = {"path": name, "free_bytes": free, "total_bytes": total, "source": "statvfs"}
    return {**known, "free_files": disk.f_favail} if disk.f_files else known


def reported_full_disk(lines: list[str]) -> dict[str, Any] | None:
    """Return evidence from a task's last lines: the task may have removed files since."""
    last = next((line for line in reversed(lines) if any(words in line for words in FULL_DISK_TEXTS)), None)
    return {"source": "the task's last lines", "error": last} if last else None


def full_disk_error(why: BaseException | None) -> dict[str, Any] | None:
    """Return evidence from an error of the agent itself, if a full disk caused it."""
    while why is not None:
        if isinstance(why, OSError) and why.errno in FULL_DISK_ERRNOS:
            return {"source": "the agent's own writing", "error": str(why)}
        why = why.__cause__
    return None


def diagnose(job: Job, task: Task, code: int, lines: list[str], before: dict[OomCounter, int]) -> tuple[str, Failure]:
    """Return how a task failed, in words and as a failure. A negative `code` is a signal's number."""
    how, failure = _exit_failure(code)
    was_killed = code in (-signal.SIGKILL, SHELL_SIGNAL_BASE + signal.SIGKILL)
    kills = oom_kills_since(before, was_killed)
    full = full_disk(job.machine) or reported_full_disk(lines)
    if kills:
        known = {"oom_kills": kills.count, "source": kills.source, "memory_limit_bytes": kills.limit}
        how += f": out of memory, of which the kernel killed {kills.count} process(es) ({kills.source})"
        failure = Failure("out_of_memory", {**failure.evidence, **known})
    elif full:
        how += f": {_full_disk_text(full)}"
        failure = Failure("disk_full", {**failure.evidence, **full})
    elif "perhaps" in failure.evidence:
        how += f": {failure.evidence['perhaps']}"
    return how, failure_of_task(failure, task, lines)


def failure_of_task(failure: Failure, task: Task, lines: list[str]) -> Failure:
    """Return a failure with its task and the task's last lines."""
    return replace(failure, task=task.index, task_name=task.name, lines=lines)


def not_started(task: Task, why: Exception) -> Failure:
    """Return why a task could not start."""
    full = full_disk_error(why)
    return failure_of_task(
        Failure("disk_full", full) if full else Failure("not_started", {"error": str(why)}), task, []
    )


def too_long(task: Task, seconds: float, lines: list[str]) -> tuple[str, Failure]:
    """Return how a task failed that took longer than its own limit."""
    bound = {"bound": f"that of the task {task.name}", "bound_seconds": int(seconds)}
    return f"took longer than {duration_text(seconds)}", failure_of_task(Failure("exited", bound), task, lines)


def exit_evidence(code: int) -> dict[str, Any]:
    """Return how a process ended, as evidence."""
    if code >= 0:
        return {"exit_code": code}
    name = signal_name(-code)
    return {"signal": -code, "signal_name": name.partition("(")[2].rstrip(")") or name}


def _exit_failure(code: int) -> tuple[str, Failure]:
    known = exit_evidence(code)
    if code < 0:
        if code == -signal.SIGKILL:
            known["perhaps"] = "perhaps for lack of memory, but there is no record of that"
        return f"was killed by signal {signal_name(-code)}", Failure("killed", known)
    if code > SHELL_SIGNAL_BASE and "(" in signal_name(code - SHELL_SIGNAL_BASE):
        known["perhaps"] = f"killed, perhaps: a shell says {code} for signal {signal_name(code - SHELL_SIGNAL_BASE)}"
    return f"exited with code {code}", Failure("exited", known)


def _full_disk_text(evidence: dict[str, Any]) -> str:
    if "path" not in evidence:
        return f"a disk was full: {evidence['error']}"
    files = "" if evidence.get("free_files", FULL_FILES) >= FULL_FILES else ", and room for no more files"
    free, total = size_text(evidence["free_bytes"]), size_text(evidence["total_bytes"])
    return f"the disk of {evidence['path']} is full: {free} of {total} are free{files}"


def preparation_failed(task: Task, how: str, found: Failure, lines: list[str]) -> Outcome:
    """Return the job's outcome when a preparation task failed; `how` and `found` describe the task's end. [JOB-1]

    A machine that cannot be set up is broken. Trouble with the network or the forge is temporary: the next attempt
    follows while retries are left. Anything else fails the job.
    """
    is_late = "bound" in found.evidence
    why = lines[-1] if lines and found.kind == EXITED and not is_late else how
    text = f"{task.trouble}: {why}"
    known: dict[str, Any] = {**task.about, **found.evidence, "error": why}
    failure = Failure(task.kind if found.kind == EXITED else found.kind, known, task.index, task.name, lines)
    if task.kind == SETUP_FAILED:
        return Outcome("broken", text, task.index, broken=text[:BROKEN_CHARS], failure=failure)
    is_passing = found.evidence.get("exit_code") == EXIT_TEMPORARY or task.kind == LOGIN_FAILED
    code = found.evidence.get("exit_code")
    return Outcome("unprepared" if is_passing else "failed", text, task.index, code, failure=failure)
