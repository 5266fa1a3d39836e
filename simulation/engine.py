"""Chooses the next step of a run, from a storm of faults to a calm end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from penstock.domain.jobs.jobs import Job
from simulation import faults, operators
from simulation.errors import Broken
from simulation.handlers import Handlers
from simulation.ports import Service

AT_ONCE = 6
"""How many handlers may be under way."""

STEPS_PER_JOB = 120
"""How long the storm lasts."""

SWEEPS = 120
"""How many minutes of calm it may take until every job is settled and everything is put back."""

SWEEPS_PER_JOB = 16
"""How many more for each job: those that were kept waiting all through the storm may run one after the other."""

COOLING = 20
"""How many more it may take until nothing is left, after the site keeps nothing warm any more."""

STEPS_PER_SWEEP = 30_000


class Engine(Handlers):
    """One run of one seed."""

    def simulate(self) -> Broken | None:
        """Run the seed to its end. Returns the promise that was broken, if one was."""
        try:
            self._set_up()
            self._rage()
            self._calm_down()
        except Broken as broken:
            self.broken = broken
            self.story.tell(self.world.now(), "!", str(broken))
        finally:
            self._close()
        return self.broken

    def _set_up(self) -> None:
        self.people.restore(self.plan.late)
        self._drain(self.world.now())
        self.on.store.overdue(self.on.store.shards(later=False)[0], self.world.now())

    def _rage(self) -> None:
        self.weather, self._is_open = self.storm, True
        for _ in range(STEPS_PER_JOB * len(self.plan.jobs)):
            if not self.people.left and not self.tasks and self._is_settled():
                return
            self._trouble()
            self._step(self.world.now() + timedelta(days=1))

    def _trouble(self) -> None:
        """Events without a cause: users, flows that end, clock jumps."""
        if self.chance("people") and len(self.tasks) < AT_ONCE:
            self.people.act()
        if self.chance("kill"):
            flows = [flow for flow in self.flows.executions.values() if not flow.ended]
            if flows:
                flow = self.dice.choice(flows)
                self.flows.end(flow.job, flow.attempt, self.dice.choice(("TIMED_OUT", "ABORTED", "FAILED")))
        if self.chance("throttle"):
            self._refuse("the table")
        if self.chance("outage"):
            self._refuse(self.dice.choice(("SQS", "Step Functions")))
        if self.chance("jump"):
            self._pass(self.dice.choice((100, 400, 4000)))

    def _refuse(self, service: Service) -> None:
        until = self.world.now() + timedelta(seconds=self.dice.choice(faults.REFUSING_SECONDS))
        self.refusing[service] = until
        self.tell(f"{service} refuses most requests until {until:%H:%M:%S}")

    def _step(self, until: datetime) -> bool:
        """Let one thing happen. False when nothing is left to happen until then."""
        choices: list[Callable[[], Any]] = [self._resume] * 4 if self.tasks else []
        if len(self.tasks) < AT_ONCE:
            choices += self._beginnings()
        if not choices:
            self._check_quiet()
            return self._wait(until)
        if self.dice.random() < 0.03:
            self._pass(self.dice.choice((0.1, 1, 10)))
        self.dice.choice(choices)()
        return True

    def _beginnings(self) -> list[Callable[[], Any]]:
        now = self.world.now()
        found: list[Callable[[], Any]] = [self.deliver] * 6 if self._due() else []
        found += [self._settle] * 3 if self.flows.settling else []
        found += [self._event] if self.flows.events else []
        found += [self.people.submit] if self.people.left and self._is_open else []
        found += [self._sweep] if self._next_sweep <= now and self.weather is self.storm else []
        acting = [machine for machine in self.machines.values() if machine.next_at <= now and not machine.busy]
        found += [lambda: self.dice.choice(acting).act()] * 3 if acting else []
        polling = [loop for loop in self.hosts.loops() if loop.next_at <= now and not loop.busy]
        return found + ([lambda: self.dice.choice(polling).act()] * 2 if polling else [])

    def _wait(self, until: datetime) -> bool:
        """Move the clock to the next thing that happens."""
        coming = [message[0] for message in self.queues.messages]
        coming += [machine.next_at for machine in self.machines.values()]
        coming += [loop.next_at for loop in self.hosts.loops()]
        coming += [self._next_sweep] if self.weather is self.storm else []
        if not coming or min(coming) > until:
            return False
        self.world.time = max(self.world.time, min(coming))
        return True

    def _pass(self, seconds: float) -> None:
        self.world.time += timedelta(seconds=seconds)

    def _check_quiet(self) -> None:
        """With no handler running and no message under way, nothing can be granted any more."""
        if not self.is_harmed and not any(queue == "schedule" for _, queue, _ in self.queues.messages):
            self.promises.quiet()

    def _calm_down(self) -> None:
        """No more faults: only sweeps and time. Everything must finish."""
        self.weather = replace(faults.CALM, switch=self.storm.switch)
        self.refusing.clear()
        while self.tasks:
            self._resume()
        self.people.restore()
        for machine in self.machines.values():
            machine.behave()
        self.hosts.behave()
        self._sweep_until(SWEEPS + SWEEPS_PER_JOB * len(self.plan.jobs), is_warm=True)
        self.people.keep_nothing()
        self._sweep_until(COOLING, is_warm=False)

    def _sweep_until(self, sweeps: int, *, is_warm: bool) -> None:
        """Let time pass until everything is over, which must be within so many sweeps."""
        for _ in range(sweeps):
            self._drain(self._next_sweep)
            operators.let_out(self)
            if self.people.left or self.tasks or not self.promises.is_over(is_warm=is_warm):
                self.world.time = max(self.world.time, self._next_sweep)
                self._sweep()
            else:
                return
        self.promises.over(is_warm=is_warm)

    def _drain(self, until: datetime) -> None:
        for _ in range(STEPS_PER_SWEEP):
            if not self._step(until):
                return
        raise Broken("JOB-1", "the messages never end")

    def _is_settled(self) -> bool:
        """Whether every job is; asked at every step, so it ends with the first that is not."""
        return not any(isinstance(row, Job) and not row.is_settled for row in self.store.rows.values())

    def jobs(self) -> list[Job]:
        """All jobs."""
        return [row for row in self.store.rows.values() if isinstance(row, Job)]

    def _close(self) -> None:
        """Let all handlers end."""
        for task in self.tasks:
            task.killed = True
            while not task.done:
                self.baton.resume(task)
