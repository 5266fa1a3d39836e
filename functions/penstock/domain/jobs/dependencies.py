"""Dependencies: the jobs that have to end before another job is queued."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row


class On(StrEnum):
    """Which outcome of the other job is required. A cancelled job neither succeeded nor failed."""

    SUCCESS = "success"
    FAILURE = "failure"  # it failed, or could not be run
    ALWAYS = "always"


@dataclass(frozen=True)
class Dependency:
    """One job that another depends on. With `copy_outputs` its outputs appear below /input/`name`."""

    name: str
    job: str
    on: On = On.SUCCESS
    copy_outputs: bool = True


@dataclass(frozen=True, kw_only=True)
class Dependent(Row):
    """A job waits for another. The row is stored with the other job, so that settling it finds the dependents.

    It is created with the waiting job, only for dependencies that are unsettled then, and never changes. If the waiting
    job ends before the other, its end deletes it.
    """

    kind: ClassVar[str] = "dependent"
    job: str
    dependent: str

    @property
    def key(self) -> Key:
        return dependent_key(self.job, self.dependent)


def dependent_key(job: str, dependent: str) -> Key:
    """The key of a Dependent."""
    return Key(f"job#{job}", f"dependent#{dependent}")
