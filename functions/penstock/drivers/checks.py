"""Checks of the settings that a site gives to drivers, and of the options that jobs pass to wells."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from penstock.ports import Option
from penstock.toml.checks import Check, Place, wanted

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
        found = [f"the well's driver failed while it checked them: {type(error).__name__}"]
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


SHELL_BYTES = 6 * 1024
"""EC2 takes 16 KiB of user data. The script that starts the agent needs less than 2 KiB of it."""


def sentences(top: Place) -> list[str]:
    """The faults, one sentence each."""
    return [f"{fault.message}: {fault.hint}" if fault.hint else fault.message for fault in top.faults]


def not_empty(check: Check) -> Check:
    """A check that also refuses an empty list."""

    def checked(value: object, place: Place) -> Any:
        if value == []:
            place.fault(f"{place.label} is empty", "name at least one")
        return check(value, place)

    return checked


def shell(value: object, place: Place) -> str:
    """Checks shell commands that run before the agent."""
    if not isinstance(value, str):
        wanted("shell commands as text", value, place)
        return ""
    if len(value.encode()) > SHELL_BYTES:
        place.fault(f"{place.label} is longer than {SHELL_BYTES} bytes", "put the rest into the image")
    return value
