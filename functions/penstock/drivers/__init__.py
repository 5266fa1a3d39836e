"""What a site may choose from: drivers of factories and wells, ours and those of installed packages.

A driver is a class that takes its settings and surroundings, keeps ports.Driver, and has `complaints(settings)`; with
`keeps = True` its units may be kept for the next lease, and with `quarantines = True` a broken one is quarantined, for
it names things that exist already and cannot be made anew; with `hosts = True` they are machines that dial in. A well's
has `objections(options, well, kind)` to what jobs pass, where `well` and `kind` are its settings and those of the
resource type, or just `objections(options)`; with `options(well, kind)`, a list of ports.Option, people are shown what
it takes, and what is of another kind or not allowed is refused before it is asked. Ours are listed here; others are
found through the entry points `penstock.factories` and `penstock.wells`. Its surroundings are the function's
environment, and under MAKER the name that the site gave to the factory or well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from penstock.domain.errors import Misconfigured
from penstock.drivers import options as options_
from penstock.ports import Driver, Option

MAKER = "PENSTOCK_MAKER"
NOTHING: Mapping[str, Any] = {}

FACTORIES = {
    "ec2": "penstock.drivers.factories.ec2.factory:Ec2Factory",
    "hosts": "penstock.drivers.factories.hosts:HostsFactory",
    "libcloud": "penstock.drivers.factories.libcloud.factory:LibcloudFactory",
    "process": "penstock.drivers.factories.process:ProcessFactory",
}
WELLS = {"lock": "penstock.drivers.wells.lock:LockWell"}


class Registry:
    """All drivers there are, by name; a driver's module is imported when it is first used."""

    def __init__(self, surroundings: Mapping[str, str]) -> None:
        self._surroundings = surroundings

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Driver:
        """The driver of a factory."""
        return self._made("factory", driver, settings, name)

    def well(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Driver:
        """The driver of a well."""
        return self._made("well", driver, settings, name)

    def complaints(self, kind: str, driver: str, settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with a driver's settings."""
        try:
            found: Sequence[str] = _load(kind, driver).complaints(settings)
        except Misconfigured as error:
            return [str(error)]
        return found

    def keeps(self, kind: str, driver: str) -> bool:
        """Whether a driver's units can be kept for the next lease."""
        return _says(kind, driver, "keeps")

    def quarantines(self, kind: str, driver: str) -> bool:
        """Whether a broken unit of a driver is quarantined, for it cannot be made anew."""
        return _says(kind, driver, "quarantines")

    def hosts(self, driver: str) -> bool:
        """Whether a factory's workers are machines that exist already."""
        return _says("factory", driver, "hosts")

    def objections(
        self,
        driver: str,
        options: Mapping[str, Any],
        well: Mapping[str, Any] = NOTHING,
        kind: Mapping[str, Any] = NOTHING,
    ) -> Sequence[str]:
        """What is wrong with the options that a job passes to a well, by its settings and the resource type's."""
        try:
            loaded = _load("well", driver)
        except Misconfigured as error:
            return [str(error)]
        return options_.objections(loaded, options, well, kind)

    def options(self, driver: str, well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option] | None:
        """The options that jobs may pass to a well of these settings; None when its driver does not say."""
        try:
            return options_.of(_load("well", driver), well, kind)
        except Exception:  # it is shown to people: a stranger's driver that fails over it says nothing
            return None

    def _made(self, kind: str, driver: str, settings: Mapping[str, Any], name: str) -> Driver:
        made: Driver = _load(kind, driver)(settings, {**self._surroundings, MAKER: name})
        return made


def _says(kind: str, driver: str, what: str) -> bool:
    """What a driver's class says of itself; that there is no such driver is told elsewhere."""
    try:
        return bool(getattr(_load(kind, driver), what, False))
    except Misconfigured:
        return False


def _load(kind: str, driver: str) -> Any:
    ours = FACTORIES if kind == "factory" else WELLS
    if driver in ours:
        module, _, name = ours[driver].partition(":")
        return getattr(import_module(module), name)
    theirs = {
        entry.name: entry
        for entry in entry_points(group="penstock.factories" if kind == "factory" else "penstock.wells")
    }
    if driver in theirs:
        return theirs[driver].load()
    known = ", ".join(sorted({*ours, *theirs}))
    raise Misconfigured(f"there is no {kind} driver {driver!r}; there are: {known}")
