"""From rows to the dataclasses that are sent, by the names of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from penstock.domain.artifacts.content import Content
from penstock.kernel.frozen import dataclass

T = TypeVar("T")

JobState = Literal["waiting", "queued", "acquiring", "running", "settled"]
JobOutcome = Literal["succeeded", "failed", "cancelled", "errored"]
JobName = Annotated[str | None, "The job's name; null if no job is named, or nothing is left of it."]
JobOwner = Annotated[str | None, "The user or repository that owns the job; null likewise."]
PoolKind = Literal["numbered", "named", "amount"]
NextPage = Annotated[str | None, "The page to ask for next; null on the last page."]


@dataclass(frozen=True)
class Created:
    """What was created."""

    id: Annotated[str, "Its id."]


def view(shape: type[T], row: object, /, *parts: object, **given: object) -> T:
    """A row as callers see it: each field of `shape` is the row's attribute of that name, unless it is `given`.

    What the row does not have itself is an attribute of one of its `parts`. Times become RFC 3339 text, spans of time
    seconds, enums their values, and rows in rows views in their turn.
    """
    fields: Mapping[str, type | None] = _inner(shape)  # type: ignore[arg-type]  # a class is hashable
    made = {name: _shown(given[name] if name in given else _value(name, row, *parts), fields[name]) for name in fields}
    return shape(**made)


def _value(name: str, *parts: object) -> object:
    """The attribute of the first part that has it. Raises AttributeError where none does."""
    found = next((part for part in parts if hasattr(part, name)), parts[0])
    return getattr(found, name)


@cache
def _inner(shape: type) -> Mapping[str, type | None]:
    """The fields of a class, each with the dataclass that its values or their elements are, if they are."""
    return {name: _dataclass(hint) for name, hint in get_type_hints(shape).items()}


def _dataclass(hint: Any) -> type | None:
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    return next((found for each in get_args(hint) if (found := _dataclass(each))), None)


def _shown(value: Any, inner: type | None) -> Any:
    if isinstance(value, str | int | float | None):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, list | tuple | frozenset):
        return [_shown(each, inner) for each in value]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime | timedelta):
        return present(value) if isinstance(value, datetime) else value.total_seconds()
    return value if inner is None or isinstance(value, inner) else view(inner, value)


def digests(content: Content) -> dict[str, str | None]:
    """The digest that was verified of some bytes, and null for the other one."""
    return {"sha256": content.sha256 or None, "composite": content.composite or None}


def present(time: datetime) -> str:
    """A time as RFC 3339 has it, in UTC, with milliseconds."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
