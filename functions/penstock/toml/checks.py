"""Where a check stands in a document, and what it found wrong there. Knows nothing of lines and columns.

Durations as people write them.

Checks that many keys share. A check takes a value and its place, reports faults, returns what to store.

What it returns after a fault is of no account: a document with faults is never used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import date, time
from difflib import get_close_matches
from itertools import islice
from typing import Any

from penstock.kernel import limits
from penstock.kernel.frozen import dataclass

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Fault:
    """What is wrong at a path; `on_key` when the key is at fault, not its value."""

    path: Path
    message: str
    hint: str | None = None
    on_key: bool = False

    @property
    def where(self) -> str:
        """The path as people write it: `resources.db.type`, `output_rules[2]`."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{clip(step)}" for step in self.path).lstrip(".")


@dataclass(frozen=True)
class Place:
    """A path into the document, with the lists that all faults, and all keys without effect, go to."""

    path: Path = ()
    faults: list[Fault] = field(default_factory=list)
    ignored: list[Fault] = field(default_factory=list)

    def __truediv__(self, step: str | int) -> Place:
        return Place((*self.path, step), self.faults, self.ignored)

    @property
    def label(self) -> str:
        name = ".".join(step for step in self.path if isinstance(step, str))
        entry = "an entry of " if isinstance(self.path[-1], int) else ""
        return f"{entry}`{clip(name)}`"

    def fault(self, message: str, hint: str | None = None, *, on_key: bool = False) -> None:
        self.faults.append(Fault(self.path, message, hint, on_key))

    def ignore(self, message: str, hint: str | None = None) -> None:
        """Report a key that has no effect, and is no fault."""
        self.ignored.append(Fault(self.path, message, hint, on_key=True))


def clip(text: str, most: int = 80) -> str:
    """Fit for a message: short, and without characters that would act on a terminal."""
    short = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(char if char.isprintable() else "?" for char in short)


SHAPE = r"(?:([0-9]{1,6})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,9})s)?"


UNITS = (24 * 3600, 3600, 60, 1)


MOST_SECONDS = 10**9


def parse_duration(value: object) -> int | str:
    """Seconds in `"90s"`, `"30m"`, `"1d"`, `"1h30m"` or a whole number of them; else what is wrong."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return 'wanted a duration like "30m" or "1h30m", or a whole number of seconds'
    if isinstance(value, int):
        return value if 0 <= value <= MOST_SECONDS else f"wanted seconds from 0 to {MOST_SECONDS}"
    found = re.fullmatch(SHAPE, value)
    if not found or not value:
        return 'wanted a duration: whole numbers with the units d, h, m, s in this order, like "30m" or "1h30m"'
    return sum(int(count) * unit for count, unit in zip(found.groups(), UNITS, strict=True) if count)


Check = Callable[[Any, Place], Any]

CONTROL = "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
"""What no line of text has: terminals and other readers obey it. Of these, U+202A and later reorder what is read."""


NOT_TEXT = r"[\x00\ud800-\udfff]"


# How many faults of one table to report: guessing what was meant takes time, and a file may hold very many.
GUESSES = 50


KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),
    (int, "a whole number"),
    (str, "a string"),
    (float, "a number with a fraction"),
    (list, "a list"),
    (Mapping, "a table"),
    ((date, time), "a date or time"),
)


def wanted(what: str, value: object, place: Place, hint: str | None = None) -> None:
    """Report a value of the wrong kind."""
    kind = next((name for types, name in KINDS if isinstance(value, types)), "nothing")
    place.fault(f"{place.label} wants {what}, not {kind}", hint)


def flag(value: object, place: Place) -> bool:
    if not isinstance(value, bool):
        wanted("true or false", value, place, "without quotes" if isinstance(value, str) else None)
    return value is True


def number(low: int, high: int) -> Check:
    """A whole number in a range, both ends in it."""

    def check(value: object, place: Place) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            hint = "without quotes" if isinstance(value, str) else None
            wanted(f"a whole number from {low} to {high}", value, place, hint)
            return low
        if not low <= value <= high:
            place.fault(f"{place.label} must be from {low} to {high}")
        return value

    return check


def text(value: object, place: Place, most: int = limits.NAME_CHARS, what: str = "a string") -> str:
    """One line of text, not empty."""
    if not isinstance(value, str):
        hint = "put it in double quotes" if isinstance(value, int | float | date) else None
        wanted(what, value, place, hint)
        return ""
    if not value.strip():
        place.fault(f"{place.label} is empty")
    elif len(value) > most:
        place.fault(f"{place.label} has {len(value)} characters; it may have at most {most}")
    elif bad := re.search(CONTROL, value):
        place.fault(f"{place.label} holds the control character U+{ord(bad[0]):04X}")
    return value


def matching(pattern: str, what: str, hint: str) -> Check:
    """A string of one shape, called `what`."""

    def check(value: object, place: Place) -> str:
        before = len(place.faults)
        found = text(value, place, what=what)
        if len(place.faults) == before and not re.fullmatch(pattern, found):
            place.fault(f"{place.label}: `{clip(found)}` is not {what}", hint)
        return found

    return check


def listed(check: Check, most: int, what: str) -> Check:
    """A list of at most so many entries, each checked; a tuple comes out. `what` names the entries."""

    def checked(value: object, place: Place) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            hint = f'in brackets: ["{clip(value)}"]' if isinstance(value, str) else None
            wanted(f"a list of {what}", value, place, hint)
            return ()
        if len(value) > most:
            (place / most).fault(f"`{place.path[-1]}` has {len(value)} entries; it may have at most {most}")
        return tuple(check(entry, place / at) for at, entry in enumerate(value[:most]))

    return checked


def entries(value: object, place: Place, most: int, what: str) -> Iterable[tuple[str, Any]]:
    """The names and values of a table whose names are free; at most so many."""
    if not isinstance(value, Mapping):
        wanted(what, value, place)
        return ()
    if len(value) > most:
        one_too_many = next(islice(value, most, None))
        message = f"`{place.path[-1]}` has {len(value)} entries; it may have at most {most}"
        (place / one_too_many).fault(message, on_key=True)
    return islice(value.items(), most)


def record(needed: Mapping[str, Check], optional: Mapping[str, Check], example: str, *, is_open: bool = False) -> Check:
    """A table with fixed keys; a dict of the checked values comes out. `example` shows one.

    Other keys are a fault, or are ignored if the table `is_open`.
    """

    def check(value: object, place: Place) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            wanted("a table", value, place, f"like {example}")
            return {}
        known = {**needed, **optional}
        for name in islice((name for name in value if name not in known), GUESSES):
            here, hint = place / name, did_you_mean(name, known)
            if is_open:
                here.ignore(f"the key `{clip(name)}` has no effect here", hint)
            else:
                here.fault(f"unknown key `{clip(name)}`", hint, on_key=True)
        for name in needed:
            if name not in value:
                place.fault(f"{place.label} has no `{name}`", f"like {example}")
        return {name: known[name](value[name], place / name) for name in known if name in value}

    return check


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name, or all of them."""
    names = list(known)
    near = get_close_matches(name.lower()[:40].replace("-", "_"), names, 1)
    if near:
        return f"did you mean `{near[0]}`?"
    return "known here: " + ", ".join(names)
