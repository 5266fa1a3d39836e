"""Rows with other values, for tests that name a field and not the group that it is in."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from penstock.kernel.rows import Row

R = TypeVar("R", bound=Row)


def changed(row: R, **values: Any) -> R:
    """The row with other values: each replaces the row's field of its name, or the one in a group of its fields."""
    own = {each.name for each in fields(row)}
    whole = {name: value for name, value in values.items() if name in own}
    parts = {name: value for name, value in values.items() if name not in own}
    for group in own - whole.keys() if parts else ():
        was = getattr(row, group)
        names = {each.name for each in fields(was)} & parts.keys() if is_dataclass(was) else set()
        if names:
            whole[group] = replace(was, **{name: parts.pop(name) for name in names})
    assert not parts, f"{type(row).__name__} has no {', '.join(parts)}"
    return replace(row, **whole)
