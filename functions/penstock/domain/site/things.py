"""The table of a resource type's named things: their names, their labels, and what their jobs are told of them.

    [resources.bench.things.bench-3]
    labels = { board = "gimlet", rack = "4" }
    address = "10.0.4.3"

By the labels jobs choose among things. Both labels and the other keys are in the metadata of the resource. A target's
hosts have a table of the same form, with labels only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from penstock.domain.jobfile.resources import check_options
from penstock.domain.pools.choices import NAME
from penstock.domain.site.site import NamedThing
from penstock.kernel import limits
from penstock.toml.checks import Place, clip, entries, matching, text, wanted

EXAMPLE = '{ labels = { board = "gimlet" }, address = "10.0.4.3" }'

HOST_EXAMPLE = '{ labels = { rack = "4" } }'

LABEL_HINT = "letters, digits and . _ - only, at most 64, the first a letter or digit"

MAX_THINGS = 1000
"""How many things a type may have at most; with several leases each, fewer: limits.THINGS_SLOTS."""

_label = matching("[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "a label", LABEL_HINT)

_thing_name = matching("[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "a name", LABEL_HINT)


def check_things(value: object, place: Place, example: str = EXAMPLE) -> dict[str, NamedThing]:
    """The things, by name, in the order of the file."""
    found = {}
    for name, table in entries(value, place, MAX_THINGS, f"tables like [{place.path[-1]}.bench-3] with {example}"):
        _thing_name(name, place / name)
        found[name] = _thing(table, place / name, example)
    size = len(json.dumps({name: dict(thing.labels) for name, thing in found.items()}))
    if size > limits.THINGS_BYTES:
        most = limits.THINGS_BYTES
        place.fault(f"the labels of {place.label} take {size} bytes as JSON; they may take at most {most}")
    return found


def check_hosts(value: object, place: Place) -> dict[str, NamedThing]:
    """A target's hosts, by name, in the order of the file."""
    found = check_things(value, place, HOST_EXAMPLE)
    for name, thing in found.items():
        for key in thing.metadata:
            (place / name / key).fault(f"a host has no `{clip(key)}`", "only `labels`", on_key=True)
    return found


def _thing(value: object, place: Place, example: str) -> NamedThing:
    if not isinstance(value, Mapping):
        wanted("a table", value, place, f"like {example}")
        return NamedThing()
    labels = _labels(value["labels"], place / "labels") if "labels" in value else {}
    metadata = check_options({key: entry for key, entry in value.items() if key != "labels"}, place)
    for key in sorted(metadata.keys() & labels.keys()):
        (place / key).fault(f"`{clip(key)}` is a label of it already", "call one of them otherwise", on_key=True)
    return NamedThing(labels, metadata)


def _labels(value: object, place: Place) -> dict[str, str]:
    found: dict[str, Any] = {}
    for key, entry in entries(value, place, limits.THING_LABELS, 'a table like { board = "gimlet" }'):
        _label(key, place / key)
        found[key] = text(entry, place / key)
        if key == NAME:
            (place / key).fault("its name is a label of every thing already", "take it out", on_key=True)
    return found
