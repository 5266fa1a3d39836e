"""`matrix`: one file for many jobs, one for each combination of some values.

`${{ matrix.AXIS }}` stands for the combination's value. It may be used in a name, a target, an image, a service, an
output rule, a variable, a tag, a cache, the job of a dependency, and what is published.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from penstock.domain.jobfile.sections import REFERENCE
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Place, clip, did_you_mean, entries, listed, text, wanted

AXIS = r"[A-Za-z_][0-9A-Za-z_]*"


AXES = 8


RESERVED = ("include", "exclude")


PLACES = ("name", "target", "image", "services", "output_rules", "env", "tags", "cache", "dependencies", "publish")
"""The keys in which values may be referred to."""


@dataclass(frozen=True)
class Matrix:
    """The values of each axis; what is left out of their product, and what is added to it."""

    axes: Mapping[str, tuple[str, ...]]
    exclude: tuple[Mapping[str, str], ...] = ()
    include: tuple[Mapping[str, str], ...] = ()

    @property
    def combinations(self) -> tuple[dict[str, str], ...]:
        """Every combination, in the order of the file: the last axis changes first."""
        every = (dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values()))
        kept = [one for one in every if not any(_is_part(less, one) for less in self.exclude)]
        return (*kept, *(dict(more) for more in self.include if more not in kept))


def _is_part(part: Mapping[str, str], whole: Mapping[str, str]) -> bool:
    return all(whole[axis] == value for axis, value in part.items())


def check_matrix(value: object, place: Place) -> Matrix:
    """Axes with lists of strings; `exclude` and `include` with lists of tables of these."""
    before = len(place.faults)
    axes: dict[str, tuple[str, ...]] = {}
    given: dict[str, Any] = {}
    for name, content in entries(value, place, AXES + len(RESERVED), "a table of lists"):
        if name in RESERVED:
            given[name] = content
        elif not re.fullmatch(AXIS, name):
            (place / name).fault(f"{(place / name).label}: an axis is letters, digits and _", on_key=True)
        else:
            axes[name] = _values(content, place / name)
    less = _tables(given.get("exclude", []), place / "exclude", axes, whole=False)
    more = _tables(given.get("include", []), place / "include", axes, whole=True)
    made = Matrix(axes, less, more)
    if len(place.faults) == before:
        _check_size(made, place)
    return made


def _values(value: object, place: Place) -> tuple[str, ...]:
    found: tuple[str, ...] = listed(text, limits.MATRIX, "strings")(value, place)
    for at, one in enumerate(found):
        if one in found[:at]:
            (place / at).fault(f"`{clip(one)}` is listed twice")
    return found


def _tables(
    value: object, place: Place, axes: Mapping[str, Sequence[str]], *, whole: bool
) -> tuple[Mapping[str, str], ...]:
    def check(one: object, here: Place) -> Mapping[str, str]:
        if not isinstance(one, Mapping):
            wanted("a table", one, here, 'like { board = "a" }')
            return {}
        for name in one:
            if name not in axes:
                (here / name).fault(f"there is no axis `{clip(name)}`", did_you_mean(name, axes), on_key=True)
        if whole and len(one) < len(axes):
            here.fault(f"{here.label} needs a value for each axis", f"these are {', '.join(axes)}")
        return {name: text(content, here / name) for name, content in one.items()}

    found: tuple[Mapping[str, str], ...] = listed(check, limits.MATRIX, "tables")(value, place)
    return found


def _check_size(made: Matrix, place: Place) -> None:
    count = 1
    for values in made.axes.values():
        count *= len(values)
    if not made.axes or count > 4 * limits.MATRIX:
        many = len(made.axes) and count
        place.fault(f"{place.label} makes {many} jobs; it makes from 1 to {limits.MATRIX}")
    elif not 1 <= len(made.combinations) <= limits.MATRIX:
        place.fault(f"{place.label} makes {len(made.combinations)} jobs; it makes from 1 to {limits.MATRIX}")


def check_references(document: Mapping[str, Any], matrix: Matrix, top: Place) -> None:
    """That every axis that is referred to is there."""
    for key in PLACES:
        for here, content in _strings(document.get(key), top / key):
            for name in re.findall(REFERENCE, content):
                if name not in matrix.axes:
                    here.fault(f"there is no axis `{clip(name)}`", did_you_mean(name, matrix.axes))


def _strings(value: object, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping | list):
        for name, entry in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _strings(entry, place / name)


def variable(axis: str) -> str:
    """The variable that tells a script the value of an axis."""
    return f"MATRIX_{axis.upper()}"
