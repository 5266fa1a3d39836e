"""What factories and wells have made: the fake cloud that ships with the package, with the fault rates of the seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, TypeVar
from zlib import crc32

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.hosts import IMAGES, HostsFactory
from penstock.drivers.wells.lock import LockWell
from penstock.kernel.errors import DriverError, Unsatisfiable
from penstock.ports import NotYet, Order, Ready, Switching
from penstock.testing.fake import Cloud, FakeDriver, Faults, Machine
from simulation.faults import Weather
from simulation.ports import Host

T = TypeVar("T")

NEVER_SATISFIED = 0.05
"""The share of refused creates that can never succeed."""


LOCK = "lock"
"""The driver of wells that make nothing."""

HOSTS = "hosts"
"""The driver of factories whose machines exist already."""

STUCK = 15
"""Of so many units one cannot be destroyed while the weather is bad, whatever the dice say."""


def faults(weather: Weather) -> Faults:
    """What the weather is to a cloud. It knows no client tokens: a late create makes what was destroyed once more."""
    return Faults(
        create=weather.fail, destroy=weather.fail, clean=weather.fail, list=weather.fail,
        unsatisfiable=NEVER_SATISFIED, slow=weather.slow, stale=weather.lag, forgets=True,
    )  # fmt: skip


class Controls(Protocol):
    """The controller of hosts."""

    def is_on(self, host: str) -> bool:
        """Whether a host has power."""

    def press(self, host: str) -> None:
        """Switch a host on or off by hand."""

    def switch(self, host: str, to: Switching) -> Ready | NotYet:
        """Switch a host on or off."""

    def clean(self, host: str, fence: int, now: datetime) -> CleanProof | NotYet:
        """Clean a host from outside."""


class Outside:
    """Everything that exists outside. `before_*` are called before a change, and `made` after a creation."""

    def __init__(self, host: Host, cloud: Cloud) -> None:
        self.host = host
        self.cloud = cloud
        self.proofs: dict[str, CleanProof] = {}
        self.cleanings: dict[str, CleanProof] = {}
        self.controller: Controls | None = None
        self.untagged = {"somebody-elses-machine"}
        self.before_create: Callable[[Order], None] = lambda _: None
        self.before_clean: Callable[[str], None] = lambda _: None
        self.before_destroy: Callable[[str], None] = lambda _: None
        self.made: Callable[[Machine], None] = lambda _: None
        cloud.made = self._made

    @property
    def things(self) -> Mapping[str, Machine]:
        """What exists and carries our tag."""
        return self.cloud.machines

    def faults(self) -> Faults:
        """The cloud's faults at this moment."""
        return faults(self.host.weather)

    def _made(self, machine: Machine) -> None:
        self.made(machine)
        order = machine.order
        self.host.tell(f"{machine.maker} made {machine.id} for {order.type} {order.slot}")

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> MadeUp | WatchedHosts:
        """The driver of a factory."""
        if driver == HOSTS:
            return WatchedHosts(self, settings)
        return MadeUp(self, str(settings["name"]), {key: settings[key] for key in settings if key != "name"})

    def well(self, driver: str, settings: Mapping[str, Any], name: str = "") -> MadeUp | Locks | WatchedHosts:
        """The driver of a well."""
        return Locks(self) if driver == LOCK else self.factory(driver, settings, name)

    def complaints(self, kind: str, driver: str, settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with a driver's settings: nothing."""
        return []

    def reusable(self, kind: str, driver: str) -> bool:
        """Whether a driver's units can be kept for the next lease: all that are made can."""
        return driver not in (LOCK, HOSTS)

    def quarantines(self, kind: str, driver: str) -> bool:
        """Whether a broken unit of a driver is quarantined: workers are."""
        return kind == "factory"

    def makes_nothing(self, driver: str) -> bool:
        """Whether what a well leases is only a slot. All others make something, which may fail."""
        return driver == LOCK

    def hosts(self, driver: str) -> bool:
        """Whether its workers are machines that exist already."""
        return driver == HOSTS

    def objections(self, kind: str, driver: str, options: Mapping[str, Any], *told: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with a job's options: nothing."""
        return []

    def options(self, driver: str, *told: Mapping[str, Any]) -> None:
        """The options that jobs may pass to a well: it does not say."""
        return None


class Locks(LockWell):
    """The driver of wells that make nothing, at whose calls another handler may go on."""

    def __init__(self, outside: Outside) -> None:
        super().__init__({}, {})
        self._outside = outside

    def create(self, order: Order) -> Ready | NotYet:
        """The name of the slot."""
        return self._outside.host.at("create", lambda: super(Locks, self).create(order), effect=True)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """A proof at once, which is noted."""
        return self._outside.host.at("destroy", lambda: self._destroy(unit, now), effect=True)

    def _destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        done = super().destroy(unit, now)
        if isinstance(done, CleanProof):
            self._outside.proofs[unit] = done
        return done


class WatchedHosts(HostsFactory):
    """The driver of hosts, at whose calls another handler may go on. Their controller, if any, is that of the run."""

    def __init__(self, outside: Outside, settings: Mapping[str, Any]) -> None:
        super().__init__({key: settings[key] for key in settings if key in IMAGES}, {})
        self._outside = outside
        self._units: Any = outside.controller

    def create(self, order: Order) -> Ready | NotYet:
        """Ready at once: the host asks for its worker."""
        return self._outside.host.at("create", lambda: self._create(order), effect=True)

    def _create(self, order: Order) -> Ready | NotYet:
        self._outside.before_create(order)
        return super().create(order)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Wait for the host's word, or for its controller's, which is noted."""
        return self._outside.host.at("destroy", lambda: self._destroy(unit, now), effect=True)

    def _destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        if self._units and not self._part:
            self._outside.before_destroy(unit)
        done = super().destroy(unit, now)
        if isinstance(done, CleanProof):
            done = self._outside.proofs[unit] = replace(done, checked=f"{unit}: {done.checked}")
        return done

    def switch(self, host: str, to: Switching) -> Ready | NotYet:
        """Have the controller switch a host."""
        return self._outside.host.at("switch", lambda: super(WatchedHosts, self).switch(host, to), effect=True)


class MadeUp:
    """The driver of one factory or well: the fake one, watched, at whose calls another handler may go on."""

    def __init__(self, outside: Outside, maker: str, settings: Mapping[str, Any]) -> None:
        self._outside, self._maker = outside, maker
        self._driver = FakeDriver(settings, {MAKER: maker}, outside.cloud)

    def create(self, order: Order) -> Ready | NotYet:
        """Make a thing, or say why not."""
        return self._outside.host.at("create", lambda: self._create(order), effect=True)

    def _create(self, order: Order) -> Ready | NotYet:
        self._outside.before_create(order)
        done = self._tried(f"fails to create {order.id}", lambda: self._driver.create(order))
        if isinstance(done, NotYet):
            self._tell(f"has not made {order.id} yet")
        return done

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Remove a thing, or say why not."""
        return self._outside.host.at("destroy", lambda: self._destroy(unit, now), effect=True)

    def _destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        self._outside.before_destroy(unit)
        if self._outside.host.weather.fail and crc32(unit.encode()) % STUCK == 0:
            self._tell(f"can never destroy {unit}")
            raise Unsatisfiable("it does not answer")
        done = self._tried(f"fails to destroy {unit}", lambda: self._driver.destroy(unit, now))
        if isinstance(done, NotYet):
            self._tell(f"could not destroy {unit} yet")
            return done
        self._outside.proofs[unit] = done
        self._tell(f"destroyed {unit}")
        return done

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Make a thing as new, or say why not."""
        return self._outside.host.at("clean", lambda: self._clean(unit, now), effect=True)

    def _clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        self._outside.before_clean(unit)
        done = self._tried(f"fails to clean {unit}", lambda: self._driver.clean(unit, now))
        if isinstance(done, NotYet):
            self._tell(f"could not clean {unit} yet")
            return done
        self._outside.cleanings[unit] = done
        self._tell(f"cleaned {unit}")
        return done

    def _tried(self, what: str, call: Callable[[], T]) -> T:
        self._outside.cloud.faults = self._outside.faults()
        try:
            return call()
        except DriverError:
            self._tell(what)
            raise

    def _tell(self, what: str) -> None:
        self._outside.host.tell(f"{self._maker} {what}")

    def list(self) -> Iterable[str]:
        """The ids of what carries our tag. The newest may not be seen yet."""
        return self._outside.host.at("list", self._list)

    def _list(self) -> Iterable[str]:
        self._outside.cloud.faults = self._outside.faults()
        found: Iterable[str] = self._driver.list()
        return found
