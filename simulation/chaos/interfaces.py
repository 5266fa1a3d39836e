"""What the actors of a chaos run and its checks may use of the run, so that none of them imports the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from penstock.domain.jobs.jobs import Job
from penstock.testing.fake import Cloud, Faults
from penstock.testing.fake import Machine as Thing
from simulation.chaos.scenario import How
from simulation.interfaces import Agent, Run
from simulation.tasks import Task


class BadAgent(Agent, Protocol):
    """An agent on a bad machine, as the checks see it."""

    works: timedelta


class ChaosChecks(Protocol):
    """What is told to the checks of a chaos run."""

    counts: Counter[str]

    def begins(self, machine: BadAgent) -> None:
        """A script begins."""

    def finishes(self, machine: BadAgent) -> None:
        """A script has ended, and its end was heard."""

    def hurts(self, thing: Thing, time: datetime) -> None:
        """A machine is cut off, or says that it is broken."""

    def count_done(self, what: str) -> Callable[[Task], None]:
        """Count what was done, once it is."""


class ChaosRun(Run, Protocol):
    """One chaos run."""

    how: How
    cloud: Cloud
    short: set[str]

    @property
    def watch(self) -> ChaosChecks:
        """The checks of a chaos run."""

    @property
    def faults(self) -> Faults:
        """What the cloud does wrong now."""

    def is_storm(self) -> bool:
        """Whether the jobs are not all settled yet."""

    def is_dark(self) -> bool:
        """Whether nothing of ours answers."""

    def kill(self, task: Task) -> None:
        """End a handler where it stands."""

    def stop_overdue(self) -> None:
        """Let every agent stop its job whose lease is over."""

    def jobs(self) -> list[Job]:
        """All jobs."""
