"""What factories and wells have made, and the drivers that make it. Drivers fail in every way that they may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zlib import crc32

from penstock.domain.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Unsatisfiable
from penstock.domain.units import CleanProof
from penstock.ports import NotYet, Order, Ready
from simulation.ports import Host

ERRORS: Sequence[Callable[[], DriverError]] = (
    lambda: RateLimited("too many requests", 30),
    lambda: QuotaReached("the account is full"),
    lambda: NoCapacity("none left"),
    lambda: Misconfigured("no such image"),
)


STUCK = 15
"""Of so many units one cannot be destroyed while the weather is bad, whatever the dice say."""


@dataclass(frozen=True)
class Thing:
    """Something that exists outside and carries our tag."""

    order: Order
    maker: str
    is_worker: bool


class Outside:
    """All that exists. `on_*` are asked before anything is done, and told after."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.things: dict[str, Thing] = {}
        self.proofs: dict[str, CleanProof] = {}
        self.cleanings: dict[str, CleanProof] = {}
        self.untagged = {"somebody-elses-machine"}
        self.before_create: Callable[[Order], None] = lambda _: None
        self.before_clean: Callable[[str], None] = lambda _: None
        self.before_destroy: Callable[[str], None] = lambda _: None
        self.made: Callable[[Thing], None] = lambda _: None

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> MadeUp:
        """The driver of a factory."""
        return MadeUp(self, str(settings["name"]), is_worker=True)

    def well(self, driver: str, settings: Mapping[str, Any], name: str = "") -> MadeUp:
        """The driver of a well."""
        return MadeUp(self, str(settings["name"]), is_worker=False)

    def complaints(self, kind: str, driver: str, settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with a driver's settings: nothing."""
        return []

    def keeps(self, kind: str, driver: str) -> bool:
        """Whether a driver's units can be kept for the next lease: all can."""
        return True

    def quarantines(self, kind: str, driver: str) -> bool:
        """Whether a broken unit of a driver is quarantined: workers are."""
        return kind == "factory"

    def hosts(self, driver: str) -> bool:
        """Whether its workers are machines that exist already: none are."""
        return False

    def objections(self, driver: str, options: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with a job's options: nothing."""
        return []


class MadeUp:
    """The driver of one factory or well."""

    def __init__(self, outside: Outside, maker: str, *, is_worker: bool) -> None:
        self._outside, self._maker, self._is_worker = outside, maker, is_worker

    def create(self, order: Order) -> Ready | NotYet:
        """Make a thing, or say why not."""
        return self._outside.host.at("create", lambda: self._create(order), effect=True)

    def _create(self, order: Order) -> Ready | NotYet:
        outside, host = self._outside, self._outside.host
        outside.before_create(order)
        if host.chance("fail"):
            host.tell(f"{self._maker} fails to create {order.id}")
            raise Unsatisfiable("no such thing") if host.dice.random() < 0.05 else host.dice.choice(ERRORS)()
        if host.chance("slow"):
            host.tell(f"{self._maker} has not made {order.id} yet")
            return NotYet(host.dice.choice((1, 5, 60)), "it is coming")
        if order.id not in outside.things:
            outside.things[order.id] = Thing(order, self._maker, self._is_worker)
            outside.made(outside.things[order.id])
            host.tell(f"{self._maker} made {order.id} for {order.type} {order.slot}")
        return Ready({} if self._is_worker else {"id": order.id})

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Remove a thing, or say why not."""
        return self._outside.host.at("destroy", lambda: self._destroy(unit, now), effect=True)

    def _destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        outside, host = self._outside, self._outside.host
        outside.before_destroy(unit)
        if host.weather.fail and crc32(unit.encode()) % STUCK == 0:
            host.tell(f"{self._maker} can never destroy {unit}")
            raise Unsatisfiable("it does not answer")
        later = self._not_yet("destroy", unit)
        if later:
            return later
        outside.things.pop(unit, None)
        outside.proofs[unit] = CleanProof(by=self._maker, time=now, checked=unit)
        host.tell(f"{self._maker} destroyed {unit}")
        return outside.proofs[unit]

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Make a thing as new, or say why not."""
        return self._outside.host.at("clean", lambda: self._clean(unit, now), effect=True)

    def _clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        outside, host = self._outside, self._outside.host
        outside.before_clean(unit)
        later = self._not_yet("clean", unit)
        if later:
            return later
        outside.cleanings[unit] = CleanProof(by=self._maker, time=now, checked=unit)
        host.tell(f"{self._maker} cleaned {unit}")
        return outside.cleanings[unit]

    def _not_yet(self, what: str, unit: str) -> NotYet | None:
        host = self._outside.host
        if host.chance("fail"):
            host.tell(f"{self._maker} fails to {what} {unit}")
            raise host.dice.choice(ERRORS)()
        if host.chance("slow"):
            host.tell(f"{self._maker} could not {what} {unit} yet")
            return NotYet(host.dice.choice((1, 5, 60)), "it is going")
        return None

    def list(self) -> Iterable[str]:
        """The ids of what carries our tag. The newest may not be seen yet."""
        return self._outside.host.at("list", self._list)

    def _list(self) -> Iterable[str]:
        host = self._outside.host
        if host.chance("fail"):
            raise host.dice.choice(ERRORS)()
        found = [id for id, thing in self._outside.things.items() if thing.maker == self._maker]
        return found[:-1] if host.chance("lag") else found
