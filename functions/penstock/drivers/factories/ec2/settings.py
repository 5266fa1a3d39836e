"""What a site may say of an `ec2` factory: docs/operators/ec2.md has it as a table, keys.py checks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from penstock.drivers.factories.ec2.identity import PublicKey


class Market(StrEnum):
    """How a machine is bought."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


MARKETS: Mapping[str, tuple[Market, ...]] = {
    "on-demand": (Market.ON_DEMAND,),
    "spot": (Market.SPOT,),
    "spot-first": (Market.SPOT, Market.ON_DEMAND),
}


@dataclass(frozen=True)
class InstanceType:
    """An instance type, and what an hour of it costs on demand."""

    name: str
    price: float | None = None


@dataclass(frozen=True)
class Subnet:
    """Where a machine may be. `zone` is only for telling shortages apart."""

    id: str
    zone: str | None = None


@dataclass(frozen=True)
class Disk:
    """The root volume. `device` must be the image's own name for it, or a second volume would be made."""

    device: str
    size: int
    type: str = "gp3"
    iops: int | None = None
    throughput: int | None = None
    encrypted: bool | None = None


@dataclass(frozen=True)
class Template:
    """A launch template, for what is not a setting here."""

    id: str
    version: str = "$Default"


@dataclass(frozen=True)
class Settings:
    """What the machines of a factory are."""

    region: str
    types: tuple[InstanceType, ...]
    image: str | None = None
    subnets: tuple[Subnet, ...] = ()
    price_band: float | None = None
    max_price: float | None = None
    market: str = "on-demand"
    security_groups: tuple[str, ...] = ()
    public_ip: bool | None = None
    key_name: str | None = None
    profile: str | None = None
    disk: Disk | None = None
    template: Template | None = None
    quota_groups: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    user_data: str = ""
    python: str = "python3"
    linger: int = 60
    identity: tuple[PublicKey, ...] = ()
