"""What a machine has, and what a job needs of one: the same table in a site's file and in a job file.

    machine = { cpus = 4, memory = "16GiB", scratch = "100GiB", gpu = 1, arch = "arm64" }

Every key may be left out. A job that leaves one out takes whatever there is. A target that leaves one out does not say
what its machines have, so they fit no job that asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields

from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Place, clip, matching, number, record, wanted

UNITS = {"MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}

SIZE = f"([0-9]{{1,9}})({'|'.join(UNITS)})"

MOST_BYTES = 1024**5

MOST_CPUS = 4096

MOST_GPUS = 64

EXAMPLE = '{ cpus = 4, memory = "16GiB", arch = "arm64" }'


class Size(int):
    """A number of bytes, as files say it: 17,179,869,184 are 16GiB."""

    def __str__(self) -> str:
        unit = next((unit for unit in reversed(UNITS) if self % UNITS[unit] == 0), "MiB")
        return f"{self // UNITS[unit]}{unit}"


@dataclass(frozen=True)
class Machine:
    """What a target's machines have, or what a job needs of its machine. None for what is not said."""

    cpus: int | None = None
    memory: Size | None = None
    scratch: Size | None = None
    gpu: int | None = None
    arch: str | None = None

    @property
    def said(self) -> dict[str, int | str]:
        """What is said of it, as files say it."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {key: str(value) if isinstance(value, Size) else value for key, value in found.items() if value}

    def __str__(self) -> str:
        return ", ".join(_written(key, value) for key, value in self.said.items())


@dataclass(frozen=True)
class Lack:
    """A key of which a job needs more than a machine has, or something else. `has` is None where nobody says it.

    `part` is how much of it is missing, from 0 for nothing to 1 for all.
    """

    key: str
    needs: int | str
    has: int | str | None

    @property
    def part(self) -> float:
        """How much is missing, as a part of what the job needs. Another architecture counts as all of it."""
        if isinstance(self.needs, int) and isinstance(self.has, int):
            return (self.needs - self.has) / self.needs
        return 1.0

    def __str__(self) -> str:
        needs = _written(self.key, self.needs)
        if self.has is None:
            return f"{needs}, and its {self.key} is not known"
        if isinstance(self.needs, int) and isinstance(self.has, int):
            more = type(self.needs)(self.needs - self.has)
            return f"{needs} is {more} more than its {self.has}"
        return f"{needs}, and its {self.key} is {self.has}"


def lacking(needs: Machine, has: Machine) -> list[Lack]:
    """Why a machine does not fit what a job needs, key by key; empty if it fits."""
    return list(_lacking(needs, has))


def _lacking(needs: Machine, has: Machine) -> Iterator[Lack]:
    for key in needs.said:
        asked, there = getattr(needs, key), getattr(has, key)
        fits = there is not None and (there == asked if key == "arch" else there >= asked)
        if not fits:
            yield Lack(key, asked, there)


def _written(key: str, value: int | str) -> str:
    """A key and its value, as files have them."""
    is_text = isinstance(value, str | Size)
    return f'{key} = "{value}"' if is_text else f"{key} = {value}"


def check_machine(value: object, place: Place) -> Machine:
    """The table of a machine."""
    return Machine(**_machine_keys(value, place))


def _size(value: object, place: Place) -> Size:
    """A number of bytes, with its unit."""
    found = re.fullmatch(SIZE, value) if isinstance(value, str) else None
    if found is None:
        hint = f"a whole number and its unit: {', '.join(UNITS)}"
        if isinstance(value, str):
            place.fault(f"{place.label}: `{clip(value)}` is not a size like 16GiB", hint)
        else:
            wanted('a size like "16GiB"', value, place, hint)
        return Size(UNITS["MiB"])
    size = Size(int(found[1]) * UNITS[found[2]])
    if not UNITS["MiB"] <= size <= MOST_BYTES:
        place.fault(f"{place.label} must be from 1MiB to {Size(MOST_BYTES)}")
    return size


_machine_keys = record(
    {},
    {
        "cpus": number(1, MOST_CPUS),
        "memory": _size,
        "scratch": _size,
        "gpu": number(0, MOST_GPUS),
        "arch": matching("[a-z0-9_]{1,32}", "an architecture", "lower-case letters, digits and _, like x86_64"),
    },
    EXAMPLE,
)
