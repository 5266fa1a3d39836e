"""The registry of drivers: Penstock's own, and those of installed packages; and the checks of options for wells.

A driver is a class that implements `ports.Driver`. `Driver(settings, environment)` makes one for a factory or a well;
the environment is the function's, plus `PENSTOCK_MAKER`: the name that the site gave to the factory or well. The class
declares:

    complaints(settings)                a static method: what is wrong with the site's settings, one sentence each
    objections(options, well, kind)     wells, a static method: what is wrong with a job's options. `well` and `kind`
                                        are the settings of the well and the resource type. It may take only options.
                                        Factories that make workers as jobs say have one too, without `kind`
    options(well, kind)                 wells, optional, a static method: the options that jobs may pass, for people and
                                        for a check of their types before `objections` is called
    reusable = True                     its units can be cleaned and leased again
    quarantines = True                  its units exist already and cannot be replaced, so broken ones are quarantined
    hosts = True                        factories: its workers are machines whose agents connect by themselves
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module, invalidate_caches
from importlib.metadata import EntryPoint, entry_points
from itertools import islice
from typing import Any

from penstock.kernel.errors import Misconfigured
from penstock.ports import Driver, Option

MAKER = "PENSTOCK_MAKER"
GROUPS = {"factory": "penstock.factories", "well": "penstock.wells"}
"""The entry points under which other packages name their drivers."""
NOTHING: Mapping[str, Any] = {}
FACTORIES = {
    "container": "penstock.drivers.factories.container.factory:ContainerFactory",
    "ec2": "penstock.drivers.factories.ec2.factory:Ec2Factory",
    "fargate": "penstock.drivers.factories.fargate.factory:FargateFactory",
    "hosts": "penstock.drivers.factories.hosts:HostsFactory",
    "http": "penstock.drivers.factories.http.factory:HttpFactory",
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
    """Drivers by name. A driver's module is imported when it is first used."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Driver:
        """The driver of a factory."""
        return self._new("factory", driver, settings, name)

    def well(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Driver:
        """The driver of a well."""
        return self._new("well", driver, settings, name)

    def complaints(self, kind: str, driver: str, settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with a driver's settings."""
        try:
            found: Sequence[str] = _load(kind, driver).complaints(settings)
        except Misconfigured as error:
            return [str(error)]
        return found

    def reusable(self, kind: str, driver: str) -> bool:
        """Whether a driver's units can be cleaned and leased again."""
        return _flag(kind, driver, "reusable")

    def quarantines(self, kind: str, driver: str) -> bool:
        """Whether broken units of a driver are quarantined, because they cannot be replaced."""
        return _flag(kind, driver, "quarantines")

    def makes_nothing(self, driver: str) -> bool:
        """Whether what a well leases is only a slot."""
        return _flag("well", driver, "makes_nothing")

    def hosts(self, driver: str) -> bool:
        """Whether a factory's workers are machines that exist already."""
        return _flag("factory", driver, "hosts")

    def objections(
        self,
        kind: str,
        driver: str,
        options: Mapping[str, Any],
        maker: Mapping[str, Any] = NOTHING,
        of_type: Mapping[str, Any] = NOTHING,
    ) -> Sequence[str]:
        """What is wrong with a job's options for a well or a factory, by its settings and the resource type's."""
        try:
            loaded = _load(kind, driver)
        except Misconfigured as error:
            return [str(error)]
        if not hasattr(loaded, "objections"):
            return [f"what the driver {driver} makes is the same for all jobs"] if options else []
        return objections(loaded, options, maker, of_type)

    def options(self, driver: str, well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option] | None:
        """The options that jobs may pass to a well with these settings; None if its driver does not declare them."""
        try:
            return declared_options(_load("well", driver), well, kind)
        except Exception:  # only shown to people: a third-party driver that fails here counts as undeclared
            return None

    def _new(self, kind: str, driver: str, settings: Mapping[str, Any], name: str) -> Driver:
        driver_: Driver = _load(kind, driver)(settings, {**self._environment, MAKER: name})
        return driver_


def load(kind: str, driver: str) -> Any:
    """The class of a driver; `kind` is factory or well. Raises Misconfigured if it is missing or cannot be loaded."""
    return _load(kind, driver)


def _flag(kind: str, driver: str, what: str) -> bool:
    """A flag of a driver's class; False if there is no such driver, which is reported elsewhere."""
    try:
        return bool(getattr(_load(kind, driver), what, False))
    except Misconfigured:
        return False


def _load(kind: str, driver: str) -> Any:
    ours = _ours(kind)
    if driver in ours:
        return _own(kind, driver, ours[driver])
    theirs = _theirs(kind)
    if driver not in theirs:
        known = ", ".join(sorted({*ours, *theirs}))
        raise Misconfigured(f"there is no {kind} driver {driver!r}; installed are: {known}")
    try:
        return theirs[driver].load()
    except Exception as error:  # importing a third-party package may raise anything
        why = f"{type(error).__name__}: {error}"
        raise Misconfigured(f"the {kind} driver {driver!r} cannot be loaded: {why}") from error


def _own(kind: str, driver: str, where: str) -> Any:
    """One of our own. Functions have all that these import; who installed only the client may not."""
    module, _, name = where.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        needed = (error.name or "").partition(".")[0]
        raise Misconfigured(
            f"the {kind} driver {driver!r} needs {needed}, which is not installed here: `pip install 'penstock[aws]'`"
        ) from error


def _ours(kind: str) -> Mapping[str, str]:
    return FACTORIES if kind == "factory" else WELLS


def _theirs(kind: str) -> Mapping[str, EntryPoint]:
    return _installed(GROUPS[kind], tuple((each, _changed(each)) for each in sys.path))


def _changed(folder: str) -> int:
    """When something was last added to a folder or removed from it, in nanoseconds; 0 for what is no folder."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=8)
def _installed(group: str, path: tuple[tuple[str, int], ...]) -> Mapping[str, EntryPoint]:
    """The entry points of the packages on a path, as of when its folders were last changed.

    Cached, as finding them reads a file of each package. Functions of a local cloud run on while packages are
    installed.
    """
    invalidate_caches()  # their modules are found too
    return {entry.name: entry for entry in entry_points(group=group)}


MOST_OBJECTIONS = 50
"""The most objections that are reported at once."""


OBJECTION_CHARS = 500
"""The longest objection. What is longer is cut."""


OPTION_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "whole number": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "true or false": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list | tuple),
    "table": lambda value: isinstance(value, Mapping),
}
"""The kinds of options, and the check of each."""


def declared_options(driver: Any, well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option] | None:
    """The options that a driver takes, given the settings of the well and the type; None if it declares none."""
    declare = getattr(driver, "options", None)
    return tuple(declare(well, kind)) if declare else None


def objections(
    driver: Any, options: Mapping[str, Any], well: Mapping[str, Any], kind: Mapping[str, Any]
) -> Sequence[str]:
    """What is wrong with options: checked against what the driver declares first, and then by the driver itself.

    A third-party driver may raise anything for options that it does not expect. That counts as an objection.
    """
    try:
        known = declared_options(driver, well, kind)
        found = list(islice(check_options(known, options), MOST_OBJECTIONS)) if known is not None else []
        found = found or list(islice(_objections(driver, options, well, kind), MOST_OBJECTIONS))
    except Exception as error:
        found = [f"the driver failed while it checked them: {type(error).__name__}"]
    return [text[:OBJECTION_CHARS] for text in found]


def _objections(
    driver: Any, options: Mapping[str, Any], well: Mapping[str, Any], kind: Mapping[str, Any]
) -> Sequence[str]:
    """Call `objections` of a driver, which may take only the options."""
    parameters = inspect.signature(driver.objections).parameters.values()
    takes_settings = len(parameters) > 1 or any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)
    found: Sequence[str] = driver.objections(options, well, kind) if takes_settings else driver.objections(options)
    return found


def check_options(known: Sequence[Option], options: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with options, one sentence each, with what is allowed instead."""
    names = {option.name: option for option in known}
    for name, value in options.items():
        if name not in names:
            yield f"there is no option {_short(name)}; {_meant(name, list(names))}"
        elif not OPTION_KINDS[names[name].kind](value):
            yield f"option {_short(name)} wants a {names[name].kind}, not {_short(value)}{_allowed(names[name])}"
        elif names[name].allowed and not any(value == each for each in names[name].allowed):
            yield f"option {_short(name)} cannot be {_short(value)}{_allowed(names[name])}"


def _meant(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name[:64], names, 1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(sorted(names)) or 'none'}"


def _allowed(option: Option) -> str:
    return f"; allowed are: {', '.join(map(str, option.allowed))}" if option.allowed else ""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
