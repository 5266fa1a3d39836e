"""How the job went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

REASON_CHARS = 2000  # more is refused by the service
TEXT_CHARS = 1000  # more of a text of the evidence is cut by it


@dataclass(frozen=True)
class Failure:
    """Why a job did not succeed: a kind, its evidence, and the last lines of its task. See docs/users/failures.md."""

    kind: str
    evidence: dict[str, Any] = field(default_factory=dict)
    task: int | None = None
    task_name: str = ""
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """The body of finish. `task`, `exit_code` and `signal` are those of the task that ended the job.

    `broken` is what is wrong with the machine; the result `broken` says that the script was not begun for that.
    """

    result: str = "succeeded"
    reason: str | None = None
    task: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    broken: str | None = None
    failure: Failure | None = None
