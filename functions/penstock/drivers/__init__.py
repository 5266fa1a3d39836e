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

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from penstock.drivers import options as options_
from penstock.kernel.errors import Misconfigured
from penstock.ports import Driver, Option

MAKER = "PENSTOCK_MAKER"
GROUPS = {"factory": "penstock.factories", "well": "penstock.wells"}
"""Where other packages name their drivers."""
NOTHING: Mapping[str, Any] = {}

FACTORIES = {
    "ec2": "penstock.drivers.factories.ec2.factory:Ec2Factory",
    "hosts": "penstock.drivers.factories.hosts:HostsFactory",
    "libcloud": "penstock.drivers.factories.libcloud.factory:LibcloudFactory",
    "process": "penstock.drivers.factories.process:ProcessFactory",
}
WELLS = {
    "accounts": "penstock.drivers.wells.accounts.well:AccountsWell",
    "http": "penstock.drivers.wells.http.well:HttpWell",
    "lock": "penstock.drivers.wells.lock:LockWell",
    "postgres": "penstock.drivers.wells.postgres.well:PostgresWell",
    "s3": "penstock.drivers.wells.s3:S3Well",
    "sts": "penstock.drivers.wells.sts:StsWell",
}


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


@dataclass(frozen=True)
class Known:
    """A driver that is installed here: of which package, and what its class says of itself, or why it cannot be had."""

    kind: str
    name: str
    where: str
    package: str

    def told(self) -> dict[str, Any]:
        """All of it, for people."""
        says, trouble = list[str](), None
        try:
            of = _load(self.kind, self.name)
            says = [each for each in ("keeps", "quarantines", "hosts") if getattr(of, each, False)]
        except Misconfigured as error:
            trouble = str(error)
        return {**asdict(self), "says": says, "trouble": trouble}


def known() -> list[Known]:
    """All drivers, ours first."""
    found = [Known(kind, name, where, "penstock") for kind in GROUPS for name, where in _ours(kind).items()]
    for kind in GROUPS:
        for name, entry in sorted(_theirs(kind).items()):
            package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else ""
            found += [] if name in _ours(kind) else [Known(kind, name, entry.value, package)]
    return found


def load(kind: str, driver: str) -> Any:
    """The class of a driver; `kind` is factory or well. Raises Misconfigured when there is none that can be had."""
    return _load(kind, driver)


def _says(kind: str, driver: str, what: str) -> bool:
    """What a driver's class says of itself; that there is no such driver is told elsewhere."""
    try:
        return bool(getattr(_load(kind, driver), what, False))
    except Misconfigured:
        return False


def _load(kind: str, driver: str) -> Any:
    ours = _ours(kind)
    if driver in ours:
        module, _, name = ours[driver].partition(":")
        return getattr(import_module(module), name)
    theirs = _theirs(kind)
    if driver not in theirs:
        known = ", ".join(sorted({*ours, *theirs}))
        raise Misconfigured(f"there is no {kind} driver {driver!r}; there are: {known}")
    try:
        return theirs[driver].load()
    except Exception as error:  # another package's import may do anything
        why = f"{type(error).__name__}: {error}"
        raise Misconfigured(f"the {kind} driver {driver!r} cannot be loaded: {why}") from error


def _ours(kind: str) -> Mapping[str, str]:
    return FACTORIES if kind == "factory" else WELLS


def _theirs(kind: str) -> Mapping[str, EntryPoint]:
    return _installed(GROUPS[kind], tuple(sys.path))


@cache
def _installed(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """What packages on a path offer: looking reads a file of each, and nothing is installed while a function runs."""
    return {entry.name: entry for entry in entry_points(group=group)}
