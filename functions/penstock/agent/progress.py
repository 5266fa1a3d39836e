"""How far this agent has come with its job, kept in a file so that no restart runs the job twice. [JOB-2]"""

from __future__ import annotations

from enum import Enum
from pathlib import Path


class Step(Enum):
    """How far."""

    NONE, STARTED, FINISHED = "", "started", "finished"


class Progress:
    """The file `progress` in the agent's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "progress"

    def read(self) -> Step:
        """Return the last step that was noted; a file that was cut short says that the job was started."""
        if not self._path.exists():
            return Step.NONE
        return Step.FINISHED if self._path.read_text(encoding="utf-8").startswith("finished") else Step.STARTED

    def note(self, step: Step, job: str) -> None:
        self._path.write_text(f"{step.value} {job}\n", encoding="utf-8")
