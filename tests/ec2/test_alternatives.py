"""In which order machines are looked for, and how far each shortage reaches."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.drivers.factories.aws.settings import Market, Subnet
from penstock.drivers.factories.ec2 import settings as ec2_settings
from penstock.drivers.factories.ec2.alternatives import Alternative, Reach, alternatives, group_of
from penstock.ports import PlacementDriver
from tests.ec2.fake import Ec2
from tests.ec2.helpers import factory

PRICED = [
    {"name": "c7g.xlarge", "price": 0.14},
    {"name": "m7g.large", "price": 0.08},
    {"name": "m7a.large", "price": 0.11},
]


def ways(**more: Any) -> list[str]:
    given = {"region": "eu-west-1", "image": "ami-1", "types": ["m7g.large", "c7g.xlarge"], **more}
    return [str(way) for way in alternatives(ec2_settings.read(given))]


def test_the_cheapest_first_and_every_subnet_of_a_type_before_the_next() -> None:
    subnets = ["subnet-1", {"id": "subnet-2", "zone": "eu-west-1b"}]
    assert ways(types=PRICED[:2], subnets=subnets) == [
        "m7g.large on-demand in subnet-1",
        "m7g.large on-demand in eu-west-1b",
        "c7g.xlarge on-demand in subnet-1",
        "c7g.xlarge on-demand in eu-west-1b",
    ]


def test_without_prices_the_order_is_the_sites() -> None:
    assert ways(types=["c7g.xlarge", "m7g.large"]) == ["c7g.xlarge on-demand", "m7g.large on-demand"]


def test_all_of_spot_before_anything_on_demand() -> None:
    assert ways(market="spot-first") == [
        "m7g.large spot",
        "c7g.xlarge spot",
        "m7g.large on-demand",
        "c7g.xlarge on-demand",
    ]
    assert ways(market="spot") == ["m7g.large spot", "c7g.xlarge spot"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"price_band": 1.5}, ["m7g.large on-demand", "m7a.large on-demand"]),
        ({"price_band": 1}, ["m7g.large on-demand"]),
        ({"max_price": 0.1}, ["m7g.large on-demand"]),
        (
            {"max_price": 0.1, "market": "spot-first"},
            ["m7g.large spot", "m7a.large spot", "c7g.xlarge spot", "m7g.large on-demand"],
        ),
    ],
)
def test_what_is_too_dear_is_left_out(more: dict[str, Any], expected: list[str]) -> None:
    assert ways(types=PRICED, **more) == expected


def test_a_region_is_shared_by_all_factories_there_and_by_no_other() -> None:
    """EC2 counts what an account has in a region, whoever made it; a region's name may begin as another's does."""
    (way,) = alternatives(ec2_settings.read({"region": "eu-west-1", "image": "ami-1", "types": ["m7g.large"]}))
    ours, longer, other = (factory(Ec2(), region=region) for region in ("eu-west-1", "eu-west-10", "us-east-1"))
    assert all(ours.shares_scope(scope) for scope in way.scopes)
    assert not any(driver.shares_scope(scope) for scope in way.scopes for driver in (longer, other))
    assert not ours.shares_scope("type/linux")
    assert isinstance(ours, PlacementDriver)


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("m7g.large", "standard"),
        ("im4gn.large", "standard"),
        ("i4i.large", "standard"),
        ("inf2.xlarge", "inf"),
        ("t4g.small", "standard"),
        ("trn1.2xlarge", "trn"),
        ("h1.2xlarge", "standard"),
        ("hpc7g.4xlarge", "hpc"),
        ("dl1.24xlarge", "dl"),
        ("g5.xlarge", "g"),
        ("vt1.3xlarge", "g"),
        ("p5.48xlarge", "p"),
        ("u-6tb1.metal", "u"),
        ("mac2.metal", "mac"),
        ("q9.large", "q9"),
    ],
)
def test_vcpus_are_limited_by_groups_of_families(name: str, group: str) -> None:
    assert group_of(name, {}) == group


def test_a_site_may_know_better() -> None:
    assert group_of("p5.48xlarge", {"p5": "p5"}) == "p5"
    assert group_of("p4d.24xlarge", {"p5": "p5"}) == "p"


HERE = Alternative("eu-west-1", Market.SPOT, "m7g.large", "standard", Subnet("subnet-1", "eu-west-1a"))
OTHERS = {
    "same": Alternative("eu-west-1", Market.SPOT, "m7g.large", "standard", Subnet("subnet-1", "eu-west-1a")),
    "zone": Alternative("eu-west-1", Market.SPOT, "m7g.large", "standard", Subnet("subnet-9", "eu-west-1b")),
    "subnet": Alternative("eu-west-1", Market.SPOT, "m7g.large", "standard", Subnet("subnet-2", "eu-west-1a")),
    "type": Alternative("eu-west-1", Market.SPOT, "m7a.large", "standard", Subnet("subnet-1", "eu-west-1a")),
    "group": Alternative("eu-west-1", Market.SPOT, "g5.xlarge", "g", Subnet("subnet-1", "eu-west-1a")),
    "market": Alternative("eu-west-1", Market.ON_DEMAND, "m7g.large", "standard", Subnet("subnet-1", "eu-west-1a")),
    "region": Alternative("us-east-1", Market.SPOT, "m7g.large", "standard", Subnet("subnet-1", "eu-west-1a")),
}


@pytest.mark.parametrize(
    ("reach", "stopped"),
    [
        (Reach.OFFER, {"same", "subnet"}),
        (Reach.TYPE, {"same", "subnet", "zone"}),
        (Reach.GROUP, {"same", "subnet", "zone", "type"}),
        (Reach.PLACE, {"same", "subnet", "type", "group", "market"}),
        (Reach.SUBNET, {"same", "type", "group", "market"}),
        (Reach.ALL, set(OTHERS) - {"region"}),
    ],
)
def test_a_shortage_stops_what_it_reaches_and_no_more(reach: Reach, stopped: set[str]) -> None:
    """What runs out on the spot market never stops on-demand, nor one type another."""
    scope = HERE.scope(reach)
    assert {name for name, other in OTHERS.items() if scope in other.scopes} - {"region"} == stopped
    assert scope not in OTHERS["region"].scopes


def test_without_subnets_ec2_chooses_the_place() -> None:
    anywhere = Alternative("eu-west-1", Market.SPOT, "m7g.large", "standard")
    assert anywhere.scope(Reach.OFFER) == "ec2/eu-west-1/spot/m7g.large/any"
    assert str(anywhere) == "m7g.large spot"
