"""What there is: the machines of an account. Every call to a cloud is here."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from penstock.drivers.factories.libcloud import azure
from penstock.drivers.factories.libcloud.codes import CREATE, WRONG, Failure, Meaning, understood
from penstock.drivers.factories.libcloud.dialects import Dialect, dialect
from penstock.drivers.factories.libcloud.keys import AZURE, MISSING, is_installed
from penstock.drivers.factories.libcloud.names import way_of
from penstock.drivers.factories.libcloud.settings import Settings
from penstock.drivers.secrets import Resolve
from penstock.kernel.errors import DriverError, Misconfigured

NOT_FOUND = 404


class CallFailed(Exception):
    """A call to a cloud failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass(frozen=True)
class Cloud:
    """libcloud's driver, and the secrets that it was given: they are to be in no message."""

    driver: Any
    hide: tuple[str, ...] = ()


def connect(settings: Settings, resolve: Resolve) -> Cloud:
    """A provider's driver. Raises DriverError."""
    if not is_installed():
        raise Misconfigured(MISSING)
    from libcloud.compute.providers import get_driver

    secrets = {name: resolve(reference) for name, reference in settings.credentials.items()}
    hide = tuple(secrets.values())
    with calling("connect", hide):
        made: Any = get_driver(settings.provider)
        driver = made(**{**dialect(settings).arguments, **settings.arguments, **secrets})
        return Cloud(azure.mended(driver) if settings.provider == AZURE else driver, hide)


@contextmanager
def calling(call: str, hide: Sequence[str] = ()) -> Iterator[None]:
    """Around every call. Raises CallFailed, also for libcloud's errors that have no class of their own."""
    try:
        yield
    except (CallFailed, DriverError):
        raise
    except Exception as error:
        raise CallFailed(understood(call, error, hide)) from error


@dataclass(frozen=True)
class Machine:
    """A machine that is listed."""

    raw: Any
    name: str
    state: str
    is_gone: bool

    @property
    def id(self) -> str:
        return str(self.raw.id)

    @property
    def age(self) -> tuple[str, str]:
        """What machines are sorted by: the one that was made first, as far as its cloud tells."""
        return str(getattr(self.raw, "created_at", None) or ""), self.id

    @property
    def extra(self) -> Mapping[str, Any]:
        return self.raw.extra or {}

    @property
    def fault(self) -> str:
        """What its cloud says of what it died of."""
        fault = self.extra.get("fault")
        return str(fault.get("message", "")) if isinstance(fault, Mapping) else str(fault or "")

    @property
    def way(self) -> str | None:
        return way_of(self.extra)


class Nodes:
    """The machines of an account, of whomever they are: callers look at names first."""

    def __init__(self, cloud: Cloud, settings: Settings) -> None:
        self._driver, self._hide = cloud.driver, cloud.hide
        self._settings = settings
        self._sizes: dict[str | None, list[Any]] = {}

    @property
    def _dialect(self) -> Dialect:
        return dialect(self._settings)

    def all(self) -> list[Machine]:
        """Every machine. libcloud turns the pages."""
        with calling("list_nodes", self._hide):
            return [self._machine(each) for each in self._driver.list_nodes(**self._dialect.listing)]

    def create(self, wanted: Mapping[str, Any]) -> Machine:
        """Ask for one machine."""
        takes = inspect.signature(self._driver.create_node).parameters
        free = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in takes.values())
        unknown = [] if free else sorted(set(wanted) - set(takes))
        if unknown:
            why = f"libcloud's {self._settings.provider} driver takes no {', '.join(unknown)}"
            raise CallFailed(Failure(CREATE, "UnknownArgument", why, WRONG))
        with calling(CREATE, self._hide):
            return self._machine(self._driver.create_node(**wanted))

    def end(self, machine: Machine) -> None:
        """Have a machine end, without waiting for it. One that is gone is fine."""
        self._end("destroy_node", lambda: self._driver.destroy_node(machine.raw, **self._dialect.destroy))

    def cards(self) -> list[tuple[str, Any]]:
        """What may be left of machines besides them, by their names."""
        if self._settings.provider != AZURE:
            return []
        with calling("ex_list_nics", self._hide):
            return azure.cards(self._driver, self._settings.create["ex_resource_group"])

    def end_card(self, card: Any) -> None:
        """Have what is left of a machine end. One that is in use still, or gone, is fine."""
        self._end("ex_destroy_nic", lambda: self._driver.ex_destroy_nic(card), "NicInUse", "NicReservedForAnotherVm")

    def size(self, name: str, location: str | None) -> Any:
        """A size by name or id, as create_node takes it. Raises CallFailed with a reach when there is none."""
        if self._dialect.is_text:
            return name
        if location not in self._sizes:
            with calling("list_sizes", self._hide):
                self._sizes[location] = list(self._driver.list_sizes(**self._located(location)))
        return _one(self._sizes[location], name, "size")

    def location(self, name: str) -> Any:
        """A location by name or id, as create_node takes it."""
        if self._dialect.is_text or self._dialect.location != "location":
            return name
        return _one(self._locations, name, "location")

    def image(self, name: str, location: str | None) -> Any:
        """An image by id, or by name where the provider cannot be asked for one."""
        if self._dialect.is_text:
            return name
        from libcloud.compute.base import NodeDriver

        if type(self._driver).get_image is not NodeDriver.get_image:
            with calling("get_image", self._hide):
                found = self._driver.get_image(name, **self._located(location, self._driver.get_image))
            return found or _one([], name, "image")
        with calling("list_images", self._hide):
            found = list(self._driver.list_images())
        return _one(found, name, "image")

    def console(self, machine: Machine) -> str:
        """What a machine printed, where its cloud tells."""
        if self._dialect.console is None:
            return ""
        with calling(self._dialect.console, self._hide):
            said = getattr(self._driver, self._dialect.console)(machine.raw)
            return str(said.get("output", "") if isinstance(said, Mapping) else said)

    @cached_property
    def _locations(self) -> list[Any]:
        with calling("list_locations", self._hide):
            return list(self._driver.list_locations())

    def _located(self, location: str | None, asked: Any = None) -> dict[str, Any]:
        """The argument `location`, for calls that take one."""
        if location is None or self._dialect.location != "location":
            return {}
        if asked is not None and "location" not in inspect.signature(asked).parameters:
            return {}
        return {"location": self.location(location)}

    def _machine(self, raw: Any) -> Machine:
        state = str(getattr(raw.state, "value", raw.state)).lower()
        return Machine(raw, str(raw.name), state, state in self._dialect.ended)

    def _end(self, call: str, ask: Any, *fine: str) -> None:
        try:
            with calling(call, self._hide):
                ask()
        except CallFailed as failed:
            if failed.failure.status != NOT_FOUND and not any(word in failed.failure.message for word in fine):
                raise


def _one(found: Sequence[Any], name: str, what: str) -> Any:
    """The one that has this id, else this name."""
    for key in ("id", "name"):
        for each in found:
            if str(getattr(each, key, "")) == name:
                return each
    from penstock.drivers.factories.libcloud.alternatives import Reach

    reach = {"size": Reach.OFFER, "location": Reach.PLACE}.get(what)
    known = ", ".join(sorted(str(each.id) for each in found)[:10])
    why = f"there is no {what} {name!r}; there are, among others: {known or 'none'}"
    raise CallFailed(Failure(f"list_{what}s", "NotThere", why, Meaning(Misconfigured, reach)))


def named(text: str) -> Any:
    """An object of which libcloud looks at the id or the name only."""
    return SimpleNamespace(id=text, name=text)
