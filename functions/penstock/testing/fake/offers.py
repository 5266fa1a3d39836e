"""The ways to get a machine from the fake cloud, and by what names their shortages are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ON_DEMAND, SPOT = "on-demand", "spot"
MARKETS = {ON_DEMAND: (ON_DEMAND,), SPOT: (SPOT,), "spot-first": (SPOT, ON_DEMAND)}


@dataclass(frozen=True)
class Offer:
    """One way: a type, from a market, in a zone."""

    type: str
    market: str = ON_DEMAND
    zone: str = "a"
    price: float | None = None

    @property
    def scopes(self) -> tuple[str, ...]:
        """Every shortage that would make this way not worth trying, the narrowest first."""
        return (
            f"fake/{self.market}/{self.type}/{self.zone}",
            f"fake/type/{self.type}",
            f"fake/zone/{self.zone}",
            f"fake/market/{self.market}",
            "fake/all",
        )

    def __str__(self) -> str:
        return f"{self.type} {self.market} in {self.zone}"


@dataclass(frozen=True)
class InstanceType:
    """A kind of machine, and what an hour of it costs."""

    name: str
    price: float | None = None


@dataclass(frozen=True)
class Settings:
    """What a site may say. With no types an order's own type is the only one."""

    types: tuple[InstanceType, ...] = ()
    zones: tuple[str, ...] = ("a",)
    market: str = ON_DEMAND
    price_band: float | None = None

    def offers(self, type_: str) -> Sequence[Offer]:
        """All ways in the order of trying: market by market, the cheapest type first, zones as listed."""
        types = self._affordable() or (InstanceType(type_),)
        return [
            Offer(each.name, market, zone, each.price)
            for market in MARKETS[self.market]
            for each in types
            for zone in self.zones
        ]

    def _affordable(self) -> Sequence[InstanceType]:
        """Types within the price band, cheapest first; without prices in the order given."""
        prices = {each.name: each.price for each in self.types if each.price is not None}
        if len(prices) < len(self.types) or not prices:
            return self.types
        most = min(prices.values()) * self.price_band if self.price_band else max(prices.values())
        cheap_first = sorted(self.types, key=lambda each: prices[each.name])
        return [each for each in cheap_first if prices[each.name] <= most]
