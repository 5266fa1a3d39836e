"""Hosts: machines that exist already, each with its agent, and the agents of the workers that they are given. [SLOT-1]

An agent polls through the real use case, and remembers what it has as the real one does. A machine goes down and comes
back, with or without its memory; a second one of the same name comes; one falls silent, or leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Literal

from penstock.domain.commands import AgentHost
from penstock.domain.replies import Container, HostInstruction
from penstock.domain.units.units import CleanProof, Unit, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import START
from penstock.usecases.workers import hosts
from simulation.agents import NEVER, Machine
from simulation.controllers import Act, Controller
from simulation.interfaces import Run
from simulation.tasks import Task

TAKEN = 409
"""How a host's second agent is refused; it tries again."""

Stage = Literal["working", "ended", "clean"]

RESTARTED, DOWN, SET_UP = "a host's agent was restarted", "a host went down", "a host was set up anew"
TWICE, LEFT, SILENT = "a host was there twice", "a host left", "a host fell silent"
HAPPENINGS = (RESTARTED, DOWN, SET_UP, TWICE, LEFT, SILENT)
"""What happens to hosts, each as often as the others."""

CRASHES = 0.2
"""Of so much of the trouble of hosts a worker's agent has its share."""


class HostWorker(Machine):
    """The agent of a worker on a host: a process, which runs until it ends, or its host ends it, or goes down."""

    def __init__(self, engine: Run, id: str, key: str) -> None:
        self._is_up = True
        super().__init__(engine, id, key)
        if self.next_at >= engine.world.now() + NEVER:
            self.stop("crashes before it says hello")

    def _is_there(self) -> bool:
        return self._is_up

    @property
    def lives(self) -> bool:
        """Whether its process runs."""
        return self._is_up and self.state != "ended"

    def stop(self, why: str) -> None:
        """The process is ended, and its script with it. What it sent may still arrive."""
        self._is_up = False
        if self.state != "ended":
            self._end(why)

    def go_down(self) -> None:
        """Its machine goes down: an agent that had begun its job never runs it again."""
        self._is_up = False
        if self.state == "booting":
            self.next_at = self._engine.world.now() + NEVER
        else:
            self.stop("goes down with its machine")

    def come_back(self) -> None:
        """Its machine is up again, and its host's agent starts it, if it had not begun its job."""
        if self.state == "booting":
            self._is_up = True
            self.next_at = self._engine.world.now() + timedelta(seconds=self._engine.dice.randint(1, 30))

    def behave(self) -> None:
        """The trouble is over; while its machine is down it does nothing."""
        if self._is_up:
            super().behave()

    def cut(self, until: timedelta) -> None:
        """Nobody hears of it for a while."""
        now = self._engine.world.now()
        self.silent_from, self.silent_until = now, now + until
        self.next_at = max(self.next_at, self.silent_until) if self.state == "booting" else self.next_at

    def act(self) -> None:
        """Its next call, unless it crashes."""
        if self.lives and self._engine.chance("hosts") and self._engine.dice.random() < CRASHES:
            self.stop("crashes")
            return
        super().act()


class Loop:
    """What a host's agent remembers of one worker, and how it polls for it: for the whole host, or for a part of it."""

    def __init__(self, machine: HostMachine, part: int = 0) -> None:
        self._machine, self.part = machine, part
        self._engine = machine.engine
        self.next_at = self._engine.world.now() + timedelta(seconds=self._engine.dice.randint(0, 30))
        self.busy = False
        self.worker, self._cleaned, self._trouble = "", "", ""
        self._stage: Stage = "working"
        self._said: AgentHost | None = None

    @property
    def name(self) -> str:
        """Whose calls these are."""
        return f"host {self._machine.name}" + (f"/{self.part}" if self.part else "")

    def act(self) -> None:
        """The agent's next call, or what happens to its machine."""
        machine, engine = self._machine, self._engine
        if not machine.is_up:
            machine.come_back()
        elif engine.chance("hosts"):
            machine.suffer()
        else:
            if self._said and engine.chance("rogue"):
                self._send(self._said, "an old call once more", lambda _: None)
            self.poll()

    def poll(self, *, leaving: bool = False) -> None:
        """Say where it is, and do what the answer says."""
        if self.worker and self._stage == "working" and not self._machine.runs(self.worker):
            self._stage = "ended"
        turn, self.busy = self._machine.turn, True

        def answered(task: Task) -> None:
            self.busy = False
            if turn == self._machine.turn:
                self._answered(task)

        said = self._status(leaving=leaving)
        what = f"{'leaves, ' if leaving else ''}{self._stage} {self.worker}" if self.worker or leaving else "polls"
        self._send(said, what, answered)
        self._said = said
        if self._engine.chance("double"):
            self._send(said, f"{what}, once more", lambda _: None)

    def _status(self, *, leaving: bool) -> AgentHost:
        return AgentHost(
            self._machine.session, self._machine.about, self.worker, self._stage, self._cleaned, self._trouble, leaving,
            self.part,
        )  # fmt: skip

    def _send(self, said: AgentHost, what: str, then: Callable[[Task], None]) -> None:
        machine, on = self._machine, self._engine.on
        self._engine.begin(f"{self.name}: {what}", lambda: hosts.poll(on, machine.user, machine.name, said), then)

    def _answered(self, task: Task) -> None:
        if isinstance(task.error, Refused):
            self._refused(task.error)
        elif task.error or self._engine.chance("lose"):
            self.wait(self._engine.dice.randint(1, 15))
        else:
            self.obey(task.result)

    def _refused(self, why: Refused) -> None:
        """The site does not want it: its agent ends, and is started anew some time. Who has a worker goes on trying."""
        if why.status != TAKEN and not self.worker:
            self._engine.tell(f"the agent of {self._machine.name} ends: {why.code}")
        self.wait(self._engine.dice.choice((30, 60, 200)))

    def wait(self, seconds: float) -> None:
        """Call again after so long."""
        self.next_at = self._engine.world.now() + timedelta(seconds=seconds)

    def obey(self, told: HostInstruction) -> None:
        """Do what the service says."""
        dice = self._engine.dice
        if not self.part:
            self._machine.divide(told.busy or ())
        if told.do == "work" and told.worker and told.key and not self.worker:
            self.worker, self._stage = told.worker, "working"
            self._machine.start(told.worker, told.key, told.container)
        if told.do == "clean" and told.worker:
            self._clean(told.worker)
        elif told.do == "forget" and self._is_clean():
            self.forget()
            self.wait(0)
        elif told.do in ("wait", "work"):
            self.wait(dice.choice((1, 1, 2, 4)) * max(1, told.seconds))

    def _is_clean(self) -> bool:
        """Whether it is clean, before it forgets a worker that was taken away."""
        return not self.worker or self._stage == "clean" or self._clean(self.worker)

    def _clean(self, worker: str) -> bool:
        """End what runs and remove what is left, which takes a while, or cannot be done for now."""
        engine, now = self._engine, self._engine.world.now()
        engine.outside.before_destroy(worker)
        self._machine.end(worker)
        self.worker, self._stage = worker, "ended"
        if engine.chance("fail"):
            self._trouble = "a file cannot be removed"
            self.wait(60)
            return False
        self._stage, self._trouble, self._cleaned = "clean", "", f"{worker}: nothing is left"
        if self.part or not self._machine.is_cleaned_outside:
            engine.outside.proofs[worker] = CleanProof(self.name, now, self._cleaned)
        self.wait(engine.dice.randint(0, 20))
        return True

    def forget(self) -> None:
        """It has no worker."""
        self.worker, self._stage, self._cleaned, self._trouble = "", "working", "", ""


class HostMachine:
    """A machine with a host's name, and its agent. `turn` counts its agent's lives: what came for an earlier one, comes
    to nobody.
    """

    def __init__(self, farm: Hosts, name: str, number: int) -> None:
        self.engine, self.name, self.number = farm.engine, name, number
        self.about = f"machine {number}"
        self.user = User(name=f"host-{name}", privileges=(f"host.{name}",), created=START, version=1)
        self.turn, self.is_up, self.is_on = 0, True, True
        self._farm, self._lives = farm, 0
        self._workers: dict[str, HostWorker] = {}
        self.loops = [Loop(self)]

    @property
    def session(self) -> str:
        """What identifies its agent, for as long as it has its memory."""
        return f"{self.name}-{self.number}-{self._lives}-{'s' * 43}"

    def power_on(self) -> None:
        """It has power, and boots, which may take too long."""
        dice = self.engine.dice
        self.is_on = True
        self.engine.tell(f"{self.name} has power")
        self._pause(dice.choice((400, 900)) if self.engine.chance("mute") else dice.randint(5, 120))

    def power_off(self) -> None:
        """It has no power, and is down until it has."""
        self.is_on = False
        self._go_down(NEVER.total_seconds(), "has no power")

    def write_anew(self) -> None:
        """It is written anew, and boots if it has power."""
        seconds = self.engine.dice.choice((10, 60, 300)) if self.is_on else NEVER.total_seconds()
        self._empty(seconds, "is written anew")

    @property
    def is_cleaned_outside(self) -> bool:
        """Whether its own word is no proof that it is clean."""
        return self._farm.controller is not None

    def runs(self, worker: str) -> bool:
        """Whether a worker's agent runs here."""
        return worker in self._workers and self._workers[worker].lives

    def divide(self, busy: Sequence[int]) -> None:
        """Poll for each part of it that has a worker. The others end, once they have none."""
        self.loops = [loop for loop in self.loops if loop.part in (0, *busy) or loop.worker or loop.busy]
        known = {loop.part for loop in self.loops}
        self.loops += [Loop(self, part) for part in busy if part not in known]

    def start(self, worker: str, key: str, container: Container | None) -> None:
        """Start a worker's agent, in a container where jobs share the host: it has what its job asked for."""
        unit = self.engine.store.rows.get(unit_key(worker))
        asked = self.engine.asked.get(unit.lease.job) if container and isinstance(unit, Unit) else None
        if container and asked:
            has = f"{container.cpus} cpus and {container.memory} MiB"
            is_enough = container.cpus >= asked[0] and container.memory >= asked[1]
            self.engine.promises.must("SLOT-2", is_enough, f"{worker} has {has}, and its job asked for {asked}")
        self._workers[worker] = HostWorker(self.engine, worker, key)
        self._farm.adopt(f"{worker} on {self.session}", self._workers[worker])

    def end(self, worker: str) -> None:
        """End a worker's agent, if it runs here."""
        if worker in self._workers:
            self._workers[worker].stop("is ended by its host")

    def suffer(self) -> None:
        """Something happens to it. No second machine comes where a controller knows the one that it switches."""
        what = self.engine.dice.choice([each for each in HAPPENINGS if each != TWICE or not self.is_cleaned_outside])
        self._farm.met[what] += 1
        acts: Mapping[str, Callable[[], None]] = {
            RESTARTED: self._restart, DOWN: self._reboot, SET_UP: self._lose_memory, TWICE: self._doubled,
            LEFT: self._leave, SILENT: self._fall_silent,
        }  # fmt: skip
        acts[what]()

    def _pause(self, seconds: float) -> None:
        self.turn += 1
        for loop in self.loops:
            loop.wait(seconds)

    def _restart(self) -> None:
        self.engine.tell(f"the agent of {self.name} is started anew")
        self._pause(self.engine.dice.randint(1, 60))

    def _reboot(self) -> None:
        self._go_down(self.engine.dice.choice((10, 60, 300)), "goes down")

    def _go_down(self, seconds: float, how: str) -> None:
        self.engine.tell(f"{self.name} {how}")
        self.is_up = False
        for worker in self._workers.values():
            worker.go_down()
        self._pause(seconds)

    def _lose_memory(self) -> None:
        """It is set up anew."""
        self._empty(self.engine.dice.choice((10, 200, 600)), "goes down, and forgets all that it knew")

    def _empty(self, seconds: float, how: str) -> None:
        """It goes down, and has nothing when it comes back."""
        self._go_down(seconds, how)
        for worker in self._workers.values():
            worker.stop("is gone with its machine's disk")
        self._lives += 1
        for loop in self.loops:
            loop.forget()

    def come_back(self) -> None:
        """It is up again."""
        self.is_up = True
        self.engine.tell(f"{self.name} is up")
        for worker in self._workers.values():
            worker.come_back()
        self._pause(self.engine.dice.randint(0, 20))

    def _doubled(self) -> None:
        """A second machine has its name. It may have fallen silent before."""
        self._farm.add(self.name)
        if self.engine.dice.random() < 0.7:
            self._fall_silent()
        else:
            self._pause(5)

    def _leave(self) -> None:
        """Its agent is ended, and ends its workers' agents. It says so, and is started anew some time."""
        for worker in self._workers.values():
            worker.stop("is ended by its host, which leaves")
        self._pause(self.engine.dice.choice((30, 300, 1000)))
        self.turn += 1
        if not self.loops[0].busy:
            self.loops[0].poll(leaving=True)
            self.turn += 1

    def _fall_silent(self) -> None:
        """Its agent, or all of it, is not heard of for a while."""
        dice = self.engine.dice
        until = timedelta(seconds=dice.choice((60, 150, 700)))
        is_cut = dice.random() < 0.6
        self.engine.tell(f"{self.name} is silent" + (", with all that runs there" if is_cut else ""))
        for worker in self._workers.values() if is_cut else ():
            worker.cut(until)
        self._pause(until.total_seconds())

    def behave(self, *, stays: bool) -> None:
        """The trouble is over. Of two machines of one name only one stays; if it has no power, as it is."""
        if stays and not self.is_on:
            return
        if stays and self.is_up:
            self._pause(self.engine.dice.randint(0, 5))
        elif stays:
            self.come_back()
        else:
            self._go_down(NEVER.total_seconds(), "is taken away")
            for worker in self._workers.values():
                worker.stop("is taken away")


class Hosts:
    """All machines that have a host's name. `met` counts what happened to them. Where a controller switches them, some
    have no power at first.
    """

    def __init__(
        self, engine: Run, names: Sequence[str], adopt: Callable[[str, Machine], None], *, is_switched: bool = False
    ) -> None:
        self.engine, self.adopt = engine, adopt
        self.met: Counter[str] = Counter()
        self._machines: list[HostMachine] = []
        self._newest: dict[str, HostMachine] = {}
        self.controller = Controller(engine, self) if is_switched else None
        for name in names:
            self.add(name)
            if is_switched and engine.dice.random() < 0.7:
                self.power_off(name)

    def add(self, name: str) -> None:
        """One machine more."""
        self._newest[name] = HostMachine(self, name, len(self._machines))
        self._machines.append(self._newest[name])

    def is_on(self, host: str) -> bool:
        """Whether a host's machine has power: of several the newest, which the controller switches."""
        return self._newest[host].is_on

    def power_on(self, host: str) -> None:
        """A host's machine has power."""
        self._newest[host].power_on()

    def power_off(self, host: str) -> None:
        """A host's machine has no power."""
        self._newest[host].power_off()

    def write_anew(self, host: str) -> None:
        """A host's machine is written anew."""
        self._newest[host].write_anew()

    def loops(self) -> Iterator[Loop | Act]:
        """Whoever calls for them, and what their controller does later."""
        yield from (loop for machine in self._machines for loop in machine.loops)
        yield from self.controller.acts if self.controller else ()

    def behave(self) -> None:
        """The trouble is over: of each name the newest machine stays."""
        for machine in self._machines:
            machine.behave(stays=self._newest[machine.name] is machine)
