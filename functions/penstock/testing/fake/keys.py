"""Checks the settings of a fake driver, as a driver's author would: everything that is wrong at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.drivers.checks import not_empty, sentences
from penstock.kernel.errors import Misconfigured
from penstock.testing.fake.offers import MARKETS, InstanceType, Settings
from penstock.toml.checks import Place, listed, record, text, wanted

MOST = 48
EXAMPLE = 'types = [{ name = "small", price = 0.1 }]'


def read(given: Mapping[str, Any]) -> Settings:
    """The settings that a site gave. Raises Misconfigured."""
    top = Place(("fake",))
    values = _keys(given, top)
    if top.faults:
        raise Misconfigured("; ".join(sentences(top)))
    return Settings(**values)


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, a sentence each."""
    top = Place(("fake",))
    _keys(given, top)
    return sentences(top)


def _price(value: object, place: Place) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        wanted("a number more than 0", value, place, "like 0.1")
        return 1.0
    return float(value)


def _type(value: object, place: Place) -> InstanceType:
    """A type, by name or as { name, price }."""
    if isinstance(value, str):
        return InstanceType(text(value, place))
    return InstanceType(**{"name": "", **_type_keys(value, place)})


def _market(value: object, place: Place) -> str:
    found = text(value, place)
    if found not in MARKETS:
        place.fault(f"{place.label} is none of {', '.join(MARKETS)}")
    return found


_type_keys = record({"name": text}, {"price": _price}, '{ name = "small", price = 0.1 }')
_keys = record(
    {},
    {
        "types": not_empty(listed(_type, MOST, "types")),
        "zones": not_empty(listed(text, MOST, "zones")),
        "market": _market,
        "price_band": _price,
    },
    EXAMPLE,
)
