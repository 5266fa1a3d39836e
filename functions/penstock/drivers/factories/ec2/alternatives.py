"""The alternatives of a factory (type, market, subnet) in the order of trying, and the scopes of their shortages."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from penstock.drivers.factories.aws.settings import MARKETS, Market, Subnet
from penstock.drivers.factories.ec2.settings import InstanceType, Settings
from penstock.kernel.frozen import dataclass

GROUPS: Mapping[str, str] = {
    **{letter: "standard" for letter in "acdhimrtz"},
    **{name: name for name in ("dl", "f", "hpc", "inf", "mac", "p", "trn", "u", "x")},
    "g": "g",
    "vt": "g",
}
"""EC2's quota groups by the beginning of a type's name. EC2 limits vCPUs per quota group and market."""


class Reach(StrEnum):
    """Which alternatives a shortage affects. Except for places, a shortage affects one market only."""

    OFFER = "offer"  # this type, in this place, on this market
    TYPE = "type"  # this type, on this market
    GROUP = "group"  # this quota group, on this market
    MARKET = "market"  # this market
    PLACE = "place"  # this subnet's zone
    SUBNET = "subnet"  # this subnet
    ALL = "all"  # the region


@dataclass(frozen=True)
class Alternative:
    """One alternative: a type on a market in a subnet."""

    region: str
    market: Market
    type: str
    group: str
    subnet: Subnet | None = None
    price: float | None = None

    def scope(self, reach: StrEnum) -> str:
        """The scope of a shortage that this alternative met. It is the same in every factory of the region."""
        subnet = self.subnet.id if self.subnet else "any"
        place = (self.subnet and self.subnet.zone) or subnet
        scopes: Mapping[StrEnum, str] = {
            Reach.OFFER: f"{self.market}/{self.type}/{place}",
            Reach.TYPE: f"{self.market}/{self.type}",
            Reach.GROUP: f"{self.market}/group/{self.group}",
            Reach.MARKET: f"{self.market}",
            Reach.PLACE: f"place/{place}",
            Reach.SUBNET: f"subnet/{subnet}",
            Reach.ALL: "all",
        }
        return f"{scope_prefix(self.region)}/{scopes[reach]}"

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of every shortage that affects this alternative."""
        return frozenset(self.scope(reach) for reach in Reach)

    def __str__(self) -> str:
        place = f" in {self.subnet.zone or self.subnet.id}" if self.subnet else ""
        return f"{self.type} {self.market}{place}"


def alternatives(settings: Settings) -> tuple[Alternative, ...]:
    """All alternatives: by market, then by price, then by subnet as listed. The order is always the same."""
    return tuple(
        Alternative(settings.region, market, each.name, group_of(each.name, settings.quota_groups), subnet, each.price)
        for market in MARKETS[settings.market]
        for each in _affordable(settings, market)
        for subnet in (settings.subnets or (None,))
    )


def _affordable(settings: Settings, market: Market) -> list[InstanceType]:
    """Types within the price limits, the cheapest first; without prices in the order given.

    On the spot market `max_price` goes into the request instead, because these prices are the on-demand prices.
    """
    if any(each.price is None for each in settings.types):
        return list(settings.types)
    priced = sorted(((each.price or 0.0, place, each) for place, each in enumerate(settings.types)))
    most = priced[0][0] * settings.price_band if settings.price_band else float("inf")
    if settings.max_price and market is Market.ON_DEMAND:
        most = min(most, settings.max_price)
    return [each for price, _, each in priced if price <= most]


def scope_prefix(region: str) -> str:
    """The beginning of every scope of a region."""
    return f"ec2/{region}"


def group_of(name: str, groups: Mapping[str, str]) -> str:
    """The quota group of a type: the longest matching beginning in the site's settings or in GROUPS."""
    known = {**GROUPS, **groups}
    starts = [start for start in known if name.startswith(start)]
    return known[max(starts, key=len)] if starts else name.partition(".")[0]
