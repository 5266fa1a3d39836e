"""The forms of all rows: the fields of each kind, and of the value objects in them, with types and defaults.

Two releases run side by side while one is deployed over the other, and a site may go back to the release before. So
each must read what the other writes. `broken` says which changes of a form prevent that.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from penstock.aws.dynamodb import KINDS, NOT_STORED

Forms = dict[str, Any]
"""`{"kinds": {kind: {field: [type, has a default]}}, "values": {class: {field: …}}, "enums": {class: [value]}}`."""


def forms() -> Forms:
    """The forms as the code declares them now."""
    found: Forms = {"kinds": {}, "values": {}, "enums": {}}
    for name, kind in sorted(KINDS.items()):
        found["kinds"][name] = _fields(kind, found)
    return {part: dict(sorted(each.items())) for part, each in found.items()}


def _fields(cls: Any, found: Forms) -> dict[str, list[Any]]:
    """The fields of a class. Adds the classes of their values to what was found."""
    hints = get_type_hints(cls)
    shown = {}
    for each in dataclasses.fields(cls):
        if each.name not in NOT_STORED:
            has_default = each.default is not dataclasses.MISSING or each.default_factory is not dataclasses.MISSING
            shown[each.name] = [_type(hints[each.name], found), has_default]
    return shown


def _type(hint: Any, found: Forms) -> str:
    """A type as text, the same for the same type however it is written."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        return _type(arguments[0], found)
    if origin in (Union, types.UnionType):
        return " | ".join(sorted(_type(each, found) for each in arguments))
    if origin is typing.Literal:
        return f"Literal[{', '.join(sorted(map(repr, arguments)))}]"
    if origin is not None:
        return f"{origin.__name__}[{', '.join(_type(each, found) for each in arguments)}]"
    if isinstance(hint, type) and issubclass(hint, Enum):
        found["enums"][hint.__name__] = sorted(str(each.value) for each in hint)
    elif dataclasses.is_dataclass(hint) and isinstance(hint, type) and hint.__name__ not in found["values"]:
        found["values"][hint.__name__] = {}  # it may contain itself
        found["values"][hint.__name__] = _fields(hint, found)
    return "..." if hint is Ellipsis else str(getattr(hint, "__name__", hint))


def broken(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Which changes from one form to another prevent that each release reads what the other writes."""
    said = [f"rows of the kind {name} can no longer be read" for name in was["kinds"].keys() - now["kinds"].keys()]
    for part in ("kinds", "values"):
        for name in was[part].keys() & now[part].keys():
            said += _broken_fields(name, was[part][name], now[part][name])
    for name in was["enums"].keys() & now["enums"].keys():
        said += [f"{name} has no {each!r} any more" for each in set(was["enums"][name]) - set(now["enums"][name])]
    return sorted(said)


def _broken_fields(name: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is wrong with a class. A field without a default may not go either: the release before requires it."""
    said = [f"{name}.{field} has no default, so rows without it cannot be read" for field in _required(now) - set(was)]
    said += [f"{name}.{field} is gone, and the release before requires it" for field in _required(was) - set(now)]
    for field in was.keys() & now.keys():
        if was[field][0] != now[field][0]:
            said.append(f"{name}.{field} was {was[field][0]} and is {now[field][0]}")
        elif was[field][1] and not now[field][1]:
            said.append(f"{name}.{field} has no default any more, which rows leave out")
    return said


def _required(fields: Mapping[str, Any]) -> set[str]:
    return {name for name, (_, has_default) in fields.items() if not has_default}
