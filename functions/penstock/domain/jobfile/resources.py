"""The tables of the resources that a job file asks for: which of the site's named things, how many, and options; and
which host of its target it asks for.

resources = ["bench", "licence"]                   one of each

[resources.bench]                                  by what the job knows it by, which is its type if none is given
labels = "board == gimlet && rack != 4"            only things with such labels: penstock.domain.pools.choices
count = 2                                          two of them: the job knows them by bench.1 and bench.2

host = { labels = "rack == 4" }                    only hosts of the target with such a label
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import islice
from typing import Any

from penstock.domain.pools import choices
from penstock.domain.pools.choices import Choice, Placement, Unparsed
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import (
    GUESSES,
    NOT_TEXT,
    Place,
    clip,
    entries,
    flag,
    matching,
    number,
    record,
    text,
    wanted,
)

OPTION_DEPTH = 8


INT64 = 2**63


HOST_EXAMPLE = '{ labels = "rack == 4" }'


RESOURCE_EXAMPLE = '[resources.db] with type = "database"'


@dataclass(frozen=True)
class ResourceAsk:
    """One resource that the job asks for; `bmat` knows it by `name`; the well of `type` checks `options`.

    `choice` says which of the site's named things it may be; None for any. `spot` is the line and column of its options
    in the job file, if they stand in one.
    """

    name: str
    type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    spot: tuple[int, int] | None = field(default=None, compare=False)
    choice: Choice | None = None


resource_type = matching("[0-9A-Za-z][0-9A-Za-z._-]*", "a resource type", "letters, digits and . _ - only")


_resource_name = matching("[0-9A-Za-z][0-9A-Za-z._-]*", "a resource name", "letters, digits and . _ - only")


def check_tables(value: Mapping[str, Any], place: Place) -> tuple[ResourceAsk, ...]:
    """A table for each resource, or for several of a kind; the order stays."""
    asks: dict[str, ResourceAsk] = {}
    for name, settings in entries(value, place, limits.RESOURCES, "tables"):
        for ask in _asked(name, settings, place / name):
            if ask.name in asks:
                (place / name).fault(f"there is a resource `{clip(ask.name)}` already", "give each its own name")
            asks[ask.name] = ask
    if len(asks) > limits.RESOURCES:
        place.fault(f"the job asks for {len(asks)} resources; it may ask for at most {limits.RESOURCES}")
    return tuple(asks.values())


def _asked(name: str, settings: object, place: Place) -> list[ResourceAsk]:
    """What one table asks for: as many of a kind as it says, which differ by a number after their name."""
    _resource_name(name, place)
    found = _resource_table(settings, place)
    one = ResourceAsk(name, found.get("type", name), found.get("options", {}), choice=_choice(found, place))
    if "count" not in found:
        return [one]
    return [replace(one, name=f"{name}.{number}") for number in range(1, found["count"] + 1)]


def _choice(found: Mapping[str, Any], place: Place) -> Choice | None:
    """Which things a table asks for, None for any."""
    if "thing" in found and "labels" in found:
        (place / "labels").fault("a thing that is named has the labels that it has", "keep either `thing` or `labels`")
    labels = f"{choices.NAME} == {found['thing']}" if "thing" in found else found.get("labels", "")
    choice = Choice(labels, found.get("exclusive", False), found.get("placement", Placement.ANY))
    return choice if choice != choices.ANY else None


def _labels(value: object, place: Place) -> str:
    """An expression over labels."""
    before = len(place.faults)
    found = text(value, place, limits.LABELS_CHARS, 'an expression, like "board == gimlet"')
    if len(place.faults) == before:
        try:
            choices.check(found)
        except Unparsed as error:
            place.fault(f"{place.label}: {error}", 'like "board == gimlet && rack != 4"')
    return found


def _placement(value: object, place: Place) -> Placement:
    known = [str(each) for each in Placement]
    if value in known:
        return Placement(str(value))
    hint = f"there are: {', '.join(known)}"
    if isinstance(value, str):
        place.fault(f"{place.label} cannot be `{clip(value)}`", hint)
    else:
        wanted("a string", value, place, hint)
    return Placement.ANY


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
        return "text without NUL" if re.search(NOT_TEXT, value) else None
    if isinstance(value, float):
        return None if math.isfinite(value) else "a finite number"
    if isinstance(value, int):
        return None if -INT64 <= value < INT64 else "a number of at most 64 bits"
    return "a string, number, true, false, list or table: put it in double quotes"


_thing = matching("[A-Za-z0-9][A-Za-z0-9._-]*", "a thing's name", "as the site calls it, like bench-3")


def check_host(value: object, place: Place) -> Choice | None:
    """Which of a target's hosts a job asks for, None for any."""
    before = len(place.faults)
    found = _host_table(value, place)
    if not found and len(place.faults) == before:
        place.fault(f"{place.label} has neither `labels` nor `thing`", f"like {HOST_EXAMPLE}")
    return _choice(found, place)


_host_table = record({}, {"labels": _labels, "thing": _thing}, HOST_EXAMPLE)

_resource_table = record(
    {},
    {
        "type": resource_type,
        "options": check_options,
        "labels": _labels,
        "thing": _thing,
        "count": number(1, limits.RESOURCES),
        "exclusive": flag,
        "placement": _placement,
    },
    RESOURCE_EXAMPLE,
)
