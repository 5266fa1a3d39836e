"""One chaos run: the simulation with given numbers instead of random ones, and with incidents by the clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from penstock.kernel.rows import Change, Key, Row
from penstock.testing.fake import Cloud, Faults
from penstock.testing.fake import Machine as Thing
from penstock.testing.twin import START
from simulation.agents import Machine
from simulation.chaos import machine_faults, scenario
from simulation.chaos.agents import BadMachine
from simulation.chaos.checks import ALWAYS, HARDER, Watch
from simulation.chaos.incidents import QUOTA, Troubles
from simulation.chaos.ports import CALL, BadCloud, SlowQueues, Submitters
from simulation.chaos.scenario import How, Site
from simulation.engine import Engine
from simulation.errors import Broken
from simulation.faults import Weather
from simulation.ports import SimulatedQueues
from simulation.scenario import Plan
from simulation.tasks import Task
from simulation.users import People

T = TypeVar("T")

AT_ONCE = 12
LONGEST = timedelta(days=20)
"""No run takes longer."""

OTHERS_LEAVE = 6
"""How many machines there may be while somebody else uses the account."""

LIKE_ARVADOS = Weather(switch=0.05)
HARD = Weather(
    switch=0.1, conflict=0.02, lose=0.02, double=0.05, late=0.03, die=0.01, forget=0.2, rogue=0.1, lag=0.3, hosts=0.01
)  # fmt: skip


class Chaos(Engine):
    """One run of one seed."""

    def __init__(self, seed: int, how: How) -> None:
        self.how = how
        self.short: set[str] = set()
        super().__init__(seed, jobs=how.jobs, without=how.without, blind=how.blind)
        self.troubles = Troubles(self)
        site = self.plan.shape
        assert isinstance(site, Site)
        self.watch = Watch(self, site.booked)
        self.cloud.gone = self.watch.gone

    def _drawn(self, seed: int, jobs: int | None, without: Collection[str]) -> tuple[Weather, Plan]:
        dice = random.Random(f"{seed} plan")
        kinds = [kind for kind in without if hasattr(HARD, kind)]
        storm = (HARD if self.how.is_hard else LIKE_ARVADOS).without(kinds)
        return storm, scenario.draw(dice, jobs or self.how.jobs, is_hard=self.how.is_hard)

    def _queues(self) -> SimulatedQueues:
        return SlowQueues(self.world)

    def _outside(self) -> BadCloud:
        self._figures = machine_faults.faults(is_hard=self.how.is_hard)
        self.cloud = Cloud(self.world.now, self.dice, self._figures)
        return BadCloud(self)

    def _people(self) -> People:
        return Submitters(self)

    @property
    def faults(self) -> Faults:
        """The cloud's faults at this moment. They continue after the storm."""
        quota = OTHERS_LEAVE if QUOTA in self.short else self._figures.quota
        return replace(self._figures, short={*self._figures.short, *self.short}, quota=quota)

    def _boot(self, thing: Thing) -> None:
        self.watch.made(thing)
        if thing.order.is_worker:
            self.machines[thing.id] = BadMachine(self, thing)
            self.troubles.watch(thing)

    # What ports ask for.

    def at(self, what: str, call: Callable[[], T], *, effect: bool = False) -> T:
        """A port call; a call of the cloud takes some time."""
        if what in ("create", "destroy", "clean", "list") and self.task:
            self._pass(self.dice.uniform(*CALL))
        return super().at(what, call, effect=effect)

    def committed(self, changes: Sequence[Change], before: Mapping[Key, Row | None]) -> None:
        """Check every promise after a commit."""
        super().committed(changes, before)
        self.watch.committed(changes, before)

    # What troubles do.

    def is_storm(self) -> bool:
        """Whether the jobs are not all settled yet."""
        return self.weather is self.storm

    def is_dark(self) -> bool:
        """Whether nothing of ours answers."""
        until = self.troubles.dark_until
        return until is not None and self.world.now() < until

    def kill(self, task: Task) -> None:
        """Kill a handler at its current call."""
        task.killed = True
        while not task.done:
            self.baton.resume(task)
        self._after(task)

    def stop_overdue(self) -> None:
        """Let every agent with an expired lease stop its job, as it does by its own clock."""
        now = self.world.now()
        for machine in self.machines.values():
            if isinstance(machine, BadMachine) and machine.is_overdue(now):
                machine.stop()

    # The run.

    def _rage(self) -> None:
        self.weather, self._is_open = self.storm, True
        if self.how.is_hard:
            self.troubles.start(self.how.without)
        while self.people.left or self.tasks or len(self.watch.settled) < self.how.jobs:
            if self.world.now() > START + LONGEST:
                raise Broken("JOB-1", f"{self.how.jobs - len(self.watch.settled)} jobs never settle")
            self.troubles.act()
            self._step(self.world.now() + timedelta(days=1))

    def _step(self, until: datetime) -> bool:
        choices: list[Callable[[], Any]] = [self._resume] * 4 if self.tasks else []
        if len(self.tasks) < AT_ONCE:
            choices += self._beginnings()
        if not choices:
            self._check_quiet()
            return self._wait(until)
        if self.tasks and self.dice.random() < 0.05:  # a handler takes a moment: what comes meanwhile, begins
            self._wait(self.world.now() + timedelta(seconds=0.1))
        self.dice.choice(choices)()
        return True

    def _beginnings(self) -> list[Callable[[], Any]]:
        if not self.is_dark():
            return super()._beginnings()
        now = self.world.now()
        acting = [machine for machine in self._actors() if machine.next_at <= now and not machine.busy]
        return [acting[0].act] if acting else []

    def _actors(self) -> Sequence[Machine]:
        """Who may act now. While nothing of ours answers, hosts and who runs there wait for it."""
        found = self.machines.values()
        return [machine for machine in found if isinstance(machine, BadMachine) or not self.is_dark()]

    def _wait(self, until: datetime) -> bool:
        """Move the clock to the next thing that happens."""
        dark = self.troubles.dark_until if self.is_dark() else None
        coming = [dark] if dark else [message[0] for message in self.queues.messages]
        coming += [machine.next_at for machine in self._actors() if not machine.busy]
        coming += [loop.next_at for loop in self.hosts.loops() if not loop.busy] if not dark else []
        coming += [self._next_sweep] if self.is_storm() and not dark else []
        coming += [self.troubles.next_at] if self.troubles.next_at and self.is_storm() else []
        if not coming or min(coming) > until:
            return False
        self.world.time = max(self.world.time, min(coming))
        return True

    def _sweep(self) -> None:
        for name in [name for name, machine in self.machines.items() if not self._may_act(machine)]:
            del self.machines[name]
        super()._sweep()

    def _may_act(self, machine: Machine) -> bool:
        """Whether a machine or its agent may still do something; an idle one may while its unit exists."""
        is_there = isinstance(machine, BadMachine) and machine.thing.exists(self.world.now())
        is_alive = machine.busy or machine.next_at < self.world.now() + timedelta(days=100)
        return is_there or is_alive or (machine.state == "resting" and not self.watch.is_gone(machine.id))

    def _calm_down(self) -> None:
        self.troubles.dark_until = None
        super()._calm_down()
        self.promises.must("UNIT-1", not self.watch.unknown, f"machines existed for {self.watch.unknown} s with no row")

    def missing(self) -> list[str]:
        """The faults that the figures require and that never happened."""
        happened = self.cloud.met + self.watch.counts + self.hosts.met
        return [what for what in (HARDER if self.how.is_hard else ALWAYS) if not happened[what]]
