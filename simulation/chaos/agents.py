"""Agents on bad machines: what they do depends on whether the machine works, and whether its network does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from penstock.domain.jobs.jobs import Result
from penstock.kernel.errors import Unreached
from penstock.testing.fake import Machine as Thing
from penstock.usecases.workers import agents
from simulation.agents import NEVER, Machine
from simulation.chaos.interfaces import ChaosRun
from simulation.tasks import Task

DANGER_ZONE = 0.2
"""The last part of a lease, in which an agent that could not renew it has stopped its job. Source: agent/client.py."""

HANGS = 0.01


class BadMachine(Machine):
    """A machine whose script is taken to run until the agent ends it or the machine is gone, whatever its lease says.

    `lost` is since when it can do its job no more, if it cannot.
    """

    def __init__(self, engine: ChaosRun, thing: Thing) -> None:
        self.thing = thing
        self._chaos = engine
        self._is_second = thing.id != thing.unit
        super().__init__(engine, thing.order.id, thing.order.key)
        ailment, now = thing.ailment, engine.world.now()
        self.next_at = now + NEVER if ailment.is_mute else thing.after(ailment.boot)

    def _set_out(self) -> None:
        super()._set_out()
        dice = self._engine.dice
        hangs = self._chaos.how.is_hard and dice.random() < HANGS
        self.works = timedelta(seconds=5000 if hangs else dice.uniform(10, 120))
        self.code = dice.randint(0, 3)

    def token_of(self, turn: int) -> str:
        """The second of two machines for one call chooses another token."""
        token = super().token_of(turn)
        return f"{token}y" if self._is_second else token

    def is_running(self) -> bool:
        """Whether the script may be running. Unlike in the simulation, it may run when its lease is over."""
        return self.state == "running" and self._is_there()

    def _is_there(self) -> bool:
        return self.thing.exists(self._engine.world.now())

    @property
    def deadline(self) -> datetime:
        """When it stops its job, unless it renews its lease before."""
        return self.renewed + self.lease * (1 - DANGER_ZONE)

    def is_overdue(self, now: datetime) -> bool:
        """Whether it is to stop its job by now, and can."""
        return self.state == "running" and now >= self.deadline and self.thing.works(now)

    def act(self) -> None:
        """The agent's next call, if it can make one."""
        engine, now = self._chaos, self._engine.world.now()
        if not self.thing.works(now) and self.state != "ended":
            self.next_at = now + NEVER
        elif self._is_crash(now):
            engine.tell(f"{self.id} crashes, and takes its machine down")
            engine.watch.counts["the agent crashed"] += 1
            engine.cloud.take(self.thing, "crashed")
            self.next_at = now + NEVER
        elif self.state == "running" and now >= self.deadline:
            self.stop()
        elif not self.thing.reaches(now) or engine.is_dark():
            self._cut_off(now)
        else:
            super().act()

    def _is_crash(self, now: datetime) -> bool:
        crash = self.thing.ailment.crash
        if crash is None:
            return False
        if self.state != "running":
            return crash == 0.0 and self.state == "booting"
        return now >= self.ends_at - self.works + timedelta(seconds=crash)

    def stop(self) -> None:
        """The dead man's switch."""
        self._chaos.watch.counts["an agent that was cut off stopped its job"] += 1
        self._end("stops by itself: it could not renew its lease")

    def _cut_off(self, now: datetime) -> None:
        """It reaches nobody: it tries again, and stops its job in time."""
        self._chaos.watch.counts["an agent reached nobody"] += 1
        again = now + timedelta(seconds=self._engine.dice.uniform(2, 10))
        self.next_at = min(again, max(self.deadline, now)) if self.state == "running" else again

    def _call(self, what: str, call: Callable[[], Any], then: Callable[[Task], None]) -> None:
        """Sometimes the answer is lost."""

        def answered(task: Task) -> None:
            if task.error is None and self._engine.chance("lose"):
                self._chaos.watch.counts["an answer to an agent was lost"] += 1
                task.error, task.result = Unreached(), None
            then(task)

        super()._call(what, call, answered)

    def _welcomed(self, task: Task) -> None:
        was = self.state
        super()._welcomed(task)
        if self.state == "running" and was != "running":
            self._chaos.watch.begins(self)
            self.next_at = min(self.next_at, self.ends_at)

    def _heard(self, task: Task, sent: datetime, *, is_beat: bool) -> None:
        super()._heard(task, sent, is_beat=is_beat)
        if self.state == "running":
            self.next_at = min(self.next_at, max(self.ends_at, self._engine.world.now()))

    def _finish(self) -> Any:
        is_late = self.works > timedelta(seconds=900)
        result = (
            Result.CANCELLED if self.is_cancelled
            else Result.TIMED_OUT if is_late
            else Result.FAILED if self.code
            else Result.SUCCEEDED
        )  # fmt: skip
        caller = agents.authenticate(self._engine.on, self.job, self.token)
        return agents.report_finished(self._engine.on, caller, result, f"the script ended with {self.code}", self.code)

    def _finished(self, task: Task) -> None:
        if task.error is None:
            self._chaos.watch.finishes(self)
        super()._finished(task)
