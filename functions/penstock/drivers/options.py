"""What a well's driver says of the options that jobs may pass, and what is wrong with some."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from penstock.ports import Option

MOST = 50
"""How many objections are told at once."""

CHARS = 500
"""The longest objection that is told."""

KINDS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "whole number": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "true or false": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list | tuple),
    "table": lambda value: isinstance(value, Mapping),
}
"""What an option may be."""


def of(driver: Any, well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option] | None:
    """The options that a driver takes, where the site has these settings; None when it does not say."""
    say = getattr(driver, "options", None)
    return tuple(say(well, kind)) if say else None


def objections(
    driver: Any, options: Mapping[str, Any], well: Mapping[str, Any], kind: Mapping[str, Any]
) -> Sequence[str]:
    """What is wrong with options: by what the driver says that it takes, and if that is right, by what it objects.

    Jobs send anything, and drivers are written by strangers: one that fails over options objects to them.
    """
    try:
        known = of(driver, well, kind)
        found = list(islice(check(known, options), MOST)) if known is not None else []
        found = found or list(islice(_objections(driver, options, well, kind), MOST))
    except Exception as error:
        found = [f"its driver cannot tell what is wrong with them: {type(error).__name__}"]
    return [text[:CHARS] for text in found]


def _objections(
    driver: Any, options: Mapping[str, Any], well: Mapping[str, Any], kind: Mapping[str, Any]
) -> Sequence[str]:
    """Ask a driver, which may be one that wants to know options only."""
    taken = inspect.signature(driver.objections).parameters.values()
    knows = len(taken) > 1 or any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in taken)
    found: Sequence[str] = driver.objections(options, well, kind) if knows else driver.objections(options)
    return found


def check(known: Sequence[Option], options: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with options, a sentence each with what is allowed."""
    names = {option.name: option for option in known}
    for name, value in options.items():
        if name not in names:
            yield f"there is no option {_short(name)}; {_meant(name, list(names))}"
        elif not KINDS[names[name].kind](value):
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
