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


class Codec(NamedTuple):
    """How values of a type are dumped and loaded."""

    dump: Convert = _same
    load: Convert = _same


class _Member(NamedTuple):
    """A field of a dataclass."""

    name: str
    default: Any
    codec: Codec


def dump(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, without those that have their default."""
    kind: Any = type(value)
    found: dict[str, Any] = codec_of(kind).dump(value)
    return found


def load(kind: type[T], plain: Mapping[str, Any]) -> T:
    """A dataclass of its plain fields; unknown names are passed over.

    Raises TypeError if a field without a default is missing, and ValueError or TypeError for a value of another type.
    """
    of: Any = kind
    made: T = codec_of(of).load(plain)
    return made


@cache
def codec_of(hint: Any) -> Codec:
    """The codec of a type. Raises TypeError for one that no row has."""
    if hint is Any:  # a class, since Python 3.11
        return Codec()
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


def _single(kind: type) -> Codec:
    if is_dataclass(kind):
        return _record(kind)
    if issubclass(kind, datetime):
        return Codec(kind.isoformat, kind.fromisoformat)
    if issubclass(kind, StrEnum):
        return Codec(str, kind)
    if kind in (int, float, bool):
        return Codec(_same, kind)
    if kind is str:
        return Codec()
    raise TypeError(f"rows have no fields of the type {kind}")


def _optional(hint: Any) -> Codec:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    if len(kinds) > 1:
        raise TypeError(f"a field of a row has one type, or it and None: not {hint}")
    dump, load = codec_of(kinds[0])
    return Codec(
        lambda value: None if value is None else dump(value), lambda plain: None if plain is None else load(plain)
    )


def _tuple(*kinds: Any) -> Codec:
    """Of as many as there are values, if the second is `...`; else one of each."""
    if kinds[-1] is Ellipsis:
        dump, load = codec_of(kinds[0])
        return Codec(lambda value: list(map(dump, value)), lambda plain: tuple(map(load, plain)))
    dumps, loads = zip(*map(codec_of, kinds), strict=True)
    return Codec(
        lambda value: [dump(one) for dump, one in zip(dumps, value, strict=True)],
        lambda plain: tuple(load(one) for load, one in zip(loads, plain, strict=True)),
    )


def _mapping(key: Any, kind: Any) -> Codec:
    if key is not str:
        raise TypeError(f"the names of a mapping are texts in JSON, not {key}")
    dump, load = codec_of(kind)
    return Codec(
        lambda value: {name: dump(one) for name, one in value.items()},
        lambda plain: {name: load(one) for name, one in plain.items()},
    )


def _record(kind: type) -> Codec:
    hints = get_type_hints(kind)
    members = [_Member(each.name, _default(each), codec_of(hints[each.name])) for each in fields(kind)]

    def dump(value: Any) -> dict[str, Any]:
        held = vars(value)
        return {name: codec.dump(held[name]) for name, default, codec in members if held[name] != default}

    def load(plain: Mapping[str, Any]) -> Any:
        return kind(**{name: codec.load(plain[name]) for name, _, codec in members if name in plain})

    return Codec(dump, load)


def _default(field: Field[Any]) -> Any:
    """What a field has that is not given; no value equals the mark for none."""
    return field.default if field.default_factory is MISSING else field.default_factory()
