"""The controller of a site's hosts: it switches machines on and off, and writes them anew. [JOB-2]

It does what docs/operators/hosts.md asks of controllers, and no more: it refuses what is older than it has seen,
answers a repeated request as before, and is done only when nothing earlier is under way. It does not know who uses a
host. Some of its answers are lost, and some requests come to it minutes later. People switch machines on and off, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from penstock.domain.pools.pools import Pool, Slot, SlotState, thing_of
from penstock.domain.units.units import CleanProof, Unit, UnitState, is_held, unit_key
from penstock.kernel.errors import DriverError, Unknown
from penstock.ports import NotYet, Ready, Switching
from simulation.interfaces import Run
from simulation.ports import slots_of

T = TypeVar("T")

LATE_SECONDS = (1, 30, 300, 2000)
"""When a request comes that its sender has given up."""


class Machines(Protocol):
    """The machines of hosts, as far as their power goes."""

    def is_on(self, host: str) -> bool:
        """Whether a host's machine has power."""

    def power_on(self, host: str) -> None:
        """Give a host's machine power: it boots."""

    def power_off(self, host: str) -> None:
        """Cut the power of a host's machine."""

    def write_anew(self, host: str) -> None:
        """Write a host's machine anew: it is empty, and boots if it has power."""


@dataclass
class Known:
    """What the controller knows of a host. `under_way`: what it has begun for it, the first of which is next."""

    serial: int = 0
    fence: int = 0
    under_way: list[Callable[[], None]] = field(default_factory=list)


class Act:
    """Something that happens to a host by itself, at its time."""

    busy = False

    def __init__(self, next_at: datetime, act: Callable[[], None]) -> None:
        self.next_at, self.act = next_at, act


class Controller:
    """Called by the driver of hosts; `acts` are what it does later."""

    def __init__(self, engine: Run, machines: Machines) -> None:
        self._engine, self._machines = engine, machines
        self._known: dict[str, Known] = defaultdict(Known)
        self.acts: list[Act] = []

    def is_on(self, host: str) -> bool:
        """Whether a host has power."""
        return self._machines.is_on(host)

    def press(self, host: str) -> None:
        """Somebody presses the button of a host's machine, whatever it does. The controller does not know."""
        is_on = self._machines.is_on(host)
        self._engine.tell(f"somebody switches {host} {'off' if is_on else 'on'}")
        (self._machines.power_off if is_on else self._machines.power_on)(host)

    def switch(self, host: str, to: Switching) -> Ready | NotYet:
        """Switch a host. Raises Unknown for an older order than it has seen."""
        return self._answer(lambda: self._switch(host, to))

    def clean(self, host: str, fence: int, now: datetime) -> CleanProof | NotYet:
        """Write a host anew after a lease. Raises Unknown for an earlier lease than it has seen."""
        return self._answer(lambda: self._clean(host, fence, now))

    def _answer(self, request: Callable[[], T]) -> T:
        """What comes of a request; or nothing is heard, and it comes later, or never."""
        dice = self._engine.dice
        if not self._engine.chance("fail"):
            return request()
        if dice.random() < 0.5:
            self._later(dice.choice(LATE_SECONDS), lambda: _unheard(request))
        raise Unknown("the controller does not answer")

    def _later(self, seconds: float, do: Callable[[], object]) -> None:
        def act() -> None:
            self.acts.remove(due)
            do()

        due = Act(self._engine.world.now() + timedelta(seconds=seconds), act)
        self.acts.append(due)

    def _switch(self, host: str, to: Switching) -> Ready | NotYet:
        known = self._known[host]
        if to.serial < known.serial:
            raise Unknown(f"{host} had the order {known.serial} since")
        if to.serial > known.serial:
            known.serial = to.serial
            self._begin(host, lambda: self._turn(host, to))
        return NotYet(5, f"{host} is being switched") if known.under_way else Ready()

    def _clean(self, host: str, fence: int, now: datetime) -> CleanProof | NotYet:
        known = self._known[host]
        if fence < known.fence:
            raise Unknown(f"{host} had the lease {known.fence} since")
        if fence > known.fence:
            known.fence = fence
            self._begin(host, lambda: self._machines.write_anew(host))
        return NotYet(5, f"{host} is being cleaned") if known.under_way else CleanProof("controller", now, "it is new")

    def _begin(self, host: str, do: Callable[[], None]) -> None:
        """Do something at once, or after a while; always after what is under way already."""
        known, engine = self._known[host], self._engine
        known.under_way.append(do)
        if len(known.under_way) > 1:
            return
        if engine.chance("slow"):
            self._later(engine.dice.randint(1, 120), lambda: self._do(host))
        else:
            self._do(host)

    def _do(self, host: str) -> None:
        """Do what is next. What comes after it, takes a while."""
        under_way = self._known[host].under_way
        under_way[0]()
        del under_way[0]
        if under_way:
            self._later(self._engine.dice.randint(1, 30), lambda: self._do(host))

    def _turn(self, host: str, to: Switching) -> None:
        """Switch a host. One that was on and did not come is switched off first."""
        is_on = self._machines.is_on(host)
        if is_on and (to.missed or not to.is_on):
            self._check_nobody_has(host, f"by the order {to.serial}")
            self._machines.power_off(host)
        if to.is_on and (to.missed or not is_on):
            self._machines.power_on(host)

    def _check_nobody_has(self, host: str, why: str) -> None:
        """JOB-2: a host loses its power only while nobody has it or could be given it."""
        store = self._engine.store
        pools = [row.name for row in store.rows.values() if isinstance(row, Pool) and row.hosts]
        slots = [slot for pool in pools for slot in slots_of(store, pool) if thing_of(slot.name) == host]
        lent = [f"{slot.name} of {slot.pool} is {slot.state}" for slot in slots if self._is_lent(slot)]
        self._engine.promises.must("JOB-2", not lent, f"{host} loses its power {why}, and {', '.join(lent)}")

    def _is_lent(self, slot: Slot) -> bool:
        """Whether a slot is free, or held by a worker whose lease has not ended, or that an operator looks at."""
        unit = self._engine.store.rows.get(unit_key(slot.unit)) if slot.unit else None
        is_ended = (
            isinstance(unit, Unit) and unit.state is UnitState.DIRTY and not is_held(unit, self._engine.world.now())
        )
        return slot.state is SlotState.FREE or (slot.state is SlotState.HELD and not is_ended)


def _unheard(request: Callable[[], object]) -> None:
    """A request whose sender has given up: nobody hears its answer."""
    try:
        request()
    except DriverError:
        return
