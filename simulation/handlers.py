"""Connects the ports to the use cases, and calls the handlers."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from penstock.kernel.errors import PenstockError, Refused
from penstock.kernel.rows import Change, Key, Row
from penstock.system import System
from penstock.testing.fake import Cloud
from penstock.testing.fake import Machine as Thing
from penstock.testing.metrics import RecordedMetrics
from penstock.testing.twin import START, MemoryObjects, MemoryVault, Twin
from penstock.usecases import sweep
from penstock.usecases.jobs import settle
from simulation import faults, scenario
from simulation.agents import Machine
from simulation.checks import Promises
from simulation.cloud import Outside
from simulation.errors import Broken
from simulation.faults import Weather
from simulation.hosts import Hosts
from simulation.ports import Clock, Service, SimulatedFlows, SimulatedQueues, SimulatedStore, SimulatedWorld
from simulation.scenario import Plan
from simulation.tasks import Baton, Died, Task
from simulation.trace import Story
from simulation.users import People

T = TypeVar("T")


HANDLER_SECONDS = 120
"""No function lives longer: the timeouts in infra/functions.py."""


MEASURED = 8
"""The sweep collects metrics in one of so many seeds: that is slow, and decides nothing."""


class Handlers(Twin):
    """The system of one seed, with its handlers, machines and users."""

    world: SimulatedWorld
    store: SimulatedStore
    queues: SimulatedQueues
    flows: SimulatedFlows

    def __init__(
        self,
        seed: int,
        *,
        jobs: int | None = None,
        without: Collection[str] = (),
        blind: Collection[str] = (),
        watched: bool = True,
    ):
        self.dice = random.Random(f"{seed} steps")
        self.storm, self.plan = self._drawn(seed, jobs, without)
        self.weather = faults.CALM
        self.story = Story(START)
        self.baton = Baton()
        self.tasks: list[Task] = []
        self.machines: dict[str, Machine] = {}
        self.asked: dict[str, tuple[float, int]] = {}
        self.is_harmed = False
        self.refusing: dict[Service, datetime] = {}
        self.broken: Broken | None = None
        self._harms = 0
        self._is_open = False
        self._next_sweep = START
        self._plug(seed)
        self.promises = Promises(self, blind, watched=watched)
        self.people = self._people()
        shape = self.plan.shape
        self.hosts = Hosts(self, shape.hosts, self.machines.__setitem__, is_switched=bool(shape.power))
        self.outside.controller = self.hosts.controller

    def _drawn(self, seed: int, jobs: int | None, without: Collection[str]) -> tuple[Weather, Plan]:
        dice = random.Random(f"{seed} plan")
        weather = faults.draw(dice, random.Random(f"{seed} throttling"))
        return weather.without(without), scenario.draw(dice, jobs)

    def _plug(self, seed: int) -> None:
        self.world = SimulatedWorld(seed)
        self.store = SimulatedStore(self)
        self.queues = self._queues()
        self.world.host = self.queues.host = self
        self.flows = SimulatedFlows(self.queues)
        self.objects = MemoryObjects()
        self.outside = self._outside()
        self.outside.made = self._boot
        self.on = System(
            self.store, self.queues, self.flows, self.objects, self.outside, Clock(self.world), MemoryVault(),
            "http://here", lambda: hashlib.sha256(b"key").hexdigest(), RecordedMetrics(wanted=seed % MEASURED == 0),
        )  # fmt: skip

    def _queues(self) -> SimulatedQueues:
        return SimulatedQueues(self.world)

    def _outside(self) -> Outside:
        return Outside(self, Cloud(self.world.now, self.dice))

    def _people(self) -> People:
        return People(self)

    def _boot(self, thing: Thing) -> None:
        if thing.order.is_worker:
            self.machines[thing.id] = Machine(self, thing.order.id, thing.order.key)

    # What ports ask for.

    @property
    def task(self) -> Task | None:
        """The running task; None for the engine itself."""
        return self.baton.current

    def at(self, what: str, call: Callable[[], T], *, effect: bool = False) -> T:
        """A port call: another handler may run first, and this one may die before or after the call."""
        task = self.baton.current
        if task is None:
            return call()
        if self.chance("switch") or (what == "commit" and self.chance("switch")):
            self.baton.pause()
        task.effects += effect
        is_last = effect and task.effects == task.dies_at
        if is_last and not task.dies_after:
            self._die(f"dies before its {what}")
        result = call()
        if is_last:
            self._die(f"dies after its {what}")
        return result

    def _die(self, how: str) -> None:
        self.harm()
        self.tell(how)
        raise Died

    def tell(self, what: str) -> None:
        """Add to the story."""
        task = self.baton.current
        self.story.tell(self.world.now(), task.name if task else "-", what)

    def chance(self, kind: str) -> bool:
        """Whether a kind of fault happens now."""
        rate: float = getattr(self.weather, kind)
        return rate > 0 and self.dice.random() < rate

    def refuses(self, service: Service) -> bool:
        """Whether a service refuses the request of a handler now."""
        until = self.refusing.get(service)
        is_time = until is not None and self.world.now() < until and self.baton.current is not None
        return is_time and self.dice.random() < faults.REFUSED

    def harm(self) -> None:
        """Note that a hint was lost: progress is not guaranteed until a sweep succeeds."""
        self._harms += 1
        self.is_harmed = True

    def committed(self, changes: Sequence[Change], before: Mapping[Key, Row | None]) -> None:
        """Check every promise after a commit."""
        self.promises.committed(changes, before)

    def failed(self, cause: str) -> None:
        """Check that a step fails for a reason that is so."""
        self.promises.fails(cause)

    # Handlers.

    def begin(
        self, name: str, call: Callable[[], Any], then: Callable[[Task], None], *,
        unit: str | None = None, intruder: bool = False, dies_at: int = 0,
    ) -> None:  # fmt: skip
        """Call a handler. `then` gets it when it has ended. `dies_at`: after which of its effects it dies."""
        task = Task(name, call, then, self.world.now(), unit=unit, intruder=intruder, dies_at=dies_at)
        if self.chance("die"):
            task.dies_at, task.dies_after = self.dice.randint(1, 8), self.dice.random() < 0.5
        if self.chance("apart"):
            task.apart = timedelta(seconds=self.dice.uniform(-faults.APART_SECONDS, faults.APART_SECONDS))
        self.story.tell(self.world.now(), name, "begins")
        self.tasks.append(task)
        self.baton.start(task)
        self._after(task)

    def _resume(self) -> None:
        task = self.dice.choice(self.tasks)
        task.killed = self.world.now() - task.begun > timedelta(seconds=HANDLER_SECONDS)
        if task.killed:
            self.harm()
        self.baton.resume(task)
        self._after(task)

    def _after(self, task: Task) -> None:
        if not task.done:
            return
        self.tasks.remove(task)
        error = task.error
        if error:
            self.story.tell(self.world.now(), task.name, f"ends with {type(error).__name__}: {error}")
        if isinstance(error, Broken):
            raise error
        self.promises.ended(task)
        if isinstance(error, PenstockError) and not isinstance(error, Refused):
            self.harm()
        task.then(task)

    def deliver(self) -> bool:
        """Deliver any message that is due."""
        due = self._due()
        if not due:
            return False
        place = self.dice.choice(due)
        _, queue, body = self.queues.messages[place]
        del self.queues.messages[place]
        said = " ".join(str(value) for key, value in body.items() if key != "token")
        self.begin(f"{queue} {said}", lambda: self.take(queue, body), lambda task: self._delivered(task, queue, body))
        return True

    def _delivered(self, task: Task, queue: str, body: dict[str, Any]) -> None:
        if task.error and not self.chance("forget"):
            self.queues.put(queue, body, self.dice.choice((1, 30, 300)))

    def _due(self) -> list[int]:
        now = self.world.now()
        return [place for place, message in enumerate(self.queues.messages) if message[0] <= now]

    def _settle(self) -> None:
        given = self.flows.settling.popleft()
        self._begin_settling(given, lambda: self._settle_again(given))

    def _settle_again(self, given: tuple[str, int, str | None, str | None]) -> None:
        """Retry the flow's last step, a limited number of times."""
        if self.chance("forget"):
            self.flows.fail_to_settle(given[0], given[1])
        else:
            self.flows.settling.append(given)

    def _event(self) -> None:
        job, attempt, status = self.flows.events.popleft()
        if self.chance("again"):
            self.flows.events.append((job, attempt, status))
        self._begin_settling((job, attempt, status, None), lambda: None)

    def _begin_settling(self, given: tuple[str, int, str | None, str | None], again: Callable[[], None]) -> None:
        job, attempt, error, _ = given
        name = f"settle {job}/{attempt} {error or ''}".strip()
        self.begin(
            name, lambda: settle.settle(self.on, *given, unbegun=True), lambda task: again() if task.error else None
        )

    def _sweep(self) -> None:
        harms = self._harms
        self._next_sweep = self.world.now() + timedelta(seconds=61)
        if self.chance("again"):
            self._next_sweep += timedelta(seconds=self.dice.choice((-60, 180, 600)))

        def swept(task: Task) -> None:
            if task.error is None and not task.result.failed and self._harms == harms:
                self.is_harmed = False

        self.begin("sweep", lambda: sweep.sweep(self.on), swept)
