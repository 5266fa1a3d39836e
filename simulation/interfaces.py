"""What the actors of a run and its checks may use of the run, so that none of them imports the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from penstock.domain.replies import Assignment
from penstock.system import System
from simulation.cloud import Outside
from simulation.ports import Host, SimulatedFlows, SimulatedStore, SimulatedWorld
from simulation.scenario import Plan
from simulation.tasks import Task
from simulation.trace import Story


class Agent(Protocol):
    """A machine and its agent, as others see it."""

    id: str
    key: str
    state: str
    job: str
    attempt: int
    past: list[tuple[str, str]]

    @property
    def token(self) -> str:
        """The token of its present job, or of its next one."""

    def token_of(self, turn: int) -> str:
        """The token of one of its jobs, counted from 0."""

    def is_running(self) -> bool:
        """Whether the script may be running."""


class Checks(Protocol):
    """What is told to the checks."""

    def begins(self, machine: Agent, told: Assignment) -> None:
        """An agent begins a script, by what it was told."""

    def accepted(self, job: str) -> None:
        """A user got the id of a job."""

    def must(self, label: str, holds: bool, says: str) -> None:
        """Break a promise where something does not hold."""


class Run(Host, Protocol):
    """One run of one seed."""

    on: System
    plan: Plan
    world: SimulatedWorld
    store: SimulatedStore
    flows: SimulatedFlows
    outside: Outside
    story: Story
    tasks: list[Task]
    asked: dict[str, tuple[float, int]]

    @property
    def machines(self) -> Mapping[str, Agent]:
        """The machines of workers, by id."""

    @property
    def promises(self) -> Checks:
        """The checks of this run."""

    def begin(
        self, name: str, call: Callable[[], Any], then: Callable[[Task], None], *,
        unit: str | None = None, intruder: bool = False, dies_at: int = 0,
    ) -> None:  # fmt: skip
        """Call a handler. `then` gets it when it has ended. `dies_at`: after which of its effects it dies."""
