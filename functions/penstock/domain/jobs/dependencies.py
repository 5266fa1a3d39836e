"""What a job may depend on: other jobs, which have to end before it queues."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from penstock.kernel.rows import Key, Row


class On(StrEnum):
    """Which end of another job a job waits for. A job that was cancelled neither succeeded nor failed."""

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
    """That a job waits for another: it stands with the other, so that who settles that one finds it.

    It is written with the job that waits, and only for what was not settled by then. It stays as it is.
    """

    kind: ClassVar[str] = "dependent"
    job: str
    dependent: str

    @property
    def key(self) -> Key:
        return dependent_key(self.job, self.dependent)


def dependent_key(job: str, dependent: str) -> Key:
    """Where it stands that a job waits for another."""
    return Key(f"job#{job}", f"dependent#{dependent}")
