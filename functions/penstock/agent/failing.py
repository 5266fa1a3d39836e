"""What becomes of a job when a task before its script fails."""

from __future__ import annotations

from typing import Any

from .order import Task
from .outcome import Failure, Outcome
from .prepare import EXIT_TEMPORARY

SETUP, LOGIN, CLONE, RUST = "machine_broken", "authentication_failed", "clone_failed", "toolchain_failed"
PLAIN = "exited"
BROKEN_CHARS = 500  # more is refused by the service


def failed(task: Task, how: str, found: Failure, lines: list[str]) -> Outcome:
    """Return how the job stands. `how` and `found` are what there is to say of its process. [JOB-1]

    A machine that cannot be set up is broken. What is the network's, or the forge's, is nobody's fault here: the next
    attempt follows, while there are retries left. The rest is the job's.
    """
    is_late = "bound" in found.evidence
    why = lines[-1] if lines and found.kind == PLAIN and not is_late else how
    text = f"{task.trouble}: {why}"
    known: dict[str, Any] = {**task.about, **found.evidence, "error": why}
    failure = Failure(task.kind if found.kind == PLAIN else found.kind, known, task.index, task.name, lines)
    if task.kind == SETUP:
        return Outcome("broken", text, task.index, broken=text[:BROKEN_CHARS], failure=failure)
    is_passing = found.evidence.get("exit_code") == EXIT_TEMPORARY or task.kind == LOGIN
    code = found.evidence.get("exit_code")
    return Outcome("unprepared" if is_passing else "failed", text, task.index, code, failure=failure)
