"""Rows as the dicts, lists and texts that JSON has, and back, by their types.

The types are those that fields of rows have: texts, numbers, truth values, times (RFC 3339), enumerations of texts,
dataclasses, tuples, mappings by text, and any of these or None. A field with its default is left out. How a class is
converted is worked out when it is first met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Convert = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


class Way(NamedTuple):
    """How values of a type become plain, and how they are made again of what is plain."""

    write: Convert = _same
    read: Convert = _same


class _Member(NamedTuple):
    """A field of a dataclass."""

    name: str
    default: Any
    way: Way


def write(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, plain, without those that have their default."""
    kind: Any = type(value)
    found: dict[str, Any] = way_of(kind).write(value)
    return found


def read(kind: type[T], plain: Mapping[str, Any]) -> T:
    """A dataclass of its plain fields; unknown names are passed over.

    Raises TypeError if a field without a default is missing, and ValueError or TypeError for a value of another type.
    """
    of: Any = kind
    made: T = way_of(of).read(plain)
    return made


@cache
def way_of(hint: Any) -> Way:
    """How values of a type are converted. Raises TypeError for a type that no row has."""
    if hint is Any:  # a class, since Python 3.11
        return Way()
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _optional(hint)
    if origin is tuple:
        return _tuple(*get_args(hint))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(*get_args(hint))
    if isinstance(hint, type):
        return _single(hint)
    raise TypeError(f"rows have no fields of the type {hint}")


def _single(kind: type) -> Way:
    if is_dataclass(kind):
        return _record(kind)
    if issubclass(kind, datetime):
        return Way(kind.isoformat, kind.fromisoformat)
    if issubclass(kind, StrEnum):
        return Way(str, kind)
    if kind in (int, float, bool):
        return Way(_same, kind)
    if kind is str:
        return Way()
    raise TypeError(f"rows have no fields of the type {kind}")


def _optional(hint: Any) -> Way:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    if len(kinds) > 1:
        raise TypeError(f"a field of a row has one type, or it and None: not {hint}")
    write, read = way_of(kinds[0])
    return Way(
        lambda value: None if value is None else write(value), lambda plain: None if plain is None else read(plain)
    )


def _tuple(*kinds: Any) -> Way:
    """Of as many as there are values, if the second is `...`; else one of each."""
    if kinds[-1] is Ellipsis:
        write, read = way_of(kinds[0])
        return Way(lambda value: list(map(write, value)), lambda plain: tuple(map(read, plain)))
    writes, reads = zip(*map(way_of, kinds), strict=True)
    return Way(
        lambda value: [write(one) for write, one in zip(writes, value, strict=True)],
        lambda plain: tuple(read(one) for read, one in zip(reads, plain, strict=True)),
    )


def _mapping(key: Any, kind: Any) -> Way:
    if key is not str:
        raise TypeError(f"the names of a mapping are texts in JSON, not {key}")
    write, read = way_of(kind)
    return Way(
        lambda value: {name: write(one) for name, one in value.items()},
        lambda plain: {name: read(one) for name, one in plain.items()},
    )


def _record(kind: type) -> Way:
    hints = get_type_hints(kind)
    members = [_Member(each.name, _default(each), way_of(hints[each.name])) for each in fields(kind)]

    def write(value: Any) -> dict[str, Any]:
        held = vars(value)
        return {name: way.write(held[name]) for name, default, way in members if held[name] != default}

    def read(plain: Mapping[str, Any]) -> Any:
        return kind(**{name: way.read(plain[name]) for name, _, way in members if name in plain})

    return Way(write, read)


def _default(field: Field[Any]) -> Any:
    """What a field has that is not given; no value equals the mark for none."""
    return field.default if field.default_factory is MISSING else field.default_factory()
