"""The machines of an account. All calls to a cloud are here."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from penstock.drivers.factories.libcloud import providers
from penstock.drivers.factories.libcloud.errors import CREATE, MISCONFIGURED, CallFailed, Failure, Meaning, call_errors
from penstock.drivers.factories.libcloud.names import way_of
from penstock.drivers.factories.libcloud.providers import Disk, Provider
from penstock.drivers.factories.libcloud.settings import AZURE, MISSING, Settings, is_installed, provider_of
from penstock.drivers.secrets import Resolve
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass

NOT_FOUND = 404


@dataclass(frozen=True)
class Cloud:
    """libcloud's driver, and its secrets, which must not appear in messages."""

    driver: Any
    hide: tuple[str, ...] = ()


def connect(settings: Settings, resolve: Resolve) -> Cloud:
    """libcloud's driver for the provider in the settings. Raises DriverError."""
    if not is_installed():
        raise Misconfigured(MISSING)
    from libcloud.compute.providers import get_driver

    secrets = {name: resolve(reference) for name, reference in settings.credentials.items()}
    hide = tuple(secrets.values())
    with call_errors("connect", hide):
        made: Any = get_driver(settings.provider)
        driver = made(**{**provider_of(settings).arguments, **settings.arguments, **secrets})
        return Cloud(providers.fix_azure(driver) if settings.provider == AZURE else driver, hide)


@dataclass(frozen=True)
class Machine:
    """A listed machine."""

    raw: Any
    name: str
    state: str
    is_gone: bool

    @property
    def id(self) -> str:
        return str(self.raw.id)

    @property
    def age(self) -> tuple[str, str]:
        """A sort key: the time of creation if the cloud shows it, then the id."""
        return str(getattr(self.raw, "created_at", None) or ""), self.id

    @property
    def extra(self) -> Mapping[str, Any]:
        return self.raw.extra or {}

    @property
    def fault(self) -> str:
        """The cloud's message about a failure of the machine, if any."""
        fault = self.extra.get("fault")
        return str(fault.get("message", "")) if isinstance(fault, Mapping) else str(fault or "")

    @property
    def way(self) -> str | None:
        return way_of(self.extra)


class Nodes:
    """All machines of an account, not only Penstock's: callers must check names before they change one."""

    def __init__(self, cloud: Cloud, settings: Settings) -> None:
        self._driver, self._hide = cloud.driver, cloud.hide
        self._settings = settings
        self._sizes: dict[str | None, list[Any]] = {}

    @property
    def _provider(self) -> Provider:
        return provider_of(self._settings)

    def all(self) -> list[Machine]:
        """Every machine, on all pages."""
        with call_errors("list_nodes", self._hide):
            return [self._machine(each) for each in self._driver.list_nodes(**self._provider.listing)]

    def create(self, wanted: Mapping[str, Any]) -> Machine:
        """Create one machine with these arguments of create_node."""
        parameters = inspect.signature(self._driver.create_node).parameters
        takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
        unknown = [] if takes_any else sorted(set(wanted) - set(parameters))
        if unknown:
            why = f"libcloud's {self._settings.provider} driver takes no {', '.join(unknown)}"
            raise CallFailed(Failure(CREATE, "UnknownArgument", why, MISCONFIGURED))
        with call_errors(CREATE, self._hide):
            return self._machine(self._driver.create_node(**wanted))

    def end(self, machine: Machine) -> None:
        """Destroy a machine, without waiting for the end. It may be gone already."""
        self._end("destroy_node", lambda: self._driver.destroy_node(machine.raw, **self._provider.destroy))

    def cards(self) -> list[tuple[str, Any]]:
        """Network cards that may outlive their machines, with the machines' names."""
        if self._settings.provider != AZURE:
            return []
        with call_errors("ex_list_nics", self._hide):
            return providers.azure_cards(self._driver, self._settings.create["ex_resource_group"])

    def disks(self) -> Sequence[Disk]:
        """Every disk of the account, on all pages, for clouds whose disks say for which machine they were made."""
        with call_errors("list_volumes", self._hide):
            return self._provider.disks(self._driver)

    def end_card(self, card: Any) -> None:
        """Delete a network card. It may be gone already, or still in use."""
        self._end("ex_destroy_nic", lambda: self._driver.ex_destroy_nic(card), "NicInUse", "NicReservedForAnotherVm")

    def size(self, name: str, location: str | None) -> Any:
        """A size by name or id, as create_node takes it. Raises CallFailed with a reach if there is none."""
        if self._provider.is_text:
            return name
        if location not in self._sizes:
            with call_errors("list_sizes", self._hide):
                self._sizes[location] = list(self._driver.list_sizes(**self._located(location)))
        return _find_one(self._sizes[location], name, "size")

    def location(self, name: str) -> Any:
        """A location by name or id, as create_node takes it."""
        if self._provider.is_text or self._provider.location != "location":
            return name
        return _find_one(self._locations, name, "location")

    def image(self, name: str, location: str | None) -> Any:
        """An image by id; also by name, if the provider can only list its images."""
        if self._provider.is_text:
            return name
        from libcloud.compute.base import NodeDriver

        if type(self._driver).get_image is not NodeDriver.get_image:
            with call_errors("get_image", self._hide):
                found = self._driver.get_image(name, **self._located(location, self._driver.get_image))
            return found or _find_one([], name, "image")
        with call_errors("list_images", self._hide):
            found = list(self._driver.list_images())
        return _find_one(found, name, "image")

    def console(self, machine: Machine) -> str:
        """A machine's console output; empty if the provider has none."""
        if self._provider.console is None:
            return ""
        with call_errors(self._provider.console, self._hide):
            answer = getattr(self._driver, self._provider.console)(machine.raw)
            return str(answer.get("output", "") if isinstance(answer, Mapping) else answer)

    @cached_property
    def _locations(self) -> list[Any]:
        with call_errors("list_locations", self._hide):
            return list(self._driver.list_locations())

    def _located(self, location: str | None, call: Any = None) -> dict[str, Any]:
        """The argument `location`, for calls that take one."""
        if location is None or self._provider.location != "location":
            return {}
        if call is not None and "location" not in inspect.signature(call).parameters:
            return {}
        return {"location": self.location(location)}

    def _machine(self, raw: Any) -> Machine:
        state = str(getattr(raw.state, "value", raw.state)).lower()
        return Machine(raw, str(raw.name), state, state in self._provider.ended)

    def _end(self, call: str, run: Any, *ignored: str) -> None:
        try:
            with call_errors(call, self._hide):
                run()
        except CallFailed as failed:
            if failed.failure.status != NOT_FOUND and not any(word in failed.failure.message for word in ignored):
                raise


def _find_one(found: Sequence[Any], name: str, what: str) -> Any:
    """The object with this id, else with this name. Raises CallFailed if there is none."""
    for key in ("id", "name"):
        for each in found:
            if str(getattr(each, key, "")) == name:
                return each
    from penstock.drivers.factories.libcloud.alternatives import Reach

    reach = {"size": Reach.OFFER, "location": Reach.PLACE}.get(what)
    known = ", ".join(sorted(str(each.id) for each in found)[:10])
    why = f"the cloud has no {what} {name!r}; some that it has: {known or 'none'}"
    raise CallFailed(Failure(f"list_{what}s", "NotThere", why, Meaning(Misconfigured, reach)))


def named_object(text: str) -> Any:
    """An object with an id and a name, for arguments of which libcloud reads nothing else."""
    return SimpleNamespace(id=text, name=text)
