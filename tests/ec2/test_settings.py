"""What a site may say of an ec2 factory, and what it is told about the rest."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.drivers.factories.aws.settings import Subnet
from penstock.drivers.factories.ec2 import settings
from penstock.drivers.factories.ec2 import settings as ec2_settings
from penstock.drivers.factories.ec2.settings import Disk, InstanceType, Template
from penstock.kernel.errors import Misconfigured
from tests.ec2.helpers import FULL, LEAST


def test_the_least_and_the_most_that_can_be_said() -> None:
    assert ec2_settings.complaints(LEAST) == []
    assert ec2_settings.complaints(FULL) == []
    found = ec2_settings.read(FULL)
    assert found.types == (InstanceType("m7g.large", 0.08), InstanceType("u-6tb1.metal", 55.0))
    assert found.subnets == (Subnet("subnet-1"), Subnet("subnet-2", "us-gov-east-1b"))
    assert found.disk == Disk("/dev/xvda", 40, "gp3", 3000, 250, True)
    assert found.template == Template("lt-1", "3")
    assert set(FULL) == set(settings.Settings.__dataclass_fields__), "every setting is in this test"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"region": None}, "`ec2` has no `region`"),
        ({"region": "Ireland"}, "`ec2.region`: `Ireland` is not a region"),
        ({"types": None}, "`ec2` has no `types`"),
        ({"types": []}, "`ec2.types` is empty: name at least one"),
        (
            {"types": "m7g.large"},
            '`ec2.types` wants a list of instance types, not a string: in brackets: ["m7g.large"]',
        ),
        ({"types": ["large"]}, 'an entry of `ec2.types`: `large` is not an instance type: like "m7g.large"'),
        ({"types": [{"price": 1}]}, "has no `name`"),
        ({"types": [{"name": "m7g.large", "price": "1"}]}, "wants a price per hour, not a string"),
        ({"types": [{"name": "m7g.large", "price": 0}]}, "must be more than 0"),
        ({"types": [{"name": "m7g.large", "price": 1}, "m7a.large"]}, "give every type a price, or none"),
        ({"image": None}, "neither `image` nor `template`"),
        ({"image": "ubuntu"}, "`ubuntu` is not an image"),
        ({"image": "/other/secret"}, "below /penstock/ or /aws/service/"),
        ({"subnets": ["vpc-1"]}, "`vpc-1` is not a subnet's id"),
        ({"price_band": 2}, "no prices, which the price limits need"),
        ({"price_band": 0.5}, "must be 1 or more"),
        ({"max_price": 2}, "no prices, which the price limits need"),
        ({"types": [{"name": "m7g.large", "price": 3}], "max_price": 2}, "below every type's price (3.0)"),
        ({"market": "cheap"}, "`cheap` is not allowed here: one of: on-demand, spot, spot-first"),
        ({"security_groups": ["default"]}, "`default` is not a security group's id"),
        ({"public_ip": True}, "`ec2.public_ip` needs `subnets`"),
        ({"public_ip": "no"}, "wants true or false"),
        ({"disk": {"size": 40}}, "has no `device`"),
        ({"disk": {"device": "xvda", "size": 40}}, "`xvda` is not a device"),
        ({"disk": {"device": "/dev/xvda", "size": 0}}, "must be from 1 to 65536"),
        ({"disk": {"device": "/dev/xvda", "size": 1, "type": "ssd"}}, "`ssd` is not allowed here"),
        ({"template": {"id": "lt-1", "version": "latest"}}, "`latest` is not a version"),
        ({"tags": {"penstock:site": "x"}}, "`penstock:site` cannot be set"),
        ({"tags": {"aws:x": "x"}}, "`aws:x` cannot be set"),
        ({"tags": {"Name": "x"}}, "`Name` cannot be set"),
        ({"user_data": "x" * 7000}, "longer than 6144 bytes"),
        ({"user_data": 1}, "wants shell commands"),
        ({"python": "python3; rm"}, "is not a program"),
        ({"linger": "1h"}, "wants a whole number"),
        ({"imgae": "x"}, "unknown key `imgae`: did you mean `image`?"),
        ({"types": [f"m{n}.large" for n in range(30)], "market": "spot-first"}, "make 60 alternatives: at most 48"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(change: dict[str, Any], said: str) -> None:
    given = {key: value for key, value in {**LEAST, **change}.items() if value is not None}
    found = ec2_settings.complaints(given)
    assert any(said in each for each in found), found
    with pytest.raises(Misconfigured):
        ec2_settings.read(given)


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert len(ec2_settings.complaints({"region": 1, "types": 2, "image": 3, "market": 4})) == 4


def test_an_image_may_come_from_the_template() -> None:
    assert ec2_settings.complaints({"region": "eu-west-1", "types": ["m7g.large"], "template": {"id": "lt-1"}}) == []


def test_a_bid_has_nothing_to_do_with_prices_on_demand() -> None:
    assert ec2_settings.complaints({**LEAST, "market": "spot", "max_price": 0.05}) == []
    priced = {"types": [{"name": "m7g.large", "price": 0.08}], "market": "spot", "max_price": 0.05}
    assert ec2_settings.complaints({**LEAST, **priced}) == []
