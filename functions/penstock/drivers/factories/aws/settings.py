"""Settings that the factories in AWS have in common, and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Check, Place, clip, entries, matching, record, text, wanted


class Market(StrEnum):
    """How a machine is paid for."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


MARKETS: Mapping[str, tuple[Market, ...]] = {
    "on-demand": (Market.ON_DEMAND,),
    "spot": (Market.SPOT,),
    "spot-first": (Market.SPOT, Market.ON_DEMAND),
}


@dataclass(frozen=True)
class Subnet:
    """A subnet for machines. `zone` is optional and only distinguishes shortages."""

    id: str
    zone: str | None = None


MOST_ALTERNATIVES = 48
"""Each takes a second or more: one `create` tries as many as it has time for, and the next goes on behind them."""

RESERVED = "penstock:"
TAGS = 40
"""AWS allows 50 tags of a thing, and Penstock uses some."""


def check_price(value: object, place: Place) -> float:
    """A price per hour, in any currency: prices are only compared."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        wanted("a price per hour", value, place, "a number like 0.0816")
        return 1.0
    if not 0 < value < 10_000:
        place.fault(f"{place.label} must be more than 0 and less than 10000")
    return float(value)


def either(name: str, check: Check, table: Check, made: Any) -> Check:
    """Either a name, or a table that has the name and more."""

    def checked(value: object, place: Place) -> Any:
        if not isinstance(value, Mapping):
            return made(**{name: check(value, place)})
        found = table(value, place)
        return made(**{name: "", **found})

    return checked


def one_of(names: Sequence[str]) -> Check:
    """One of some names."""

    def check(value: object, place: Place) -> str:
        found = text(value, place)
        if found and found not in names:
            place.fault(f"{place.label}: `{clip(found)}` is not allowed here", f"one of: {', '.join(names)}")
        return found

    return check


def texts(what: str) -> Check:
    """A table of strings with free keys, which can be those of tags."""

    def check(value: object, place: Place) -> dict[str, str]:
        found = {name: text(entry, place / name, 256) for name, entry in entries(value, place, TAGS, what)}
        for name in found:
            if name.lower().startswith((RESERVED, "aws:")) or name == "Name" or len(name) > 128:
                (place / name).fault(
                    f"`{clip(name)}` cannot be set", "it is reserved for Penstock or AWS, or too long", on_key=True
                )
        return found

    return check


check_region = matching(r"[a-z]{2,}(-[a-z]+)+-\d+", "a region", 'like "eu-west-1"')

check_group = matching(r"sg-[0-9a-f]+", "a security group's id", 'like "sg-0123456789abcdef0"')

check_tags = texts('a table like { team = "tools" }')

_subnet_id = matching(r"subnet-[0-9a-f]+", "a subnet's id", 'like "subnet-0123456789abcdef0"')

_zone = matching(r"[a-z0-9-]+", "a zone", 'like "eu-west-1a"')

check_subnet = either(
    "id",
    _subnet_id,
    record({"id": _subnet_id}, {"zone": _zone}, '{ id = "subnet-…", zone = "eu-west-1a" }'),
    Subnet,
)
