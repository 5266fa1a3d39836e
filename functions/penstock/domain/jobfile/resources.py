"""`resources`: what the job needs besides its worker."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from penstock.kernel import limits
from penstock.toml.checks import GUESSES, NOT_TEXT, Place, entries, listed, matching, record, wanted

__all__ = ["ResourceAsk", "check_resources"]

OPTION_DEPTH = 8
INT64 = 2**63
EXAMPLE = '[resources.db] with type = "database"'


@dataclass(frozen=True)
class ResourceAsk:
    """One resource that the job asks for; `bmat` knows it by `name`; the well of `type` checks `options`.

    `spot` is the line and column of its options in the job file, if they stand in one.
    """

    name: str
    type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    spot: tuple[int, int] | None = field(default=None, compare=False)


_type = matching("[0-9A-Za-z][0-9A-Za-z._-]*", "a resource type", "letters, digits and . _ - only")
_name = matching("[0-9A-Za-z][0-9A-Za-z._-]*", "a resource name", "letters, digits and . _ - only")


def check_resources(value: object, place: Place) -> tuple[ResourceAsk, ...]:
    """A list of types, or a table of tables; the order stays."""
    if isinstance(value, list | tuple):
        return _from_list(value, place)
    if not isinstance(value, Mapping):
        wanted(f"a list of resource types, or tables like {EXAMPLE}", value, place)
        return ()
    asks = []
    for name, settings in entries(value, place, limits.RESOURCES, "tables"):
        _name(name, place / name)
        found = _table(settings, place / name)
        asks.append(ResourceAsk(name, found.get("type", ""), found.get("options", {})))
    return tuple(asks)


def _from_list(value: list[Any] | tuple[Any, ...], place: Place) -> tuple[ResourceAsk, ...]:
    types = listed(_listed_type, limits.RESOURCES, "resource types")(value, place)
    for at, found in enumerate(types):
        if found and found in types[:at]:
            hint = f'two of one type need names: [resources.one] and [resources.two], both with type = "{found}"'
            (place / at).fault(f"`{found}` is listed twice", hint)
    return tuple(ResourceAsk(found, found) for found in types)


def _listed_type(value: object, place: Place) -> str:
    if isinstance(value, Mapping):
        wanted("a resource type in quotes", value, place, f"to give settings, write {EXAMPLE}")
        return ""
    return str(_type(value, place))


def check_options(value: object, place: Place) -> Mapping[str, Any]:
    """A table that can be kept as JSON; what it means is the well's to check."""
    if not isinstance(value, Mapping):
        wanted("a table", value, place, 'like { size = "small" }')
        return {}
    faults = list(islice(_option_faults(value, place, OPTION_DEPTH), GUESSES))
    for here, message in faults:
        here.fault(message)
    if not faults and (size := len(json.dumps(value))) > limits.RESOURCE_OPTIONS_BYTES:
        most = limits.RESOURCE_OPTIONS_BYTES
        place.fault(f"{place.label} takes {size} bytes as JSON; it may take at most {most}")
    return value


def _option_faults(value: object, place: Place, depth: int) -> Iterator[tuple[Place, str]]:
    """What JSON or the database could not hold."""
    if depth < 0:
        yield place, f"options may be nested at most {OPTION_DEPTH} deep"
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            for part in (name, entry):
                yield from _option_faults(part, place / name, depth - 1)
    elif isinstance(value, list):
        for at, entry in enumerate(value):
            yield from _option_faults(entry, place / at, depth - 1)
    elif unfit := _unfit(value):
        yield place, f"{place.label} wants {unfit}"


def _unfit(value: object) -> str | None:
    """What a single value would have to be, if it cannot be kept."""
    if isinstance(value, str):
        return "text without NUL" if NOT_TEXT.search(value) else None
    if isinstance(value, float):
        return None if math.isfinite(value) else "a finite number"
    if isinstance(value, int):
        return None if -INT64 <= value < INT64 else "a number of at most 64 bits"
    return "a string, number, true, false, list or table: put it in double quotes"


_table = record({"type": _type}, {"options": check_options}, EXAMPLE)
