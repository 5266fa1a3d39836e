"""The ports of a chaos run: messages take a moment, and calls of the cloud a little longer."""

from __future__ import annotations

from typing import Any

from penstock.domain.commands import SubmitJob
from penstock.kernel.errors import Throttled, Unreached
from penstock.testing.fake import Faults
from penstock.usecases.jobs import submit
from simulation.chaos.interfaces import ChaosRun
from simulation.chaos.scenario import LAB
from simulation.cloud import Outside
from simulation.errors import Broken
from simulation.ports import SimulatedQueues
from simulation.tasks import Died, Task
from simulation.users import ADA, People, user

MESSAGE = (0.02, 0.08)
"""Seconds that a message takes. Handlers themselves take none, but for what they wait for."""

CALL = (0.05, 0.3)
"""Seconds that a call of the cloud takes."""


class SlowQueues(SimulatedQueues):
    """Messages take some milliseconds."""

    def put(self, queue: str, body: dict[str, Any], after: float) -> None:
        """Place a message so that it is delivered after some seconds."""
        super().put(queue, body, after + self.host.dice.uniform(*MESSAGE))


class BadCloud(Outside):
    """The fake cloud with the run's faults and current shortages."""

    def __init__(self, host: ChaosRun) -> None:
        super().__init__(host, host.cloud)
        self._chaos = host

    def faults(self) -> Faults:
        """What the cloud does wrong now."""
        return self._chaos.faults


class Submitters(People):
    """Users who repeat a submission that was not accepted, with the same key."""

    def submit(self) -> None:
        """Submit the next job."""
        number, ask = self.left.pop(0)
        engine = self._engine
        who = user(number) if ask["target"] == LAB else ADA

        def answered(task: Task) -> None:
            if task.error is None:
                engine.story.call(task.result, f"job-{number + 1}")
            elif isinstance(task.error, Died | Throttled | Unreached):
                self.left.insert(0, (number, ask))
            else:
                raise Broken("JOB-1", f"job {number + 1} was refused: {task.error}")

        def call() -> str:
            return submit.submit(engine.on, who, SubmitJob(**ask), str(number))

        engine.begin(f"submit job {number + 1}", call, answered)
