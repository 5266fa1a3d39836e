"""The `hosts` factory: machines that exist already, each with a name, on which an operator starts the agent.

The driver makes nothing: a host's agent asks for its worker by itself (docs/operators/hosts.md). Without a controller
it destroys nothing either: the host cleans itself, and its report that it is clean frees its slot. A controller of the
site cleans a host from outside, for example writes its image anew; then its proof frees the slot, and no report does.
It may switch hosts too: on when jobs wait for them, and off when they are idle; and tell what a host printed.

Where jobs share hosts, each worker has parts of one, and is a container there, of the factory's image or one that the
job names. The host removes the container and says so; a controller cleans no part of a host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.domain.jobfile.containers import check_image
from penstock.domain.site.sections import duration
from penstock.domain.units.units import CleanProof
from penstock.drivers.checks import sentences
from penstock.drivers.factories.images import check_allowed, denied
from penstock.drivers.http.protocol import HOSTS
from penstock.drivers.http.settings import EXAMPLE, NEEDED, OPTIONAL, ServiceSettings
from penstock.kernel.errors import Misconfigured, Unknown, Unsatisfiable
from penstock.ports import NotYet, Order, Ready, Switching, UnitContext
from penstock.toml.checks import Check, Place, flag, record

if TYPE_CHECKING:
    from penstock.drivers.http.units import Units

RECHECK_SECONDS = 900
"""Seconds between checks. The host's report arrives independently of them."""

IDLE_LEAST, IDLE_MOST = 60, 30 * 24 * 3600
"""The bounds of `idle`, in seconds."""

RETRY_SECONDS = 60
"""Seconds until a controller that failed is asked again."""


class HostsFactory:
    """Waits for hosts, or has a controller clean them, and switch them on and off."""

    hosts = True
    quarantines = True

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        controller = {key: value for key, value in settings.items() if key not in IMAGES}
        self._units = _units(controller, environment) if controller else None
        self._has_console = bool(settings.get("console"))
        self._image, self._images = str(settings.get("image", "")), tuple(settings.get("images", ()))
        self._host, self._part, self._fence = "", "", 0

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings: images, and those of a controller. Targets name their hosts."""
        top = Place(("hosts",))
        if settings.keys() <= set(IMAGES):
            _image_keys(settings, top)
        else:
            _keys(settings, top)
        return sentences(top)

    @staticmethod
    def objections(options: Mapping[str, Any], factory: Mapping[str, Any], _: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with what a job says of its container."""
        return _wrong(options, factory.get("images", ()))

    def with_context(self, of: UnitContext) -> HostsFactory:
        """The driver, for the host whose slot the unit has, and with the fence of its lease. [SLOT-3]"""
        self._host, _, self._part = of.slot.partition("/")
        self._fence = of.fence
        return self

    def create(self, order: Order) -> Ready | NotYet:
        """Ready at once: the machine exists, and its agent asks for the worker. Raises Unsatisfiable. [SEC-2]"""
        host, _, part = order.slot.partition("/")
        wrong = _wrong(order.options, self._images)
        if order.options and not part:
            wrong = [
                f"jobs run on host {host} itself, and not in a container: leave `image` out, or choose another target"
            ]
        if wrong:
            raise Unsatisfiable("; ".join(wrong))
        return Ready({"host": host, **({"image": order.options.get("image") or self._image} if part else {})})

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Wait for the host's report, or have the controller clean the host; a proof if its status agrees. [UNIT-2]

        If the host's agent cannot renew its lease, it stops the job by itself. That is also true while the controller
        cannot be reached, so that is no error: the job's next attempt need not wait for it.
        """
        if self._units is None or not self._host or self._part:
            return NotYet(RECHECK_SECONDS, "its host has not reported yet that it is clean", stops_itself=True)
        try:
            done = self._units.clean(self._host, self._fence, now)
        except Unknown as error:
            done = NotYet(RETRY_SECONDS, f"its controller failed: {error}")
        return replace(done, stops_itself=True) if isinstance(done, NotYet) else done

    def switch(self, host: str, to: Switching) -> Ready | NotYet:
        """Have the controller switch a host. Raises DriverError."""
        if self._units is None:
            raise Misconfigured("a factory without a `url` cannot switch hosts on and off")
        return self._units.switch(host, to)

    def evidence(self, unit: str) -> str | None:
        """What the worker's host printed last, if the controller tells; it may be older than the worker."""
        if self._units is None or not self._host or not self._has_console:
            return None
        printed = self._units.console(self._host)
        return f"end of what host {self._host} printed:\n{printed}" if printed else None

    def list(self) -> Iterable[str]:
        """Nothing: whether a host is alive is known only from its agent, by the worker's lease."""
        return ()


def _wrong(options: Mapping[str, Any], images: Sequence[str]) -> Sequence[str]:
    """What is wrong with what a job says of its container."""
    if options.get("services"):
        return ["a job may have no services there: its host runs its container only"]
    return denied(options, images)


def _units(settings: Mapping[str, Any], environment: Mapping[str, str]) -> Units:
    """The hosts at the controller. Raises Misconfigured. What calls it is loaded only for those who have one."""
    from penstock.drivers.http.units import Units

    top = Place(("hosts",))
    values = _keys(settings, top)
    if top.faults:
        raise Misconfigured("; ".join(sentences(top)))
    service = {key: value for key, value in values.items() if key not in ("power", "console", *IMAGES)}
    return Units(HOSTS, ServiceSettings(**service), environment)


def _power(value: object, place: Place) -> bool | Mapping[str, int]:
    """Whether the controller switches hosts, and after how long without a job it switches them off."""
    if isinstance(value, Mapping):
        found: Mapping[str, int] = _power_keys(value, place)
        return found
    return flag(value, place)


_power_keys = record({}, {"idle": duration(IDLE_MOST, "30 days", IDLE_LEAST)}, '{ idle = "30m" }')
IMAGES: Mapping[str, Check] = {"image": check_image, "images": check_allowed}
"""The settings for containers, where jobs share hosts."""

_image_keys = record({}, IMAGES, 'image = "registry.example.com/ci/python@sha256:…"')

_keys = record(NEEDED, {**OPTIONAL, **IMAGES, "power": _power, "console": flag}, EXAMPLE)
