"""How the job went."""

from __future__ import annotations

from dataclasses import dataclass

REASON_CHARS = 2000  # more is refused by the service


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
