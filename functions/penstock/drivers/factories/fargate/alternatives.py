"""The alternatives of a factory (market, subnet) in the order of trying, and the scopes of their shortages."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from penstock.drivers.factories.aws.settings import MARKETS, Market, Subnet
from penstock.drivers.factories.fargate.settings import Settings
from penstock.kernel.frozen import dataclass


class Reach(StrEnum):
    """Which alternatives a shortage affects."""

    OFFER = "offer"  # this architecture and size, on this market, in this place
    MARKET = "market"  # this market: ECS limits vCPUs per market
    SUBNET = "subnet"  # this subnet
    ALL = "all"  # the region


@dataclass(frozen=True)
class Alternative:
    """One alternative: a size of task on a market in a subnet."""

    region: str
    market: Market
    size: str
    subnet: Subnet

    def scope(self, reach: StrEnum) -> str:
        """The scope of a shortage that this alternative met. It is the same in every factory of the region."""
        scopes: Mapping[StrEnum, str] = {
            Reach.OFFER: f"{self.market}/{self.size}/{self.subnet.zone or self.subnet.id}",
            Reach.MARKET: f"{self.market}",
            Reach.SUBNET: f"subnet/{self.subnet.id}",
            Reach.ALL: "all",
        }
        return f"{scope_prefix(self.region)}/{scopes[reach]}"

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of every shortage that affects this alternative."""
        return frozenset(self.scope(reach) for reach in Reach)

    def __str__(self) -> str:
        return f"{self.size} {self.market} in {self.subnet.zone or self.subnet.id}"


def alternatives(settings: Settings) -> tuple[Alternative, ...]:
    """All alternatives: by market, then by subnet as listed. The order is always the same."""
    size = f"{settings.arch}-{settings.cpu:g}-{settings.memory}"
    return tuple(
        Alternative(settings.region, market, size, subnet)
        for market in MARKETS[settings.market]
        for subnet in settings.subnets
    )


def scope_prefix(region: str) -> str:
    """The beginning of every scope of a region."""
    return f"fargate/{region}"
