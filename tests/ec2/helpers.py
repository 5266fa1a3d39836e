"""A factory at the fake, and an order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.aws.tags import SITE
from penstock.drivers.factories.ec2.factory import Ec2Factory
from penstock.kernel import rows
from penstock.ports import NotYet, Order
from tests.ec2.authority import authority
from tests.ec2.fake import Ec2, Instance

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORKER, OTHER, *MORE = (f"w-{rows.ulid(NOW, bytes([*bytes(9), number]))}" for number in range(9))
HERE = "Penstock.eu-west-1"
KEY = "k" * 64
SETTINGS: dict[str, Any] = {
    "region": "eu-west-1",
    "image": "ami-0a",
    "types": ["m7g.large", "m7a.large"],
    "subnets": [{"id": "subnet-a", "zone": "eu-west-1a"}, {"id": "subnet-b", "zone": "eu-west-1b"}],
}


def factory(ec2: Ec2, name: str = "aws", site: str = HERE, **more: Any) -> Ec2Factory:
    """A driver that shares nothing with others but EC2."""
    return Ec2Factory({**SETTINGS, **more}, {SITE: site, MAKER: name}, ec2.client)


def order(worker: str = WORKER, **more: Any) -> Order:
    return Order(worker, "linux", "1", url="https://penstock.example", key=KEY, **more)


def clean(driver: Ec2Factory, worker: str = WORKER) -> CleanProof:
    """Clean until it is clean, long after it was ordered."""
    for _ in range(50):
        done = driver.destroy(worker, NOW + timedelta(hours=1))
        if isinstance(done, CleanProof):
            return done
        assert isinstance(done, NotYet)
    raise AssertionError("it does not get clean")


def only(ec2: Ec2) -> Instance:
    """The one machine that there is."""
    (made,) = ec2.instances.values()
    return made


LEAST: dict[str, Any] = {"region": "eu-west-1", "image": "ami-0123456789abcdef0", "types": ["m7g.large"]}


FULL: dict[str, Any] = {
    "region": "us-gov-east-1",
    "image": "/penstock/worker",
    "types": [{"name": "m7g.large", "price": 0.08}, {"name": "u-6tb1.metal", "price": 55}],
    "subnets": ["subnet-1", {"id": "subnet-2", "zone": "us-gov-east-1b"}],
    "price_band": 1.5,
    "max_price": 60,
    "market": "spot-first",
    "security_groups": ["sg-1"],
    "public_ip": False,
    "key_name": "ops",
    "profile": "arn:aws:iam::123456789012:instance-profile/workers",
    "disk": {"device": "/dev/xvda", "size": 40, "iops": 3000, "throughput": 250, "encrypted": True},
    "template": {"id": "lt-1", "version": "3"},
    "quota_groups": {"p5": "p5"},
    "tags": {"team": "tools"},
    "user_data": "dnf install -y git\n",
    "python": "/usr/bin/python3.11",
    "linger": 0,
    "identity": authority().pem,
}
